from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from pulsar_advisor.documents.document import as_json
from pulsar_advisor.execution.cluster.cluster_port import Reply, Split, Unload
from pulsar_advisor.execution.consent.approval import withdraw
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.runs import runs_of_plan
from pulsar_advisor.execution.undo import propose_undo
from pulsar_advisor.model.errors import ClusterUnreachable, Refused
from pulsar_advisor.model.plans.names import short
from pulsar_advisor.model.plans.sealed import digest_of
from unit.execution.actors import ANY_THROTTLE, BOB, approved, carried_out, killed_at_work, kinds, run, states
from unit.execution.doubles import (
    B1,
    B2,
    B3,
    CUT,
    LOWER,
    LOWER_BUNDLE,
    MOVE,
    NAMESPACE,
    UPPER,
    UPPER_BUNDLE,
    FakeCluster,
    Killed,
    make_plan,
    split_step,
    unload_step,
)


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


def test_who_is_refused_for_a_changed_world_reads_what_to_do(ledger: Ledger, cluster: FakeCluster) -> None:
    cluster.owners[LOWER_BUNDLE] = B3
    with pytest.raises(Refused, match="any more; make a new plan, or have this one approved with --on-drift skip"):
        carried_out(ledger, cluster, MOVE)


def test_who_is_left_with_part_of_a_plan_by_a_changed_world_reads_what_to_do(
    ledger: Ledger, cluster: FakeCluster
) -> None:
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
    with pytest.raises(Refused, match=f"the outcome of a call about {LOWER_BUNDLE} in run 1 is unknown"):
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
    with pytest.raises(Refused, match="1 topic, and a split needs two"):
        carried_out(ledger, cluster, CUT)
    assert cluster.writes == []


def test_an_unload_without_destination_is_not_repeated_when_the_bundle_comes_back(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    result = carried_out(ledger, cluster, unload_step(destination=None))
    assert (result.steps[0].state, len(cluster.writes)) == ("failed", 1)
    assert "usual without a destination" in result.steps[0].detail


def test_one_that_was_refused_says_so(ledger: Ledger, cluster: FakeCluster) -> None:
    cluster.replies, cluster.fails = [Reply(503, "busy")], True
    [step] = carried_out(ledger, cluster, unload_step(destination=None)).steps
    assert (step.state, step.detail) == ("failed", f"answer 503 busy; the bundle is on {B1}, as before")


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


@pytest.mark.parametrize("dies", [False, True])
def test_no_further_process_goes_beyond_the_error_budget_until_a_larger_one_is_approved(
    ledger: Ledger, cluster: FakeCluster, dies: bool
) -> None:
    steps = [MOVE, unload_step(2, UPPER), unload_step(3, UPPER, destination=B3)]
    plan = approved(ledger, make_plan(steps), throttle=replace(ANY_THROTTLE, error_budget=0))
    cluster.lands_on = lambda unload: B2 if unload.bundle == LOWER else None

    def die_after_a_failure(line: str) -> None:
        if dies and "failed" in line:
            raise Killed

    with suppress(Killed):
        run(plan, ledger, cluster, error_budget=0, progress=die_after_a_failure)
    sent = len(cluster.writes)
    result = run(plan, ledger, cluster, error_budget=0, resume=True, wait_for_holder=True)
    assert (result.exit_code, len(cluster.writes)) == (5, sent)
    assert "1 step failed, and the error budget is 0; the last: the bundle is on " in result.sentence
    approved(ledger, plan)
    cluster.lands_on = lambda unload: unload.destination
    assert [step.state for step in run(plan, ledger, cluster, resume=True).steps] == [
        "confirmed",
        "failed",
        "confirmed",
    ]


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
    with pytest.raises(Refused, match="it can be resumed 180 s after the process was last active"):
        run(plan, ledger, cluster, resume=True)
    cluster.time.pass_s(181)
    assert run(plan, ledger, cluster, resume=True).outcome == "done"


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
