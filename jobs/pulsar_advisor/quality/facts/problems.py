"""The facts that the suite of problems uses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pyspark.sql import DataFrame

from pulsar_advisor.documents.manifest import OF_THE_STORE_ONLY
from pulsar_advisor.model.cluster.cluster_state import View
from pulsar_advisor.quality.facts.capture import REQUIRED_SURFACES

_FROM_BROKERS_ONLY: Final = ("load_reports", "topic_stats")
"""Required surfaces that a capture from ZooKeeper alone need not have; any reports there are rows of brokers."""


def facts_of_problems(problems: DataFrame, view: View, *, store_was_read: bool) -> DataFrame:
    """Facts: what a problem affects; a broker's own documents affect that broker, others the cluster."""
    unasked = _FROM_BROKERS_ONLY if view == "published" else ()
    required = [surface for surface in REQUIRED_SURFACES if surface not in unasked]
    not_optional = required if store_was_read else [*required, *OF_THE_STORE_ONLY]
    is_missing = "problem in ('missing', 'failure') and broker is null"
    return problems.selectExpr(
        "*",
        f"{is_missing} and surface in ({_listed(required)}) as required_is_missing",
        f"{is_missing} and surface not in ({_listed(not_optional)}) as optional_is_missing",
        "problem in ('missing', 'failure') and broker is not null as brokers_document_is_missing",
        "problem = 'unreadable_line' and broker is not null as brokers_line_is_unreadable",
        "problem = 'unreadable_line' and broker is null as clusters_line_is_unreadable",
        "problem = 'bad_name' as name_is_unreadable",
    )


def _listed(surfaces: Iterable[str]) -> str:
    return ", ".join(f"'{surface}'" for surface in surfaces)
