"""Whatever instant the process dies at, resuming ends where an undisturbed run ends, and nothing is done twice."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import event

from pulsar_advisor.documents.apply_result import ApplyResult
from pulsar_advisor.execution.ledger import held_run
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.opening import open_ledger
from pulsar_advisor.execution.ledger.runs import runs_of_plan
from pulsar_advisor.execution.ledger.steps import steps_of_run
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.model.plans.sealed import digest_of
from pulsar_advisor.storage.process import this_process
from unit.execution.actors import approved, run
from unit.execution.doubles import (
    B2,
    B3,
    BASKETS,
    LOWER,
    NAMESPACE,
    UPPER,
    FakeCluster,
    FakeTime,
    Killed,
    make_plan,
    split_step,
    unload_step,
    wide_plan,
    widen,
)
from unit.properties import examples


@dataclass(frozen=True)
class Case:
    """A plan, how many of its steps may be in flight, and what it leaves: effects, owners, the split namespace."""

    plan: Plan
    in_flight: int
    effects_after_s: tuple[float, ...]
    """How long the broker is at work; of several steps in flight, each is answered first."""
    effects: frozenset[str]
    owners: Mapping[str, str]
    split: str

    def __hash__(self) -> int:
        return hash(digest_of(self.plan))


ONE_BY_ONE = Case(
    make_plan([unload_step(), split_step()]),
    1,
    (0.0, 0.7, 25.0),
    frozenset({f"{NAMESPACE}/{LOWER}", f"{NAMESPACE}/{UPPER}"}),
    {f"{NAMESPACE}/{LOWER}": B2},
    NAMESPACE,
)
IN_WAVES = Case(
    wide_plan(),
    3,
    (0.2, 0.7, 2.0),
    frozenset(f"{namespace}/{bundle}" for namespace in (NAMESPACE, BASKETS) for bundle in (LOWER, UPPER)),
    {f"{NAMESPACE}/{LOWER}": B2, f"{NAMESPACE}/{UPPER}": B3, f"{BASKETS}/{LOWER}": B3},
    BASKETS,
)


class Reaper:
    """Counts the instants a process could die at (before and after each call and each commit) and kills at one.

    Nothing that would tidy up reaches the cluster any more.
    """

    def __init__(self, kill_at: int | None) -> None:
        self.cluster: FakeCluster | None = None
        self.kill_at = kill_at
        self.instants = 0

    def pass_by(self, *_: object) -> None:
        self.instants += 1
        if self.instants == self.kill_at:
            assert self.cluster is not None
            self.cluster.unreadable = True
            raise Killed

    def watch(self, ledger: Ledger, cluster: FakeCluster) -> None:
        self.cluster, cluster.unreadable = cluster, False
        cluster.on_event = self.pass_by
        event.listen(ledger._engine, "commit", self.pass_by)
        event.listen(ledger._sessions, "after_commit", self.pass_by)


def live_once(case: Case, url: str, cluster: FakeCluster, reaper: Reaper, pid: int) -> ApplyResult | None:
    """One process: apply, or resume what is unfinished, until the end or until killed."""
    ledger = open_ledger(url, cluster.time.now_ms)
    try:
        with mock.patch.object(held_run, "this_process", return_value=replace(this_process(), id=pid)):
            resume = any(row.state in ("active", "stopped") for row in runs_of_plan(ledger, digest_of(case.plan)))
            reaper.watch(ledger, cluster)
            return run(case.plan, ledger, cluster, resume=resume, in_flight=case.in_flight)
    except Killed:
        return None
    finally:
        cluster.on_event = lambda _what: None
        ledger.close()


@cache
def ledger_with_approval(case: Case) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "ledger.sqlite"
        ledger = open_ledger(f"sqlite:///{file}", FakeTime().now_ms)
        approved(ledger, case.plan)
        ledger.close()
        return file.read_bytes()


def survive(case: Case, kills: list[int], effect_after_s: float) -> tuple[FakeCluster, ApplyResult, int]:
    """Processes that die at the given instants, one after the other, then one that is left alone."""
    cluster = widen(FakeCluster(FakeTime(), effect_after_s=effect_after_s, answers_first=case.in_flight > 1))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "ledger.sqlite"
        file.write_bytes(ledger_with_approval(case))
        url = f"sqlite:///{file}"
        dead_pids = itertools.count(900_000_001)  # above any real pid, so that the next process sees them gone
        died = [live_once(case, url, cluster, Reaper(kill_at), next(dead_pids)) is None for kill_at in kills]
        assert all(died[:1]), "a later one may end before its instant"
        last = Reaper(None)
        result = live_once(case, url, cluster, last, next(dead_pids))
    assert result is not None
    return cluster, result, last.instants


def assert_done_once(case: Case, cluster: FakeCluster, result: ApplyResult) -> None:
    assert result.outcome in ("done", "nothing_to_do"), result.sentence
    assert sorted(cluster.effects) == sorted(case.effects)
    assert len(cluster.writes) == len(case.effects)
    assert case.owners.items() <= cluster.owners.items()
    assert "0xbfffffff" in cluster.boundaries(case.split)


@cache
def instants_of(case: Case) -> int:
    return survive(case, [], min(case.effects_after_s))[2]


SAMPLED = 29
"""`make test` kills a run at every 29th instant, `make test-full` at every one."""


def instants() -> Iterator[object]:
    for name, case in (("one by one", ONE_BY_ONE), ("in waves", IN_WAVES)):
        for instant in range(1, instants_of(case) + 1):
            marks = [] if instant % SAMPLED == 0 else [pytest.mark.full]
            yield pytest.param(case, instant, id=f"{name}-{instant}", marks=marks)


EVERY_INSTANT = list(instants())


def test_several_steps_are_in_flight_when_a_wave_is_killed() -> None:
    cluster = widen(FakeCluster(FakeTime(), effect_after_s=0.7, answers_first=True))
    in_flight: list[int] = []
    with tempfile.TemporaryDirectory() as folder:
        ledger = open_ledger(f"sqlite:///{folder}/ledger.sqlite", cluster.time.now_ms)
        approved(ledger, IN_WAVES.plan)
        digest = digest_of(IN_WAVES.plan)

        def count(_what: str) -> None:
            steps = steps_of_run(ledger, runs_of_plan(ledger, digest)[-1].id)
            in_flight.append(sum(step.state == "sent" for step in steps.values()))

        cluster.on_event = count
        run(IN_WAVES.plan, ledger, cluster, in_flight=IN_WAVES.in_flight)
        ledger.close()
    assert max(in_flight) == 2


@pytest.mark.parametrize(("case", "instant"), EVERY_INSTANT)
def test_a_crash_at_any_instant_is_survived(case: Case, instant: int) -> None:
    cluster, result, _ = survive(case, [instant], min(case.effects_after_s))
    assert_done_once(case, cluster, result)


@pytest.mark.parametrize(("case", "instant"), EVERY_INSTANT)
def test_a_call_whose_effect_is_still_to_come_is_waited_for(case: Case, instant: int) -> None:
    cluster, result, _ = survive(case, [instant], max(case.effects_after_s))
    assert_done_once(case, cluster, result)


@pytest.mark.parametrize("case", [ONE_BY_ONE, IN_WAVES], ids=["one by one", "in waves"])
@examples(10)
@given(data=st.data())
def test_any_row_of_crashes_is_survived(case: Case, data: st.DataObject) -> None:
    kills = data.draw(st.lists(st.integers(1, instants_of(case)), max_size=4))
    cluster, result, _ = survive(case, kills, data.draw(st.sampled_from(case.effects_after_s)))
    assert_done_once(case, cluster, result)
