"""What a trend needs of a day: one row for each snapshot, from the day's other tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pulsar_advisor.history.columns import INDEX, NO_BROKER

Counts = npt.NDArray[np.int64]


def index_of(tables: Mapping[str, pa.Table]) -> pa.Table:
    """The rows of a day's snapshots, in order of time."""
    moments, hosts, load = tables["moments"], tables["hosts"], tables["load"]
    number = len(moments)
    leader = moments["leader"].to_numpy()
    columns = {
        **{name: moments[name] for name in ("snapshot", "at_ms", "fit", "failed_checks")},
        **_usage(hosts.filter(hosts["available"]), number),
        "bundles": np.bincount(load["t"].to_numpy(), minlength=number),
        "moves": _changes(load, "bundle", "owner", number),
        "restarts": _changes(
            hosts.sort_by([("broker", "ascending"), ("t", "ascending")]), "broker", "started_at_ms", number
        ),
        "leader_changed": np.concatenate(
            [[False], (leader[1:] != leader[:-1]) & (leader[1:] >= 0) & (leader[:-1] >= 0)]
        ),
    }
    return pa.table({name: columns[name] for name in INDEX.names}).cast(INDEX, safe=False)


def _usage(available: pa.Table, number: int) -> dict[str, npt.NDArray[Any]]:
    """Count, greatest, mean and deviation of the brokers' usage at each moment; NaN without a broker."""
    wanted = {"brokers": "count", "busiest": "max", "mean": "mean", "deviation": "stddev"}
    found = available.group_by("t").aggregate([("usage", how) for how in wanted.values()])
    columns: dict[str, npt.NDArray[Any]] = {}
    for name, how in wanted.items():
        columns[name] = np.full(number, 0 if how == "count" else np.nan, np.float64)
        columns[name][found["t"].to_numpy()] = found[f"usage_{how}"].to_numpy()
    return columns


def _changes(rows: pa.Table, of: str, what: str, number: int) -> Counts:
    """How many of the things `of` have, at each moment, another `what` than at the moment before, both known.

    `rows` are sorted by these things, then by time.
    """
    thing, t = rows[of].to_numpy(), rows["t"].to_numpy()
    value = rows[what].fill_null(NO_BROKER).to_numpy()
    known = (value[1:] >= 0) & (value[:-1] >= 0)
    changed = (thing[1:] == thing[:-1]) & (value[1:] != value[:-1]) & known
    return np.bincount(t[1:][changed], minlength=number)
