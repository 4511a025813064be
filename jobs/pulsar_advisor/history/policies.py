"""The policies that bind bundles to brokers or clusters, at one moment, and what differs between two."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pulsar_advisor.history.columns import POLICIES
from pulsar_advisor.model.plans.canonical_json import canonical_json
from pulsar_advisor.tables.schemas import POLICIES as ISOLATION_POLICIES

ISOLATION: Final = "isolation_policy"
REPLICATION: Final = "replication"
ANTI_AFFINITY: Final = "anti_affinity"
KINDS: Final = (ISOLATION, REPLICATION, ANTI_AFFINITY)

NAMESPACE_COLUMNS: Final = ("namespace", "anti_affinity_group", "replication_clusters")
"""The columns of `tables/namespaces` that are kept."""
ISOLATION_COLUMNS: Final = tuple(column.name for column in ISOLATION_POLICIES.columns if column.name != "position")
"""The columns of `tables/policies` that are kept."""

OF_MOMENT: Final = pa.schema([field for field in POLICIES if field.name != "t"])
UNKNOWN: Final = OF_MOMENT.empty_table()
"""The unknown policies of a moment: known ones have at least a row per namespace, with its replication."""


class Change(NamedTuple):
    """A policy whose value changed; None: there is no such policy."""

    kind: str
    subject: str
    before: str | None
    after: str | None


def policies_of(namespaces: pa.Table, isolation: pa.Table) -> pa.Table:
    """The policies of a snapshot in the columns of `OF_MOMENT`, from its tables; a value is text, easy to compare."""
    names = namespaces["namespace"]
    documents = [canonical_json(row).decode() for row in isolation.drop_columns("name").to_pylist()]
    rows = [
        _rows(ISOLATION, isolation["name"], pa.chunked_array([documents], pa.string())),
        _rows(REPLICATION, names, pc.binary_join(namespaces["replication_clusters"], ",")),
        _rows(ANTI_AFFINITY, names, namespaces["anti_affinity_group"]),
    ]
    return pa.concat_tables(rows).sort_by([("kind", "ascending"), ("subject", "ascending")])


def _rows(kind: str, subjects: pa.ChunkedArray, values: pa.ChunkedArray) -> pa.Table:
    kinds = pa.chunked_array([[kind] * len(subjects)], pa.string())
    return pa.Table.from_arrays([kinds, subjects, values], schema=OF_MOMENT).filter(values.is_valid())


def after_changes(before: pa.Table, changed: pa.Table) -> pa.Table:
    """The policies after rows of the day table `policies`."""
    if not len(changed):
        return before
    columns = (changed[name].to_pylist() for name in OF_MOMENT.names)
    policies = {**by_policy(before), **{(kind, subject): value for kind, subject, value in zip(*columns, strict=True)}}
    rows = sorted((*key, value) for key, value in policies.items() if value is not None)
    return pa.Table.from_pylist([dict(zip(OF_MOMENT.names, row, strict=True)) for row in rows], OF_MOMENT)


def by_policy(policies: pa.Table) -> Mapping[tuple[str, str], str]:
    """Kind and subject -> value."""
    kinds, subjects, values = (policies[name].to_pylist() for name in OF_MOMENT.names)
    return dict(zip(zip(kinds, subjects, strict=True), values, strict=True))


def changes(before: pa.Table, after: pa.Table) -> Iterator[Change]:
    """The policies that differ, in order."""
    if before.equals(after):
        return
    was, is_ = by_policy(before), by_policy(after)
    for kind, subject in sorted(was.keys() | is_.keys()):
        key = (kind, subject)
        if was.get(key) != is_.get(key):
            yield Change(kind, subject, was.get(key), is_.get(key))


def changes_by_hand(before: pa.Table, after: pa.Table) -> Iterator[Change]:
    """The same without what comes and goes with a namespace; nothing unless both are known."""
    if not len(before) or not len(after) or before.equals(after):
        return
    was, is_ = by_policy(before), by_policy(after)
    for change in changes(before, after):
        namespace = (REPLICATION, change.subject)
        if change.kind == ISOLATION or (namespace in was and namespace in is_):
            yield change
