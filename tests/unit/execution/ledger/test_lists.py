"""Lists read small rows, and only as many as they show."""

from __future__ import annotations

import json

import pytest
from sqlalchemy import event

from pulsar_advisor.execution.consent.approval import propose
from pulsar_advisor.execution.ledger import lists
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.plan_states import states_of
from pulsar_advisor.execution.ledger.plan_summary import summary_of
from pulsar_advisor.execution.ledger.tables import Verification, VerifiedBroker
from pulsar_advisor.execution.ledger.verifications import record_verification
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.model.plans.sealed import digest_of, seal
from unit.execution.actors import ALICE, approved, run
from unit.execution.doubles import B1, B2, B3, FakeCluster, make_plan, unload_step

PLANS = [make_plan([unload_step()], seed=seed, snapshot=f"2026112{seed}T083000Z") for seed in range(4)]


def digests(plans: list[Plan]) -> list[str]:
    return [digest_of(plan) for plan in plans]


@pytest.fixture
def proposed(ledger: Ledger) -> Ledger:
    for plan in PLANS:
        propose(ledger, plan, ALICE)
    return ledger


def test_plans_are_listed_in_parts_newest_first(proposed: Ledger) -> None:
    parts = [lists.summaries(proposed, PLANS[0].cluster, first=first, count=3) for first in (0, 3)]
    assert [[plan.digest for plan in part] for part in parts] == [digests(PLANS[:0:-1]), digests(PLANS[:1])]


def test_a_list_of_plans_reads_no_document(proposed: Ledger) -> None:
    statements: list[str] = []
    event.listen(proposed._engine, "before_cursor_execute", lambda *call: statements.append(call[2]))
    cluster = PLANS[0].cluster
    assert len(states_of(proposed, cluster, lists.summaries(proposed, cluster))) == len(PLANS)
    assert not [statement for statement in statements if "plans.document" in statement]
    assert len([statement for statement in statements if statement.startswith("SELECT")]) < 2 * len(PLANS)


def test_the_newest_events_are_those_of_all_plans_of_the_cluster(proposed: Ledger, cluster: FakeCluster) -> None:
    run(approved(proposed, PLANS[1]), proposed, cluster)
    propose(proposed, make_plan([unload_step()], cluster="another"), ALICE)
    every = sorted((one.id for plan in PLANS for one in proposed.events(digest_of(plan))), reverse=True)
    for count in (1, 3, len(every) - 1, len(every) + 9):
        assert [one.id for one in lists.newest_events(proposed, PLANS[0].cluster, count)] == every[:count]


def test_events_are_read_back_from_one(proposed: Ledger) -> None:
    approved(proposed, PLANS[1])
    every = [one.id for one in proposed.events(digest_of(PLANS[1]))]
    assert [one.id for one in proposed.events(digest_of(PLANS[1]), before=every[-1], count=1)] == every[-2:-1]


def test_the_newest_run_of_each_cluster_is_found(proposed: Ledger, cluster: FakeCluster) -> None:
    assert lists.newest_runs(proposed) == {}
    run(approved(proposed, PLANS[1]), proposed, cluster)
    newest = lists.newest_runs(proposed)[PLANS[0].cluster]
    assert [newest.id] == [one.id for one in lists.runs_on(proposed, PLANS[0].cluster)]


@pytest.mark.parametrize(
    ("judged", "maximum", "imbalance"),
    [(True, 0.6, 0.2), (False, None, None)],
    ids=["judged", "from before the run ended"],
)
def test_the_usage_after_a_run_is_that_of_the_brokers_that_are_known_if_it_was_judged(
    proposed: Ledger, cluster: FakeCluster, judged: bool, maximum: float | None, imbalance: float | None
) -> None:
    number = run(approved(proposed, PLANS[1]), proposed, cluster).run
    seen = Verification(run_id=number, snapshot="S", at_ms=1, usage_judged=judged, as_predicted=True)
    usages = {B1: 0.6, B2: 0.2, B3: None}
    brokers = [
        VerifiedBroker(broker=broker, actual_usage_ratio=usage, as_predicted=True) for broker, usage in usages.items()
    ]
    record_verification(proposed, seen, [], brokers)
    [after] = lists.after_runs(proposed, PLANS[1].cluster, 5).values()
    assert (after.run, after.maximum_ratio, after.imbalance_ratio) == (number, maximum, pytest.approx(imbalance))
    assert list(lists.newest_after_run(proposed).values()) == [after]


def test_plans_that_do_the_same_have_the_same_steps() -> None:
    same = summary_of(seal(PLANS[0]).content.decode()), summary_of(seal(PLANS[1]).content.decode())
    other = summary_of(seal(make_plan([unload_step(executable=False)])).content.decode())
    assert same[0].steps_sha256 == same[1].steps_sha256 != other.steps_sha256


@pytest.mark.parametrize(
    "document", ["", "[]", '{"shedder": 7}', '{"steps": ' + "[" * 10_000, "NaN", json.dumps({"steps": [1]})]
)
def test_a_plan_that_can_not_be_read_says_so(document: str) -> None:
    summary = summary_of(document)
    assert summary.problem.startswith("its document can't be read: ")
    assert summary.executable_steps == 0
