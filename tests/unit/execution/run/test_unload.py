"""A call that may still act, or has left its destination on the leader, is never recorded as failed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from pulsar_advisor.documents.apply_result import AppliedStep
from pulsar_advisor.execution.cluster.cluster_port import Override, Reply, Split, Unload
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.model.errors import ClusterUnreachable, Refused
from pulsar_advisor.model.plans.plan import Step
from unit.execution.actors import approved, carried_out, killed_at_work, run
from unit.execution.doubles import B1, B2, B3, LOWER, NAMESPACE, FakeCluster, make_plan, split_step, unload_step

BUNDLE = f"{NAMESPACE}/{LOWER}"
LOST, EXPIRED = Reply(None, "no answer within 75 s"), Reply(401, "token expired")


def miss_once_then(cluster: FakeCluster, *replies: Reply) -> None:
    """The first unload brings the bundle to another broker, the next ones have no effect."""
    original = cluster.send
    cluster.lands_on = lambda _unload: B3

    def send(write: Unload | Split | Override) -> Reply:
        if len(cluster.writes) == 1:
            cluster.replies, cluster.fails = [*replies], True
        return original(write)

    cluster.send = send  # type: ignore[method-assign]


def test_a_lost_answer_after_a_miss_leaves_the_step_unresolved(ledger: Ledger, cluster: FakeCluster) -> None:
    miss_once_then(cluster, LOST, LOST)
    result = carried_out(ledger, cluster, unload_step())
    assert (result.steps[0].state, len(cluster.writes)) == ("unresolved", 3)
    assert f"the bundle is on {B3}, after 3 attempts" in result.steps[0].detail


def test_a_refusal_proves_nothing_about_the_call_before_it(ledger: Ledger, cluster: FakeCluster) -> None:
    cluster.replies, cluster.fails = [LOST, EXPIRED], True
    result = carried_out(ledger, cluster, unload_step())
    assert (result.steps[0].state, len(cluster.writes)) == ("unresolved", 2)
    assert "401 token expired; the outcome of the call before is unknown" in result.steps[0].detail


def test_a_refusal_proves_nothing_about_the_call_of_a_process_that_died(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, make_plan([unload_step()]))
    killed_at_work(ledger, cluster, plan, "before the call")
    cluster.time.pass_s(181)
    cluster.replies, cluster.fails = [EXPIRED], True
    assert run(plan, ledger, cluster, resume=True).steps[0].state == "unresolved"


@pytest.mark.parametrize("step", [unload_step(), split_step(1)])
def test_a_call_is_sent_again_no_sooner_than_a_gateway_asks(ledger: Ledger, cluster: FakeCluster, step: Step) -> None:
    cluster.replies, cluster.fails = [Reply(429, "", retry_after_s=600.0)], True
    began_ms = cluster.time.ms
    assert carried_out(ledger, cluster, step).outcome == "done"
    assert cluster.time.ms - began_ms >= 600_000


def test_a_refusal_after_a_miss_that_was_seen_is_a_failure(ledger: Ledger, cluster: FakeCluster) -> None:
    miss_once_then(cluster, EXPIRED)
    assert carried_out(ledger, cluster, unload_step()).steps[0].state == "failed"


def test_a_process_that_died_after_a_miss_leaves_its_next_call_unresolved(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, make_plan([unload_step()]))
    miss_once_then(cluster, LOST)
    killed_at_work(ledger, cluster, plan, call=2)
    cluster.time.pass_s(181)
    assert run(plan, ledger, cluster, resume=True).steps[0].state == "unresolved"
    blocked = approved(ledger, make_plan([unload_step(source=B3, destination=B1)]))
    with pytest.raises(Refused, match="in run 1 is unknown"):
        run(blocked, ledger, cluster)


def test_a_bundle_that_arrives_between_two_attempts_is_confirmed(ledger: Ledger, cluster: FakeCluster) -> None:
    cluster.answers_first, cluster.effect_after_s = True, 35.0
    cluster.replies = [Reply(500, "unloading")]
    result = carried_out(ledger, cluster, unload_step(), pause_s=10.0)
    assert (result.outcome, len(cluster.writes), cluster.effects) == ("done", 1, [BUNDLE])


def test_a_single_wrong_answer_is_no_departure(ledger: Ledger, cluster: FakeCluster) -> None:
    cluster.once("after the call", lambda: cluster.mistaken_once("owned_bundles", frozenset, after=2))
    assert carried_out(ledger, cluster, unload_step()).outcome == "done"


def test_a_single_wrong_answer_is_no_arrival(ledger: Ledger, cluster: FakeCluster) -> None:
    cluster.lands_on = lambda _unload: B1
    cluster.once("after the call", lambda: cluster.mistaken_once("owned_bundles", lambda: frozenset({BUNDLE})))
    assert carried_out(ledger, cluster, unload_step(), canary_hold_s=0.0).steps[0].state == "failed"


def test_a_read_that_takes_all_the_time_is_repeated(ledger: Ledger, cluster: FakeCluster) -> None:
    def hang() -> None:
        cluster.time.pass_s(30)
        raise ClusterUnreachable("no complete response within 30 s")

    cluster.once("after the call", lambda: cluster.mistaken_once("owned_bundles", hang))
    assert carried_out(ledger, cluster, unload_step()).outcome == "done"


def test_a_look_up_that_nobody_answers_is_repeated(ledger: Ledger, cluster: FakeCluster) -> None:
    cluster.clients_reconnect = False
    original, asked = cluster.look_up, []

    def without_a_leader_at_first(topic: str) -> Reply:
        asked.append(topic)
        return Reply(503, "no leader yet") if len(asked) < 3 else original(topic)

    cluster.look_up = without_a_leader_at_first  # type: ignore[method-assign]
    assert carried_out(ledger, cluster, unload_step()).outcome == "done"
    assert len(asked) == 3


@pytest.mark.parametrize("bounds", [[], [0, 0x40000000, 0x80000000, 0xFFFFFFFF]], ids=["deleted", "split"])
def test_a_bundle_that_is_no_more_is_not_waited_for_by_name(
    ledger: Ledger, cluster: FakeCluster, bounds: list[int]
) -> None:
    def vanish() -> None:
        cluster.owners.pop(BUNDLE)
        cluster.bounds[NAMESPACE] = bounds

    cluster.whenever("after the call", vanish)
    result = carried_out(ledger, cluster, unload_step())
    assert result.steps[0].state == "unresolved"
    assert "the bundle no longer exists: it was split, or its namespace was deleted" in result.steps[0].detail
    assert "Until its outcome is known" not in result.sentence


@pytest.mark.parametrize(("destination", "state"), [(B2, "unresolved"), (None, "failed")])
def test_an_owner_that_permits_nothing_leaves_the_destination_on_the_leader(
    ledger: Ledger, cluster: FakeCluster, destination: str | None, state: str
) -> None:
    cluster.replies, cluster.fails = [replace(EXPIRED, is_redirected=True)] * 3, True
    result = carried_out(ledger, cluster, unload_step(destination=destination))
    assert result.steps[0].state == state


def test_a_call_that_got_no_answer_is_said_to_have_none(ledger: Ledger, cluster: FakeCluster) -> None:
    cluster.replies, cluster.fails = [Reply(None, "connection refused")] * 3, True
    [step] = carried_out(ledger, cluster, unload_step()).steps
    assert step.detail.startswith("no answer: connection refused; the bundle is on")


@pytest.mark.parametrize("destination", [B2, None])
def test_a_refusal_is_no_proof_where_the_bundle_has_arrived(
    ledger: Ledger, cluster: FakeCluster, destination: str | None
) -> None:
    cluster.replies, cluster.lands_on = [Reply(409, "sent twice by a proxy")], lambda _unload: B2
    cluster.answers_first, cluster.effect_after_s = True, 1.0
    assert carried_out(ledger, cluster, unload_step(destination=destination)).outcome == "done"
    assert len(cluster.writes) == 1


def resumed_after(
    ledger: Ledger, cluster: FakeCluster, happens: Callable[[], object], **options: object
) -> AppliedStep:
    """What a second process makes of a call that never left the first one, after something has happened."""
    plan = approved(ledger, make_plan([unload_step()], load_manager=cluster.manager))
    killed_at_work(ledger, cluster, plan, "before the call")
    cluster.time.pass_s(181)
    happens()
    [step] = run(plan, ledger, cluster, resume=True, **options).steps  # type: ignore[arg-type]
    return step


def test_a_bundle_that_went_elsewhere_while_no_process_watched_is_a_failure(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    step = resumed_after(ledger, cluster, lambda: cluster.owners.update({BUNDLE: B3}))
    assert (step.state, step.detail) == (
        "failed",
        f"the bundle is on {B3}, neither where it was nor where it should go",
    )
    assert cluster.writes == []


def test_one_that_no_broker_owns_then_is_unresolved(ledger: Ledger, cluster: FakeCluster) -> None:
    step = resumed_after(ledger, cluster, lambda: cluster.owners.pop(BUNDLE))
    assert (step.state, step.detail) == ("unresolved", "no broker has taken the bundle over")
    assert cluster.writes == []


def test_where_a_bundle_should_go_anywhere_else_nothing_shows_whether_it_left_and_came_back(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    plan = approved(ledger, make_plan([unload_step(destination=None)]))
    killed_at_work(ledger, cluster, plan, "after the call")
    cluster.owners[BUNDLE] = B1
    cluster.time.pass_s(181)
    [step] = run(plan, ledger, cluster, resume=True).steps
    assert (step.state, step.detail) == (
        "failed",
        f"it is on {B1}; whether it was unloaded can't be seen, so it is not repeated",
    )
    assert len(cluster.writes) == 1


def test_a_call_without_effect_is_not_repeated_in_a_world_that_has_changed_since(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    """Nothing would consume the destination that it may have left on the leader."""
    step = resumed_after(ledger, cluster, cluster.all_topics.clear, on_drift="skip")
    assert (step.state, step.detail) == (
        "unresolved",
        "no topic of the bundle is loaded: no client would bring it back",
    )
    assert cluster.writes == []


def test_under_extensible_it_has_failed_as_no_leader_remembers_its_destination(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    cluster.manager = "extensible"
    step = resumed_after(ledger, cluster, cluster.all_topics.clear, on_drift="skip")
    why = "no topic of the bundle is loaded: no client would bring it back"
    assert (step.state, step.detail) == ("failed", f"its call had no effect, and it is not sent again: {why}")
