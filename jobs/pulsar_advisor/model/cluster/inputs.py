"""What strategies read from a snapshot, by name: strategies declare what they read, and checks what they are about.

A strategy that reads a missing input is refused unless a substitute replaces it. A step rests on the checks about the
inputs that its strategies read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

Input = Literal[
    "ownership",
    "boundaries",
    "settings",
    "broker_usage",
    "broker_traffic",
    "broker_counts",
    "bundle_traffic",
    "bundle_counts",
    "short_term_averages",
    "long_term_averages",
    "recent_unloads",
    "isolation_policies",
    "anti_affinity",
    "failure_domains",
    "topic_names",
    "topic_traffic",
]


@dataclass(frozen=True)
class InputDescription:
    """Which columns an input consists of, how fresh it must be, and what happens without it."""

    columns: tuple[str, ...]
    """`table.column`, as in `docs/tables.md`."""
    freshness: str
    """How old it may be."""
    substitute: str | None = None
    """The substitute when it is missing; None: strategies that read it are refused."""


def _traffic(table: str, prefix: str = "") -> tuple[str, ...]:
    figures = ("msg_rate_in", "msg_rate_out", "msg_throughput_in_bytes", "msg_throughput_out_bytes")
    return tuple(f"{table}.{prefix}{figure}_per_s" for figure in figures)


_REPORT: Final = "a load report within its update interval, or metrics read by the capture"
_PASS: Final = "the owner's last statistics pass"  # noqa: S105 (no password)
_CAPTURE: Final = "the capture"
_AVERAGES: Final = "the leader's node, at most two write intervals old"

INPUTS: Final[Mapping[Input, InputDescription]] = {
    "ownership": InputDescription(
        ("brokers.broker", "brokers.available", "bundles.owner", "bundles.listed", "bundles.reported"), _CAPTURE
    ),
    "boundaries": InputDescription(("bundles.lower", "bundles.upper", "bundles.in_boundaries"), _CAPTURE),
    "settings": InputDescription(
        ("settings.key", "settings.value", "brokers.version", "brokers.load_manager_class_name"),
        _CAPTURE,
        "Pulsar's defaults",
    ),
    "broker_usage": InputDescription(
        tuple(
            f"brokers.{resource}_{side}"
            for resource in ("cpu", "memory", "direct_memory", "bandwidth_in", "bandwidth_out")
            for side in ("usage", "limit")
        ),
        _REPORT,
    ),
    "broker_traffic": InputDescription(_traffic("brokers"), _REPORT),
    "broker_counts": InputDescription(("brokers.topics", "brokers.listed_bundles"), _REPORT),
    "bundle_traffic": InputDescription(_traffic("bundles"), _PASS),
    "bundle_counts": InputDescription(
        ("bundles.topics", "bundles.producers", "bundles.consumers", "bundles.cache_size_bytes"), _PASS
    ),
    "short_term_averages": InputDescription(
        _traffic("bundles", "short_term_"), _AVERAGES, "this snapshot as the only sample"
    ),
    "long_term_averages": InputDescription(
        _traffic("bundles", "long_term_"), _AVERAGES, "this snapshot as the only sample"
    ),
    "recent_unloads": InputDescription(
        ("bundles.last_unloaded_at_ms",), "the grace period", "no bundle counts as unloaded recently"
    ),
    "isolation_policies": InputDescription(
        ("policies.namespaces", "policies.primary", "policies.secondary", "policies.min_limit"), _CAPTURE
    ),
    "anti_affinity": InputDescription(("namespaces.anti_affinity_group",), _CAPTURE),
    "failure_domains": InputDescription(("brokers.failure_domain",), _CAPTURE, "all brokers count as one domain"),
    "topic_names": InputDescription(("topics.topic", "topics.hash", "topics.named"), _CAPTURE),
    "topic_traffic": InputDescription(("topics.loaded", *_traffic("topics")), _PASS),
}

EVERY_STEP_READS: Final[frozenset[Input]] = frozenset({"ownership", "boundaries", "settings"})
"""Without these, no step can be specified."""
