"""Our engine against the real released Java classes: the shared vectors on both, then random clusters.

Skipped with the reason where Java, Maven or the artifacts can't be had. `make parity` runs every release.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from harness.errors import LiveClusterUnavailable
from parity.differential import Comparison, compare_strategy, explain
from parity.java_classes import RELEASES, JavaClasses, java_classes
from parity.java_replay import difference_from_vector, replayable
from parity.random_clusters import GENERATORS
from pulsar_advisor.model import configuration
from pulsar_advisor.model.configuration.defaults import ALLOWED_KEYS

VECTORS = Path(__file__).resolve().parents[1] / "data" / "vectors"
SAMPLED_RELEASE = "4.0.8"
SAMPLED_CLUSTERS = 40
ALL_CLUSTERS = 1000


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(release, marks=() if release == SAMPLED_RELEASE else pytest.mark.full) for release in RELEASES
    ],
)
def java(request: pytest.FixtureRequest) -> Iterator[JavaClasses]:
    """A JVM with the classes of one release; pytest finishes a release before it starts the next one."""
    try:
        with java_classes(request.param) as running:
            yield running
    except LiveClusterUnavailable as reason:
        pytest.skip(str(reason))


def _vectors(release: str) -> list[dict[str, Any]]:
    cases = [case for file in ("shedders", "generated", "splits") for case in _read(file)]
    return [
        case
        for case in cases
        if replayable(case) and (release in case["versions"] or release in (case.get("expectedIn") or {}))
    ]


def _read(file: str) -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = json.loads((VECTORS / f"{file}.json").read_text(encoding="utf-8"))
    return cases


def test_the_java_side_reproduces_every_vector_executed_on_its_release(java: JavaClasses) -> None:
    vectors = _vectors(java.release)
    if not vectors:
        pytest.skip(f"no shared vector has the answer of {java.release}")
    differences = [difference_from_vector(case, java) for case in vectors]
    assert [difference for difference in differences if difference] == []


def test_the_listed_defaults_are_those_of_the_class(java: JavaClasses) -> None:
    [found] = java.ask({"strategy": "ServiceConfiguration"})["answers"]
    listed = json.loads((files(configuration) / "defaults_by_version.json").read_text())[java.release]
    assert listed == {key: found[key] for key in ALLOWED_KEYS & found.keys()}


@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
@pytest.mark.parametrize("clusters", [SAMPLED_CLUSTERS, pytest.param(ALL_CLUSTERS, marks=pytest.mark.full)])
@pytest.mark.parametrize("strategy", GENERATORS)
def test_random_clusters(java: JavaClasses, strategy: str, clusters: int, tally: list[Comparison]) -> None:
    comparison = compare_strategy(strategy, java, clusters)
    tally.append(comparison)
    if comparison.clusters == 0:
        pytest.skip(comparison.absent)
    assert not comparison.differing, explain(comparison, java)
