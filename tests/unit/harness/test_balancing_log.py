"""Which lines of a broker's log belong to a shedding cycle, and which unloads they name."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from decisions.recording import Unload
from harness.balancing_log import logged_cycles

BUNDLE = "retail/orders/0x00000000_0x40000000"
A, B = "127.0.0.1:15784", "127.0.0.2:22830"
LOAD = "[pulsar-load-manager-1-1]"
MODULAR = f"ModularLoadManagerImpl - [ThresholdShedder] Unloading bundle: {BUNDLE} from broker {A} to dest broker {B}"
QUIET = f"ThresholdShedder - [{A}] broker is not overloaded, ignoring at this point (cpu: 9.33%)"


def log_of(folder: Path, *lines: tuple[str, str], name: str = "broker-1.log") -> Path:
    log = folder / name
    log.write_text("".join(f"2026-11-22T02:{time} INFO  {LOAD} {text}\n" for time, text in lines))
    return log


def at_ms(time: str) -> int:
    return round(datetime.fromisoformat(f"2026-11-22T02:{time}").astimezone().timestamp() * 1000)


@pytest.mark.parametrize(
    ("line", "unload"),
    [
        (MODULAR, Unload(BUNDLE, A, B)),
        (
            f"UnloadScheduler - [TransferShedder] Unloading bundle: Unload[sourceBroker={A}, serviceUnit={BUNDLE}, "
            f"destBroker=Optional[{B}], force=true]",
            Unload(BUNDLE, A, B),
        ),
        (
            "ModularLoadManagerImpl - Unloading bundle from source broker to dest broker "
            f"{{bundle={BUNDLE}, class=AvgShedder, destBroker={B}, sourceBroker={A}}}",
            Unload(BUNDLE, A, B),
        ),
        (
            f"UnloadScheduler - Unloading bundle {{bundle=Unload[sourceBroker={A}, serviceUnit={BUNDLE}, "
            f"destBroker=Optional[{B}], force=true], strategy=TransferShedder}}",
            Unload(BUNDLE, A, B),
        ),
        (
            f"SimpleLoadManagerImpl - Unloading namespace {BUNDLE} from overloaded broker http://{A}",
            Unload(BUNDLE, A, None),
        ),
    ],
)
def test_every_managers_line_about_an_unload_is_read(tmp_path: Path, line: str, unload: Unload) -> None:
    (cycle,) = logged_cycles([log_of(tmp_path, ("34:32.605".replace(".", ","), line))], 0)
    assert cycle.unloads == (unload,)
    assert cycle.at_ms == at_ms("34:32.605")


def test_lines_within_seconds_are_one_cycle_and_a_minute_later_is_the_next(tmp_path: Path) -> None:
    log = log_of(tmp_path, ("33:31,670", QUIET), ("33:33,100", MODULAR), ("34:33,200", QUIET))
    first, second = logged_cycles([log], 0)
    assert (first.at_ms, len(first.unloads), len(first.said)) == (at_ms("33:31.670"), 1, 2)
    assert (second.at_ms, second.unloads) == (at_ms("34:33.200"), ())


def test_cycles_before_the_begin_and_lines_about_placement_are_left_out(tmp_path: Path) -> None:
    placed = f"AvgShedder - Assignment details: brokers=[{A}], bundle=x, hashcode=1, index=0"
    log = log_of(tmp_path, ("33:31,670", QUIET), ("34:00,000", placed), ("34:32,000", QUIET))
    assert [cycle.at_ms for cycle in logged_cycles([log], at_ms("34:00.000"))] == [at_ms("34:32.000")]


def test_the_leader_may_change_from_one_log_to_another(tmp_path: Path) -> None:
    first = log_of(tmp_path, ("33:30,000", QUIET))
    second = log_of(tmp_path, ("34:30,000", QUIET), name="broker-2.log")
    assert len(logged_cycles([second, first], 0)) == 2


def test_a_cycle_in_which_the_shedder_said_nothing_is_put_in_its_place(tmp_path: Path) -> None:
    log = log_of(tmp_path, ("30:00,000", QUIET), ("33:00,600", MODULAR))
    cycles = logged_cycles([log], 0)
    assert [cycle.at_ms - cycles[0].at_ms for cycle in cycles] == [0, 60_200, 120_400, 180_600]
    assert [bool(cycle.said) for cycle in cycles] == [True, False, False, True]
