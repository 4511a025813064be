"""`lint` tries a change on the same cluster as `recommend`, which proposes it."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import documents
from pulsar_advisor.documents.validation import Validation
from pulsar_advisor.model.cluster.snapshot_id import snapshot_moment
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.stages import lint, recommend
from pulsar_advisor.storage.files import write_file
from pulsar_advisor.storage.root import Snapshot
from pulsar_advisor.tables.columns import TRAFFIC
from written_tables import broker, bundle, topic, written

EARLIER, NOW = "20261121T082000Z", "20261121T083000Z"
BROKERS = ("a:8080", "b:8080", "c:8080")
QUARTER = 1 << 30
FIGURES = dict(zip(TRAFFIC.values(), (1e3, 1e3, 2e7, 2e7), strict=True))
AVERAGES = {f"{span}_term_{name}": figure for span in ("short", "long") for name, figure in FIGURES.items()}
OFF = {"loadBalancerSheddingEnabled": "false", "loadBalancerBundleUnloadMinThroughputThreshold": "0"}


def hot(folder: Path, snapshot: str, share: float = 1.0, **of_bundles: Any) -> Snapshot:
    """One broker has all four bundles, of this share of their traffic, in a cluster whose own shedding is off."""
    at_ms = int(snapshot_moment(snapshot).timestamp() * 1000)
    limits = {"cpu_limit": 100.0, "bandwidth_in_limit": 1e6, "bandwidth_out_limit": 1e6}
    brokers = [
        broker(
            name,
            **{column: 4 * share * figure * (name == "a:8080") for column, figure in FIGURES.items()},
            **limits,
            cpu_usage=8.0 + 80.0 * share if name == "a:8080" else 4.0,
            listed_bundles=4 if name == "a:8080" else 0,
            report_updated_at_ms=at_ms,
        )
        for name in BROKERS
    ]
    figures = {column: share * figure for column, figure in {**FIGURES, **AVERAGES}.items()}
    edges = [number * QUARTER for number in range(4)] + [4 * QUARTER - 1]
    return written(
        folder,
        {
            "pulsar_version": "4.0.8",
            "leader": "a:8080",
            "started_at_ms": at_ms,
            "identity": {"cluster_name": "test", "broker_ids": list(BROKERS)},
        },
        snapshot=snapshot,
        brokers=brokers,
        bundles=[
            bundle("shop/orders", lower, upper, "a:8080", topics=1, short_term_samples=9, long_term_samples=9)
            | figures
            | of_bundles
            for lower, upper in pairwise(edges)
        ],
        namespaces=[{"namespace": "shop/orders", "kind": "user", "listed": True}],
        topics=[topic(f"persistent://shop/orders/{lower}", lower) for lower in edges[:-1]],
        settings=[{"origin": "runtime", "broker": "a:8080", "key": key, "value": value} for key, value in OFF.items()],
    )


@pytest.mark.parametrize(
    "moved",
    [
        pytest.param({}, id="nothing has moved"),
        pytest.param({"last_unloaded_at_ms": 1_795_249_740_000}, id="moved a minute ago, but not by the leader"),
    ],
)
def test_a_change_ends_as_it_does_for_recommend(tmp_path: Path, moved: dict[str, int]) -> None:
    hot(tmp_path, EARLIER, share=0.2)
    snapshot = hot(tmp_path, NOW, **moved)
    findings, _ = lint.run(snapshot)
    tried = recommend._left_alone(snapshot, Request()).tried
    assert tried
    assert {str(one.effect) for one in findings if one.effect is not None} == set(map(str, tried))


@pytest.mark.parametrize(
    ("validation", "said"),
    [
        (None, f"{NOW} was never validated: its figures may be wrong"),
        (documents.validation(success=False), f"{NOW} did not pass validation: its figures may be wrong"),
    ],
)
def test_figures_that_did_not_pass_validation_are_named(
    validation: Validation | None, said: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    snapshot = hot(tmp_path, NOW)
    if validation is not None:
        write_file(snapshot.result_file("validate"), validation.content())
    lint.run(snapshot)
    assert caplog.messages == [said]
