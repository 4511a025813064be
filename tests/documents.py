"""Documents that stages read, whole, with nothing in them: tests say what they are about."""

from __future__ import annotations

from typing import Any

Document = dict[str, Any]


def manifest(**fields: Any) -> Document:
    """A raw snapshot's manifest."""
    return {
        "schema": "pulsar-advisor/raw-snapshot/1",
        "snapshot": "20261121T083000Z",
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
    } | fields


def file(surface: str, rows: int = 1) -> Document:
    """A raw file, as the manifest lists it."""
    path = f"{surface}.jsonl.zst"
    return {"path": path, "surface": surface, "broker": None, "rows": rows, "bytes": 13, "sha256": "0" * 64}


def validation(*results: Document, **fields: Any) -> Document:
    """A validation result."""
    return {
        "schema": "pulsar-advisor/validation-result/2",
        "cluster": "test",
        "snapshot": "20261121T083000Z",
        "manifest_sha256": "0" * 64,
        "suites_sha256": "1" * 64,
        "success": True,
        "results": list(results),
    } | fields


def check(**fields: Any) -> Document:
    """A check of a validation result, passed."""
    return {
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
    } | fields


def recommendation(
    plan: str | None = None, digest: str | None = None, sentence: str = "Nothing.", **fields: Any
) -> Document:
    """A recommendation, which advises a plan or none."""
    advice = {"plan": plan, "digest": digest, "sentence": sentence}
    return {"schema": "pulsar-advisor/recommendation/1", "advice": advice, "combinations": []} | fields
