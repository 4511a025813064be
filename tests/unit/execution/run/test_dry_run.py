from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from pulsar_advisor.execution.consent.approval import withdraw
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.runs import runs_of_plan
from pulsar_advisor.model.plans.plan import Plan, Prediction, StepPrediction
from pulsar_advisor.model.plans.sealed import digest_of, load_plan
from unit.execution.actors import BOB, approved, carried_out, kinds, run
from unit.execution.doubles import (
    B1,
    B2,
    B3,
    BASKETS,
    CUT,
    LOWER,
    LOWER_BUNDLE,
    MOVE,
    NAMESPACE,
    UPPER,
    UPPER_BUNDLE,
    FakeCluster,
    FakeTime,
    forecast,
    make_plan,
    unload_step,
    widen,
)

EARLIER_PLAN = Path(__file__).parents[3] / "data/plans/without-checks.json"


def test_a_dry_run_shows_the_calls_and_leaves_cluster_and_ledger_alone(ledger: Ledger, cluster: FakeCluster) -> None:
    child = unload_step(3, CUT.children[0], after=(CUT.id,))
    plan = approved(ledger, make_plan([MOVE, CUT, child]))
    events = kinds(ledger, plan)
    result = run(plan, ledger, cluster, dry_run=True)
    assert (result.outcome, result.exit_code, result.refusals) == ("dry_run", 0, ())
    assert [str(step.request) for step in result.steps] == [
        f"PUT /admin/v2/namespaces/{LOWER_BUNDLE}/unload?destinationBroker={B2}",
        f"PUT /admin/v2/namespaces/{UPPER_BUNDLE}/split?unload=false&splitAlgorithmName=specified_positions_divide"
        " [3221225471]",
        f"PUT /admin/v2/namespaces/{NAMESPACE}/{CUT.children[0]}/unload?destinationBroker={B2}",
    ]
    assert (cluster.writes, kinds(ledger, plan), runs_of_plan(ledger, digest_of(plan))) == ([], events, [])


