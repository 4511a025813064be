"""From tables to `ClusterState`: Parquet columns through Arrow into sorted numpy arrays, without a loop over rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pulsar_advisor.documents.manifest import NOT_AVAILABLE, Manifest
from pulsar_advisor.documents.validation import CheckResult
from pulsar_advisor.model.cluster.cluster_state import (
    AVERAGES_ORIGINS,
    HIGHEST_FIGURE,
    NO_ROW,
    NO_SEGMENTS,
    Booleans,
    Brokers,
    Bundles,
    ClusterState,
    Floats,
    Indices,
    Integers,
    IsolationPolicy,
    Namespaces,
    PublishedLoad,
    Segments,
    Topics,
    View,
    WantedView,
    possible,
)
from pulsar_advisor.model.cluster.inputs import Input
from pulsar_advisor.model.errors import DataNotFit
from pulsar_advisor.storage.results import read_manifest, validation_if_any
from pulsar_advisor.storage.root import Snapshot
from pulsar_advisor.tables.columns import RESOURCES, TRAFFIC
from pulsar_advisor.tables.read_table import read_table
from pulsar_advisor.tables.schemas import TOPICS
from pulsar_advisor.tables.stored import ARROW

_RESOURCES: Final = tuple(RESOURCES.values())
_FIGURES: Final = tuple(TRAFFIC.values())
_OF_TOPICS: Final = ["topic", "namespace", "lower", "hash", "loaded", *_FIGURES]
"""The columns that a state takes from the table of topics, by far the largest."""
_CONTROLLER: Final = tuple(f"controller_{figure}" for figure in _FIGURES)
_OF_SEGMENTS: Final = ["scalable_topic", "domain", "segment_id", "segment_state", *_CONTROLLER]
"""Further columns, read if any topic is a segment."""
_NO_TOPICS: Final = pa.schema(
    [(column.name, ARROW[column.type]) for column in TOPICS.columns if column.name in _OF_TOPICS]
).empty_table()
_RING: Final = 2**32
_OF_LATER_RELEASES: Final = frozenset({"segments"})
"""Surfaces that captures by earlier releases don't mention."""


_SURFACES: Final[Mapping[Input, tuple[str, ...]]] = {
    "settings": ("settings",),
    "isolation_policies": ("isolation_policies",),
    "failure_domains": ("failure_domains",),
    "topic_names": ("topic_names", "partitioned_topics", "segments"),
    "topic_traffic": ("topic_stats",),
}
"""Surfaces of the inputs that a snapshot may lack entirely. A missing load report affects its broker only, and without
ownership or boundaries there is no view at all."""


def judged_view(manifest: Manifest) -> View:
    """The view that is validated, and the default for advice: `fresh`, if any broker was asked."""
    return "fresh" if manifest.sources.admin_urls else "published"


def has_fresh_view(snapshot: Snapshot) -> bool:
    """Whether any broker was asked."""
    return judged_view(read_manifest(snapshot)) == "fresh"


