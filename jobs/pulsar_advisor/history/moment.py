"""The lasting part of one snapshot: its brokers as they reported, and the traffic and owner of every bundle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pulsar_advisor.documents.manifest import Manifest
from pulsar_advisor.documents.validation import Validation
from pulsar_advisor.history.columns import BROKERS, HOSTS, MOVED, TRAFFIC, UNFIT
from pulsar_advisor.model.cluster.cluster_state import Floats
from pulsar_advisor.model.configuration.resolved_settings import ResolvedSettings
from pulsar_advisor.model.load.resource_usage import weighted_maximum
from pulsar_advisor.tables.columns import RESOURCES
from pulsar_advisor.tables.columns import TRAFFIC as TABLE_TRAFFIC
from pulsar_advisor.tables.state import floats

BROKER_COLUMNS: Final = {
    "id": "broker",
    "available": "available",
    "complete": "reported",
    "version": "version",
    "started_at_ms": "start_timestamp_ms",
    "report_updated_at_ms": "report_updated_at_ms",
    **{name: name for name in HOSTS.names if name.endswith(("_usage", "_limit"))},
    **dict(zip(TRAFFIC, TABLE_TRAFFIC.values(), strict=True)),
    "bundles": "owned_bundles",
    "producers": "producers",
    "consumers": "consumers",
}
"""Column of `hosts` -> its source column in `tables/brokers`."""

BUNDLE_COLUMNS: Final = ("bundle", "owner", *TABLE_TRAFFIC.values(), "producers", "consumers", "reported", "moved")
"""The columns of `tables/bundles` that are kept."""

OF_HOST: Final = pa.schema([BROKERS.field("id"), *(field for field in HOSTS if field.name not in ("t", "broker"))])
_COUNTS: Final = ("bundles", "producers", "consumers")


@dataclass(frozen=True, eq=False)
class Moment:
    """One snapshot. Bundles are in any order; the arrays of a bundle's figures run alongside `bundles`."""

    snapshot: str
    at_ms: int
    fit: bool
    failed_checks: int
    leader: str | None
    leader_unloads: int | None
    hosts: pa.Table
    """Sorted by broker `id`, with the columns of `columns.HOSTS` except the two that only a day can give."""
    bundles: pa.Array
    """`tenant/namespace/0x…_0x…`, each once."""
    owners: pa.Array
    """Broker ids; null: none."""
    traffic: npt.NDArray[np.float32]
    """(bundles, 4), in the order of `columns.TRAFFIC`; NaN where no broker reported."""
    connections: npt.NDArray[np.uint32]
    flags: npt.NDArray[np.uint8]
    settings: Mapping[str, str]
    """By Pulsar's keys, values as its files spell them; empty in days of the first version of the columns."""
    policies: pa.Table
    """In the columns of `policies.OF_MOMENT`, sorted."""
    imported: bool = False
    """Whether it is from a monitoring system: then its bundles are from another time, and a broker's start is that of
    its process, a few seconds before the start in its load reports."""

    @property
    def namespaces(self) -> pa.StringArray:
        """The namespace of each bundle."""
        return _namespaces(self.bundles)


def moment_of(
    manifest: Manifest,
    validation: Validation | None,
    settings: ResolvedSettings,
    brokers: pa.Table,
    bundles: pa.Table,
    policies: pa.Table,
) -> Moment:
    """The moment of a snapshot; `brokers` and `bundles` are its tables in the view that was judged.

    Without a validation it isn't fit: nothing says that its figures can be trusted.
    """
    results = () if validation is None else validation.results
    usage, limit = (floats(brokers, [f"{one}_{side}" for one in RESOURCES.values()]) for side in ("usage", "limit"))
    excluded = {scope: [name for one in results if one.scope == scope for name in one.excluded] for scope in _SCOPES}
    return Moment(
        snapshot=manifest.snapshot,
        at_ms=manifest.started_at_ms,
        fit=validation is not None and validation.success,
        failed_checks=sum(not one.success for one in results),
        leader=manifest.leader,
        leader_unloads=manifest.leader_unloads,
        hosts=_hosts(brokers, weighted_maximum(usage, limit, settings.values), excluded["broker"]),
        bundles=bundles["bundle"].combine_chunks(),
        owners=bundles["owner"].combine_chunks(),
        traffic=_traffic(bundles),
        connections=connections_of(bundles),
        flags=_flags(bundles, excluded),
        settings=settings.texts,
        policies=policies,
    )


_SCOPES: Final = ("broker", "bundle", "namespace")


def _hosts(brokers: pa.Table, usage: Floats, excluded: Iterable[str]) -> pa.Table:
    columns = {name: brokers[source] for name, source in BROKER_COLUMNS.items()}
    columns["usage"] = pc.if_else(brokers["reported"], usage, np.nan)  # its figures are null, which doesn't mean idle
    set_aside = pc.is_in(brokers["broker"], value_set=pa.array(excluded, pa.string()))
    columns["complete"] = pc.and_not(columns["complete"], set_aside)
    columns |= {name: pc.fill_null(columns[name], 0) for name in _COUNTS}
    return pa.table(columns).sort_by("id").select(OF_HOST.names).cast(OF_HOST, safe=False)


def _traffic(bundles: pa.Table) -> npt.NDArray[np.float32]:
    traffic = floats(bundles, TABLE_TRAFFIC.values()).astype(np.float32)
    traffic[~bundles["reported"].to_numpy()] = np.nan
    return traffic


def connections_of(bundles: pa.Table) -> npt.NDArray[np.uint32]:
    """Producers and consumers of each bundle; unknown ones count as none."""
    both = np.nan_to_num(bundles["producers"].to_numpy()) + np.nan_to_num(bundles["consumers"].to_numpy())
    connections: npt.NDArray[np.uint32] = np.clip(both, 0, np.iinfo(np.uint32).max).astype(np.uint32)
    return connections


def _flags(bundles: pa.Table, excluded: dict[str, list[str]]) -> npt.NDArray[np.uint8]:
    set_aside = pc.is_in(bundles["bundle"], value_set=pa.array(excluded["bundle"], pa.string())).to_numpy()
    if excluded["namespace"]:
        of_namespace = pc.is_in(_namespaces(bundles["bundle"]), value_set=pa.array(excluded["namespace"], pa.string()))
        set_aside = set_aside | of_namespace.to_numpy()
    flags: npt.NDArray[np.uint8] = (bundles["moved"].to_numpy() * MOVED + set_aside * UNFIT).astype(np.uint8)
    return flags


def _namespaces(bundles: pa.Array | pa.ChunkedArray) -> Any:
    return pc.replace_substring_regex(bundles, r"/[^/]*$", "")
