"""Input that breaks the rules: every shedder does what Pulsar does with it, or names the row that it can't do with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pulsar_advisor.model.cluster.cluster_state import NO_ROW, ClusterState
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.errors import DataNotFit
from pulsar_advisor.shedding.cycle import SteadyState, steady_state
from pulsar_advisor.shedding.registry import SHEDDERS, load
from states import HALVES, BrokerRow, BundleRow, cluster_state

MIB = 2.0**20

every_shedder = pytest.mark.parametrize("name", [shedder.name for shedder in SHEDDERS])


def settings(release: str = "4.0.8") -> LoadBalancerSettings:
    eager = {"loadBalancerSheddingConditionHitCountThreshold": "0", "maxUnloadPercentage": "0.5"}
    return resolve_settings(release, eager).values


def cluster(namespace: str = "t/n", **hot: Any) -> ClusterState:
    """A broker at 95 % with three bundles beside one at 10 % with one, and whatever is odd about the busy one."""
    busy = {"cpu": (95.0, 100.0), "traffic": (3000.0, 3000.0, 30 * MIB, 30 * MIB)} | hot
    load = (1000.0, 1000.0, 10 * MIB, 10 * MIB)
    return cluster_state(
        [BrokerRow("busy:8080", **busy), BrokerRow("idle:8080", cpu=(10.0, 100.0), traffic=(1.0, 1.0, 1.0, 1.0))],
        [
            *(BundleRow(namespace, text, "busy:8080", load, topics=2) for text in HALVES),
            BundleRow("t/other", HALVES[0], "busy:8080", load, topics=2),
            BundleRow("t/other", HALVES[1], "idle:8080", (1.0, 1.0, 1.0, 1.0), topics=2),
        ],
    )


def shed(name: str, state: ClusterState, release: str = "4.0.8") -> SteadyState:
    shedder, of_release = load(name), settings(release)
    view = shedder.observe(state, of_release, state.captured_at_ms)
    return steady_state(shedder, view, of_release, shedder.Memory())


def chosen(name: str, state: ClusterState) -> list[str]:
    return [state.bundle_name(bundle) for bundle in shed(name, state).decision.bundle.tolist()]


@pytest.mark.parametrize("usage", [np.nan, -5.0])
@pytest.mark.parametrize(
    "name", ["OverloadShedder", "ThresholdShedder", "AvgShedder", "SimpleLoadManagerImpl", "MinimalMoveShedder"]
)
def test_a_usage_that_is_none_makes_no_broker_busy(name: str, usage: float) -> None:
    assert chosen(name, cluster()) != []
    assert chosen(name, cluster(cpu=(usage, 100.0))) == []


@every_shedder
def test_a_bundle_without_an_owner_stays_out_of_it(name: str) -> None:
    state = cluster()
    unowned = state.bundles.owner.copy()
    unowned[0] = NO_ROW
    assert state.bundle_name(0) not in chosen(name, replace(state, bundles=replace(state.bundles, owner=unowned)))


@every_shedder
def test_ranges_that_overlap_are_two_bundles_to_a_shedder(name: str) -> None:
    orderly, overlapping = cluster(), cluster()
    overlapping.bundles.lower[1] = 0x40000000
    found = shed(name, orderly).decision, shed(name, overlapping).decision
    assert sorted(found[0].bundles.index.tolist()) == sorted(found[1].bundles.index.tolist())
    assert len(found[0].bundle) == len(found[1].bundle)


@pytest.mark.parametrize("name", ["OverloadShedder", "ThresholdShedder", "AvgShedder", "UniformLoadShedder"])
def test_a_name_that_is_no_namespace_is_a_bundle_like_any_other_to_the_modular_ones(name: str) -> None:
    assert len(chosen(name, cluster("no namespace"))) == len(chosen(name, cluster()))


def test_the_extensible_one_looks_policies_up_and_names_what_is_no_namespace() -> None:
    with pytest.raises(DataNotFit, match="'no namespace' is not a namespace of this release"):
        shed("TransferShedder", cluster("no namespace"))
