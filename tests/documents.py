"""Complete documents that stages read, with as little in them as possible: tests add what they are about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from pulsar_advisor.documents.manifest import File, Manifest
from pulsar_advisor.documents.recommendation import Advice, Combination, Recommendation
from pulsar_advisor.documents.tables_result import TablesResult
from pulsar_advisor.documents.validation import CheckResult, Validation

SNAPSHOT = "20261121T083000Z"


def manifest(**fields: Any) -> Manifest:
    """A raw snapshot's manifest."""
    return Manifest.model_validate(
        {
            "snapshot": SNAPSHOT,
            "started_at_ms": 1_795_249_800_000,
            "finished_at_ms": 1_795_249_803_000,
            "skew_ms": 2_900,
            "identity": {"cluster_name": "pulsar-test", "broker_ids": []},
            "sources": {"admin_urls": ["http://a:8080"], "zookeeper": True},
            "pulsar_version": "4.0.8",
            "load_manager": "modular",
            "load_managers": {},
            "leader": "b:8080",
            "files": [],
            "reads": [],
            "missing": [],
            "failures": [],
            "incomplete_brokers": [],
            "moved_bundles": [],
        }
        | fields
    )


def file(surface: str, rows: int = 1) -> File:
    """A raw file, as the manifest lists it."""
    return File(path=f"{surface}.jsonl.zst", surface=surface, broker=None, rows=rows, bytes=13, sha256="0" * 64)


def tables_result(**fields: Any) -> TablesResult:
    """The result of `normalize`."""
    result = TablesResult(
        cluster="test", snapshot=SNAPSHOT, manifest_sha256="0" * 64, earlier_snapshot=None, problems=0, tables={}
    )
    return result.model_copy(update=fields)


def validation(*results: CheckResult, **fields: Any) -> Validation:
    """A validation result."""
    result = Validation(
        cluster="test",
        snapshot=SNAPSHOT,
        manifest_sha256="0" * 64,
        suites_sha256="1" * 64,
        success=True,
        results=results,
    )
    return result.model_copy(update=fields)


def check(**fields: Any) -> CheckResult:
    """A check of a validation result, passed."""
    return CheckResult.model_validate(
        {
            "check": "bundles.tile",
            "severity": "warning",
            "scope": "cluster",
            "effect": "doubt",
            "about": None,
            "title": "Ranges tile.",
            "reason": "Why it matters.",
            "action": "What to do.",
            "success": True,
            "failed_rows": 0,
            "examples": [],
            "excluded": [],
            "concerned": [],
            "error": None,
        }
        | fields
    )


def answered(checks: Mapping[str, int | str]) -> Iterator[CheckResult]:
    """Checks by name, each with the rows that fail, or with why it could not be evaluated."""
    for name, answer in checks.items():
        failed, error = (answer, None) if isinstance(answer, int) else (0, answer)
        yield check(check=name, success=answer == 0, failed_rows=failed, error=error)


def combination(shedder: str = "ThresholdShedder", placement: str = "AvgShedder", **fields: Any) -> Combination:
    """A combination of a recommendation, whose plan moves one bundle."""
    return replace(
        Combination(
            shedder=shedder,
            placement=placement,
            plan="a.json",
            digest="sha256:0",
            steps=1,
            unloads=1,
            splits=0,
            maximum_before=0.9,
            maximum_after=0.6,
            standard_deviation_before=0.2,
            standard_deviation_after=0.1,
            moved_throughput_bytes_per_s=1e6,
            acts_in_cycle=1,
            why_nothing=None,
            error=None,
        ),
        **fields,
    )


def recommendation(*combinations: Combination, **advice: Any) -> Recommendation:
    """A recommendation; `advice` are fields of the advice, by default that nothing is worth doing."""
    nothing = {"plan": None, "digest": None, "sentence": "Nothing is worth doing."}
    return Recommendation(
        cluster="test",
        snapshot=SNAPSHOT,
        manifest_sha256="0" * 64,
        view="fresh",
        combinations=combinations,
        advice=Advice.model_validate({**nothing, **advice}),
    )


def ending(**fields: Any) -> dict[str, Any]:
    """The fields of a simulation's end: it settles after two unloads."""
    of_the_spread = ("maximum_{}", "mean_{}", "standard_deviation_{}", "range_{}", "gini")
    spread = {
        f"{moment}_{figure}_{name.format(unit)}": 0.0
        for moment in ("first", "last")
        for figure, unit in (("usage", "ratio"), ("throughput", "bytes_per_s"))
        for name in of_the_spread
    }
    return {
        "ended": "settled",
        "cycles": 45,
        "repeats_cycle": None,
        "settles_in_cycles": 2,
        "settles_in_minutes": 1.0,
        "unloads": 2,
        "bundles": 2,
        "bundles_moved_again": 0,
        "brokers_overshot": 0,
        "topics": 2,
        "producers": 3,
        "consumers": 4,
        "moved_throughput_bytes_per_s": 5.0,
        "highest_ratio": 0.67,
        **spread,
        "first_usage_maximum_ratio": 0.67,
        "last_usage_maximum_ratio": 0.6,
        "last_usage_standard_deviation_ratio": 0.1,
        **fields,
    }
