"""What the leader has received of what brokers measured."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pulsar_advisor.model.cluster.cluster_state import CPU, NO_ROW, ClusterState, LoadManagerKind
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.load.resource_usage import weighted_maximum
from pulsar_advisor.simulation.cluster import SimulatedCluster
from pulsar_advisor.simulation.intervals import Intervals
from pulsar_advisor.simulation.moment import advanced
from pulsar_advisor.simulation.reports import Reports, after_change, first_reports, state_seen
from states import BrokerRow, BundleRow, cluster_state

SETTINGS = resolve_settings("4.0.8").values
INTERVALS = Intervals.of(SETTINGS)
MINUTE = 60_000
A, B = "a:8080", "b:8080"


def two_brokers(load_manager: LoadManagerKind = "modular", *, rates: tuple[float, ...] = (60.0, 20.0)) -> ClusterState:
    """Broker a has a bundle per rate (messages/s in and out), b has one of 20; one message costs a point of CPU."""
    width = 2**32 // 16
    bundles = [
        BundleRow("t/a", f"0x{row * width:08x}_0x{(row + 1) * width:08x}", A, (rate, 0.0, rate, 0.0), topics=1)
        for row, rate in enumerate(rates)
    ]
    total = sum(rates)
    return cluster_state(
        [
            BrokerRow(A, cpu=(total, 100.0), traffic=(total, 0.0, total, 0.0), topics=len(rates)),
            BrokerRow(B, cpu=(20.0, 100.0), traffic=(20.0, 0.0, 20.0, 0.0), topics=1),
        ],
        [*bundles, BundleRow("t/b", "0x00000000_0xffffffff", B, (20.0, 0.0, 20.0, 0.0), topics=1)],
        load_manager=load_manager,
    )


def moved(state: ClusterState, bundle: int, to: int) -> tuple[Reports, SimulatedCluster]:
    """The reports at the moment at which a bundle has moved."""
    cluster = SimulatedCluster.of(state)
    reports = first_reports(state, cluster, SETTINGS, INTERVALS, seed=0)
    source = int(cluster.owner[bundle])
    return after_change(reports, [source, to]), cluster.moved([bundle], [to])


def usage_seen(reports: Reports, state: ClusterState) -> list[float]:
    return weighted_maximum(reports.published.usage, state.brokers.limit, SETTINGS).tolist()


def test_without_a_change_the_leader_sees_the_snapshot_for_good() -> None:
    state = two_brokers()
    cluster = SimulatedCluster.of(state)
    first = first_reports(state, cluster, SETTINGS, INTERVALS, seed=0)
    later = advanced(first, state, cluster, SETTINGS, INTERVALS, state.captured_at_ms + 10 * MINUTE)
    assert later.published is first.published
    assert later.published_at_ms.tolist() == first.published_at_ms.tolist()


def test_a_move_reaches_the_leader_within_the_brokers_next_passes_and_two_samples() -> None:
    state = two_brokers()
    reports, cluster = moved(state, 1, 1)
    now = state.captured_at_ms
    assert usage_seen(reports, state) == pytest.approx([0.8, 0.2])
    a_minute_later = advanced(reports, state, cluster, SETTINGS, INTERVALS, now + MINUTE)
    seen = state_seen(a_minute_later, state, cluster, state.bundles.last_unloaded_at_ms)
    assert seen.bundles.owner.tolist() == [0, 1, 1]
    assert seen.brokers.traffic[:, 0].tolist() == [60.0, 40.0]
    # The sample covers the time before the move as well.
    assert 0.6 < usage_seen(a_minute_later, state)[0] < 0.8
    assert a_minute_later.measured.usage[0, 0] == pytest.approx(100 * usage_seen(a_minute_later, state)[0], abs=10)


def test_between_two_passes_no_report_includes_the_bundle() -> None:
    state = two_brokers()
    reports, cluster = moved(state, 1, 1)
    owners = set()
    for seconds in range(5, 60, 5):
        later = advanced(reports, state, cluster, SETTINGS, INTERVALS, state.captured_at_ms + seconds * 1000)
        owners.add(int(later.published.reporter[1]))
    assert owners >= {0, 1}
    assert owners <= {0, 1, NO_ROW}


def test_a_change_below_the_threshold_is_published_only_when_the_report_is_too_old() -> None:
    state = cluster_state(
        [BrokerRow(name, cpu=(60.0, 100.0), traffic=(60.0, 0.0, 60.0, 0.0)) for name in (A, B)],
        [*_bundles_of(A, 15, 4.0), *_bundles_of(B, 60, 1.0)],
    )
    reports, cluster = moved(state, 0, 1)
    now = state.captured_at_ms
    after_14 = advanced(reports, state, cluster, SETTINGS, INTERVALS, now + 14 * MINUTE)
    after_16 = advanced(after_14, state, cluster, SETTINGS, INTERVALS, now + 16 * MINUTE)
    assert usage_seen(after_14, state) == pytest.approx([0.6, 0.6])
    assert usage_seen(after_16, state) == pytest.approx([0.56, 0.64])


@pytest.mark.parametrize(("release", "seen"), [("3.0.7", 75.0), ("4.0.8", 60.0)])
def test_up_to_3_3_a_broker_publishes_a_change_of_its_usage_without_weights(release: str, seen: float) -> None:
    state = two_brokers(rates=(40.0, 20.0))
    settings = resolve_settings(release, what_if={"loadBalancerCPUResourceWeight": "0.5"}).values
    cluster = SimulatedCluster.of(state)
    first = first_reports(state, cluster, settings, INTERVALS, seed=0)
    busier = replace(cluster, own_usage=cluster.own_usage + 16.0 * (np.arange(5) == CPU))
    later = advanced(after_change(first), state, busier, settings, INTERVALS, state.captured_at_ms + 3 * MINUTE)
    assert later.published.usage[0, CPU] == pytest.approx(seen, abs=1.0)


def _bundles_of(owner: str, number: int, rate: float) -> list[BundleRow]:
    width = 2**32 // 64
    return [
        BundleRow(f"t/{owner[0]}", f"0x{row * width:08x}_0x{(row + 1) * width:08x}", owner, (rate, 0.0, rate, 0.0), 1)
        for row in range(number)
    ]


def test_every_publication_adds_a_sample_to_the_averages_of_all_bundles() -> None:
    state = two_brokers()
    reports, cluster = moved(state, 1, 1)
    later = advanced(reports, state, cluster, SETTINGS, INTERVALS, state.captured_at_ms + MINUTE)
    samples = later.short_term_samples - state.bundles.short_term_samples
    assert samples[0] >= 2
    assert samples[0] == samples[2]


def test_averages_are_the_modular_managers() -> None:
    state = two_brokers("simple")
    reports, cluster = moved(state, 1, 1)
    later = advanced(reports, state, cluster, SETTINGS, INTERVALS, state.captured_at_ms + 20 * MINUTE)
    assert later.short_term_samples.tolist() == state.bundles.short_term_samples.tolist()


def test_an_extensible_broker_publishes_anew_after_it_lost_a_bundle() -> None:
    state = two_brokers("extensible")
    reports, cluster = moved(state, 1, 1)
    later = advanced(reports, state, cluster, SETTINGS, INTERVALS, state.captured_at_ms + 5_000)
    assert later.published_at_ms.tolist() == [state.captured_at_ms + 5_000] * 2
    assert later.load is not None
    assert later.load.weighted_max_ema.tolist() == pytest.approx([0.8, 0.2])


def test_ownership_is_known_at_once_under_extensible_and_from_reports_under_modular() -> None:
    for load_manager, owner, reported in (("extensible", 1, False), ("modular", 0, True)):
        state = two_brokers(load_manager)
        reports, cluster = moved(state, 1, 1)
        seen = state_seen(reports, state, cluster, state.bundles.last_unloaded_at_ms)
        assert (int(seen.bundles.owner[1]), bool(seen.bundles.reported[1])) == (owner, reported)
