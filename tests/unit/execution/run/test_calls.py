"""Whatever the cluster answers, a call is sent once and its effect is looked for."""

from __future__ import annotations

import json

import pytest

from pulsar_advisor.execution.cluster.cluster_port import Reply
from pulsar_advisor.execution.consent.approval import withdraw
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.runs import runs_of_plan
from pulsar_advisor.execution.ledger.steps import open_steps
from pulsar_advisor.execution.undo import propose_undo
from pulsar_advisor.model.errors import Refused
from pulsar_advisor.model.plans.plan import Plan, Step
from pulsar_advisor.model.plans.sealed import digest_of
from unit.execution.actors import BOB, approved, carried_out, run
from unit.execution.doubles import B2, CUT, LOWER, MOVE, NAMESPACE, FakeCluster, make_plan, unload_step

BUNDLE = f"{NAMESPACE}/{LOWER}"


def replies(ledger: Ledger, plan: Plan) -> list[str]:
    return [event.detail for event in ledger.events(digest_of(plan)) if event.kind == "reply"]


def malformed(*_: object) -> None:
    json.loads("[" * 100_000)


def test_an_answer_that_no_decoder_expects_is_a_reply_unknown(ledger: Ledger, cluster: FakeCluster) -> None:
    cluster.whenever("after the call", malformed)
    plan = approved(ledger, make_plan([MOVE]))
    assert run(plan, ledger, cluster).outcome == "done"
    assert replies(ledger, plan)[0].startswith("no answer: RecursionError")
    assert cluster.effects == [BUNDLE]


@pytest.mark.parametrize("step", [MOVE, CUT])
def test_owners_and_boundaries_that_can_not_be_decoded_leave_a_step_unresolved_and_the_run_stopped(
    ledger: Ledger, cluster: FakeCluster, step: object
) -> None:
    plan = approved(ledger, make_plan([step]))  # type: ignore[list-item]
    original = cluster.owned_bundles, cluster.boundaries

    def spoil() -> None:
        cluster.owned_bundles = cluster.boundaries = malformed  # type: ignore[assignment, method-assign]

    cluster.once("after the call", spoil)
    result = run(plan, ledger, cluster)
    assert (result.exit_code, result.steps[0].state) == (5, "unresolved")
    assert "RecursionError" in result.sentence
    assert runs_of_plan(ledger, digest_of(plan))[0].state == "stopped"
    cluster.owned_bundles, cluster.boundaries = original  # type: ignore[method-assign]
    assert run(plan, ledger, cluster, resume=True).outcome == "done"
    assert len(cluster.effects) == 1


def test_an_unexpected_failure_between_two_steps_ends_the_run_as_stopped(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, make_plan([MOVE, CUT]))
    cluster.whenever("after the call", lambda: setattr(cluster, "topics", malformed))
    result = run(plan, ledger, cluster)
    assert (result.exit_code, [step.state for step in result.steps]) == (5, ["confirmed", "pending"])
    assert "unexpected failure, RecursionError" in result.sentence
    assert runs_of_plan(ledger, digest_of(plan))[0].state == "stopped"


def test_an_unexpected_failure_before_the_first_call_is_a_refusal(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, make_plan([MOVE]))
    cluster.loaded_topics = malformed  # type: ignore[assignment, method-assign]
    with pytest.raises(Refused, match="nothing was sent: unexpected failure, RecursionError"):
        run(plan, ledger, cluster)
    assert runs_of_plan(ledger, digest_of(plan))[0].state == "refused"


def test_an_approval_withdrawn_while_a_step_waits_for_its_topics_stops_its_call(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    plan = approved(ledger, make_plan([MOVE]))
    run(plan, ledger, cluster, canary_hold_s=0.0)
    back = approved(ledger, propose_undo(plan, ledger, cluster))
    cluster.statistics_lag_s = 60.0

    def sleep(seconds: float) -> None:
        if not cluster.loaded_topics(B2, NAMESPACE, LOWER):
            cluster.time.pass_s(60)
            withdraw(ledger, digest_of(back), BOB)
        cluster.time.pass_s(seconds)

    with pytest.raises(Refused, match="nothing was sent: the approval of bob was withdrawn"):
        run(back, ledger, cluster, sleep=sleep)
    assert len(cluster.writes) == 1


def test_no_call_is_recorded_once_its_approval_is_withdrawn(
    ledger: Ledger, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = approved(ledger, make_plan([MOVE]))

    def withdrawn_at_the_last_moment(_run: object) -> None:
        withdraw(ledger, digest_of(plan), BOB)

    monkeypatch.setattr("pulsar_advisor.execution.run.calls.check_approval", withdrawn_at_the_last_moment)
    with pytest.raises(Refused, match="nothing was sent: the approval of bob was withdrawn"):
        run(plan, ledger, cluster)
    assert cluster.writes == []


@pytest.mark.parametrize("step", [MOVE, unload_step(destination=None), CUT])
def test_no_call_is_sent_on_facts_from_before_a_suspension(ledger: Ledger, cluster: FakeCluster, step: Step) -> None:
    plan, cluster.lands_on = approved(ledger, make_plan([step])), lambda _unload: B2

    def suspended(line: str) -> None:
        if line.startswith(f"{step.id}: PUT"):
            cluster.time.pass_s(600)

    result = run(plan, ledger, cluster, progress=suspended)
    assert (result.outcome, cluster.writes) == ("partial", [])
    assert f"{step.id} was not sent: the cluster was looked at 600 s ago" in result.sentence
    assert (result.steps[0].state, open_steps(ledger, "live")) == ("pending", [])
    observed: list[str] = []
    cluster.on_event = lambda _: observed.extend(record.observation for _, record in open_steps(ledger, "live"))
    assert run(plan, ledger, cluster, resume=True).outcome == "done"
    assert (len(cluster.writes), {*observed}) == (1, {""}), "a call that may be on its way is said not to be"


def test_a_call_that_may_still_act_stays_open_if_its_repetition_is_held_back(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    plan, cluster.replies, cluster.fails = approved(ledger, make_plan([CUT])), [Reply(504, "")], True

    def suspended(line: str) -> None:
        if line.startswith(f"{CUT.id}: PUT") and cluster.writes:
            cluster.time.pass_s(600)

    result = run(plan, ledger, cluster, progress=suspended)
    assert (result.steps[0].state, len(open_steps(ledger, "live")), len(cluster.writes)) == ("sent", 1, 1)


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("step", [MOVE, unload_step(destination=None), CUT])
@pytest.mark.parametrize("status", [408, 502, 504])
def test_a_proxy_that_loses_patience_does_not_end_the_brokers_work(
    ledger: Ledger, cluster: FakeCluster, step: Step, status: int
) -> None:
    cluster.unloading_timeout_s = lambda: 240.0  # type: ignore[method-assign]
    cluster.answers_first, cluster.effect_after_s = True, 200.0
    cluster.lands_on = lambda _unload: B2
    cluster.replies = [Reply(status, "")]
    assert carried_out(ledger, cluster, step).outcome == "done"
    assert len(cluster.writes) == 1


def test_a_split_that_a_proxy_gave_up_and_that_never_shows_is_unresolved(ledger: Ledger, cluster: FakeCluster) -> None:
    cluster.replies, cluster.fails = [Reply(504, "")] * 3, True
    result = carried_out(ledger, cluster, CUT)
    assert (result.steps[0].state, result.steps[0].detail) == (
        "unresolved",
        "the new boundaries did not appear; answer 504",
    )
