"""A split is judged by its own boundaries."""

from __future__ import annotations

import pytest

from pulsar_advisor.execution.cluster.cluster_port import Reply
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.throttle import ApplyThrottle
from pulsar_advisor.model.errors import ClusterUnreachable
from unit.execution.actors import approved, carried_out, run
from unit.execution.doubles import B1, B3, NAMESPACE, UPPER, FakeCluster, make_plan, split_step


def split_another(cluster: FakeCluster) -> None:
    cluster.bounds[NAMESPACE] = sorted({*cluster.bounds[NAMESPACE], 0x40000000})


@pytest.mark.parametrize("after_s", [0.0, 30.0], ids=["at once", "while it holds"])
def test_a_split_beside_another_one_is_confirmed(ledger: Ledger, cluster: FakeCluster, after_s: float) -> None:
    cluster.whenever("after the call", lambda: cluster.later(after_s, lambda: split_another(cluster)))
    result = carried_out(ledger, cluster, split_step(), canary_hold_s=60.0)
    assert result.outcome == "done"
    assert "0x40000000" in cluster.boundaries(NAMESPACE)


def test_the_time_foretold_for_a_plan_of_splits_includes_the_hold_of_its_first(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    began_ms = cluster.time.ms
    carried_out(ledger, cluster, split_step(), canary_hold_s=60.0)
    took_s = (cluster.time.ms - began_ms) / 1000
    assert took_s == pytest.approx(ApplyThrottle(canary_hold_s=60.0).takes_s(calls=1), abs=1.0)


def test_a_split_that_does_not_stay_has_failed(ledger: Ledger, cluster: FakeCluster) -> None:
    def undone() -> None:
        cluster.bounds[NAMESPACE] = [0, 0x80000000, 0xFFFFFFFF]

    cluster.whenever("after the call", lambda: cluster.later(30.0, undone))
    result = carried_out(ledger, cluster, split_step(), canary_hold_s=60.0)
    assert result.steps[0].detail == "the new boundaries appeared, but did not stay"


@pytest.mark.parametrize(
    ("look", "state", "detail"),
    [
        ("boundaries", "unresolved", "whether the new boundaries stayed can't be read, brokers are being restarted"),
        (
            "owned_bundles",
            "confirmed",
            "the namespace has the new boundaries; {} on an unknown broker, {} on an unknown broker",
        ),
    ],
)
def test_a_split_is_judged_by_its_boundaries_alone_after_its_hold(
    ledger: Ledger, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, look: str, state: str, detail: str
) -> None:
    shown, began_ms = getattr(cluster, look), cluster.time.ms

    def until_the_hold_is_over(of: str) -> object:
        if cluster.time.ms >= began_ms + 60_000:
            raise ClusterUnreachable("brokers are being restarted")
        return shown(of)

    monkeypatch.setattr(cluster, look, until_the_hold_is_over)
    [step] = carried_out(ledger, cluster, split_step(), canary_hold_s=60.0).steps
    assert (step.state, step.detail) == (state, detail.format(*split_step().children))


def test_a_confirmed_split_says_where_its_parts_are(ledger: Ledger, cluster: FakeCluster) -> None:
    [step] = carried_out(ledger, cluster, split_step()).steps
    lower, upper = split_step().children
    source = split_step().source
    assert step.detail == f"the namespace has the new boundaries; {lower} on {source}, {upper} on {source}"


def test_a_split_that_shows_other_boundaries_has_failed(ledger: Ledger, cluster: FakeCluster) -> None:
    cluster.fails, cluster.replies = True, [Reply(412, "invalid")]
    cluster.whenever("after the call", lambda: split_another(cluster))
    [step] = carried_out(ledger, cluster, split_step()).steps
    assert step.state == "failed"
    assert step.detail == (
        "the boundaries are 0x00000000, 0x40000000, 0x80000000, 0xffffffff, not what the split should give; "
        "answer 412 invalid"
    )


@pytest.mark.parametrize("reply", [Reply(503, "busy"), Reply(429, ""), Reply(None, "connection closed")])
def test_a_split_for_which_a_broker_had_no_time_is_sent_again(
    ledger: Ledger, cluster: FakeCluster, reply: Reply
) -> None:
    cluster.replies, cluster.fails = [reply, reply], True
    assert carried_out(ledger, cluster, split_step()).outcome == "done"
    assert (len(cluster.writes), len(cluster.effects)) == (3, 1)


def test_a_split_that_may_still_act_is_unresolved_whatever_the_next_one_is_answered(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    cluster.replies, cluster.fails = [Reply(None, "connection closed"), Reply(412, "invalid")], True
    assert carried_out(ledger, cluster, split_step()).steps[0].state == "unresolved"


def test_a_split_without_answer_beside_which_another_bundle_was_split_is_unresolved(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    cluster.replies, cluster.fails = [Reply(None, "connection closed")], True
    cluster.once("after the call", lambda: split_another(cluster))
    assert carried_out(ledger, cluster, split_step()).steps[0].state == "unresolved"


def test_a_split_without_effect_whose_bundle_has_moved_ends_with_the_next_process(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    plan = approved(ledger, make_plan([split_step()]))
    cluster.replies, cluster.fails = [Reply(None, "connection refused")] * 3, True
    assert run(plan, ledger, cluster).steps[0].state == "unresolved"
    cluster.owners[f"{NAMESPACE}/{UPPER}"] = B3
    stopped = run(plan, ledger, cluster, resume=True)
    assert (stopped.steps[0].state, "was not sent again" in stopped.sentence) == ("unresolved", True)
    [step] = run(plan, ledger, cluster, resume=True, on_drift="skip").steps
    why = f"its call had no effect, and it is not sent again: the bundle is on {B3}, not on {B1} any more"
    assert (step.state, step.detail) == ("failed", why)


def test_a_split_is_not_sent_again_once_its_bundle_has_moved(ledger: Ledger, cluster: FakeCluster) -> None:
    cluster.replies, cluster.fails = [Reply(503, "busy")], True
    cluster.once("after the call", lambda: cluster.owners.update({f"{NAMESPACE}/{UPPER}": B3}))
    [step] = carried_out(ledger, cluster, split_step()).steps
    assert (step.state, len(cluster.writes)) == ("failed", 1)


@pytest.mark.parametrize("after", [0, 1], ids=["at first", "after it held"])
def test_a_single_wrong_answer_does_not_undo_a_split(ledger: Ledger, cluster: FakeCluster, after: int) -> None:
    cluster.once("after the call", lambda: cluster.mistaken_once("boundaries", tuple, after))
    assert carried_out(ledger, cluster, split_step()).outcome == "done"


def test_a_split_of_a_namespace_that_is_deleted_has_failed(ledger: Ledger, cluster: FakeCluster) -> None:
    cluster.once("after the call", cluster.bounds.clear)
    [step] = carried_out(ledger, cluster, split_step()).steps
    assert (step.state, step.detail) == ("failed", "the namespace does not exist any more; answer 204")
