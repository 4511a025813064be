"""What differs between two snapshots, however far apart: who grew, what moved and why, which settings changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pulsar_advisor.history.columns import TRAFFIC, UNFIT
from pulsar_advisor.history.events import UNKNOWN, Event, events_between
from pulsar_advisor.history.moment import Moment


@dataclass(frozen=True)
class Growth:
    """The load of a namespace or broker in both snapshots; 0 where it didn't exist."""

    of: str
    before: float
    after: float


@dataclass(frozen=True)
class Difference:
    """The difference between two snapshots of a cluster."""

    SCHEMA: ClassVar = "pulsar-advisor/difference/1"

    earlier: str
    later: str
    namespaces: Sequence[Growth]
    """By bytes per second, in and out, the largest change first; only those known in both snapshots."""
    brokers: Sequence[Growth]
    """The same by usage (0..1)."""
    events: Sequence[Event]
    """What changed in the later one; a move has the cause of its bundle's last move in between."""


def difference(earlier: Moment, later: Moment, causes: Mapping[str, str]) -> Difference:
    """The difference of two snapshots; `causes` are those of the last known move or split of bundles in between."""
    found = events_between(earlier, later)
    return Difference(
        earlier=earlier.snapshot,
        later=later.snapshot,
        namespaces=_growths(_bytes_by_namespace(earlier), _bytes_by_namespace(later)),
        brokers=_growths(_usage(earlier), _usage(later)),
        events=[
            replace(event, cause=causes.get(event.subject, UNKNOWN)) if event.kind in ("move", "split") else event
            for event in found
        ],
    )


def _growths(before: Mapping[str, float], after: Mapping[str, float]) -> list[Growth]:
    names = before.keys() | after.keys()
    found = [Growth(name, before.get(name, 0.0), after.get(name, 0.0)) for name in names]
    grown = (one for one in found if one.before != one.after and np.isfinite(one.after - one.before))
    return sorted(grown, key=lambda one: (-abs(one.after - one.before), one.of))


def _bytes_by_namespace(moment: Moment) -> dict[str, float]:
    """NaN for a namespace with a bundle whose broker didn't report, or that validation set aside; a bundle that isn't
    in its owner's report carries nothing."""
    places = [TRAFFIC.index(figure) for figure in ("bytes_in", "bytes_out")]
    both = moment.traffic[:, places].astype(np.float64).sum(axis=1)
    silent = moment.hosts.filter(pc.invert(pc.is_finite(moment.hosts["usage"])))["id"].combine_chunks()
    both[np.isnan(both) & ~pc.is_in(moment.owners, value_set=silent).to_numpy(zero_copy_only=False)] = 0
    both[moment.flags & UNFIT != 0] = np.nan
    sums = pa.table({"of": moment.namespaces, "bytes": both}).group_by("of").aggregate([("bytes", "sum")])
    return dict(zip(sums["of"].to_pylist(), sums["bytes_sum"].to_pylist(), strict=True))


def _usage(moment: Moment) -> dict[str, float]:
    """Usage of the available brokers; NaN for one that didn't report, or that validation set aside."""
    hosts = moment.hosts.filter(moment.hosts["available"])
    usage = pc.if_else(hosts["complete"], hosts["usage"], np.nan)
    return dict(zip(hosts["id"].to_pylist(), usage.to_pylist(), strict=True))
