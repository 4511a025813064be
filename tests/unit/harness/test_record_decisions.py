"""Which captures of a series a recording keeps for each cycle."""

from __future__ import annotations

from decisions.recording import Unload
from harness.balancing_log import LoggedCycle
from harness.record_decisions import (
    CROWDED,
    CROWDED_CYCLES,
    CYCLES_OF_A_LOAD,
    SCENARIOS,
    Capture,
    cycles_passed,
    with_captures,
)

MOVE = Unload("a/b/0x00000000_0xffffffff", "one:1", "two:2")


def captures(*moments_s: float) -> list[Capture]:
    """Each takes half a second; its name is the second at which it began."""
    return [Capture(str(at), round(at * 1000), round(at * 1000) + 500) for at in moments_s]


def cycle(at_s: float) -> LoggedCycle:
    return LoggedCycle(round(at_s * 1000), (MOVE,), ("said",))


def test_the_last_capture_that_ended_before_a_cycle_and_the_last_before_the_next_are_kept() -> None:
    first, second = with_captures([cycle(60), cycle(120)], captures(50, 55, 59.8, 61, 115, 119, 121, 175), ())
    assert (first.before, first.after) == ("55", "119")
    assert (second.before, second.after) == ("119", "175")


def test_a_cycle_before_the_first_capture_is_left_out() -> None:
    (kept,) = with_captures([cycle(60), cycle(120)], captures(61, 119, 175), ())
    assert kept.at_ms == 120_000


def test_no_next_state_is_known_once_the_load_has_changed() -> None:
    first, second = with_captures([cycle(60), cycle(120)], captures(55, 115, 175), [62_000])
    assert first.after is None
    assert second.after == "175"


def test_cycles_in_which_the_shedder_says_nothing_pass_too() -> None:
    # Else the load would not change before it finds something, and it finds nothing before the load changes.
    assert [cycles_passed([cycle(60), cycle(120)], now_ms) for now_ms in (121_000, 179_000, 305_000)] == [2, 2, 5]
    assert cycles_passed([], 305_000) == 0


def test_nothing_logged_gives_nothing() -> None:
    assert with_captures([], captures(1), ()) == ()


def test_every_scenario_is_named_after_shedder_release_and_manager() -> None:
    assert list(SCENARIOS) == [
        "ThresholdShedder-4.0.8-modular",
        "OverloadShedder-4.0.8-modular",
        "UniformLoadShedder-4.0.8-modular",
        "AvgShedder-4.0.8-modular",
        "SimpleLoadManagerImpl-4.0.8-simple",
        "TransferShedder-4.0.8-extensible",
        "TransferShedder-4.2.4-extensible",
        "TransferShedder-4.0.8-extensible-restless",
        "ThresholdShedder-4.0.8-modular-crowded",
        "OverloadShedder-4.0.8-modular-crowded",
        "UniformLoadShedder-4.0.8-modular-crowded",
        "AvgShedder-4.0.8-modular-crowded",
        "TransferShedder-4.0.8-extensible-crowded",
        "AvgShedder-5.0.1-modular-crowded",
        "AvgShedder-5.0.1-modular",
        "ThresholdShedder-5.0.1-modular",
        "TransferShedder-5.0.1-extensible",
    ]


def test_of_a_crowded_cluster_the_first_minutes_are_recorded_before_the_load_changes() -> None:
    assert CROWDED_CYCLES < CYCLES_OF_A_LOAD
    assert all(scenario.settings["loadBalancerSheddingGracePeriodMinutes"] == "2" for scenario in CROWDED)
