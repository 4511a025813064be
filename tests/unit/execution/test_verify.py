from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sqlalchemy import select

from pulsar_advisor.documents.document import as_json
from pulsar_advisor.documents.verify_result import VerifyResult
from pulsar_advisor.execution import verify as verification
from pulsar_advisor.execution.ledger.audit import audit
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.tables import VerifiedBroker, VerifiedBundle
from pulsar_advisor.execution.ledger.verifications import verifications_of_plan
from pulsar_advisor.execution.run.preconditions import boundaries_after
from pulsar_advisor.execution.run.steering import abort
from pulsar_advisor.execution.undo import propose_undo
from pulsar_advisor.execution.verify import settle_s, verify_plan
from pulsar_advisor.model.cluster.cluster_state import NO_ROW, ClusterState
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.errors import Refused
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.model.plans.sealed import digest_of
from pulsar_advisor.planning.usage.forecast import forecast
from states import BrokerRow, BundleRow, cluster_state
from unit.execution.actors import ALICE, approved, carried_out, run, started
from unit.execution.doubles import B1, B2, B3, LOWER, NAMESPACE, FakeCluster, make_plan, split_step, unload_step

SETTINGS = resolve_settings("4.0.8").values
PLAN = make_plan([unload_step(), split_step()])
CHILDREN = PLAN.steps[1].children


def captured(cluster: FakeCluster, *, usage: dict[str, float] | None = None, after_s: float = 300.0) -> ClusterState:
    """What a capture sees some time after now: the cluster's owners, and usage as predicted unless said otherwise."""
    percent = {B1: 50.0, B2: 50.0, B3: 30.0, **(usage or {})}
    brokers = [BrokerRow(broker, cpu=(percent[broker], 100.0)) for broker in (B1, B2, B3)]
    bundles = [
        BundleRow(NAMESPACE, bundle.rpartition("/")[2], owner)
        for bundle, owner in cluster.owners.items()
        if bundle.startswith(NAMESPACE)
    ]
    return replace(cluster_state(brokers, bundles), captured_at_ms=cluster.time.ms + int(after_s * 1000))


def verify(ledger: Ledger, state: ClusterState, plan: Plan = PLAN) -> VerifyResult:
    return verify_plan(plan, ledger, state, SETTINGS)


@pytest.mark.parametrize(("pass_s", "check_min", "expected_s"), [(60, 1, 120), (60, 3, 360), (300, 1, 600)])
def test_usage_settles_once_the_slower_of_both_passes_began_after_the_move_and_is_over(
    pass_s: int, check_min: int, expected_s: int
) -> None:
    passes = {"stats_update_frequency_in_secs": pass_s, "load_balancer_host_usage_check_interval_minutes": check_min}
    assert settle_s(SETTINGS.model_copy(update=passes)) == expected_s


@pytest.fixture
def done(ledger: Ledger, cluster: FakeCluster) -> FakeCluster:
    run(approved(ledger, PLAN), ledger, cluster)
    return cluster


def test_a_cluster_as_predicted(ledger: Ledger, done: FakeCluster) -> None:
    result = verify(ledger, captured(done))
    assert (result.exit_code, result.deviations, result.usage_judged) == (0, (), True)
    assert {(check.bundle, check.actual) for check in result.bundles} == {
        (f"{NAMESPACE}/{LOWER}", B2),
        *((f"{NAMESPACE}/{child}", B1) for child in CHILDREN),
    }


