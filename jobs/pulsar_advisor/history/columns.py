"""The tables of a folded day: every column with its type, unit and meaning.

Columns are only ever added, with `COLUMNS` counting up; see `docs/formats.md`.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

COLUMNS: Final = 3
"""Version of the columns; 2 had no `policies`, 1 neither `settings` nor `events`."""

NO_BROKER: Final = -1
"""Owner of a bundle that no broker owns."""

TRAFFIC: Final = ("msg_in", "msg_out", "bytes_in", "bytes_out")
"""Messages and bytes per second into and out of a bundle, in the order of `model.cluster.cluster_state.FIGURES`."""

MOVED: Final = 1
"""Flag: its owner changed during the capture, so the figures may cover only a part of the bundle."""
UNFIT: Final = 2
"""Flag: validation set the bundle aside."""


def _column(name: str, type_: pa.DataType, meaning: str, *, nullable: bool = False, encoding: str = "") -> pa.Field:
    """`encoding` is Parquet's; by default a dictionary."""
    return pa.field(name, type_, nullable, {"comment": meaning} | ({"encoding": encoding} if encoding else {}))


_SPLIT: Final = "BYTE_STREAM_SPLIT"
"""For floats: stores bytes of equal weight side by side, which saves a third for a bundle's traffic."""
_DELTA: Final = "DELTA_BINARY_PACKED"
"""For numbers that count up."""


MOMENTS: Final = pa.schema(
    [
        _column("t", pa.uint16(), "position of the snapshot among those of the day, from 0"),
        _column("snapshot", pa.string(), "its id"),
        _column("at_ms", pa.int64(), "epoch ms; when its capture began"),
        _column("fit", pa.bool_(), "whether validation let it be used"),
        _column("failed_checks", pa.int32(), "failed checks of its validation"),
        _column("leader", pa.int16(), "the leading broker, a row of `brokers`; -1: unknown"),
        _column("leader_unloads", pa.int64(), "bundles that leader has unloaded since it started", nullable=True),
    ]
)

BROKERS: Final = pa.schema(
    [
        _column("broker", pa.int16(), "position of its id among those of the day in sorted order", encoding=_DELTA),
        _column("id", pa.string(), "broker id, `host:port`; of every broker that reported, owned or led"),
    ]
)

HOSTS: Final = pa.schema(
    [
        _column("t", pa.uint16(), "the snapshot", encoding=_DELTA),
        _column("broker", pa.int16(), "a row of `brokers`"),
        _column(
            "usage",
            pa.float32(),
            "0..1; weighted maximum of its resources under that time's settings; NaN: not reported",
            encoding=_SPLIT,
        ),
        _column("available", pa.bool_(), "registered as active"),
        _column("complete", pa.bool_(), "reported, and not set aside by validation"),
        _column("version", pa.string(), "release, as the broker says", nullable=True),
        _column("started_at_ms", pa.int64(), "epoch ms; when the broker says it started", nullable=True),
        _column("report_updated_at_ms", pa.int64(), "epoch ms; when its figures were made", nullable=True),
        *(
            _column(f"{resource}_{side}", pa.float32(), "as in `tables/brokers`", nullable=True, encoding=_SPLIT)
            for resource in ("cpu", "memory", "direct_memory", "bandwidth_in", "bandwidth_out")
            for side in ("usage", "limit")
        ),
        *(_column(figure, pa.float32(), "its total, per second", nullable=True, encoding=_SPLIT) for figure in TRAFFIC),
        _column("bundles", pa.int32(), "bundles that it owns"),
        _column("producers", pa.int32(), "connected producers"),
        _column("consumers", pa.int32(), "connected consumers"),
    ]
)

NAMES: Final = pa.schema(
    [
        _column("bundle", pa.int32(), "position of its name among those of the day in sorted order", encoding=_DELTA),
        _column("name", pa.string(), "`tenant/namespace/0x…_0x…`"),
    ]
)

LOAD: Final = pa.schema(
    [
        _column("bundle", pa.int32(), "a row of `names`", encoding=_DELTA),
        _column("t", pa.uint16(), "the snapshot", encoding=_DELTA),
        _column("owner", pa.int16(), "a row of `brokers`; -1: none"),
        *(
            _column(figure, pa.float32(), "per second; NaN: no broker reported the bundle", encoding=_SPLIT)
            for figure in TRAFFIC
        ),
        _column("connections", pa.uint32(), "producers and consumers"),
        _column("flags", pa.uint8(), "1: moved during the capture; 2: set aside by validation"),
    ]
)

SETTINGS: Final = pa.schema(
    [
        _column("t", pa.uint16(), "the snapshot"),
        _column("key", pa.string(), "Pulsar's key of a setting"),
        _column("value", pa.string(), "its value from this snapshot on; the day's first snapshot has all"),
    ]
)

POLICIES: Final = pa.schema(
    [
        _column("t", pa.uint16(), "the snapshot"),
        _column("kind", pa.string(), "`isolation_policy`, `replication` or `anti_affinity`"),
        _column("subject", pa.string(), "the policy's name, or the namespace"),
        _column(
            "value",
            pa.string(),
            "RFC 8785 JSON, clusters, or a group, from this snapshot on; the day's first snapshot has all; null: gone",
            nullable=True,
        ),
    ]
)
"""Without a row, the policies aren't known."""

EVENTS: Final = pa.schema(
    [
        _column("t", pa.uint16(), "the first snapshot that shows it"),
        _column(
            "kind",
            pa.string(),
            "`move`, `split`, `namespace_born`, `namespace_gone`, `broker_joined`, `broker_lost`, `broker_restarted`, "
            "`leader`, `setting`, `isolation_policy`, `replication`, `anti_affinity`",
        ),
        _column("subject", pa.string(), "the bundle, namespace, broker or key"),
        _column("before", pa.string(), "owner, value, or number of bundles before", nullable=True),
        _column("after", pa.string(), "the same afterwards; of a split, the ranges of the parts", nullable=True),
        _column(
            "cause",
            pa.string(),
            "of a move or split: `own` (the leader's cycle), `plan:` and the digits of a digest, `restart` (of the "
            "owner), `operator` (by hand: the leader counted no unload, or balancing is off), `unknown`; of a policy: "
            "`operator`",
            nullable=True,
        ),
    ]
)
"""What changed since the snapshot before, also across midnight."""

INDEX: Final = pa.schema(
    [
        *(MOMENTS.field(name) for name in ("snapshot", "at_ms", "fit", "failed_checks")),
        _column("brokers", pa.int32(), "available brokers"),
        _column("bundles", pa.int32(), "bundles"),
        _column("busiest", pa.float32(), "0..1; highest usage of the available, complete brokers; NaN without one"),
        _column("mean", pa.float32(), "0..1; their mean usage"),
        _column("deviation", pa.float32(), "0..1; the standard deviation of their usage"),
        _column("moves", pa.int32(), "bundles with another owner than in the snapshot before"),
        _column("restarts", pa.int32(), "brokers that restarted since the snapshot before"),
        _column("leader_changed", pa.bool_(), "whether another broker leads than in the snapshot before"),
    ]
)
"""What a trend is computed from: one row per snapshot."""

DAY_TABLES: Final = {
    "moments": MOMENTS,
    "brokers": BROKERS,
    "hosts": HOSTS,
    "names": NAMES,
    "load": LOAD,
    "settings": SETTINGS,
    "policies": POLICIES,
    "events": EVENTS,
    "index": INDEX,
}
"""By the name of their folder."""