def cluster_state(snapshot: Snapshot, wanted: WantedView = "judged", *, with_topics: bool = True) -> ClusterState:
    """One view of a snapshot's tables; without topics, which take most of the memory, it has none.

    What a validation result sets aside is marked: such brokers aren't `complete`, such bundles (and those of such
    namespaces) aren't `usable`; brokers that it doubts are `doubtful`. Validation judges one view only. The leader acts
    on what it was sent, so in another view a broker or bundle is set aside only if its figures there are unusable; a
    broker set aside in the judged view is `doubtful` there. Raises `UsageError` if the snapshot wasn't normalized,
    `DataNotFit` if it has no such view.
    """
    manifest = read_manifest(snapshot)
    view = judged_view(manifest) if wanted == "judged" else wanted
    validation = validation_if_any(snapshot)
    judged = validation.results if validation else ()
    excluded, doubtful = _excluded(judged), _doubtful(judged)
    is_judged = view == judged_view(manifest)
    if not is_judged:
        doubtful += excluded.pop("broker", [])
        excluded.pop("bundle", None)
    broker_rows = _sorted(read_table(snapshot, "brokers", view), "broker")
    if not len(broker_rows):
        reason = _why_missing(view, manifest)
        raise DataNotFit(f"snapshot {snapshot} of cluster '{snapshot.root.cluster}' has no view '{view}': {reason}")
    namespace_rows = _sorted(read_table(snapshot, "namespaces").filter(~pc.field("deleted")), "namespace")
    bundle_rows = _sorted(read_table(snapshot, "bundles", view), "namespace", "lower", "upper")
    topic_rows = _topic_rows(snapshot) if with_topics else _NO_TOPICS
    # A bundle may be owned, or a topic loaded, in a namespace that no listing contains.
    seen = [rows["namespace"].unique() for rows in (namespace_rows, bundle_rows, topic_rows)]
    namespace_names = pc.unique(pa.chunked_array(seen))
    namespace_names = namespace_names.take(pc.sort_indices(namespace_names))
    broker_ids = broker_rows["broker"].combine_chunks()
    brokers = _brokers(broker_rows, excluded, doubtful)
    bundles = _bundles(bundle_rows, broker_ids, namespace_names, excluded)
    if not is_judged:
        brokers, bundles = _computable(brokers, bundles)
    has_published_load = (view, manifest.load_manager) == ("published", "extensible")
    return ClusterState(
        cluster=snapshot.root.cluster,
        cluster_name=manifest.identity.cluster_name,
        snapshot=snapshot.id,
        captured_at_ms=manifest.started_at_ms,
        view=view,
        pulsar_version=manifest.pulsar_version,
        load_manager=manifest.load_manager,
        leader=next(iter(np.flatnonzero(_booleans(broker_rows["is_leader"])).tolist()), NO_ROW),
        brokers=brokers,
        namespaces=_namespaces(namespace_rows, namespace_names),
        bundles=bundles,
        topics=_topics(topic_rows, namespace_names, bundles),
        missing=_missing(manifest),
        isolation_policies=_isolation_policies(read_table(snapshot, "policies")),
        failure_domains=tuple(broker_rows["failure_domain"].to_pylist()),
        published_load=_published_load(broker_rows, bundle_rows) if has_published_load else None,
        leader_unloads=manifest.leader_unloads,
        users_unloads_at_ms=_users_unloads(bundle_rows),
        averages_stored_at_ms=pc.max(bundle_rows["bundle_data_modified_at_ms"]).as_py() or 0,
        unlisted_namespaces=_unlisted_namespaces(manifest),
    )


def _users_unloads(rows: pa.Table) -> dict[str, int]:
    unloaded = rows.filter(pc.and_(pc.equal(rows["kind"], "user"), pc.is_valid(rows["last_unloaded_at_ms"])))
    return dict(zip(unloaded["bundle"].to_pylist(), unloaded["last_unloaded_at_ms"].to_pylist(), strict=True))


def _topic_rows(snapshot: Snapshot) -> pa.Table:
    rows = read_table(snapshot, "topics", columns=[*_OF_TOPICS, *_OF_SEGMENTS])
    if rows["scalable_topic"].null_count == len(rows):
        rows = rows.select(_OF_TOPICS)
    return _sorted(rows, "namespace", "topic")


def _why_missing(view: View, manifest: Manifest) -> str:
    if view == judged_view(manifest):
        return "it has no brokers; capture again"
    if view == "fresh":
        return "it was captured from ZooKeeper alone and has the published view only; capture with an admin URL"
    if manifest.load_manager == "extensible":
        return "Extensible brokers write no load into ZooKeeper; use the fresh view, or capture with a service URL"
    return "the capture found no load reports in ZooKeeper; use the fresh view"


def _excluded(results: Iterable[CheckResult]) -> dict[str, list[str]]:
    """Scope -> names that validation sets aside."""
    excluded: dict[str, list[str]] = {}
    for result in results:
        excluded.setdefault(result.scope, []).extend(result.excluded)
    return excluded


def _doubtful(results: Iterable[CheckResult]) -> list[str]:
    """The brokers that failed warning checks cast doubt on."""
    doubts = (one for one in results if (one.severity, one.effect) == ("warning", "doubt"))
    return [broker for doubt in doubts if doubt.scope == "broker" for broker in doubt.concerned or ()]


def _sorted(rows: pa.Table, *columns: str) -> pa.Table:
    return rows.sort_by([(column, "ascending") for column in columns])


