from __future__ import annotations

import re
from collections.abc import Callable
from unittest.mock import Mock

import pytest

from pulsar_advisor.execution.consent.approval import propose, why_not_again
from pulsar_advisor.execution.ledger.approvals import approvals_of_plan
from pulsar_advisor.execution.ledger.held_run import start_run
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.proposals import proposals_of_plan
from pulsar_advisor.execution.ledger.steps import steps_of_run
from pulsar_advisor.execution.run.preconditions import NEW_PLAN, observed_at
from pulsar_advisor.execution.run.steering import abort
from pulsar_advisor.execution.undo import can_be_undone, forecast_with, propose_undo, require_takes_back
from pulsar_advisor.model.cluster.bundle_range import parse_range
from pulsar_advisor.model.cluster.cluster_state import IsolationPolicy
from pulsar_advisor.model.errors import Refused
from pulsar_advisor.model.plans.names import short
from pulsar_advisor.model.plans.plan import Doubt, Identity, Plan, StepPrediction
from pulsar_advisor.model.plans.sealed import digest_of, dump_plan, load_plan
from pulsar_advisor.planning.plans.consent import needed_consents
from unit.execution.actors import ALICE, approved, carried_out, killed_at_work, run
from unit.execution.doubles import (
    B1,
    B2,
    B3,
    BASKETS,
    LOWER,
    LOWER_BUNDLE,
    NAMESPACE,
    UPPER,
    UPPER_BUNDLE,
    FakeCluster,
    forecast,
    make_plan,
    split_step,
    unload_step,
    widen,
)

BOTH = [unload_step(1, LOWER, B1, B2), unload_step(2, UPPER, B1, B3)]


def undo_of_run(ledger: Ledger, cluster: FakeCluster, plan: Plan, **options: object) -> Plan:
    """The undo plan of a run of this plan."""
    run(approved(ledger, plan), ledger, cluster, **options)
    undo = propose_undo(plan, ledger, cluster)
    require_takes_back(undo, ledger)
    return undo


def moves(undo: Plan) -> list[tuple[str, str, str, str | None]]:
    return [(step.id, step.bundle, step.source, step.destination) for step in undo.steps if step.executable]


def left_out(undo: Plan) -> dict[str, str | None]:
    return {step.id: step.not_executable_because for step in undo.steps if not step.executable}


def test_bundles_go_back_last_one_first_to_where_they_were(ledger: Ledger, cluster: FakeCluster) -> None:
    undo = undo_of_run(ledger, cluster, make_plan(BOTH))
    assert moves(undo) == [("undo-step-002", UPPER, B3, B1), ("undo-step-001", LOWER, B2, B1)]
    assert run(approved(ledger, undo), ledger, cluster).outcome == "done"
    assert set(cluster.owners.values()) == {B1}


