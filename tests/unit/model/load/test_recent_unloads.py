"""Which bundles the leader leaves alone at its next cycle."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pulsar_advisor.model.cluster.cluster_state import LoadManagerKind
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.load.recent_unloads import as_the_leader_remembers, recently_unloaded
from states import WHOLE, BrokerRow, BundleRow, cluster_state

SETTINGS = resolve_settings("4.0.8", runtime={"loadBalancerSheddingGracePeriodMinutes": "3"}).values
NOW_MS = 1_795_250_000_000


@pytest.mark.parametrize(
    ("seconds", "load_manager", "recent"),
    [
        (119, "modular", True),
        # Known 124 s ago at the latest: the unload was three cycles before the next one.
        (124, "modular", False),
        (180, "modular", False),
        (124, "simple", False),
        (124, "extensible", True),
        (181, "extensible", False),
    ],
)
def test_an_unload_counts_by_the_cycles_since(seconds: int, load_manager: LoadManagerKind, recent: bool) -> None:
    state = cluster_state(
        [BrokerRow("a:8080")],
        [BundleRow("t/n", WHOLE, "a:8080", last_unloaded_at_ms=NOW_MS - seconds * 1000)],
        load_manager=load_manager,
    )
    assert recently_unloaded(state, SETTINGS, NOW_MS).tolist() == [recent]


@pytest.mark.parametrize(
    ("seconds", "seconds_of_last", "recent"),
    [
        # Recorded: the last unload was not a minute ago, so the next cycle is the first after it, 122 s after this one.
        (121.3, 59.7, True),
        # The next cycle is the first after the last unload, and the third after this one.
        (121.3, 0.5, False),
        # Cycles drift: 59.2 s apart by the moments at which brokers acquired the bundles, a minute for the leader.
        (178.5, 119.3, False),
        (118.5, 59.3, True),
        # The snapshot shows an unload that was made while it was taken: the next cycle is another one.
        (119.0, -1.0, False),
        (59.0, -1.0, True),
    ],
)
def test_cycles_are_counted_from_the_last_unload_on(seconds: float, seconds_of_last: float, recent: bool) -> None:
    state = cluster_state(
        [BrokerRow("a:8080")],
        [
            BundleRow("t/n", "0x00000000_0x80000000", "a:8080", last_unloaded_at_ms=NOW_MS - round(seconds * 1000)),
            BundleRow(
                "t/n", "0x80000000_0xffffffff", "a:8080", last_unloaded_at_ms=NOW_MS - round(seconds_of_last * 1000)
            ),
        ],
    )
    assert recently_unloaded(state, SETTINGS, NOW_MS)[0] == recent


def test_a_bundle_that_was_never_unloaded_is_not_left_alone() -> None:
    state = cluster_state([BrokerRow("a:8080")], [BundleRow("t/n", WHOLE, "a:8080")])
    assert recently_unloaded(state, SETTINGS, NOW_MS).tolist() == [False]


@pytest.mark.parametrize(("unloads", "remembered"), [(None, NOW_MS), (0, 0), (1, NOW_MS)])
def test_a_leader_that_has_unloaded_nothing_yet_remembers_nothing(unloads: int | None, remembered: int) -> None:
    bundle = BundleRow("t/n", WHOLE, "a:8080", last_unloaded_at_ms=NOW_MS)
    state = replace(cluster_state([BrokerRow("a:8080")], [bundle]), leader_unloads=unloads)
    seen = as_the_leader_remembers(state, SETTINGS)
    assert seen.bundles.last_unloaded_at_ms.tolist() == [remembered]


@pytest.mark.parametrize(
    ("runtime", "remembered"),
    [({}, NOW_MS), ({"loadBalancerSheddingEnabled": "false"}, 0), ({"loadBalancerEnabled": "false"}, 0)],
)
def test_a_leader_that_sheds_nothing_remembers_no_unload(runtime: dict[str, str], remembered: int) -> None:
    bundle = BundleRow("t/n", WHOLE, "a:8080", last_unloaded_at_ms=NOW_MS)
    state = cluster_state([BrokerRow("a:8080")], [bundle])
    seen = as_the_leader_remembers(state, resolve_settings("4.0.8", runtime=runtime).values)
    assert seen.bundles.last_unloaded_at_ms.tolist() == [remembered]