def _brokers(rows: pa.Table, excluded: dict[str, list[str]], doubtful: list[str]) -> Brokers:
    return Brokers(
        ids=tuple(rows["broker"].to_pylist()),
        usage=floats(rows, (f"{resource}_usage" for resource in _RESOURCES)),
        limit=floats(rows, (f"{resource}_limit" for resource in _RESOURCES)),
        traffic=floats(rows, _FIGURES),
        topics=_integers(rows["topics"]),
        bundles=_integers(rows["listed_bundles"]),
        producers=_integers(rows["producers"]),
        consumers=_integers(rows["consumers"]),
        report_updated_at_ms=_integers(rows["report_updated_at_ms"]),
        started_at_ms=_integers(rows["start_timestamp_ms"]),
        complete=_booleans(rows["reported"]) & ~_among(rows["broker"], excluded.get("broker", [])),
        doubtful=_among(rows["broker"], doubtful),
        available=_booleans(rows["available"]),
        # A broker whose report doesn't say serves both, as all do by default.
        persistent_topics_enabled=_booleans(pc.fill_null(rows["persistent_topics_enabled"], True)),
        non_persistent_topics_enabled=_booleans(pc.fill_null(rows["non_persistent_topics_enabled"], True)),
        versions=tuple(pc.fill_null(rows["version"], "").to_pylist()),
        load_manager_class_names=tuple(pc.fill_null(rows["load_manager_class_name"], "").to_pylist()),
    )


_LOWEST_USAGE: Final = np.array([-1.0, -1.0, -1.0, -HIGHEST_FIGURE, -HIGHEST_FIGURE])
"""Lowest plausible value by resource: -1 means not measured; bandwidth falls below 0 after a network interface
disappeared."""


def _computable(brokers: Brokers, bundles: Bundles) -> tuple[Brokers, Bundles]:
    """The same rows, with those marked that have impossible figures; for the judged view, checks do that."""
    complete = brokers.complete & possible(brokers.usage, _LOWEST_USAGE) & possible(brokers.traffic)
    usable = bundles.usable & possible(bundles.traffic) & possible(bundles.short_term) & possible(bundles.long_term)
    return replace(brokers, complete=complete), replace(bundles, usable=usable)


def _published_load(brokers: pa.Table, bundles: pa.Table) -> PublishedLoad:
    return PublishedLoad(
        weighted_max_ema=pc.fill_null(brokers["weighted_max_ema_ratio"], np.nan).to_numpy(),
        msg_throughput_ema=pc.fill_null(brokers["msg_throughput_ema_bytes_per_s"], np.nan).to_numpy(),
        publishes_every_ms=_integers(brokers["publishes_every_ms"]),
        top_position=_integers(pc.fill_null(bundles["top_bundle_position"], NO_ROW)),
    )


def _namespaces(rows: pa.Table, names: pa.Array) -> Namespaces:
    found = pc.index_in(names, value_set=rows["namespace"].combine_chunks())
    return Namespaces(
        names=tuple(names.to_pylist()),
        anti_affinity_groups=tuple(rows["anti_affinity_group"].take(found).to_pylist()),
    )


def _bundles(rows: pa.Table, broker_ids: pa.Array, namespaces: pa.Array, excluded: dict[str, list[str]]) -> Bundles:
    usable = ~_among(rows["bundle"], excluded.get("bundle", []))
    usable &= ~_among(rows["namespace"], excluded.get("namespace", []))
    return Bundles(
        namespace=_positions(rows["namespace"], namespaces),
        lower=_integers(rows["lower"]),
        upper=_integers(rows["upper"]),
        owner=_positions(rows["owner"], broker_ids),
        in_boundaries=_booleans(rows["in_boundaries"]),
        reported=_booleans(rows["reported"]),
        listed=_booleans(rows["listed"]),
        usable=usable,
        traffic=floats(rows, _FIGURES),
        topics=_integers(rows["topics"]),
        producers=_integers(rows["producers"]),
        consumers=_integers(rows["consumers"]),
        cache_size_bytes=_integers(rows["cache_size_bytes"]),
        short_term=floats(rows, (f"short_term_{figure}" for figure in _FIGURES)),
        short_term_samples=_integers(rows["short_term_samples"]),
        long_term=floats(rows, (f"long_term_{figure}" for figure in _FIGURES)),
        long_term_samples=_integers(rows["long_term_samples"]),
        averages_origin=_positions(rows["averages_origin"], pa.array(AVERAGES_ORIGINS)).astype(np.uint8),
        folded_samples=_integers(rows["averages_folded_samples"]),
        unknown_samples=_integers(rows["averages_unknown_samples"]),
        last_unloaded_at_ms=_integers(rows["last_unloaded_at_ms"]),
    )