def test_a_run_that_is_resumed_meanwhile_is_not_judged_by_the_capture_before(
    ledger: Ledger, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(approved(ledger, PLAN), ledger, cluster, interruption=lambda: "stop" if cluster.effects else None)
    state = captured(cluster)

    def resumed_before(state: ClusterState, *of: Any) -> Any:
        run(PLAN, ledger, cluster, resume=True)
        return forecast(state, *of)

    monkeypatch.setattr(verification, "forecast", resumed_before)
    with pytest.raises(Refused, match="run 1 was resumed meanwhile"):
        verify(ledger, state)
    assert verifications_of_plan(ledger, digest_of(PLAN)) == []


def test_what_the_controller_of_a_scalable_topic_did_meanwhile_is_said(ledger: Ledger, done: FakeCluster) -> None:
    then, now = captured(done), captured(done)
    of_topic = [f"segment://{NAMESPACE}/clicks/{part}" for part in ("0000-ffff-0", "0000-7fff-1", "8000-ffff-2")]
    bundles = [BundleRow(NAMESPACE, "0x00000000_0xffffffff", B1)]
    then = replace(then, topics=cluster_state([BrokerRow(B1)], bundles, topics=of_topic[:1]).topics)
    now = replace(now, topics=cluster_state([BrokerRow(B1)], bundles, topics=of_topic[1:]).topics)
    result = verify_plan(PLAN, ledger, now, SETTINGS, then)
    assert len(result.segment_changes) == 1
    assert result.segment_changes[0].startswith(
        f"topic://{NAMESPACE}/clicks: 1 of its segments became 2 others, so load went"
    )
    assert verify(ledger, now).segment_changes == ()


def test_a_bundle_that_has_moved_on_deviates(ledger: Ledger, done: FakeCluster) -> None:
    done.owners[f"{NAMESPACE}/{LOWER}"] = B3
    result = verify(ledger, captured(done))
    assert (result.exit_code, result.deviations) == (5, (f"{NAMESPACE}/{LOWER} is on {B3}, predicted: {B2}",))


def test_a_child_that_does_not_exist_deviates(ledger: Ledger, done: FakeCluster) -> None:
    del done.owners[f"{NAMESPACE}/{CHILDREN[0]}"]
    result = verify(ledger, captured(done))
    assert result.deviations == (
        f"{NAMESPACE}/{CHILDREN[0]} is not a bundle of the cluster any more (split or deleted?); predicted: on {B1}",
    )


def test_what_brokers_own_exists_where_the_boundaries_could_not_be_read(ledger: Ledger, done: FakeCluster) -> None:
    state = captured(done)
    unread = np.zeros_like(state.bundles.in_boundaries)
    result = verify(ledger, replace(state, bundles=replace(state.bundles, in_boundaries=unread)))
    assert result.deviations == ()


def test_a_bundle_without_an_owner_is_on_no_broker(ledger: Ledger, done: FakeCluster) -> None:
    state = captured(done)
    [lower] = [row for row in range(len(state.bundles)) if state.bundle_name(row) == f"{NAMESPACE}/{LOWER}"]
    owner = state.bundles.owner.copy()
    owner[lower] = NO_ROW
    result = verify(ledger, replace(state, bundles=replace(state.bundles, owner=owner)))
    assert result.deviations == (f"{NAMESPACE}/{LOWER} is on no broker, predicted: {B2}",)


def test_a_bundle_may_be_on_a_broker_that_did_not_report(ledger: Ledger, done: FakeCluster) -> None:
    state = captured(done)
    owner, reported_at_ms = state.bundles.owner.copy(), state.brokers.report_updated_at_ms.copy()
    owner[owner == state.brokers.ids.index(B2)] = NO_ROW
    reported_at_ms[state.brokers.ids.index(B2)] = 0
    state = replace(
        state,
        bundles=replace(state.bundles, owner=owner),
        brokers=replace(state.brokers, report_updated_at_ms=reported_at_ms),
    )
    [deviation] = verify(ledger, state).deviations
    assert deviation == f"{NAMESPACE}/{LOWER} is on no broker that reported ({B2} did not), predicted: {B2}"


def test_a_child_that_was_unloaded_is_expected_at_its_destination(ledger: Ledger, cluster: FakeCluster) -> None:
    cut = split_step(1)
    expect = unload_step().expect
    expect = expect.model_copy(update={"boundaries": boundaries_after(expect.boundaries, NAMESPACE, [cut])})
    plan = make_plan([cut, unload_step(2, CHILDREN[0], B1, B2, after=(cut.id,), expect=expect)])
    run(approved(ledger, plan), ledger, cluster)
    found = {check.bundle.rpartition("/")[2]: check.actual for check in verify(ledger, captured(cluster), plan).bundles}
    assert found == {CHILDREN[0]: B2, CHILDREN[1]: B1}
    assert verify(ledger, captured(cluster), plan).deviations == ()


@pytest.mark.parametrize(("percent", "deviates"), [(59.0, False), (41.0, False), (61.0, True), (39.0, True)])
def test_usage_may_be_ten_points_off(ledger: Ledger, done: FakeCluster, percent: float, deviates: bool) -> None:
    result = verify(ledger, captured(done, usage={B2: percent}))
    assert result.deviations == ((f"{B2} is at {percent:.1f}%, predicted: 50.0%",) if deviates else ())


@pytest.mark.parametrize("percent", [20.0, 40.0])
def test_usage_that_is_exactly_ten_points_off_is_as_predicted(
    ledger: Ledger, done: FakeCluster, percent: float
) -> None:
    assert verify(ledger, captured(done, usage={B3: percent})).deviations == ()


@pytest.mark.parametrize(
    ("percent", "shown"),
    [(60.04, "60.04%, predicted: 50.00%"), (60.0002, "60.0002%, predicted: 50.0000%")],
)
def test_a_usage_just_beyond_the_tolerance_is_shown_to_be(
    ledger: Ledger, done: FakeCluster, percent: float, shown: str
) -> None:
    result = verify(ledger, captured(done, usage={B2: percent}))
    assert result.deviations == (f"{B2} is at {shown}",)


def test_usage_is_not_judged_while_brokers_report_figures_from_before_the_run(
    ledger: Ledger, done: FakeCluster
) -> None:
    result = verify(ledger, captured(done, usage={B2: 99.0}, after_s=settle_s(SETTINGS) - 1))
    assert (result.usage_judged, result.exit_code) == (False, 0)


def test_usage_is_predicted_for_the_steps_that_were_confirmed(ledger: Ledger, cluster: FakeCluster) -> None:
    cluster.owners[f"{NAMESPACE}/{LOWER}"] = B3
    run(approved(ledger, PLAN), ledger, cluster, on_drift="skip")
    result = verify(ledger, captured(cluster, usage={B1: 80.0, B2: 20.0}))
    assert [one.predicted for one in result.brokers] == pytest.approx([0.8, 0.2, 0.3])
    assert all(one.as_predicted for one in result.brokers)


def test_steps_that_were_not_confirmed_deviate(ledger: Ledger, cluster: FakeCluster) -> None:
    cluster.owners[f"{NAMESPACE}/{LOWER}"] = B3
    run(approved(ledger, PLAN), ledger, cluster, on_drift="skip")
    result = verify(ledger, captured(cluster))
    assert result.deviations[0] == "1 step of run 1 was not confirmed: step-001"


def test_an_unload_without_destination_is_as_predicted_anywhere_else(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = make_plan([unload_step(destination=None)])
    cluster.lands_on = lambda _unload: B3
    run(approved(ledger, plan), ledger, cluster)
    (check,) = verify(ledger, captured(cluster), plan).bundles
    assert (check.predicted, check.actual, check.as_predicted) == (None, B3, True)


def test_a_capture_from_before_the_end_of_the_run_is_refused(ledger: Ledger, done: FakeCluster) -> None:
    with pytest.raises(Refused, match="was taken before run 1 ended: capture again"):
        verify(ledger, captured(done, after_s=-3600))


def test_a_capture_of_another_cluster_is_refused(ledger: Ledger, done: FakeCluster) -> None:
    with pytest.raises(Refused, match="the capture is of cluster 'staging', but the plan is of 'live'"):
        verify(ledger, replace(captured(done), cluster_name="staging"))


def test_a_plan_that_was_never_carried_out_can_not_be_verified(ledger: Ledger, cluster: FakeCluster) -> None:
    approved(ledger, PLAN)
    with pytest.raises(Refused, match="was never carried out"):
        verify(ledger, captured(cluster))


def test_a_plan_whose_run_was_ended_before_its_first_call_can_not_be_verified(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    started(ledger, PLAN)
    abort(ledger, PLAN, ALICE)
    with pytest.raises(Refused, match="was never carried out"):
        verify(ledger, captured(cluster))


def test_a_plan_whose_run_crashed_is_to_be_resumed_or_ended_before_it_is_verified(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    started(ledger, PLAN)
    with pytest.raises(Refused, match=r"if it crashed, `pulsar-advisor apply \w{8} --resume`, or end it with "):
        verify(ledger, captured(cluster))


def test_a_result_can_be_written_as_json(ledger: Ledger, done: FakeCluster) -> None:
    result = verify(ledger, captured(done))
    document = as_json(result)
    assert (document["schema"], document["as_predicted"]) == ("pulsar-advisor/verify-result/1", True)
    assert as_json(result.brokers[0]) == {"broker": B1, "predicted": 0.5, "actual": 0.5, "as_predicted": True}
    assert result.ledger_head == str(ledger.head())


def test_what_was_found_is_kept_per_bundle_and_broker(ledger: Ledger, done: FakeCluster) -> None:
    done.owners[f"{NAMESPACE}/{LOWER}"] = B3
    state = captured(done, usage={B2: 55.0})
    verify(ledger, state)
    verify(ledger, state)  # the first comparison with a snapshot is the one that is kept
    [kept] = verifications_of_plan(ledger, digest_of(PLAN))
    assert (kept.snapshot, kept.usage_judged, kept.as_predicted) == (state.snapshot, True, False)
    with ledger.reading() as session:
        bundles = {row.bundle: (row.predicted, row.actual) for row in session.scalars(select(VerifiedBundle))}
        brokers = {row.broker: row for row in session.scalars(select(VerifiedBroker))}
    assert bundles[f"{NAMESPACE}/{LOWER}"] == (B2, B3)
    second = brokers[B2]
    usage = (second.before_usage_ratio, second.predicted_usage_ratio, second.actual_usage_ratio)
    assert (usage, second.as_predicted) == ((0.2, 0.5, pytest.approx(0.55)), True)
    assert (second.predicted_bundles, second.actual_bundles) == (1, 0)
    assert audit(ledger).findings == ()


def test_a_broker_that_is_gone_deviates(ledger: Ledger, done: FakeCluster) -> None:
    seen = captured(done)
    without = cluster_state(
        [BrokerRow(broker, cpu=(50.0, 100.0)) for broker in (B1, B2)],
        [BundleRow(NAMESPACE, bundle.rpartition("/")[2], owner) for bundle, owner in done.owners.items()],
    )
    result = verify(ledger, replace(without, captured_at_ms=seen.captured_at_ms))
    assert [check.broker for check in result.brokers if not check.as_predicted] == [B3]
    assert result.deviations == (f"{B3} is not a broker of the snapshot, predicted: 30.0%",)


def test_a_plan_that_was_undone_is_not_verified_but_the_one_that_undoes_it(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    plan = make_plan([unload_step()])
    run(approved(ledger, plan), ledger, cluster)
    undo = propose_undo(plan, ledger, cluster)
    run(approved(ledger, undo), ledger, cluster)
    with pytest.raises(Refused, match=f"has been undone since: verify the plan that undoes it, {digest_of(undo)}"):
        verify(ledger, captured(cluster), plan)
    assert all(check.as_predicted for check in verify(ledger, captured(cluster), undo).bundles)


def test_a_bundle_that_a_later_run_has_moved_on_is_said_to_be(ledger: Ledger, done: FakeCluster) -> None:
    on_b2 = unload_step().expect.model_copy(update={"owner": B2, "boundaries": done.boundaries(NAMESPACE)})
    carried_out(ledger, done, unload_step(1, LOWER, B2, B3, expect=on_b2))
    result = verify(ledger, captured(done))
    moved_on = f"{NAMESPACE}/{LOWER} is on {B3}, predicted: {B2}; run 2 has changed it since"
    assert result.deviations == (moved_on,)
