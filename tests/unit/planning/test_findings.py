"""The sentences that matter, and how much of the load could be judged."""

from dataclasses import replace

import numpy as np

from pulsar_advisor.model.cluster_state import BANDWIDTH_IN, BANDWIDTH_OUT, DIRECT_MEMORY, NO_ROW, ClusterState
from pulsar_advisor.model.inputs import Input
from pulsar_advisor.model.settings import ResolvedSettings, resolve_settings
from pulsar_advisor.planning.findings import coverage, findings
from unit.planning.conftest import MIB


def test_everything_judged_is_one(state: ClusterState) -> None:
    assert coverage(state).judged_ratio == 1.0


def test_an_excluded_broker_takes_its_load_out_of_the_judged_share(state: ClusterState) -> None:
    state.brokers.complete[0] = False
    judged = coverage(state)
    assert judged.excluded_brokers == ("a:8080",)
    assert round(judged.judged_ratio, 3) == round(6 / 86, 3)


def test_a_share_is_of_messages_and_of_bytes(state: ClusterState) -> None:
    state.bundles.usable[0] = False
    judged = coverage(state)
    assert round(judged.judged_msg_rate_ratio, 3) == round(1400 / 2400, 3)
    assert judged.sentence == "41.7% of the messages and 58.1% of the bytes could not be judged."


def test_load_that_nobody_measured_is_counted_in_bundles(state: ClusterState) -> None:
    state.brokers.complete[1] = False
    state.brokers.report_updated_at_ms[1] = 0
    state.bundles.traffic[3] = 0.0
    assert coverage(state).sentence == "The load of 1 bundle without figures could not be judged."


def test_a_figure_that_no_machine_has_is_no_load(state: ClusterState) -> None:
    state.bundles.usable[0] = False
    state.bundles.traffic[0, 2] = np.nan
    judged = coverage(state)
    assert (judged.judged_ratio, judged.judged_msg_rate_ratio, judged.unmeasured_bundles) == (1.0, 1.0, 1)


def of_extensible_zookeeper_alone(state: ClusterState) -> ClusterState:
    """Its brokers publish neither load nor, by default, ownership in ZooKeeper."""
    ownerless = replace(
        state.bundles,
        owner=np.full_like(state.bundles.owner, NO_ROW),
        reported=np.zeros_like(state.bundles.reported),
        traffic=np.zeros_like(state.bundles.traffic),
    )
    silent = replace(
        state.brokers,
        complete=np.zeros_like(state.brokers.complete),
        report_updated_at_ms=np.zeros_like(state.brokers.report_updated_at_ms),
    )
    missing: dict[Input, str] = {"topic_traffic": "topic_stats: no admin URL"}
    return replace(
        state, view="published", load_manager="extensible", brokers=silent, bundles=ownerless, missing=missing
    )


def test_load_is_not_judged_without_reports_or_owners(state: ClusterState) -> None:
    judged = coverage(of_extensible_zookeeper_alone(state))
    assert judged.unmeasured_bundles == len(state.bundles)
    assert judged.sentence == "The load of 6 bundles without figures could not be judged."


def test_where_only_owners_are_told_the_load_of_owned_bundles_is_not_judged(state: ClusterState) -> None:
    silent = of_extensible_zookeeper_alone(state)
    owned = replace(silent, bundles=replace(silent.bundles, owner=state.bundles.owner))
    assert coverage(owned).sentence == "The load of 5 bundles without figures could not be judged."


def test_where_nobody_tells_of_load_nothing_is_said_about_busy_brokers_and_small_bundles(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    found = findings(of_extensible_zookeeper_alone(state), settings.values, [])
    assert [finding.sentence for finding in found] == [
        "No broker was read, and none has published fit figures.",
        "DefaultNamespaceBundleSplitStrategyImpl can't be judged: it reads bundle_traffic, which is missing "
        "(no bundle has fit figures).",
        "The load of 6 bundles without figures could not be judged.",
    ]


def test_a_broker_whose_figures_fail_is_not_called_the_busiest(state: ClusterState, settings: ResolvedSettings) -> None:
    state.brokers.complete[0] = False
    sentences = [finding.sentence for finding in findings(state, settings.values, [])]
    assert sentences[0].startswith("c:8080 is the busiest broker at 20.0% (CPU); the mean is 15.0%.")
    assert sentences[-1] == "75.0% of the messages and 93.0% of the bytes could not be judged."


def busiest(state: ClusterState, settings: ResolvedSettings) -> str:
    return findings(state, settings.values, [])[0].sentence


def test_the_busiest_broker_is_named_with_its_resource_and_the_bundle_with_the_largest_share_of_that(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    first = "a:8080 is the busiest broker at 90.0% (CPU); the mean is 40.0%. "
    assert busiest(state, settings) == first + "t/hot/0x00000000_0x40000000 has the largest part of its messages: 56%."
    state.bundles.traffic[1] = (450.0, 450.0, 1.0, 1.0)
    state.bundles.traffic[0] = (50.0, 50.0, 35 * MIB, 35 * MIB)
    assert busiest(state, settings) == first + "t/hot/0x40000000_0x80000000 has the largest part of its messages: 50%."


def test_where_bandwidth_decides_it_is_the_bundle_with_the_most_bytes(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    state.brokers.usage[0, [BANDWIDTH_IN, BANDWIDTH_OUT]] = 500_000.0, 950_000.0
    state.brokers.limit[0, [BANDWIDTH_IN, BANDWIDTH_OUT]] = 1_000_000.0
    assert "at 95.0% (outbound bandwidth)" in busiest(state, settings)
    assert busiest(state, settings).endswith("0x00000000_0x40000000 has the largest part of its outbound bytes: 62%.")


def test_of_direct_memory_no_bundle_is_blamed(state: ClusterState) -> None:
    weighted = resolve_settings("2.11.4")
    state.brokers.usage[0, DIRECT_MEMORY], state.brokers.limit[0, DIRECT_MEMORY] = 95.0, 100.0
    assert busiest(state, weighted).endswith("No bundle takes direct memory along, so no unload lowers it.")


def test_samples_added_to_stored_averages_are_said(state: ClusterState, settings: ResolvedSettings) -> None:
    def of_averages() -> list[str]:
        return [one.sentence for one in findings(state, settings.values, ()) if "averages" in one.sentence]

    assert of_averages() == []
    state.bundles.folded_samples[0] = 3
    assert of_averages() == [
        "The averages of the leader are those it stored, with up to 3 samples from load reports written since."
    ]
    state.bundles.unknown_samples[1] = 1
    (sentence,) = of_averages()
    assert "the figures of up to 1 more are assumed" in sentence
