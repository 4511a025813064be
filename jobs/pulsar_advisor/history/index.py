"""What a trend needs of a day: one row for each snapshot, from the day's other tables."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pulsar_advisor.history.columns import INDEX
from pulsar_advisor.model.cluster.cluster_state import Floats

Counts = npt.NDArray[np.int64]


def index_of(tables: Mapping[str, pa.Table]) -> pa.Table:
    """The rows of a day's snapshots, in order of time."""
    moments, hosts, load, events = (tables[name] for name in ("moments", "hosts", "load", "events"))
    number = len(moments)
    known = pc.and_(hosts["complete"], pc.is_finite(hosts["usage"]))

    def how_many(kind: str) -> Counts:
        return np.bincount(events.filter(pc.field("kind") == kind)["t"].to_numpy(), minlength=number)

    columns = {
        **{name: moments[name] for name in ("snapshot", "at_ms", "fit", "failed_checks")},
        "brokers": np.bincount(hosts.filter(hosts["available"])["t"].to_numpy(), minlength=number),
        **_usage(hosts.filter(pc.and_(hosts["available"], known)), number),
        "bundles": np.bincount(load["t"].to_numpy(), minlength=number),
        "moves": how_many("move"),
        "restarts": how_many("broker_restarted"),
        "leader_changed": how_many("leader") > 0,
    }
    return pa.table({name: columns[name] for name in INDEX.names}).cast(INDEX, safe=False)


def _usage(known: pa.Table, number: int) -> dict[str, Floats]:
    """Maximum, mean and deviation of the brokers' usage at each moment; NaN without a broker."""
    wanted = {"busiest": "max", "mean": "mean", "deviation": "stddev"}
    found = known.group_by("t").aggregate([("usage", how) for how in wanted.values()])
    columns: dict[str, Floats] = {}
    for name, how in wanted.items():
        columns[name] = np.full(number, np.nan)
        columns[name][found["t"].to_numpy()] = found[f"usage_{how}"].to_numpy()
    return columns
