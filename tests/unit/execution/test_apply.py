from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pulsar_advisor.documents.document import as_json
from pulsar_advisor.execution.apply import abort, apply_plan
from pulsar_advisor.execution.cluster.cluster_port import Reply, Split, Unload
from pulsar_advisor.execution.consent.approval import propose, withdraw
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.runs import runs_of_plan
from pulsar_advisor.execution.ledger.steps import steps_of_run
from pulsar_advisor.execution.undo import propose_undo
from pulsar_advisor.model.cluster.cluster_state import IsolationPolicy
from pulsar_advisor.model.errors import ClusterUnreachable, Refused
from pulsar_advisor.model.plans.plan import Plan, Prediction, StepPrediction, digest_of, load_plan, short
from unit.execution.actors import ALICE, BOB, FOUR_EYES, approved, carried_out, killed_at_work, options_of, run
from unit.execution.doubles import (
    B1,
    B2,
    B3,
    BASKETS,
    LOWER,
    NAMESPACE,
    UPPER,
    FakeCluster,
    FakeTime,
    forecast,
    make_plan,
    split_step,
    unload_step,
    widen,
)

MOVE, CUT = unload_step(1), split_step(2)
LOWER_BUNDLE, UPPER_BUNDLE = f"{NAMESPACE}/{LOWER}", f"{NAMESPACE}/{UPPER}"


def states(ledger: Ledger, plan: Plan) -> list[str]:
    (last,) = runs_of_plan(ledger, digest_of(plan))[-1:]
    return [step.state for step in steps_of_run(ledger, last.id).values()]


def kinds(ledger: Ledger, plan: Plan) -> list[str]:
    return [event.kind for event in ledger.events(digest_of(plan))]


def test_an_unload_and_a_split_are_carried_out_and_confirmed(ledger: Ledger, cluster: FakeCluster) -> None:
    result = carried_out(ledger, cluster, MOVE, CUT)
    assert (result.outcome, result.exit_code) == ("done", 0)
    assert [step.state for step in result.steps] == ["confirmed", "confirmed"]
    assert result.undoable_steps == (MOVE.id,)
    assert cluster.lookups == [], "clients bring their bundles back"
    assert cluster.writes == [Unload(NAMESPACE, LOWER, B2), Split(NAMESPACE, UPPER, (0xBFFFFFFF,))]
    assert cluster.owners[LOWER_BUNDLE] == B2
    assert cluster.boundaries(NAMESPACE) == ("0x00000000", "0x80000000", "0xbfffffff", "0xffffffff")


def test_a_child_can_be_moved_after_its_parent_was_split(ledger: Ledger, cluster: FakeCluster) -> None:
    child = CUT.children[0]
    assert carried_out(ledger, cluster, CUT, unload_step(3, child, after=(CUT.id,))).outcome == "done"
    assert cluster.owners[f"{NAMESPACE}/{child}"] == B2


