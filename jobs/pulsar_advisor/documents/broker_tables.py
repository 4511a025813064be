"""The result of `brokers`: the tables of `pulsar-perf monitor-brokers`, as data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar, Final

from pulsar_advisor.documents.document import Document, Part
from pulsar_advisor.model.configuration.kinds import LoadManagerKind

Figure = float | int | None
"""None if the source lacks it, or it isn't finite."""

_SHOWN: Final = 5
"""Brokers named with the usage that plans start from."""


class OneBroker(Part):
    """The tables of one broker."""

    broker: str
    load_manager: LoadManagerKind
    rows: Mapping[str, Mapping[str, Figure]]
    """Label -> figures by name, with their units."""


class OverallRow(Part):
    """One line of the table over all brokers. Long-term figures are the allocated ones under the Simple manager."""

    broker: str
    bundles: int | None
    msg_rate_per_s: float | None
    long_term_msg_rate_per_s: float | None
    throughput_kib_per_s: float | None
    max_percent: float | None

    @property
    def figures(self) -> tuple[Figure, ...]:
        """In the order of the columns."""
        return (
            self.bundles,
            self.msg_rate_per_s,
            self.long_term_msg_rate_per_s,
            self.throughput_kib_per_s,
            self.max_percent,
        )


class Overall(Part):
    """A line for each broker, and their sums; the total's maximum is the largest of all."""

    brokers: tuple[OverallRow, ...]
    total: OverallRow


class Unknown(Part):
    """A broker whose load is unknown."""

    broker: str
    reason: str


class PlannedUsage(Part):
    """Usage as plans see it: the weighted maximum of a view's figures."""

    view: str
    weights: Mapping[str, float]
    """Of each resource that counts, in the order of RESOURCES."""
    usage_ratios: Mapping[str, float | None]
    """Broker id -> usage, the busiest first; None where it is unknown."""

    @property
    def sentence(self) -> str:
        """In words, with the busiest brokers."""
        weights = ", ".join(f"{_words(resource)} {weight:g}" for resource, weight in self.weights.items())
        shown = [f"{broker} {ratio:.1%}" for broker, ratio in self.usage_ratios.items() if ratio is not None]
        named = ", ".join(shown[:_SHOWN]) or "the usage of no broker is known"
        more = f" and {len(shown) - _SHOWN:,} more" if len(shown) > _SHOWN else ""
        return (
            f"MAX % leaves the heap (MEMORY %) out and is unweighted, as brokers report it. Plans weight the resources "
            f"({weights}) and take the figures of the {self.view} view: {named}{more}."
        )


def _words(resource: str) -> str:
    """`directMemory` as `direct memory`."""
    return re.sub("[A-Z]", lambda letter: f" {letter[0].lower()}", resource)


class BrokerTables(Document):
    """The tables of `brokers`: each broker's, and the one over all of them."""

    SCHEMA: ClassVar = "pulsar-advisor/broker-tables/1"
    MADE_BY: ClassVar = "brokers"

    where: str
    """The cluster or snapshot, in words."""
    read_at_ms: int
    brokers: tuple[OneBroker, ...]
    overall: Overall
    missing: tuple[Unknown, ...]
    planned: PlannedUsage | None = None
    """What plans start from, where a snapshot has been normalized."""
    notes: tuple[str, ...]
    """Differences that readers of the original should know."""
