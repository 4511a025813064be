"""What brokers will have published when their leader decides next."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pulsar_advisor.model.cluster.cluster_state import ClusterState, PublishedLoad
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.load.extensible_load import extensible_load
from pulsar_advisor.model.load.next_publication import at_next_cycle, next_cycle_at_ms, with_due_reports
from states import WHOLE, BrokerRow, BundleRow, cluster_state

SETTINGS = resolve_settings(
    "4.2.4", {"loadBalancerReportUpdateMinIntervalMillis": "5000", "loadBalancerHistoryResourcePercentage": "0.9"}
).values


def state(unloaded_ago_ms: int = 0) -> ClusterState:
    """Both brokers use 70 % of their CPU; their loads are of the moment of the capture."""
    found = cluster_state(
        [BrokerRow("a:8080", cpu=(70, 100)), BrokerRow("b:8080", cpu=(70, 100))],
        [BundleRow("t/n", WHOLE, "a:8080", topics=1)],
        load_manager="extensible",
    )
    now = np.full(2, found.captured_at_ms, dtype=np.int64)
    unloaded = np.array([found.captured_at_ms - unloaded_ago_ms if unloaded_ago_ms else 0])
    return replace(
        found,
        brokers=replace(found.brokers, report_updated_at_ms=now),
        bundles=replace(found.bundles, last_unloaded_at_ms=unloaded),
    )


def published(every_ms: list[int] | None) -> PublishedLoad:
    often = None if every_ms is None else np.array(every_ms)
    return PublishedLoad(np.array([0.3, 0.3]), np.array([1e6, 1e6]), np.array([-1]), often)


@pytest.mark.parametrize(
    ("unloaded_ago_ms", "ahead_ms"), [(40_000, 20_000), (100_000, 20_000), (60_000, 0), (0, 30_000)]
)
def test_cycles_start_whole_intervals_after_the_last_unload(unloaded_ago_ms: int, ahead_ms: int) -> None:
    of = state(unloaded_ago_ms)
    assert next_cycle_at_ms(of, SETTINGS) == of.captured_at_ms + ahead_ms


def test_a_broker_that_publishes_often_does_so_again_and_its_load_approaches_its_usage() -> None:
    of = state(unloaded_ago_ms=40_000)
    then = at_next_cycle(published([8_000, 60_000]), of, SETTINGS)
    # After 8 and 16 of 20 seconds, with a sample every 5: three samples by then.
    assert then.weighted_max_ema.tolist() == pytest.approx([0.7 - 0.4 * 0.9**3, 0.3])


@pytest.mark.parametrize("every_ms", [None, [0, 0]])
def test_what_was_published_stays_if_nobody_knows_how_often_it_is(every_ms: list[int] | None) -> None:
    then = at_next_cycle(published(every_ms), state(unloaded_ago_ms=40_000), SETTINGS)
    assert then.weighted_max_ema.tolist() == [0.3, 0.3]


def test_a_broker_publishes_after_the_longest_interval() -> None:
    of = state(unloaded_ago_ms=40_000)
    old = of.brokers.report_updated_at_ms - np.array([15 * 60_000, 0])
    of = replace(of, brokers=replace(of.brokers, report_updated_at_ms=old))
    then = at_next_cycle(published([0, 0]), of, SETTINGS)
    assert then.weighted_max_ema.tolist() == pytest.approx([0.7, 0.3], abs=1e-6)


def test_the_leaders_view_has_the_load_of_the_next_cycle_beside_that_of_now() -> None:
    of = replace(state(unloaded_ago_ms=40_000), published_load=published([8_000, 60_000]))
    view = extensible_load(of, SETTINGS, of.captured_at_ms)
    assert view.load_now is not None
    assert (view.load_now.tolist(), view.load[0] > 0.4) == ([0.3, 0.3], True)
    assert view.load_approached is not None
    assert view.load_approached.tolist() == pytest.approx([0.7, 0.7])
    silent = replace(of, published_load=published(None))
    assert extensible_load(silent, SETTINGS, of.captured_at_ms).load_now is None


MODULAR = resolve_settings(
    "4.0.8",
    {
        "loadBalancerReportUpdateMaxIntervalMinutes": "1",
        "loadBalancerReportUpdateMinIntervalMillis": "1000",
        "loadBalancerResourceQuotaUpdateIntervalMinutes": "1",
    },
).values


def modular(cpu: float, report_ages_s: list[int], unloaded_ago_s: int = 0) -> ClusterState:
    found = cluster_state(
        [BrokerRow("a:8080", cpu=(cpu, 100)), BrokerRow("b:8080", cpu=(cpu, 100))],
        [BundleRow("t/n", WHOLE, "a:8080", topics=1)],
    )
    written = found.captured_at_ms - np.array(report_ages_s) * 1000
    unloaded = np.array([found.captured_at_ms - unloaded_ago_s * 1000 if unloaded_ago_s else 0])
    return replace(
        found,
        brokers=replace(found.brokers, report_updated_at_ms=written),
        bundles=replace(found.bundles, last_unloaded_at_ms=unloaded),
    )


@pytest.mark.parametrize(
    ("report_ages_s", "unloaded_ago_s", "used"),
    [
        ([61, 60], 0, [75.0, 67.0]),
        # The next cycle is in two seconds.
        ([61, 59], 58, [75.0, 75.0]),
        ([57, 59], 58, [67.0, 75.0]),
    ],
)
def test_a_modular_leader_decides_on_the_reports_that_are_due_before_its_next_cycle(
    report_ages_s: list[int], unloaded_ago_s: int, used: list[float]
) -> None:
    published, fresh = modular(67, report_ages_s, unloaded_ago_s), modular(75, report_ages_s)
    assert with_due_reports(published, fresh, MODULAR).brokers.usage[:, 0].tolist() == used


def test_the_report_of_a_broker_that_gave_no_answer_or_is_not_known_stays() -> None:
    published, fresh = modular(67, [61, 61]), modular(75, [61, 61])
    silent = replace(fresh.brokers, ids=("b:8080", "c:8080"), report_updated_at_ms=np.array([0, 1]))
    unchanged = with_due_reports(published, replace(fresh, brokers=silent), MODULAR)
    assert unchanged.brokers.usage[:, 0].tolist() == [67.0, 67.0]


def test_the_report_of_a_broker_whose_answer_was_set_aside_stays() -> None:
    published, fresh = modular(67, [61, 61]), modular(75, [61, 61])
    set_aside = replace(fresh.brokers, complete=np.array([False, True]))
    then = with_due_reports(published, replace(fresh, brokers=set_aside), MODULAR)
    assert then.brokers.usage[:, 0].tolist() == [67.0, 75.0]


def test_answers_are_those_of_the_same_broker() -> None:
    published, fresh = modular(67, [61, 59]), modular(75, [61, 61])
    turned = replace(
        fresh.brokers,
        ids=("b:8080", "a:8080"),
        usage=fresh.brokers.usage * [[1.0], [2.0]],
        bundles=fresh.brokers.bundles[::-1],
    )
    assert with_due_reports(published, replace(fresh, brokers=turned), MODULAR).brokers.usage[:, 0].tolist() == [
        150,
        67,
    ]


@pytest.mark.parametrize(
    ("cpu", "next_cycle_s", "used"),
    [
        # Checks come every second: the reports are 200 and 400 ms past one.
        (78, 0.9, [78.0, 78.0]),
        (78, 0.7, [67.0, 78.0]),
        (78, 0.5, [67.0, 67.0]),
        # Ten points are not more than the threshold.
        (77, 0.9, [67.0, 67.0]),
        # No unload shows when the next cycle comes.
        (78, None, [78.0, 78.0]),
    ],
)
def test_a_broker_whose_figures_changed_writes_them_at_its_next_check(
    cpu: float, next_cycle_s: float | None, used: list[float]
) -> None:
    published, fresh = modular(67, [0, 0]), modular(cpu, [0, 0])
    now_ms = published.captured_at_ms
    written = replace(published.brokers, report_updated_at_ms=np.array([now_ms - 20_200, now_ms - 20_400]))
    unloaded = 0 if next_cycle_s is None else now_ms + round(next_cycle_s * 1000) - 60_000
    bundles = replace(published.bundles, last_unloaded_at_ms=np.array([unloaded]))
    published = replace(published, brokers=written, bundles=bundles)
    assert with_due_reports(published, fresh, MODULAR).brokers.usage[:, 0].tolist() == used


@pytest.mark.parametrize(("release", "used"), [("3.0.7", 78.0), ("4.0.8", 67.0)])
def test_up_to_3_3_the_change_of_usage_counts_without_weights(release: str, used: float) -> None:
    half = resolve_settings(release, what_if={"loadBalancerCPUResourceWeight": "0.5"}).values
    assert with_due_reports(modular(67, [0, 0]), modular(78, [0, 0]), half).brokers.usage[0, 0] == used


def averaged(report_ages_s: list[int], unloaded_ago_s: int = 0) -> tuple[ClusterState, ClusterState]:
    """The published and the fresh view: the bundle's figures were 200, an average of 100, and are 300 now."""
    published, fresh = modular(67, report_ages_s, unloaded_ago_s), modular(75, report_ages_s)
    figures = {"short_term": np.full((1, 4), 100.0), "short_term_samples": np.array([10])}
    before = replace(published.bundles, traffic=np.full((1, 4), 200.0), **figures)
    now = replace(fresh.bundles, traffic=np.full((1, 4), 300.0))
    return replace(published, bundles=before), replace(fresh, bundles=now)


