"""The moments of a folded day, for folding it again with a snapshot that came late."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pulsar_advisor.history.columns import NO_BROKER, TRAFFIC
from pulsar_advisor.history.moment import OF_HOST, Moment
from pulsar_advisor.history.policies import UNKNOWN, after_changes


def moments_of(tables: Mapping[str, pa.Table]) -> Iterator[Moment]:
    """The moments that `fold` made the tables of a day of, in order of time."""
    load = tables["load"]
    names, ids = (tables[table].column(1).combine_chunks() for table in ("names", "brokers"))
    times = load["t"].to_numpy()
    ends = np.cumsum(np.bincount(times, minlength=len(tables["moments"])))
    in_time = np.split(np.argsort(times, kind="stable"), ends[:-1])
    settings: dict[str, str] = {}
    policies = UNKNOWN
    for head, rows in zip(tables["moments"].to_pylist(), in_time, strict=True):
        part = load.take(rows)
        changed = tables["settings"].filter(pc.field("t") == head["t"])
        settings = settings | dict(zip(changed["key"].to_pylist(), changed["value"].to_pylist(), strict=True))
        policies = after_changes(policies, tables["policies"].filter(pc.field("t") == head["t"]))
        hosts = tables["hosts"].filter(pc.field("t") == head["t"])
        hosts = hosts.append_column("id", _named(ids, hosts["broker"]))
        yield Moment(
            snapshot=head["snapshot"],
            at_ms=head["at_ms"],
            fit=head["fit"],
            failed_checks=head["failed_checks"],
            leader=None if head["leader"] == NO_BROKER else ids[head["leader"]].as_py(),
            leader_unloads=head["leader_unloads"],
            hosts=hosts.select(OF_HOST.names),
            bundles=_named(names, part["bundle"]),
            owners=_named(ids, part["owner"]),
            traffic=np.column_stack([part[figure].to_numpy() for figure in TRAFFIC]),
            connections=part["connections"].to_numpy(),
            flags=part["flags"].to_numpy(),
            settings=settings,
            policies=policies,
        )


def _named(names: pa.Array, positions: pa.ChunkedArray) -> pa.Array:
    known = pc.if_else(pc.less(positions, 0), None, positions)
    return names.take(known.combine_chunks())