def test_a_dry_run_accepts_nothing_that_only_a_withdrawn_approval_accepted(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    plan = approved(ledger, make_plan([MOVE]))
    withdraw(ledger, digest_of(plan), BOB)
    approved(ledger, plan, consents=())
    cluster.usage = {B2: 0.8}
    result = run(plan, ledger, cluster, dry_run=True)
    assert [reason.partition(": ")[2] for reason in result.refusals] == [
        f"the destination {B2} is at 80.0% now and would be at 110.0%; above 85% it is overloaded"
    ]


def test_a_preview_counts_on_what_earlier_steps_take_from_a_destination(ledger: Ledger, cluster: FakeCluster) -> None:
    cluster.owners[UPPER_BUNDLE] = B2
    relief = unload_step(1, UPPER, B2, B3, predicted=StepPrediction(brokers={B2: 0.5, B3: 0.5}))
    move = unload_step(2, predicted=StepPrediction(brokers={B1: 0.5, B2: 0.7}))
    before, after = forecast({B1: 0.8, B2: 0.7, B3: 0.3}), forecast({B1: 0.5, B2: 0.7, B3: 0.5})
    plan = make_plan([relief, move], predicted=Prediction(model="proportional", before=before, after=after))
    cluster.usage[B2] = 0.7
    assert run(approved(ledger, plan, consents=()), ledger, cluster, dry_run=True).refusals == ()
    cluster.usage[B2] = 0.9
    assert "would be at 90.0%" in run(plan, ledger, cluster, dry_run=True).refusals[0]


def test_a_dry_run_of_a_run_that_stopped_shows_what_is_left(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, make_plan([MOVE, CUT]))
    cluster.owners[UPPER_BUNDLE] = B3
    run(plan, ledger, cluster)
    cluster.owners[UPPER_BUNDLE] = B1
    result = run(plan, ledger, cluster, dry_run=True, resume=True)
    assert (result.exit_code, result.sentence) == (0, "dry run: 1 call, 0 reasons to refuse; nothing was sent")
    assert [(step.id, step.detail) for step in result.steps] == [(CUT.id, "would be sent")]
    assert run(plan, ledger, cluster, resume=True).outcome == "done"


def test_a_dry_run_judges_no_step_whose_outcome_is_to_be_looked_at_first(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, make_plan([MOVE]))
    cluster.once("after the call", lambda: setattr(cluster, "unreadable", True))
    run(plan, ledger, cluster)
    cluster.unreadable = False
    result = run(plan, ledger, cluster, dry_run=True, resume=True)
    assert (result.refusals, result.steps[0].detail) == ((), "unresolved: would be looked at first")


def test_a_dry_run_counts_no_call_that_would_be_skipped(ledger: Ledger, cluster: FakeCluster) -> None:
    cluster.owners[LOWER_BUNDLE] = B3
    result = carried_out(
        ledger, cluster, MOVE, unload_step(3, UPPER, after=(MOVE.id,)), CUT, dry_run=True, on_drift="skip"
    )
    assert [step.state for step in result.steps] == ["skipped", "skipped", "pending"]
    assert result.sentence == "dry run: 1 call, 0 reasons to refuse; nothing was sent"


@pytest.mark.parametrize(
    ("first", "second", "objections"),
    [
        pytest.param((B2, B3), (B1, B2), 0, id="the first makes room"),
        pytest.param((B2, B3), (B1, B3), 1, id="the second follows the first"),
    ],
)
def test_a_dry_run_counts_an_anti_affinity_group_where_earlier_steps_have_moved_it(
    ledger: Ledger, cluster: FakeCluster, first: tuple[str, str], second: tuple[str, str], objections: int
) -> None:
    widen(cluster).owners[f"{BASKETS}/{UPPER}"] = B2
    cluster.anti_affinity_peers = lambda namespace: frozenset({NAMESPACE, BASKETS}) - {namespace}  # type: ignore[method-assign]
    baskets = [unload_step(number, text, *first, namespace=BASKETS) for number, text in enumerate((LOWER, UPPER), 1)]
    plan = approved(ledger, make_plan([*baskets, unload_step(3, LOWER, *second)]))
    assert len(run(plan, ledger, cluster, dry_run=True).refusals) == objections
    assert run(plan, ledger, cluster).sentence.startswith(f"{3 - objections} of 3 steps confirmed")


def as_planned(plan: Plan, time: FakeTime) -> FakeCluster:
    """The cluster as a plan expects to find it, two dozen topics a namespace, an hour after the snapshot."""
    taken = datetime.strptime(plan.snapshot, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    time.ms = int(taken.timestamp() + 3600) * 1000
    cluster = FakeCluster(
        time,
        name=plan.identity.cluster_name,
        brokers=set(plan.identity.broker_ids),
        bounds={step.namespace: [int(bound, 16) for bound in step.expect.boundaries] for step in plan.steps},
        owners={step.bundle_name: step.expect.owner for step in reversed(plan.steps)},
    )
    cluster.all_topics = [f"persistent://{name}/topic-{n}" for name in cluster.bounds for n in range(24)]
    return cluster


def test_a_plan_of_an_earlier_release_is_approved_and_its_calls_are_shown(ledger: Ledger, time: FakeTime) -> None:
    plan = load_plan(EARLIER_PLAN.read_bytes())
    cluster = as_planned(plan, time)
    result = run(approved(ledger, plan), ledger, cluster, dry_run=True)
    assert (result.outcome, result.refusals) == ("dry_run", ())
    assert [step.action for step in result.steps] == ["unload"] * 4 + ["split"]
    assert cluster.writes == []


def test_a_dry_run_tells_everything_that_speaks_against_the_plan(ledger: Ledger, cluster: FakeCluster) -> None:
    cluster.owners[LOWER_BUNDLE] = B3
    plan = make_plan([MOVE, CUT])
    result = run(plan, ledger, cluster, dry_run=True, max_age_s=60)
    assert result.exit_code == 4
    assert [reason.split(" ")[0] for reason in result.refusals] == [digest_of(plan), "the", "step-001,"]
    assert [step.state for step in result.steps] == ["skipped", "pending"]


def test_a_dry_run_is_in_the_order_in_which_steps_are_sent(ledger: Ledger, cluster: FakeCluster) -> None:
    """The canary, of the fewest topics, comes first wherever the plan has it."""
    canary = unload_step(2, UPPER, expect=MOVE.expect.model_copy(update={"topics": 1}))
    plan = approved(ledger, make_plan([MOVE, canary]))
    shown = run(plan, ledger, cluster, dry_run=True)
    assert [step.id for step in shown.steps] == [canary.id, MOVE.id]
    run(plan, ledger, cluster)
    assert cluster.effects == [UPPER_BUNDLE, LOWER_BUNDLE]


def test_before_2_11_a_split_in_halves_goes_without_positions(ledger: Ledger, cluster: FakeCluster) -> None:
    result = run(make_plan([CUT], pulsar_version="2.10.5"), ledger, cluster, dry_run=True)
    assert str(result.steps[0].request).endswith("/split?unload=false&splitAlgorithmName=range_equally_divide")