@pytest.mark.parametrize(
    ("report_ages_s", "short_term"),
    [
        # Its own broker's report alone: one sample of 300 beside nine tenths of the average of 100.
        ([61, 50], 120.0),
        # The other broker's alone: one sample of the figures that the bundle's broker wrote last, 200.
        ([50, 61], 110.0),
        # Both: the other broker's comes first, or last.
        ([61, 62], 129.0),
        ([62, 61], 138.0),
        ([50, 50], 100.0),
    ],
)
def test_every_due_report_adds_a_sample_to_the_averages(report_ages_s: list[int], short_term: float) -> None:
    then = with_due_reports(*averaged(report_ages_s), MODULAR).bundles
    assert then.short_term[0].tolist() == pytest.approx([short_term] * 4)


@pytest.mark.parametrize(
    ("report_age_s", "stored_ago_s", "short_term"),
    [
        # The next cycle is in ten seconds. Nothing happens before it; then the leader stores its averages.
        (40, 45, 100.0),
        (40, 55, 110.0),
        # Its broker's report comes before the leader stores them, or after.
        (60, 55, 138.0),
        (55, 59, 129.0),
        # It should have stored them long ago.
        (40, 65, 100.0),
    ],
)
def test_the_averages_that_the_leader_stores_have_one_more_sample(
    report_age_s: int, stored_ago_s: int, short_term: float
) -> None:
    published, fresh = averaged([report_age_s, 10], unloaded_ago_s=50)
    published = replace(published, averages_stored_at_ms=published.captured_at_ms - stored_ago_s * 1000)
    then = with_due_reports(published, fresh, MODULAR).bundles
    assert then.short_term[0].tolist() == pytest.approx([short_term] * 4)


def test_a_bundle_that_no_broker_reports_gets_no_sample() -> None:
    published, fresh = modular(67, [61, 61]), modular(75, [61, 61])
    silent = replace(published.bundles, reported=np.array([False]))
    then = with_due_reports(replace(published, bundles=silent), fresh, MODULAR).bundles
    assert then.short_term.tolist() == silent.short_term.tolist()
    assert then.traffic.tolist() == silent.traffic.tolist()


def test_a_bundle_that_its_broker_no_longer_reports_or_that_was_set_aside_keeps_its_last_figures() -> None:
    published, fresh = modular(67, [61, 50]), modular(75, [61, 50])
    new = replace(fresh.bundles, traffic=np.full((1, 4), 300.0))
    for gone in (replace(new, reported=np.array([False])), replace(new, usable=np.array([False]))):
        then = with_due_reports(published, replace(fresh, bundles=gone), MODULAR).bundles
        assert then.traffic.tolist() == published.bundles.traffic.tolist()
