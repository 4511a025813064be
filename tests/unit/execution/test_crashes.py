"""Whatever instant the process dies at, resuming ends where an undisturbed run ends, and nothing is done twice."""

from __future__ import annotations

import itertools
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import event

from pulsar_advisor.execution import ledger as ledger_module
from pulsar_advisor.execution.apply import ApplyResult
from pulsar_advisor.execution.ledger import Ledger, open_ledger
from pulsar_advisor.model.plan import digest_of
from pulsar_advisor.storage.process import this_process
from unit.execution.actors import approved, run
from unit.execution.doubles import (
    B2,
    LOWER,
    NAMESPACE,
    UPPER,
    FakeCluster,
    FakeTime,
    Killed,
    make_plan,
    split_step,
    unload_step,
)

PLAN = make_plan([unload_step(), split_step()])


class Reaper:
    """Counts the instants a process could die at (before and after each call and each commit) and kills at one."""

    def __init__(self, kill_at: int | None) -> None:
        self.kill_at = kill_at
        self.instants = 0

    def pass_by(self, *_: object) -> None:
        self.instants += 1
        if self.instants == self.kill_at:
            raise Killed

    def watch(self, ledger: Ledger, cluster: FakeCluster) -> None:
        cluster.on_event = self.pass_by
        event.listen(ledger._engine, "commit", self.pass_by)
        event.listen(ledger._sessions, "after_commit", self.pass_by)


def live_once(url: str, cluster: FakeCluster, reaper: Reaper, pid: int) -> ApplyResult | None:
    """One process: apply, or resume what is unfinished, until the end or until killed."""
    ledger = open_ledger(url, cluster.time.now_ms)
    try:
        with mock.patch.object(ledger_module, "this_process", return_value=replace(this_process(), id=pid)):
            resume = any(row.state in ("active", "stopped") for row in ledger.runs(DIGEST))
            reaper.watch(ledger, cluster)
            return run(PLAN, ledger, cluster, resume=resume)
    except Killed:
        return None
    finally:
        cluster.on_event = lambda _what: None
        ledger.close()


@cache
def ledger_with_approval() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "ledger.sqlite"
        ledger = open_ledger(f"sqlite:///{file}", FakeTime().now_ms)
        approved(ledger, PLAN)
        ledger.close()
        return file.read_bytes()


def survive(kills: list[int], effect_after_s: float) -> tuple[FakeCluster, ApplyResult, int]:
    """Processes that die at the given instants, one after the other, then one that is left alone."""
    cluster = FakeCluster(FakeTime(), effect_after_s=effect_after_s)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "ledger.sqlite"
        file.write_bytes(ledger_with_approval())
        url = f"sqlite:///{file}"
        dead_pids = itertools.count(900_000_001)  # above any real pid, so that the next process sees them gone
        for kill_at in kills:
            live_once(url, cluster, Reaper(kill_at), next(dead_pids))
        last = Reaper(None)
        result = live_once(url, cluster, last, next(dead_pids))
    assert result is not None
    return cluster, result, last.instants


def assert_done_once(cluster: FakeCluster, result: ApplyResult) -> None:
    assert result.outcome in ("done", "nothing_to_do"), result.sentence
    assert cluster.effects == [f"{NAMESPACE}/{LOWER}", f"{NAMESPACE}/{UPPER}"]
    assert len(cluster.writes) == 2
    assert cluster.owners[f"{NAMESPACE}/{LOWER}"] == B2
    assert "0xbfffffff" in cluster.boundaries(NAMESPACE)


DIGEST = digest_of(PLAN)
_, _, INSTANTS = survive([], 0.0)


@pytest.mark.parametrize("instant", range(1, INSTANTS + 1))
def test_a_crash_at_any_instant_is_survived(instant: int) -> None:
    cluster, result, _ = survive([instant], effect_after_s=0.0)
    assert_done_once(cluster, result)


@pytest.mark.parametrize("instant", range(1, INSTANTS + 1))
def test_a_call_whose_effect_is_still_to_come_is_waited_for(instant: int) -> None:
    cluster, result, _ = survive([instant], effect_after_s=25.0)
    assert_done_once(cluster, result)


@settings(max_examples=60, deadline=None)
@given(kills=st.lists(st.integers(1, INSTANTS), max_size=4), effect_after_s=st.sampled_from([0.0, 0.7, 25.0]))
def test_any_row_of_crashes_is_survived(kills: list[int], effect_after_s: float) -> None:
    cluster, result, _ = survive(kills, effect_after_s)
    assert_done_once(cluster, result)
