"""The facts that the suite of isolation policies uses."""

from __future__ import annotations

from typing import TypedDict

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from pulsar_advisor.model.cluster.cluster_state import View
from pulsar_advisor.model.cluster.isolation_policies import matched_brokers
from pulsar_advisor.model.configuration.defaults import listed_release
from pulsar_advisor.model.configuration.releases import release_number
from pulsar_advisor.model.java.expressions import matched
from pulsar_advisor.tables.frames import Row, frame_of
from pulsar_advisor.tables.snapshot_frames import SnapshotFrames


class _Policy(TypedDict):
    """The part of a row of `policies` that its facts need."""

    name: str
    namespaces: list[str]
    primary: list[str]
    secondary: list[str]
    policy_type: str | None
    min_limit: int | None
    usage_threshold_percent: int | None


def facts_of_policies(tables: SnapshotFrames, view: View, pulsar_version: str | None) -> DataFrame:
    """Facts: whether a policy's limits are usable, its invalid expressions, and what the others match.

    Brokers that are going down and namespaces that are being deleted match nothing.
    """
    policies = tables.rows("policies").to_pylist()
    namespaces = _named(tables.rows("namespaces"), "namespace", ~pc.field("deleted")) if policies else []
    brokers = _named(tables.rows("brokers", view), "broker", pc.field("available")) if policies else []
    release = release_number(listed_release(str(pulsar_version)))

    def row(policy: _Policy) -> Row:
        of_namespaces = matched(policy["namespaces"], namespaces)
        of_primaries, of_secondaries = (
            matched_brokers(expressions, brokers, release) for expressions in (policy["primary"], policy["secondary"])
        )
        limit, threshold = policy["min_limit"], policy["usage_threshold_percent"]
        usable = limit is not None and limit >= 0 and threshold is not None and 0 <= threshold <= 100
        return {
            "name": policy["name"],
            "limits_are_usable": usable and policy["policy_type"] == "min_available",
            "unusable": [*of_namespaces.unusable, *of_primaries.unusable, *of_secondaries.unusable],
            "matched_namespaces": int(of_namespaces.matches.sum()),
            "matched_primaries": int(of_primaries.matches.sum()),
        }

    return frame_of(
        tables.few,
        "name string, limits_are_usable boolean, unusable array<string>, matched_namespaces bigint, "
        "matched_primaries bigint",
        [row(policy) for policy in policies],
    ).withColumn("unusable_expressions", sf.size("unusable"))


def _named(rows: pa.Table, name: str, wanted: pc.Expression) -> list[str]:
    """The names of the rows that are wanted."""
    names: list[str] = rows.filter(wanted)[name].to_pylist()
    return names
