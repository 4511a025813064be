"""Restores the moments of a folded day, to fold it again with a late snapshot."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pulsar_advisor.history.columns import NO_BROKER, TRAFFIC
from pulsar_advisor.history.moment import OF_HOST, Moment
from pulsar_advisor.history.policies import UNKNOWN, after_changes


def moments_of(tables: Mapping[str, pa.Table], wanted: Container[int]) -> Iterator[Moment]:
    """The moments from which `fold` made a day's tables, in order of time: those at these positions."""
    load = tables["load"]
    names, ids = (tables[table].column(1).combine_chunks() for table in ("names", "brokers"))
    number = len(tables["moments"])
    in_time = {name: _in_time(tables[name], number) for name in ("load", "hosts", "settings", "policies")}
    settings: dict[str, str] = {}
    policies = UNKNOWN
    for t, head in enumerate(tables["moments"].to_pylist()):
        changed = tables["settings"].take(in_time["settings"][t])
        settings = settings | dict(zip(changed["key"].to_pylist(), changed["value"].to_pylist(), strict=True))
        policies = after_changes(policies, tables["policies"].take(in_time["policies"][t]))
        if t not in wanted:
            continue
        part, hosts = load.take(in_time["load"][t]), tables["hosts"].take(in_time["hosts"][t])
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


def _in_time(rows: pa.Table, number: int) -> list[npt.NDArray[np.int64]]:
    """The positions of each moment's rows; `number` is that of moments."""
    times = rows["t"].to_numpy()
    return np.split(np.argsort(times, kind="stable"), np.cumsum(np.bincount(times, minlength=number))[:-1])


def _named(names: pa.Array, positions: pa.ChunkedArray) -> pa.Array:
    known = pc.if_else(pc.less(positions, 0), None, positions)
    return names.take(known.combine_chunks())