def test_however_many_steps_go_back_the_whole_cluster_is_forecast_twice(
    ledger: Ledger, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    forecasts = Mock(wraps=forecast_with)
    monkeypatch.setattr("pulsar_advisor.execution.undo.forecast_with", forecasts)
    assert len(moves(undo_of_run(ledger, cluster, make_plan(BOTH)))) == len(BOTH)
    assert forecasts.call_count == 2


def test_however_many_steps_go_back_each_bundle_is_looked_at_once(
    ledger: Ledger, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    undo = undo_of_run(ledger, cluster, make_plan(BOTH))
    ranges = Mock(wraps=parse_range)
    monkeypatch.setattr("pulsar_advisor.execution.undo.parse_range", ranges)
    require_takes_back(undo, ledger)
    assert ranges.call_count == len(BOTH) + len(undo.steps)


@pytest.mark.parametrize(
    ("of_step", "of_plan"),
    [
        ({"destination": B3}, {}),
        ({"bundle": UPPER}, {}),
        ({"namespace": BASKETS}, {}),
        ({"bundle": "0x00000000_0xffffffff"}, {}),
        ({"action": "split"}, {}),
        ({}, {"memory": {"undoes": "sha256:" + 64 * "0"}}),
        ({}, {"memory": {}}),
        ({}, {"identity": Identity(cluster_name="other", broker_ids=(B1, B2, B3))}),
    ],
)
def test_a_plan_that_calls_itself_an_undo_of_what_no_run_did_is_refused(
    ledger: Ledger, cluster: FakeCluster, of_step: dict[str, object], of_plan: dict[str, object]
) -> None:
    undo = undo_of_run(ledger, cluster, make_plan(BOTH[:1]))
    [step] = undo.steps
    forged = undo.model_copy(update={"steps": (step.model_copy(update=of_step),), **of_plan})
    with pytest.raises(Refused, match="is no undo of"):
        require_takes_back(forged, ledger)


def test_a_half_run_plan_is_undone_as_far_as_it_went(ledger: Ledger, cluster: FakeCluster) -> None:
    cluster.whenever("after the call", lambda: cluster.owners.update({UPPER_BUNDLE: B2}))
    plan = make_plan(BOTH)
    undo = undo_of_run(ledger, cluster, plan)
    assert moves(undo) == [("undo-step-001", LOWER, B2, B1)]
    cluster.on_event = lambda _what: None
    assert run(approved(ledger, undo), ledger, cluster).outcome == "done"
    assert cluster.owners == {LOWER_BUNDLE: B1, UPPER_BUNDLE: B2}


def test_an_unload_can_be_undone_when_a_later_split_of_the_namespace_did_not_happen(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    plan = make_plan([unload_step(1), split_step(2)])
    cluster.whenever("after the call", lambda: cluster.brokers.discard(B3))
    undo = undo_of_run(ledger, cluster, plan)
    assert [row.state for row in steps_of_run(ledger, 1).values()] == ["confirmed", "pending"]
    assert run(approved(ledger, undo), ledger, cluster).outcome == "done"
    assert cluster.owners[LOWER_BUNDLE] == B1


def test_a_bundle_that_was_split_since_goes_back_in_parts(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = make_plan([unload_step(1, UPPER)])
    run(approved(ledger, plan), ledger, cluster)
    carried_out(ledger, cluster, split_step(1, source=B2, expect=on(B2)))
    undo = propose_undo(plan, ledger, cluster)
    assert moves(undo) == [
        ("undo-step-001-1", "0x80000000_0xbfffffff", B2, B1),
        ("undo-step-001-2", "0xbfffffff_0xffffffff", B2, B1),
    ]
    assert run(approved(ledger, undo), ledger, cluster).outcome == "done"
    assert set(cluster.owners.values()) == {B1}


def on(broker: str) -> object:
    return unload_step().expect.model_copy(update={"owner": broker})


def test_two_moves_of_a_bundle_are_undone_in_one(ledger: Ledger, cluster: FakeCluster) -> None:
    undo = undo_of_run(ledger, cluster, make_plan([unload_step(1, LOWER, B1, B2), unload_step(2, LOWER, B2, B3)]))
    assert moves(undo) == [("undo-step-002", LOWER, B3, B1)]


def test_an_unload_without_a_destination_goes_back_from_where_it_landed(ledger: Ledger, cluster: FakeCluster) -> None:
    cluster.lands_on = lambda unload: unload.destination or B3
    undo = undo_of_run(ledger, cluster, make_plan([unload_step(destination=None)]))
    assert moves(undo) == [("undo-step-001", LOWER, B3, B1)]


def test_what_can_not_be_undone_is_listed_with_the_reason(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = make_plan([*BOTH, split_step(3, source=B3, expect=on(B3))])
    run(approved(ledger, plan), ledger, cluster)
    cluster.owners[LOWER_BUNDLE] = B3
    assert left_out(propose_undo(plan, ledger, cluster)) == {
        "undo-step-003": "a split can't be undone: Pulsar has no merge",
        "undo-step-001": f"the bundle is on {B3} now, and the run brought it to {B2}: it was moved since",
    }


@pytest.mark.parametrize(
    ("owner", "why"), [(B1, f"the bundle is on {B1} already"), (None, "no broker owns the bundle now")]
)
def test_a_bundle_that_is_back_or_nowhere_is_left_alone(
    ledger: Ledger, cluster: FakeCluster, owner: str | None, why: str
) -> None:
    plan = make_plan([unload_step()])
    run(approved(ledger, plan), ledger, cluster)
    del cluster.owners[LOWER_BUNDLE]
    cluster.owners |= {LOWER_BUNDLE: owner} if owner else {}
    assert left_out(propose_undo(plan, ledger, cluster)) == {"undo-step-001": why}


def test_a_namespace_that_is_gone_is_named(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = make_plan([unload_step()])
    run(approved(ledger, plan), ledger, cluster)
    del cluster.bounds[NAMESPACE]
    why = {"undo-step-001": f"namespace {NAMESPACE} does not exist any more"}
    assert left_out(propose_undo(plan, ledger, cluster)) == why


def test_a_step_that_failed_is_named_for_a_person_to_look_at(ledger: Ledger, cluster: FakeCluster) -> None:
    cluster.lands_on = lambda _unload: B2
    undo = undo_of_run(ledger, cluster, make_plan(BOTH))
    assert moves(undo) == [("undo-step-001", LOWER, B2, B1)]
    assert str(left_out(undo)["undo-step-002"]).startswith("step-002 was not confirmed (failed): the bundle is on")


def test_a_plan_that_is_being_undo_of_run_can_not_be_undone(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, make_plan(BOTH))
    start_run(ledger, plan, approvals_of_plan(ledger, digest_of(plan))[0])
    with pytest.raises(Refused, match=r"is being carried out: .* if it crashed, `pulsar-advisor apply \w{8} --resume`"):
        propose_undo(plan, ledger, cluster)


@pytest.mark.parametrize("steps", [BOTH, [split_step()]])
def test_there_must_be_a_confirmed_unload(ledger: Ledger, cluster: FakeCluster, steps: list[object]) -> None:
    plan = make_plan(steps)  # type: ignore[arg-type]
    if steps != BOTH:
        run(approved(ledger, plan), ledger, cluster)
    with pytest.raises(Refused, match=r"no unload of .* was confirmed: there is nothing to undo"):
        propose_undo(plan, ledger, cluster)


def test_another_cluster_reached_by_mistake_says_nothing_about_where_the_bundles_are(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    plan = make_plan(BOTH)
    run(approved(ledger, plan), ledger, cluster)
    with pytest.raises(Refused, match="the brokers reached say 'staging': check the admin URL"):
        propose_undo(plan, ledger, FakeCluster(cluster.time, name="staging"))


def test_an_undo_plan_is_as_old_as_the_look_it_was_made_from(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = make_plan([unload_step()])
    run(approved(ledger, plan), ledger, cluster)
    cluster.time.pass_s(12 * 3600)
    undo = propose_undo(plan, ledger, cluster)
    assert (undo.snapshot, observed_at(undo)) == (plan.snapshot, "20261121T204005Z")
    assert run(approved(ledger, undo), ledger, cluster).outcome == "done"


def test_the_forecast_counts_what_was_done_and_what_is_undone(ledger: Ledger, cluster: FakeCluster) -> None:
    first = unload_step(1, predicted=StepPrediction(brokers={B1: 0.6, B2: 0.4}))
    second = unload_step(2, UPPER, destination=B3, predicted=StepPrediction(brokers={B1: 0.4, B3: 0.5}))
    cluster.whenever("after the call", lambda: cluster.owners.update({UPPER_BUNDLE: B2}))
    undo = undo_of_run(ledger, cluster, make_plan([first, second]))
    usage = {broker: row.usage_ratio for broker, row in undo.predicted.before.brokers.items()}
    assert usage == {B1: pytest.approx(0.6), B2: pytest.approx(0.4), B3: 0.3}
    assert undo.predicted.before.maximum_ratio == pytest.approx(0.6)
    assert undo.predicted.after == make_plan([]).predicted.before
    assert undo.steps[-1].predicted.brokers == {B1: 0.8, B2: 0.2}


def test_a_bundle_that_is_back_already_counts_as_undone_before_and_after(ledger: Ledger, cluster: FakeCluster) -> None:
    first = unload_step(1, predicted=StepPrediction(brokers={B1: 0.6, B2: 0.4}))
    second = unload_step(2, UPPER, destination=B3, predicted=StepPrediction(brokers={B1: 0.4, B3: 0.5}))
    plan = make_plan([first, second])
    run(approved(ledger, plan), ledger, cluster)
    cluster.owners[UPPER_BUNDLE] = B1
    undo = propose_undo(plan, ledger, cluster)
    usage = {broker: row.usage_ratio for broker, row in undo.predicted.before.brokers.items()}
    assert usage == {B1: pytest.approx(0.6), B2: pytest.approx(0.4), B3: 0.3}
    assert undo.predicted.after == plan.predicted.before


def test_where_a_move_stays_done_usage_is_as_the_plan_left_it(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = make_plan([unload_step(1, predicted=StepPrediction(brokers={B1: 0.6, B2: 0.4}))])
    run(approved(ledger, plan), ledger, cluster)
    cluster.brokers.discard(B1)
    [step] = propose_undo(plan, ledger, cluster).steps
    assert not step.executable
    assert step.predicted.brokers == {broker: plan.predicted.after.brokers[broker].usage_ratio for broker in (B1, B2)}


def test_an_undo_plan_is_a_plan_of_its_own_that_needs_consent(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = make_plan([unload_step()])
    undo = load_plan(dump_plan(undo_of_run(ledger, cluster, plan)))
    assert undo.memory["undoes"] == digest_of(plan) != digest_of(undo)
    assert [each.consent.name for each in needed_consents(undo)] == ["worse"]
    propose(ledger, undo, ALICE)
    assert [row.proposer for row in proposals_of_plan(ledger, digest_of(undo))] == ["alice"]


def test_going_back_is_sure_whatever_the_doubts_of_the_step(ledger: Ledger, cluster: FakeCluster) -> None:
    doubt = Doubt(confidence="low", sentence="The last digits settled the decision.")
    forward = unload_step(confidence="low", doubts=(doubt,), failed_checks=("capture.skew",))
    undo = undo_of_run(ledger, cluster, make_plan([forward], rests_on={"unload": ("capture.skew",)}))
    [step] = undo.steps
    assert (step.confidence, step.doubts, step.failed_checks, undo.rests_on) == ("high", (), (), {})


def test_a_step_of_which_nothing_was_seen_is_left_out_in_a_whole_sentence(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, make_plan(BOTH))
    killed_at_work(ledger, cluster, plan, call=2)
    abort(ledger, plan, ALICE)
    assert left_out(propose_undo(plan, ledger, cluster)) == {
        "undo-step-002": f"step-002 was not confirmed (sent). Its bundle is on {B3} now"
    }


def test_a_split_that_was_not_confirmed_is_left_out_with_what_the_namespace_shows(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    plan = approved(ledger, make_plan([unload_step(1), split_step(2)]))
    killed_at_work(ledger, cluster, plan, call=2)
    cluster.time.pass_s(60)
    abort(ledger, plan, ALICE)
    assert left_out(propose_undo(plan, ledger, cluster)) == {
        "undo-step-002": "step-002 was not confirmed (sent). The namespace has the new boundaries now"
    }


def test_a_namespace_that_was_created_again_with_other_bundles_is_left_alone(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    plan = make_plan([unload_step(1)])
    run(approved(ledger, plan), ledger, cluster)
    cluster.bounds[NAMESPACE] = [0, 0x40000000, 0xFFFFFFFF]
    cluster.owners = {f"{NAMESPACE}/{text}": B2 for text in ("0x00000000_0x40000000", "0x40000000_0xffffffff")}
    assert left_out(propose_undo(plan, ledger, cluster)) == {
        "undo-step-001": "namespace shop/orders does not exist any more, but was created again, with other bundles"
    }


@pytest.mark.parametrize("resume", [False, True])
def test_a_plan_that_was_undone_is_not_carried_out_any_more(ledger: Ledger, cluster: FakeCluster, resume: bool) -> None:
    plan = make_plan([unload_step(1), unload_step(2, UPPER)] if resume else [unload_step(1)])
    cluster.whenever("after the call", lambda: resume and cluster.brokers.discard(B3))
    undo = undo_of_run(ledger, cluster, plan)
    assert can_be_undone(plan, ledger)
    assert run(approved(ledger, undo), ledger, cluster).outcome == "done"
    with pytest.raises(Refused, match=re.escape(f"{digest_of(plan)} has been undone since: {NEW_PLAN}")):
        run(plan, ledger, cluster, resume=resume)
    why = "has been undone since" if resume else "was already carried out"
    assert str(why_not_again(ledger, digest_of(plan))).startswith(why)
    with pytest.raises(Refused, match=why):
        approved(ledger, plan)
    assert not can_be_undone(plan, ledger)


@pytest.fixture
def halved(ledger: Ledger, cluster: FakeCluster) -> tuple[Plan, Plan]:
    """A plan whose run was stopped half-way, and its approved undo."""
    plan = make_plan([unload_step(1), unload_step(2, UPPER, B1, B3)])
    ended_early = run(approved(ledger, plan), ledger, cluster, interruption=lambda: "stop" if cluster.effects else None)
    assert ended_early.outcome == "partial"
    undo = approved(ledger, propose_undo(plan, ledger, cluster))
    cluster.time.pass_s(1)
    return plan, undo


def test_an_undo_is_made_again_if_the_run_that_it_undoes_has_gone_on_since(
    ledger: Ledger, cluster: FakeCluster, halved: tuple[Plan, Plan]
) -> None:
    plan, undo = halved
    assert run(plan, ledger, cluster, resume=True).outcome == "done"
    with pytest.raises(Refused, match=f"step-002 of {digest_of(plan)} came after this undo: make it again with `undo`"):
        run(undo, ledger, cluster)
    assert run(approved(ledger, propose_undo(plan, ledger, cluster)), ledger, cluster).outcome == "done"
    assert set(cluster.owners.values()) == {B1}


def test_an_undo_sends_nothing_if_the_run_that_it_undoes_went_on_between_its_checks_and_its_start(
    ledger: Ledger, cluster: FakeCluster, halved: tuple[Plan, Plan]
) -> None:
    plan, undo = halved
    cluster.mistaken_once("migrating", lambda: run(plan, ledger, cluster, resume=True) and None)  # checked last
    with pytest.raises(Refused, match=f"nothing was sent: step-002 of {digest_of(plan)} came after this undo"):
        run(undo, ledger, cluster)
    assert can_be_undone(plan, ledger)


def test_a_plan_sends_nothing_more_if_it_was_undone_between_the_checks_and_its_resumption(
    ledger: Ledger, cluster: FakeCluster, halved: tuple[Plan, Plan]
) -> None:
    plan, undo = halved
    cluster.mistaken_once("migrating", lambda: run(undo, ledger, cluster) and None)  # checked last
    assert "has been undone since" in run(plan, ledger, cluster, resume=True).sentence
    assert set(cluster.owners.values()) == {B1}


def test_an_undo_that_says_of_a_step_that_it_was_not_confirmed_is_made_again_once_it_is(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    plan = approved(ledger, make_plan(BOTH))
    cluster.whenever("after the call", lambda: setattr(cluster, "unreadable", len(cluster.writes) == 2))
    assert run(plan, ledger, cluster).outcome == "partial"
    cluster.unreadable = False
    undo = approved(ledger, propose_undo(plan, ledger, cluster))
    assert run(plan, ledger, cluster, resume=True).outcome == "done"
    with pytest.raises(Refused, match=f"step-002 of {digest_of(plan)} came after this undo"):
        run(undo, ledger, cluster)


def test_an_undo_is_not_taken_for_older_than_its_run_by_a_clock_that_was_set_back(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    twice = make_plan([unload_step(1, LOWER, B1, B2), unload_step(2, LOWER, B2, B3)])
    run(approved(ledger, twice), ledger, cluster)
    cluster.time.ms -= 20_000
    undo = approved(ledger, propose_undo(twice, ledger, cluster))
    assert run(undo, ledger, cluster).outcome == "done"


def test_an_undo_made_before_its_run_as_the_first_release_did_takes_all_of_it_back(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    plan = make_plan(BOTH)
    undo = undo_of_run(ledger, cluster, plan)
    early = approved(ledger, undo.model_copy(update={"memory": {"undoes": digest_of(plan)}}))
    assert run(early, ledger, cluster).outcome == "done"


def test_a_bundle_whose_broker_is_gone_is_left_out(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = make_plan([unload_step(1, LOWER, B1, B2)])
    run(approved(ledger, plan), ledger, cluster)
    cluster.brokers.discard(B1)
    undo = propose_undo(plan, ledger, cluster)
    assert left_out(undo) == {"undo-step-001": f"{B1}, where the bundle was, is not an active broker"}


def an_isolation_policy(cluster: FakeCluster) -> None:
    on_b2 = IsolationPolicy("shop", ("shop/.*",), ("10[.]0[.]0[.]2",), (), min_limit=1, usage_threshold=100)
    cluster.policies = (on_b2,)


def no_topics(cluster: FakeCluster) -> None:
    cluster.time.pass_s(600)  # until then, brokers may not have reported them yet
    cluster.all_topics = []


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        (an_isolation_policy, f"isolation policy 'shop' keeps {NAMESPACE} off {B1}"),
        (no_topics, "no topic of the bundle is loaded: no client would bring it back"),
    ],
)
def test_a_move_that_apply_would_refuse_is_left_out(
    ledger: Ledger, cluster: FakeCluster, changed: Callable[[FakeCluster], None], why: str
) -> None:
    plan = make_plan([unload_step()])
    run(approved(ledger, plan), ledger, cluster)
    changed(cluster)
    assert left_out(propose_undo(plan, ledger, cluster)) == {"undo-step-001": why}


def test_a_namespace_goes_back_beside_its_anti_affinity_group_only_if_that_goes_back_first(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    widen(cluster).anti_affinity_peers = lambda namespace: frozenset({NAMESPACE, BASKETS}) - {namespace}  # type: ignore[method-assign]
    cluster.owners = {f"{NAMESPACE}/{LOWER}": B1, f"{BASKETS}/{LOWER}": B2}
    orders, baskets = unload_step(1, LOWER, B1, B3), unload_step(2, LOWER, B2, B1, namespace=BASKETS, expect=on(B2))
    plan = make_plan([orders, baskets])
    run(approved(ledger, plan), ledger, cluster)
    undo = propose_undo(plan, ledger, cluster)
    assert [step.id for step in undo.executable_steps] == ["undo-step-002", "undo-step-001"]
    assert run(approved(ledger, undo), ledger, cluster).outcome == "done"


def test_a_range_whose_call_is_unresolved_is_left_out_in_other_namespaces_too(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    widen(cluster)
    plan = make_plan([unload_step(1), unload_step(2, LOWER, B2, B3, namespace=BASKETS, expect=on(B2))])
    cluster.whenever("after the call", lambda: setattr(cluster, "unreadable", len(cluster.writes) == 2))
    run(approved(ledger, plan), ledger, cluster)
    cluster.unreadable = False
    why = str(left_out(propose_undo(plan, ledger, cluster))["undo-step-001"])
    assert f"any bundle of that range: first `pulsar-advisor apply {short(digest_of(plan))} --resume`, or end it" in why


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"load_manager": "simple"}, "the Simple load manager doesn't keep the destination"),
        ({"pulsar_version": "2.11.4"}, r"Pulsar 2\.11 doesn't keep the destination of an unload"),
    ],
)
def test_without_destinations_nothing_can_be_sent_back(
    ledger: Ledger, cluster: FakeCluster, changes: dict[str, str], why: str
) -> None:
    cluster.manager = changes.get("load_manager", cluster.manager)  # type: ignore[assignment]
    cluster.lands_on = lambda _unload: B3
    plan = make_plan([unload_step(destination=None)], **changes)
    assert run(approved(ledger, plan), ledger, cluster).undoable_steps == ()
    assert not can_be_undone(plan, ledger)
    with pytest.raises(Refused, match=f"can't be undone: {why}.* make a new plan from where bundles are"):
        propose_undo(plan, ledger, cluster)


def test_a_bundle_that_pulsar_placed_counts_on_no_broker_until_that_is_known() -> None:
    first, second = unload_step(1, destination=None), unload_step(2, UPPER)
    before = forecast({B1: 0.8, B2: 0.2, B3: 0.3})
    then = forecast_with(make_plan([first, second]), {first.id})
    assert {broker: row.bundles for broker, row in then.brokers.items()} == {
        broker: row.bundles - (broker == B1) for broker, row in before.brokers.items()
    }
