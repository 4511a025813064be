"""The leader's view made from a cluster state."""

from __future__ import annotations

from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.load.load_data import (
    Exclusion,
    LoadData,
    load_data,
)
from states import LOWER_HALF, UPPER_HALF, WHOLE, BrokerRow, BundleRow, cluster_state

SETTINGS = resolve_settings("4.0.8").values
NOW_MS = 1_795_250_000_000


def state() -> ClusterState:
    minute = 60_000
    return cluster_state(
        [BrokerRow("a:8080"), BrokerRow("b:8080")],
        [
            BundleRow("t/n", LOWER_HALF, "a:8080", (1, 2, 10, 20), topics=1),
            BundleRow("t/n", UPPER_HALF, "a:8080", (3, 4, 30, 40), topics=1, last_unloaded_at_ms=NOW_MS - 29 * minute),
            BundleRow("t/o", LOWER_HALF, "b:8080", (5, 6, 50, 60), topics=1, last_unloaded_at_ms=NOW_MS - 30 * minute),
            BundleRow("t/o", UPPER_HALF, "b:8080", topics=0),
            BundleRow("pulsar/b:8080", WHOLE, "b:8080", topics=1),
        ],
    )


def names(load: LoadData, broker: int, which: str) -> list[str]:
    members = load.candidates if which == "candidates" else load.excluded
    return sorted(
        load.bundles.name(row) for row in members.bundle[members.offsets[broker] : members.offsets[broker + 1]]
    )


def test_candidates_are_reported_bundles_outside_the_grace_period() -> None:
    load = load_data(state(), SETTINGS, NOW_MS)
    assert names(load, 0, "candidates") == [f"t/n/{LOWER_HALF}"]
    assert names(load, 1, "candidates") == [f"t/o/{LOWER_HALF}"]


def test_every_other_listed_bundle_has_its_reason() -> None:
    load = load_data(state(), SETTINGS, NOW_MS)
    reasons = {load.bundles.name(row): code for row, code in zip(load.excluded.bundle, load.exclusion, strict=True)}
    assert reasons == {
        f"t/n/{UPPER_HALF}": Exclusion.RECENTLY_UNLOADED,
        f"t/o/{UPPER_HALF}": Exclusion.NOT_REPORTED,
        "pulsar/b:8080/0x00000000_0xffffffff": Exclusion.SERVICE_BUNDLE,
    }


def test_a_brokers_long_term_rate_is_that_of_the_bundles_it_reports() -> None:
    assert load_data(state(), SETTINGS, NOW_MS).brokers.long_term_rate_per_s.tolist() == [10.0, 11.0]
