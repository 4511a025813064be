"""Compares our engine with the real Java classes on random clusters, strategy by strategy and release by release."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from parity.java_classes import JavaClasses
from parity.java_replay import compare
from parity.random_clusters import random_case
from parity.shrink import smallest

SEED = 20261121
MOST_TRIES_PER_CLUSTER = 4
"""How many cases are made at most for each that a release can run; 2.11 has no flow_or_qps_equally_divide."""


@dataclass
class Comparison:
    """How a strategy did on a release: cases both sides ran, and the numbers of those on which they differ."""

    strategy: str
    release: str
    clusters: int = 0
    differing: list[int] = field(default_factory=list)
    absent: str = ""


def compare_strategy(strategy: str, java: JavaClasses, clusters: int, seed: int = SEED) -> Comparison:
    """Put so many random clusters to both sides; none where the release doesn't have the strategy."""
    comparison = Comparison(strategy, java.release)
    for number in range(clusters * MOST_TRIES_PER_CLUSTER):
        case = random_case(strategy, number, seed)
        verdict = compare(case, java)
        if verdict.absent:
            comparison.absent = verdict.absent
            continue
        comparison.clusters += 1
        if verdict.difference:
            comparison.differing.append(number)
        if comparison.clusters == clusters:
            break
    return comparison


def explain(comparison: Comparison, java: JavaClasses, seed: int = SEED) -> str:
    """The first case that differs, as small as it gets, ready to be kept as a vector; with both answers."""
    case = random_case(comparison.strategy, comparison.differing[0], seed)
    least = smallest(case, lambda smaller: compare(smaller, java).difference is not None)
    return (
        f"{comparison.strategy} on {java.release}: {len(comparison.differing)} of {comparison.clusters} clusters "
        f"differ, numbers {comparison.differing[:10]}. The first one, shrunk:\n{json.dumps(least)}\n"
        f"{compare(least, java).difference}"
    )


def table(comparisons: Iterable[Comparison]) -> list[str]:
    """Strategies down, releases across: clusters compared and differences found; `-` where a release has none."""
    done = {(one.strategy, one.release): one for one in comparisons}
    strategies = list(dict.fromkeys(strategy for strategy, _ in done))
    releases = list(dict.fromkeys(release for _, release in done))
    width = max(map(len, strategies), default=0)
    lines = [f"{'clusters / differences':<{width}}" + "".join(f"{release:>16}" for release in releases)]
    for strategy in strategies:
        cells = (_cell(done.get((strategy, release))) for release in releases)
        lines.append(f"{strategy:<{width}}" + "".join(f"{cell:>16}" for cell in cells))
    total = sum(one.clusters for one in done.values())
    differences = sum(len(one.differing) for one in done.values())
    lines.append(f"{total} clusters, {differences} differences")
    return lines


def _cell(comparison: Comparison | None) -> str:
    if comparison is None or comparison.clusters == 0:
        return "-"
    return f"{comparison.clusters} / {len(comparison.differing)}"
