"""The views of the Extensible and Simple strategies ask the same policies and filters as placement does."""

from dataclasses import replace

import pytest

from pulsar_advisor.model.cluster.cluster_state import ClusterState, IsolationPolicy
from pulsar_advisor.model.configuration.resolved_settings import ResolvedSettings, resolve_settings
from pulsar_advisor.placement.filters import placement_facts
from pulsar_advisor.planning.proposals.views import observed
from pulsar_advisor.shedding import registry
from states import WHOLE, BrokerRow, BundleRow, cluster_state

FIRST, SECOND, THIRD = 0, 1, 2
ISOLATED, FREE = 0, 1


@pytest.fixture
def isolated() -> ClusterState:
    return cluster_state(
        [BrokerRow("a:8080"), BrokerRow("b:8080"), BrokerRow("c:8080")],
        [
            BundleRow("t/bound", WHOLE, "a:8080", (1.0, 1.0, 1.0, 1.0), topics=1),
            BundleRow("t/free", WHOLE, "a:8080", (1.0, 1.0, 1.0, 1.0), topics=1),
        ],
        isolation_policies=(IsolationPolicy("p", ("t/bound",), ("a", "b"), (), 1, 100),),
    )


def test_a_bundle_under_a_policy_is_transferable_to_its_brokers_only(
    isolated: ClusterState, settings: ResolvedSettings
) -> None:
    state = replace(isolated, load_manager="extensible")
    view = observed(registry.load("TransferShedder").observe, placement_facts(state, settings.values))
    assert view.transferable(ISOLATED, FIRST, SECOND)
    assert not view.transferable(ISOLATED, FIRST, THIRD)
    # a and b are primary in a policy, so a namespace without one gets c only.
    assert view.transferable(FREE, FIRST, THIRD)
    assert not view.transferable(FREE, FIRST, SECOND)


@pytest.mark.parametrize(("version", "preferred", "moves"), [("3.1.0.12", True, False), ("3.1.0.12", False, True)])
def test_nothing_is_transferable_where_versions_can_not_be_compared(version: str, preferred: bool, moves: bool) -> None:
    state = cluster_state(
        [BrokerRow("a:8080"), BrokerRow("b:8080"), BrokerRow("c:8080", version=version)],
        [BundleRow("t/n", WHOLE, "a:8080", (1.0, 1.0, 1.0, 1.0), topics=1)],
        load_manager="extensible",
    )
    values = resolve_settings("4.0.8", {"preferLaterVersions": str(preferred).lower()}).values
    view = observed(registry.load("TransferShedder").observe, placement_facts(state, values))
    assert [view.transferable(0, FIRST, to) for to in (SECOND, THIRD)] == [moves, moves]


def test_the_simple_manager_looks_for_comfort_among_the_brokers_the_policies_allow(
    isolated: ClusterState, settings: ResolvedSettings
) -> None:
    state = replace(isolated, load_manager="simple")
    view = observed(registry.load("SimpleLoadManagerImpl").observe, placement_facts(state, settings.values))
    assert view.allowed(ISOLATED).tolist() == [True, True, False]
    assert view.allowed(FREE).tolist() == [False, False, True]


def test_the_view_of_a_modular_strategy_is_its_own(isolated: ClusterState, settings: ResolvedSettings) -> None:
    observe = registry.load("ThresholdShedder").observe
    view = observed(observe, placement_facts(isolated, settings.values))
    assert type(view) is type(observe(isolated, settings.values, isolated.captured_at_ms))