def _topics(rows: pa.Table, namespaces: pa.Array, bundles: Bundles) -> Topics:
    namespace = _positions(rows["namespace"], namespaces)
    lower = _integers(pc.fill_null(rows["lower"], -1))
    candidates = np.flatnonzero(bundles.in_boundaries)
    keys = bundles.namespace[candidates].astype(np.int64) * _RING + bundles.lower[candidates]
    wanted = namespace.astype(np.int64) * _RING + lower
    at = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
    found = (lower >= 0) & (keys[at] == wanted) if len(keys) else np.zeros(len(rows), np.bool_)
    bundle = np.where(found, candidates[at], NO_ROW) if len(keys) else np.full(len(rows), NO_ROW)
    return Topics(
        names=rows["topic"].to_numpy(),
        namespace=namespace,
        bundle=bundle.astype(np.int32),
        hash=_integers(rows["hash"]),
        loaded=_booleans(rows["loaded"]),
        traffic=floats(rows, _FIGURES),
        segments=_segments(rows),
    )


def _segments(rows: pa.Table) -> Segments:
    if "scalable_topic" not in rows.column_names:
        return NO_SEGMENTS
    row = np.flatnonzero(_booleans(pc.is_valid(rows["scalable_topic"])))
    found = rows.take(row)
    names = found["scalable_topic"].unique()
    return Segments(
        row=row,
        scalable_topic=_positions(found["scalable_topic"], names),
        names=tuple(names.to_pylist()),
        id=_integers(pc.fill_null(found["segment_id"], NO_ROW)),
        # A loaded one that isn't listed counts as active: it has figures.
        is_active=_booleans(pc.not_equal(pc.fill_null(found["segment_state"], "ACTIVE"), "SEALED")),
        is_listed=_booleans(pc.not_equal(found["domain"], "segment")),
        controller_traffic=np.column_stack([pc.fill_null(found[name], np.nan).to_numpy() for name in _CONTROLLER]),
    )


def _isolation_policies(rows: pa.Table) -> tuple[IsolationPolicy, ...]:
    return tuple(
        IsolationPolicy(
            name=row["name"],
            namespaces=tuple(row["namespaces"]),
            primary=tuple(row["primary"]),
            secondary=tuple(row["secondary"]),
            min_limit=row["min_limit"] or 0,
            usage_threshold=row["usage_threshold_percent"] or 0,
        )
        for row in _sorted(rows, "position").to_pylist()
    )


def _missing(manifest: Manifest) -> dict[Input, str]:
    """Inputs that were not captured, each with the reason; inputs that the release doesn't have are not missing."""
    read = {file.surface: file.rows for file in manifest.files}
    without_brokers = judged_view(manifest) == "published"
    missing: dict[Input, str] = {}
    for name, surfaces in _SURFACES.items():
        for surface in surfaces:
            gaps = [
                *((entry.reason, entry.namespace) for entry in manifest.missing if entry.surface == surface),
                *((entry.error, None) for entry in manifest.failures if entry.surface == surface),
            ]
            of_all = [reason for reason, namespace in gaps if namespace is None]
            # One broker's settings represent all. Missing topics of a broker affect only that broker, unless no other's
            # were read, and missing names only their namespace. Part of the policies is not enough.
            lacks = {
                "settings": without_brokers or not read.get(surface),
                "topic_traffic": without_brokers or surface not in read,
            }.get(name, bool(of_all) or not (surface in read or surface in _OF_LATER_RELEASES))
            reason = next(chain(of_all, (reason for reason, _ in gaps)), "the capture did not read it")
            if lacks and not reason.startswith(NOT_AVAILABLE):
                missing.setdefault(name, f"{surface}: {reason}")
    return missing


def _unlisted_namespaces(manifest: Manifest) -> frozenset[str]:
    entries = (entry for entry in manifest.missing if entry.surface in _SURFACES["topic_names"])
    return frozenset(entry.namespace for entry in entries if entry.namespace is not None)


def floats(rows: pa.Table, columns: Iterable[str]) -> Floats:
    """Columns side by side as doubles; unreported values are zero, as in a new Pulsar record."""
    return np.column_stack([pc.fill_null(rows[column], 0.0).to_numpy() for column in columns])


def _integers(column: pa.ChunkedArray) -> Integers:
    """64-bit integers; unreported values are zero."""
    values: Integers = pc.fill_null(column, 0).to_numpy().astype(np.int64, copy=False)
    return values


def _booleans(column: pa.ChunkedArray) -> Booleans:
    values: Booleans = column.to_numpy()
    return values


def _among(column: pa.ChunkedArray, names: list[str]) -> Booleans:
    return _booleans(pc.is_in(column, value_set=pa.array(names, pa.string())))


def _positions(column: pa.ChunkedArray, names: pa.Array) -> Indices:
    """Position of each value among the names; NO_ROW if it is null or isn't among them."""
    positions: Indices = pc.fill_null(pc.index_in(column, value_set=names), NO_ROW).to_numpy().astype(np.int32)
    return positions