def test_a_second_apply_does_nothing_and_says_so_even_when_the_approval_has_expired(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    plan = approved(ledger, make_plan([MOVE]))
    run(plan, ledger, cluster)
    cluster.time.pass_s(24 * 3600)
    again = run(plan, ledger, cluster)
    assert (again.outcome, again.exit_code) == ("nothing_to_do", 0)
    assert "already carried out, in run 1" in again.sentence
    assert len(cluster.writes) == 1


def test_a_step_is_in_the_ledger_before_its_call(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, make_plan([MOVE]))
    seen: list[list[str]] = []
    cluster.whenever("before the call", lambda: seen.append(states(ledger, plan)))
    run(plan, ledger, cluster)
    assert seen == [["sent"]]


def test_every_moment_of_a_run_stands_in_the_events(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, make_plan([MOVE]))
    run(plan, ledger, cluster)
    assert kinds(ledger, plan) == [
        "proposed",
        "approved",
        "run started",
        "step sent",
        "reply",
        "step confirmed",
        "run done",
    ]


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (
            lambda c: setattr(c, "name", "staging"),
            "the plan is for cluster 'live', but the brokers reached say 'staging'",
        ),
        (lambda c: setattr(c, "brokers", {B1, "10.9.9.8:8080"}), "only 1 are active here"),
        (lambda c: setattr(c, "manager", "extensible"), "made for the modular load manager"),
        (lambda c: c.owners.update({LOWER_BUNDLE: B3}), f"the bundle is on {B3}, not on {B1} any more"),
        (lambda c: c.owners.pop(LOWER_BUNDLE), "the bundle has no owner"),
        (lambda c: c.bounds[NAMESPACE].insert(1, 0x40000000), "have changed at 0x40000000: somebody split a bundle"),
        (lambda c: c.bounds[NAMESPACE].pop(1), "have changed at 0x80000000: it was created again, with other bundles"),
        (lambda c: c.bounds.clear(), "does not exist or is being deleted"),
        (lambda c: c.brokers.remove(B2), f"the destination {B2} is not an active broker"),
        (lambda c: c.all_topics.clear(), "no topic of the bundle is loaded"),
        (lambda c: c.usage.update({B2: 0.7}), "would be at 100.0%"),
        (
            lambda c: setattr(c, "policies", (IsolationPolicy("vip", ("shop/.*",), (r"10\.0\.0\.1",), (), 1, 100),)),
            "isolation policy 'vip' keeps shop/orders off",
        ),
        (
            lambda c: (setattr(c, "peers", frozenset({"shop/b"})), c.owners.update({f"shop/b/{UPPER}": B2})),
            "same anti-affinity group",
        ),
    ],
)
def test_a_world_that_has_changed_is_refused_and_nothing_is_sent(
    ledger: Ledger, cluster: FakeCluster, spoil: Callable[[FakeCluster], object], reason: str
) -> None:
    plan = approved(ledger, make_plan([MOVE]), consents=())
    spoil(cluster)
    with pytest.raises(Refused, match=reason.replace("(", r"\(")):
        run(plan, ledger, cluster)
    assert cluster.writes == []
    assert cluster.lookups == []


@pytest.mark.parametrize(
    ("step", "changes", "reason"),
    [
        (split_step(at=("0xbfffffff", "0xbfffffff")), {}, "distinct and ascending"),
        (unload_step(executable=False, not_executable_because="unowned"), {}, "no step"),
        (unload_step(), {"shedder": "roll"}, "the plan is a roll"),
    ],
)
def test_a_plan_that_no_cluster_should_see_is_refused(
    ledger: Ledger, cluster: FakeCluster, step: object, changes: dict[str, object], reason: str
) -> None:
    plan = make_plan([step], **changes)  # type: ignore[list-item]
    cluster.manager = plan.load_manager
    with pytest.raises(Refused, match=reason):
        run(plan, ledger, cluster)
    assert cluster.writes == []


