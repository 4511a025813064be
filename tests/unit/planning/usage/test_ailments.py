"""What ails a cluster, and what is no ailment."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from pulsar_advisor.model.cluster.cluster_state import NO_ROW, Brokers, ClusterState, IsolationPolicy
from pulsar_advisor.model.configuration.resolved_settings import ResolvedSettings, resolve_settings
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.planning.usage import ailments as module
from states import WHOLE, BrokerRow, BundleRow, cluster_state

MINUTE_MS = 60_000
EARLIER = "20261129T141952Z"
OFF = {"loadBalancerSheddingEnabled": "false"}


def ailments(
    state: ClusterState, settings: LoadBalancerSettings, earlier: Sequence[ClusterState] = ()
) -> tuple[str, ...]:
    return tuple(ailment.sentence for ailment in module.ailments(state, settings, earlier))


def registered(state: ClusterState, ids: tuple[str, str, str], snapshot: str = EARLIER) -> ClusterState:
    """An earlier state with these brokers."""
    return replace(state, snapshot=snapshot, brokers=replace(state.brokers, ids=ids))


def test_a_registered_broker_without_figures_is_named(state: ClusterState, settings: ResolvedSettings) -> None:
    state.brokers.report_updated_at_ms[1] = 0
    assert ailments(state, settings.values) == (
        "Registered but without figures, so down, unreachable or hanging: b:8080.",
    )
    state.brokers.report_updated_at_ms[:] = 0
    assert ailments(state, settings.values) == ()


def test_brokers_that_have_gone_are_named_also_in_the_snapshots_after(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    first = registered(state, ("a:8080", "y:8080", "z:8080"))
    second = registered(state, ("a:8080", "b:8080", "y:8080"), "20261129T142952Z")
    gone = (f"Registered in snapshot {EARLIER}, and no longer: z:8080.",)
    assert ailments(state, settings.values, [first, second]) == (
        "Registered in snapshot 20261129T142952Z, and no longer: y:8080.",
        *gone,
    )
    assert ailments(state, settings.values, [registered(state, ("a:8080", "b:8080", "z:8080")), state]) == gone


@pytest.mark.parametrize("none_now", [False, True])
def test_no_broker_is_called_gone_that_was_not_registered_before_or_if_none_is_known_to_be(
    state: ClusterState, settings: ResolvedSettings, none_now: bool
) -> None:
    then = registered(state, ("a:8080", "b:8080", "z:8080"))
    then = replace(then, brokers=replace(then.brokers, available=np.array([True, True, False])))
    if none_now:
        state.brokers.available[:] = False
    assert ailments(state, settings.values, [then]) == ()


def test_a_namespace_with_topics_that_no_broker_may_serve_is_named(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    policies = tuple(
        IsolationPolicy(name, (f"t/{name}",), (broker,), (), 1, 80) for name, broker in (("unowned", "z"), ("hot", "a"))
    )
    isolated = replace(state, isolation_policies=policies)
    assert ailments(replace(isolated, unlisted_namespaces=frozenset({"t/unowned"})), settings.values) == (
        "Isolation policies allow t/unowned on no registered broker: 1 bundle without an owner can't be assigned, and "
        "clients can't reach its topics. Correct the policy, or bring its brokers back.",
    )
    assert ailments(isolated, settings.values) == ()
    assert next(module.unused(isolated, settings.values)) == (
        "Isolation policies allow t/unowned on no registered broker: no client can create topics there. Correct the "
        "policy, or bring its brokers back."
    )
    assert not [*module.unused(state, settings.values)]


def test_no_topics_are_called_out_of_reach_whose_bundles_have_owners(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    elsewhere = IsolationPolicy("hot", ("t/hot",), ("z",), (), 1, 80)
    assert ailments(replace(state, isolation_policies=(elsewhere,)), settings.values) == ()


def unloaded(*minutes_ago: float, own: int | None = 0) -> ClusterState:
    """A cluster whose users' bundles were unloaded so long ago (0: some time since the snapshot before), and of which
    its leader counts `own` unloads.
    """
    brokers = [BrokerRow("a:8080", cpu=(100.0, 400.0)), BrokerRow("b:8080", cpu=(100.0, 400.0))]
    state = cluster_state(brokers, [BundleRow(f"t/n{row}", WHOLE, "a:8080") for row in range(len(minutes_ago))])
    unloads = {
        state.bundle_name(row): round(state.captured_at_ms - ago * MINUTE_MS) for row, ago in enumerate(minutes_ago)
    }
    return replace(state, leader_unloads=own, users_unloads_at_ms=unloads)


def before(state: ClusterState, minutes: float) -> ClusterState:
    """The state so long before, when the leader had unloaded nothing."""
    earlier = replace(state, snapshot=EARLIER, captured_at_ms=state.captured_at_ms - round(minutes * MINUTE_MS))
    return replace(earlier, leader_unloads=0)


def values(dynamic: Mapping[str, str]) -> LoadBalancerSettings:
    return resolve_settings("4.0.8", dynamic=dynamic).values


def test_bundles_that_something_else_moves_are_counted_since_the_last_snapshot_or_in_five_minutes() -> None:
    storm = unloaded(0.1, 0.5, 1, 2, 3, 4, 5.5)
    said = (
        "{} bundles were unloaded {}, and not by Pulsar's own balancer but by a plan, a restart, a script or another "
        "tool. Unless you know which, find out before you apply a plan: owners and rates change meanwhile."
    )
    assert ailments(storm, values(OFF), [before(storm, 3.5)]) == (said.format(5, f"since snapshot {EARLIER}"),)
    assert ailments(storm, values(OFF), [before(storm, 20)]) == (
        said.format(6, "in the five minutes before this snapshot"),
    )


@pytest.mark.parametrize(
    ("state", "minutes", "dynamic"),
    [
        (unloaded(0.1, 0.5, 1, 2), 3.0, OFF),
        (unloaded(6, 6, 6, 6, 6), 20.0, OFF),
        (unloaded(0, 0, 0, 0, 0), 20.0, OFF),
        (unloaded(1, 1, 1, 1, 1, own=5), 3.0, {}),
        (unloaded(1, 1, 1, 1, 1, own=None), 3.0, {}),
    ],
    ids=["few", "long ago", "since long ago", "the leader's own", "perhaps the leader's own"],
)
def test_a_few_unloads_or_old_ones_or_those_of_pulsar_are_no_ailment(
    state: ClusterState, minutes: float, dynamic: Mapping[str, str]
) -> None:
    assert ailments(state, values(dynamic), [before(state, minutes)]) == ()


def test_a_leader_that_counts_anew_after_a_restart_hides_nothing_and_adds_nothing() -> None:
    storm = unloaded(1, 1, 1, 1, 1, own=0)
    then = before(storm, 3)
    then.brokers.started_at_ms[:] = 1_000
    restarted = replace(storm, leader=0, brokers=replace(storm.brokers, started_at_ms=np.array([2_000, 1_000])))
    assert ailments(restarted, values({}), [replace(then, leader=0, leader_unloads=500)]) == ()


def test_new_bundles_were_assigned_and_not_unloaded() -> None:
    new = unloaded(1, 1, 1, 1, 1)
    then = before(new, 3)
    then = replace(then, bundles=replace(then.bundles, owner=np.full(5, NO_ROW)))
    assert ailments(new, values(OFF), [then]) == ()


def test_that_bundles_leave_a_broker_that_has_gone_is_no_ailment_of_its_own() -> None:
    state = unloaded(1, 1, 1, 1, 1)
    then = before(state, 3)
    brokers: Brokers = replace(then.brokers, ids=("a:8080", "z:8080"))
    (only,) = ailments(state, values(OFF), [replace(then, brokers=brokers)])
    assert only.endswith("and no longer: z:8080.")