def test_without_an_approval_nothing_is_sent_and_that_is_remembered(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = make_plan([MOVE])
    with pytest.raises(Refused, match="has no approval: have it approved") as refusal:
        run(plan, ledger, cluster)
    assert refusal.value.exit_code == 4
    assert cluster.writes == []
    assert kinds(ledger, plan) == ["refused"]


def test_an_old_snapshot_is_refused(ledger: Ledger, cluster: FakeCluster) -> None:
    with pytest.raises(Refused, match=r"10 min old, more than the 6m that are allowed"):
        carried_out(ledger, cluster, MOVE, max_age_s=360)
    assert cluster.writes == []


def test_a_snapshot_that_has_just_become_too_old_is_older_than_the_limit_in_words_too(
    ledger: Ledger, cluster: FakeCluster, time: FakeTime
) -> None:
    time.pass_s(6 * 3600 - 599)
    plan = approved(ledger, make_plan([MOVE]))
    with pytest.raises(Refused, match=r"is 6\.1 h old, more than the 6h that are allowed"):
        run(plan, ledger, cluster)


def test_a_snapshot_that_is_old_by_the_ledgers_clock_is_refused_by_a_machine_whose_clock_is_slow(
    ledger: Ledger, cluster: FakeCluster, time: FakeTime
) -> None:
    plan = approved(ledger, make_plan([MOVE]))
    slow = replace(time.clock, now_ms=lambda: time.ms - 600_000)
    with pytest.raises(Refused, match=r"10 min old, more than the 6m that are allowed"):
        apply_plan(plan, ledger, cluster, options_of(max_age_s=360), lambda _line: None, slow)
    assert cluster.writes == []


def test_who_is_refused_for_a_changed_world_reads_what_to_do(ledger: Ledger, cluster: FakeCluster) -> None:
    cluster.owners[LOWER_BUNDLE] = B3
    with pytest.raises(Refused, match="any more; make a new plan, or have this one approved with --on-drift skip"):
        carried_out(ledger, cluster, MOVE)


def test_so_does_who_is_left_with_part_of_a_plan(ledger: Ledger, cluster: FakeCluster) -> None:
    cluster.once("after the call", lambda: cluster.owners.update({f"{NAMESPACE}/{UPPER}": B3}))
    result = carried_out(ledger, cluster, MOVE, unload_step(2, UPPER, B1, B2))
    assert result.outcome == "partial"
    assert "any more; make a new plan, or have this one approved with --on-drift skip" in result.sentence


def test_a_step_whose_world_changed_can_be_skipped(ledger: Ledger, cluster: FakeCluster) -> None:
    cluster.owners[LOWER_BUNDLE] = B3
    result = carried_out(ledger, cluster, MOVE, CUT, on_drift="skip")
    assert (result.outcome, result.exit_code) == ("partial", 5)
    assert [step.state for step in result.steps] == ["skipped", "confirmed"]


def test_a_run_with_nothing_left_to_send_asks_for_a_new_plan(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, make_plan([MOVE, CUT]))
    cluster.owners[LOWER_BUNDLE] = B3
    assert run(plan, ledger, cluster, on_drift="skip").sentence == "1 of 2 steps confirmed, and none is left to send"
    with pytest.raises(Refused, match="none is left to send: capture again and make a new plan, or end it with"):
        run(plan, ledger, cluster)


def test_steps_that_rest_on_a_skipped_one_are_skipped_too(ledger: Ledger, cluster: FakeCluster) -> None:
    other = unload_step(3, UPPER, after=(MOVE.id,))
    cluster.owners[LOWER_BUNDLE] = B3
    with pytest.raises(Refused, match="step-003: it comes after step-001"):
        carried_out(ledger, cluster, MOVE, other, on_drift="skip")
    assert cluster.writes == []


def test_a_run_that_stopped_goes_on_once_the_world_is_right_again(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, make_plan([MOVE, CUT]))
    cluster.owners[UPPER_BUNDLE] = B3
    stopped = run(plan, ledger, cluster)
    assert (stopped.exit_code, [step.state for step in stopped.steps]) == (5, ["confirmed", "pending"])
    verb = f"`pulsar-advisor apply {short(digest_of(plan))}"
    with pytest.raises(Refused, match=f"{verb} --resume`, or end it with {verb} --abort`"):
        run(plan, ledger, cluster)
    cluster.owners[UPPER_BUNDLE] = B1
    assert run(plan, ledger, cluster, resume=True).outcome == "done"
    assert cluster.effects == [LOWER_BUNDLE, UPPER_BUNDLE]


def test_a_destination_that_was_missed_is_tried_again(ledger: Ledger, cluster: FakeCluster) -> None:
    landings = iter([B3, None, B2])
    cluster.lands_on = lambda _unload: next(landings)
    assert carried_out(ledger, cluster, MOVE).outcome == "done"
    assert cluster.writes == [Unload(NAMESPACE, LOWER, B2)] * 3


def test_a_destination_that_is_never_reached_is_reported_after_three_attempts(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    cluster.lands_on = lambda _unload: B3
    result = carried_out(ledger, cluster, MOVE)
    assert (result.exit_code, len(cluster.writes)) == (5, 3)
    assert (result.steps[0].state, result.steps[0].detail) == ("failed", f"the bundle is on {B3}, after 3 attempts")


def test_no_other_attempt_is_made_once_the_destination_has_gone(ledger: Ledger, cluster: FakeCluster) -> None:
    cluster.lands_on = lambda _unload: B3
    cluster.whenever("after the call", lambda: cluster.brokers.discard(B2))
    result = carried_out(ledger, cluster, MOVE)
    assert (result.exit_code, len(cluster.writes)) == (5, 1)
    assert "is not an active broker" in result.steps[0].detail


def test_a_bundle_that_no_client_brings_back_is_looked_up(ledger: Ledger, cluster: FakeCluster) -> None:
    cluster.clients_reconnect = False
    assert carried_out(ledger, cluster, MOVE).outcome == "done"
    assert cluster.lookups == [cluster.topics(NAMESPACE, LOWER)[0]]


def test_an_unresolved_transfer_stops_the_run_names_the_range_and_blocks_it_everywhere(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    cluster.clients_reconnect = False
    cluster.look_up = lambda _topic: Reply(503, "no broker")  # type: ignore[method-assign]
    result = carried_out(ledger, cluster, MOVE, CUT)
    assert (result.exit_code, [step.state for step in result.steps]) == (5, ["unresolved", "pending"])
    assert f"do not unload any bundle of range {LOWER} in any namespace" in result.sentence

    cluster.bounds["shop/b"] = cluster.bounds[NAMESPACE]
    cluster.owners[f"shop/b/{LOWER}"] = B1
    cluster.all_topics = [topic.replace(NAMESPACE, "shop/b") for topic in cluster.all_topics]
    other = approved(ledger, make_plan([unload_step(1, namespace="shop/b")]))
    with pytest.raises(Refused, match=f"what became of {LOWER_BUNDLE} in run 1 is not resolved"):
        run(other, ledger, cluster)


def test_a_lost_answer_is_no_reason_to_unload_again(ledger: Ledger, cluster: FakeCluster) -> None:
    cluster.replies = [Reply(None, "no answer within 75 s")]
    assert carried_out(ledger, cluster, MOVE).outcome == "done"
    assert len(cluster.writes) == 1


def test_a_call_that_never_took_effect_and_never_was_answered_leaves_its_range_unresolved(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    cluster.replies, cluster.fails = [Reply(500, "unloading")] * 3, True
    result = carried_out(ledger, cluster, MOVE)
    assert (result.exit_code, result.steps[0].state, len(cluster.writes)) == (5, "unresolved", 3)


def test_a_clean_rejection_is_a_failure_and_not_repeated(ledger: Ledger, cluster: FakeCluster) -> None:
    cluster.replies, cluster.fails = [Reply(409, "inactive destination broker")], True
    result = carried_out(ledger, cluster, MOVE)
    assert (result.exit_code, result.steps[0].state, len(cluster.writes)) == (5, "failed", 1)
    assert "409 inactive destination broker" in result.steps[0].detail


def test_a_split_that_was_answered_but_changed_nothing_has_failed(ledger: Ledger, cluster: FakeCluster) -> None:
    cluster._split = lambda _split: None  # type: ignore[method-assign]
    result = carried_out(ledger, cluster, CUT)
    assert (result.exit_code, result.steps[0].detail) == (5, "the boundaries have not changed; answer 204")


def test_a_split_of_fewer_than_two_topics_is_never_sent(ledger: Ledger, cluster: FakeCluster) -> None:
    cluster.all_topics = list(cluster.topics(NAMESPACE, UPPER)[:1])
    with pytest.raises(Refused, match="1 topic, and fewer than two can't be parted"):
        carried_out(ledger, cluster, CUT)
    assert cluster.writes == []


def test_an_unload_without_destination_is_not_repeated_when_the_bundle_comes_back(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    result = carried_out(ledger, cluster, unload_step(destination=None))
    assert (result.steps[0].state, len(cluster.writes)) == ("failed", 1)
    assert "usual without a destination" in result.steps[0].detail


def test_an_unload_without_destination_may_land_anywhere_else(ledger: Ledger, cluster: FakeCluster) -> None:
    cluster.manager, cluster.lands_on = "simple", lambda _unload: B3
    plan = approved(ledger, make_plan([unload_step(destination=None)], load_manager="simple"))
    assert run(plan, ledger, cluster).outcome == "done"


def test_the_first_step_must_hold_before_the_second_is_sent(ledger: Ledger, cluster: FakeCluster) -> None:
    fled_at_ms = cluster.time.ms + 30_000
    asked = cluster.owned_bundles

    def flees(broker: str) -> frozenset[str]:
        if cluster.time.ms > fled_at_ms:
            cluster.owners[LOWER_BUNDLE] = B3
        return asked(broker)

    cluster.owned_bundles = flees  # type: ignore[method-assign]
    result = carried_out(ledger, cluster, MOVE, CUT, canary_hold_s=60.0)
    assert [step.state for step in result.steps] == ["failed", "pending"]
    assert "the first step, step-001, failed" in result.sentence


@pytest.mark.parametrize(("budget", "expected"), [(0, ["failed", "pending"]), (1, ["failed", "confirmed"])])
def test_a_run_ends_when_its_error_budget_is_spent(
    ledger: Ledger, cluster: FakeCluster, budget: int, expected: list[str]
) -> None:
    third = split_step(3)
    second = unload_step(2, UPPER)
    cluster.bounds["shop/b"], cluster.owners[f"shop/b/{LOWER}"] = [0, 0x80000000, 0xFFFFFFFF], B1
    cluster.all_topics += [topic.replace(NAMESPACE, "shop/b") for topic in cluster.all_topics]
    first = unload_step(1, namespace="shop/b")
    cluster.lands_on = lambda unload: unload.destination if unload.namespace == "shop/b" else None
    result = carried_out(ledger, cluster, first, second, third, error_budget=budget)
    assert [step.state for step in result.steps[1:]] == expected


def test_while_the_metadata_store_is_migrated_nothing_starts(ledger: Ledger, cluster: FakeCluster) -> None:
    cluster.migration = "COPYING"
    with pytest.raises(Refused, match=r"metadata store is being migrated \(COPYING\): apply when that is over"):
        carried_out(ledger, cluster, MOVE)
    assert cluster.writes == []


def test_a_migration_of_the_metadata_store_stops_the_run_between_steps(ledger: Ledger, cluster: FakeCluster) -> None:
    cluster.whenever("after the call", lambda: setattr(cluster, "migration", "PREPARATION"))
    result = carried_out(ledger, cluster, MOVE, CUT)
    assert result.exit_code == 5
    assert "the metadata store is being migrated (PREPARATION): resume when that is over" in result.sentence
    assert len(cluster.writes) == 1


def test_a_broker_that_goes_away_ends_the_run(ledger: Ledger, cluster: FakeCluster) -> None:
    cluster.whenever("after the call", lambda: cluster.brokers.discard(B3))
    result = carried_out(ledger, cluster, MOVE, CUT)
    assert result.exit_code == 5
    assert f"{B3} went away" in result.sentence


def test_a_withdrawn_approval_stops_a_run_before_its_next_call(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, make_plan([MOVE, CUT]))
    cluster.whenever("after the call", lambda: withdraw(ledger, digest_of(plan), BOB))
    result = run(plan, ledger, cluster)
    assert (result.exit_code, len(cluster.writes)) == (5, 1)
    assert "the approval of bob was withdrawn" in result.sentence


def test_an_abort_after_the_last_step_ends_with_what_was_done(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, make_plan([MOVE]))
    result = run(plan, ledger, cluster, progress=lambda line: "confirmed" in line and abort(ledger, plan, ALICE))
    assert (result.exit_code, [step.state for step in result.steps]) == (5, ["confirmed"])


def test_an_abort_after_the_last_step_was_left_out_is_a_refusal(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, make_plan([MOVE]))
    cluster.owners[LOWER_BUNDLE] = B3
    with pytest.raises(Refused, match="nothing was sent: run 1 was aborted"):
        run(
            plan,
            ledger,
            cluster,
            on_drift="skip",
            progress=lambda line: "skipped" in line and abort(ledger, plan, ALICE),
        )


def test_an_abort_from_elsewhere_stops_a_run_before_its_next_call(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, make_plan([MOVE, CUT]))
    cluster.whenever("after the call", lambda: abort(ledger, plan, ALICE))
    result = run(plan, ledger, cluster)
    assert (result.exit_code, len(cluster.writes)) == (5, 1)
    assert "was aborted" in result.sentence
    with pytest.raises(Refused, match="was aborted: capture again"):
        run(plan, ledger, cluster)


def test_a_cluster_that_stops_answering_ends_the_run_and_leaves_the_step_to_be_looked_at(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    cluster.once("after the call", lambda: setattr(cluster, "unreadable", True))
    plan = approved(ledger, make_plan([MOVE]))
    assert run(plan, ledger, cluster).exit_code == 5
    cluster.unreadable = False
    assert run(plan, ledger, cluster, resume=True).outcome == "done"
    assert cluster.effects == [LOWER_BUNDLE]


def test_a_cluster_that_can_not_be_read_at_all_is_no_refusal(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, make_plan([MOVE]))
    cluster.unreadable = True
    with pytest.raises(ClusterUnreachable):
        run(plan, ledger, cluster)
    assert runs_of_plan(ledger, digest_of(plan)) == []


def test_a_second_run_on_the_same_cluster_is_refused(ledger: Ledger, cluster: FakeCluster) -> None:
    plan, other = approved(ledger, make_plan([MOVE])), approved(ledger, make_plan([CUT]))
    refusals: list[str] = []

    def try_the_other() -> None:
        with pytest.raises(Refused) as refusal:
            run(other, ledger, cluster)
        refusals.append(str(refusal.value))

    cluster.once("before the call", try_the_other)
    assert run(plan, ledger, cluster).outcome == "done"
    assert f"run 1 of plan {digest_of(plan)} is active on cluster 'live'" in refusals[0]
    assert cluster.writes == [Unload(NAMESPACE, LOWER, B2)]


def test_a_live_run_can_not_be_resumed_by_another_process(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, make_plan([MOVE]))
    refusals: list[str] = []

    def try_to_resume() -> None:
        with pytest.raises(Refused) as refusal:
            run(plan, ledger, cluster, resume=True)
        refusals.append(str(refusal.value))

    cluster.once("before the call", try_to_resume)
    assert run(plan, ledger, cluster).outcome == "done"
    assert "is still held by process" in refusals[0]


def test_there_must_be_something_to_resume(ledger: Ledger, cluster: FakeCluster) -> None:
    with pytest.raises(Refused, match="there is nothing to resume"):
        carried_out(ledger, cluster, MOVE, resume=True)


def test_there_must_be_something_to_abort(ledger: Ledger) -> None:
    with pytest.raises(Refused, match="there is nothing to abort"):
        abort(ledger, make_plan([MOVE]), ALICE)


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


EARLIER_PLAN = Path(__file__).parents[2] / "data/plans/without-checks.json"


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


def test_a_plan_that_lifts_a_broker_over_the_threshold_goes_on_if_that_was_accepted(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    cluster.usage[B2] = 0.7
    plan = approved(ledger, make_plan([MOVE]), consents=["worse"])
    assert run(plan, ledger, cluster).outcome == "done"


def test_a_run_whose_approval_expires_finishes_its_step_and_stops(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, make_plan([MOVE, CUT]))
    cluster.whenever("after the call", lambda: cluster.time.pass_s(5 * 3600))
    result = run(plan, ledger, cluster)
    assert [step.state for step in result.steps] == ["confirmed", "pending"]
    assert "the approval of bob has expired" in result.sentence


def test_a_new_owner_that_reports_no_topics_yet_is_waited_for(ledger: Ledger, cluster: FakeCluster) -> None:
    cluster.statistics_lag_s = 60.0
    plan = approved(ledger, make_plan([MOVE]))
    run(plan, ledger, cluster, canary_hold_s=0.0)
    undo = approved(ledger, propose_undo(plan, ledger, cluster))
    assert run(undo, ledger, cluster, dry_run=True).refusals == ()
    assert run(undo, ledger, cluster).outcome == "done"
    assert cluster.owners[LOWER_BUNDLE] == B1


def test_a_run_whose_process_may_be_alive_is_resumed_only_after_its_lease(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, make_plan([MOVE]))
    killed_at_work(ledger, cluster, plan, "before the call")
    with pytest.raises(Refused, match="it can be resumed 180 s after the last sign of life"):
        run(plan, ledger, cluster, resume=True)
    cluster.time.pass_s(181)
    assert run(plan, ledger, cluster, resume=True).outcome == "done"


def test_an_approval_of_one_plan_is_none_of_another(ledger: Ledger, cluster: FakeCluster) -> None:
    approved(ledger, make_plan([MOVE]))
    with pytest.raises(Refused, match="has no approval"):
        run(make_plan([MOVE], seed=1), ledger, cluster)
    assert cluster.writes == []


def test_progress_tells_what_is_sent_and_what_is_seen(ledger: Ledger, cluster: FakeCluster) -> None:
    lines: list[str] = []
    carried_out(ledger, cluster, MOVE, progress=lines.append)
    assert lines == [
        f"step-001: PUT /admin/v2/namespaces/{LOWER_BUNDLE}/unload?destinationBroker={B2}",
        f"step-001: confirmed, {B2} owns the bundle",
    ]


def test_progress_tells_why_a_call_is_sent_again(ledger: Ledger, cluster: FakeCluster) -> None:
    landings = iter([B3, B2])
    cluster.lands_on = lambda _unload: next(landings)
    lines: list[str] = []
    carried_out(ledger, cluster, MOVE, progress=lines.append)
    call = f"step-001: PUT /admin/v2/namespaces/{LOWER_BUNDLE}/unload?destinationBroker={B2}"
    missed = f"step-001: missed, answer 204, the bundle is on {B3}"
    assert lines == [call, missed, call, f"step-001: confirmed, {B2} owns the bundle"]


def test_the_policy_is_asked_again_when_the_plan_is_applied(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, make_plan([MOVE]))
    propose(ledger, plan, BOB)
    with pytest.raises(Refused, match="bob proposed"):
        run(plan, ledger, cluster)
    relaxed = FOUR_EYES.model_copy(update={"separate_approver": False})
    assert run(plan, ledger, cluster, policy=relaxed).outcome == "done"


def test_a_result_can_be_written_as_json(ledger: Ledger, cluster: FakeCluster) -> None:
    result = carried_out(ledger, cluster, MOVE)
    document = as_json(result)
    assert (document["schema"], document["outcome"]) == ("pulsar-advisor/apply-result/3", "done")
    assert document["ledger_head"] == str(ledger.head())
    assert as_json(result.steps[0].request) == {
        "method": "PUT",
        "path": f"/admin/v2/namespaces/{LOWER_BUNDLE}/unload",
        "query": {"destinationBroker": B2},
        "body": None,
    }
