"""A day's tables from what its brokers exported: like those of snapshots, with a moment for each scraped step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pulsar_advisor.admin.prometheus import Window
from pulsar_advisor.documents.history_day import Gap
from pulsar_advisor.history.columns import BROKERS, HOSTS, LOAD, MOMENTS, NAMES, NO_BROKER, POLICIES, SETTINGS, TRAFFIC
from pulsar_advisor.history.day import event_table, numbered
from pulsar_advisor.history.events import Event, LastSeen, events_between
from pulsar_advisor.history.exported import HOST_METRICS
from pulsar_advisor.history.index import index_of
from pulsar_advisor.history.moment import connections_of
from pulsar_advisor.history.scraped import FIGURES
from pulsar_advisor.history.unfold import moments_of
from pulsar_advisor.model.cluster.cluster_state import Floats
from pulsar_advisor.model.cluster.snapshot_id import snapshot_id
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.errors import DataNotFit
from pulsar_advisor.model.load.resource_usage import weighted_maximum

MISSING: Final = (
    "bundle boundaries of the time",
    "settings and policies of the time",
    "the leader and its averages",
    "limits of broker resources",
    "owners of bundles without topics",
    "whether a broker that wasn't scraped was down",
)
"""What brokers don't export."""
MOST_BROKERS: Final = 5_000
_PERCENT: Final = 100.0
_NEVER: Final = -1
"""Start of a broker that isn't there."""
_LATEST_START_S: Final = 1e11
"""Start times after this, in the year 5138, are ignored."""


class ScrapedHosts:
    """What each broker exported about itself over the moments of a window."""

    def __init__(self, moments: int) -> None:
        self._moments = moments
        self._of: dict[str, dict[str, Floats]] = {}
        self._versions: dict[str, npt.NDArray[np.object_]] = {}

    def add(self, column: str, first: int, brokers: Sequence[str], samples: Floats) -> None:
        """Add series of one figure, one for each place in `brokers`, from the moment `first` on; NaN: no sample."""
        for broker, figures in zip(brokers, samples, strict=True):
            kept = self._of.setdefault(broker, {}).setdefault(column, np.full(self._moments, np.nan))
            part = kept[first : first + len(figures)]
            np.fmax(part, figures, out=part)

    def add_versions(self, first: int, brokers: Sequence[str], versions: Sequence[str], samples: Floats) -> None:
        """Add series whose presence says that a broker runs a release."""
        for broker, version, figures in zip(brokers, versions, samples, strict=True):
            kept = self._versions.setdefault(broker, np.full(self._moments, None, object))
            kept[first : first + len(figures)][np.isfinite(figures)] = version

    @property
    def brokers(self) -> tuple[str, ...]:
        """The ids of the brokers that exported their usage at any moment, sorted."""
        return tuple(sorted(broker for broker in self._of if self.reported(broker).any()))

    def reported(self, broker: str) -> npt.NDArray[np.bool_]:
        """The moments at which a broker exported any usage."""
        figures = [self.figure(broker, column) for column in HOST_METRICS]
        there: npt.NDArray[np.bool_] = np.logical_or.reduce(np.isfinite(figures), axis=0)
        return there

    def figure(self, broker: str, column: str) -> Floats:
        """A figure at each moment; NaN: none."""
        none = np.full(self._moments, np.nan)
        return self._of.get(broker, {}).get(column, none)

    def version(self, broker: str) -> npt.NDArray[np.object_]:
        """A broker's release at each moment; None: not known."""
        return self._versions.get(broker, np.full(self._moments, None, object))

    @property
    def scraped(self) -> npt.NDArray[np.bool_]:
        """The moments at which any broker reported; the others are gaps."""
        scraped = np.zeros(self._moments, np.bool_)
        for broker in self.brokers:
            np.logical_or(scraped, self.reported(broker), out=scraped)
        return scraped


def day_tables(
    window: Window,
    names: Sequence[str],
    hosts: ScrapedHosts,
    load: pa.Table,
    settings: LoadBalancerSettings,
    owners_known: bool,
    before: LastSeen | None,
) -> Mapping[str, pa.Table]:
    """The tables of a day, see `columns`, of the moments that were scraped (at least one).

    `load` has the columns of `scraped.SCRAPED`, bundle by bundle. `owners_known`: whether its owners are known, so that
    a broker's traffic is the sum over its bundles. `before` is what was last seen before the day. Raises `DataNotFit`
    for more than `MOST_BROKERS`.
    """
    scraped = hosts.scraped
    position = (np.cumsum(scraped) - 1).astype(np.uint16)
    t = load["t"].to_numpy()
    load = load.filter(pa.array(scraped[t]))
    t = position[load["t"].to_numpy()]
    ids = sorted({*hosts.brokers, *load["owner"].unique().drop_null().to_pylist()})
    if len(ids) > MOST_BROKERS:
        raise DataNotFit(
            f"{len(ids):,} instances export figures of one day, more than a cluster has brokers: name the label that "
            "stays when a broker restarts, for example --label instance=pod"
        )
    owner = pc.fill_null(pc.index_in(load["owner"], value_set=pa.array(ids, pa.string())), NO_BROKER)
    owner = owner.to_numpy().astype(np.int16)
    of_brokers = _totals(load, t, owner, int(scraped.sum()), len(ids))
    host_rows = _host_rows(hosts, ids, of_brokers, owners_known, settings)
    tables = {
        "moments": _moments(window, scraped, host_rows, t, owner),
        "brokers": numbered(pa.array(ids, pa.string()), BROKERS),
        "hosts": host_rows,
        "names": numbered(pa.array(names, pa.string()), NAMES),
        "load": pa.table(
            [
                load["bundle"],
                pa.array(t),
                pa.array(owner),
                *(load[figure] for figure in TRAFFIC),
                pa.array(connections_of(load)),
                load["flags"],
            ],
            LOAD,
        ).combine_chunks(),
        "settings": SETTINGS.empty_table(),
        "policies": POLICIES.empty_table(),
    }
    tables["events"] = _events(tables, before)
    return {**tables, "index": index_of(tables)}


def gaps(window: Window, hosts: ScrapedHosts) -> Iterator[Gap]:
    """The times at which no broker reported."""
    edges = np.flatnonzero(np.diff(np.concatenate([[True], hosts.scraped, [True]]).astype(np.int8)))
    for first, after in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        from_s, to_s = (window.start_s + place * window.step_s for place in (first, after - 1))
        yield Gap(from_ms=1000 * from_s, to_ms=1000 * to_s)


def _events(tables: Mapping[str, pa.Table], before: LastSeen | None) -> pa.Table:
    changed = {0, *_changed(tables)}
    found: list[tuple[int, Event]] = []
    around = sorted({*changed, *(t - 1 for t in changed if t)})
    seen = before
    for t, scraped in zip(around, moments_of(tables, set(around)), strict=True):
        moment = replace(scraped, imported=True)
        if seen is not None and t in changed:
            found += ((t, event) for event in events_between(seen.moment, moment, (), seen.waiting))
        seen = LastSeen.of(moment, seen)
    return event_table(found)


def _changed(tables: Mapping[str, pa.Table]) -> Iterable[int]:
    """The moments at which owners, brokers or their starts differ from the moment before."""
    number, hosts = len(tables["moments"]), tables["hosts"]
    owners = tables["load"]["owner"].to_numpy().reshape(-1, number)
    started = np.full((len(tables["brokers"]), number), _NEVER)
    started[hosts["broker"].to_numpy(), hosts["t"].to_numpy()] = pc.fill_null(hosts["started_at_ms"], 0).to_numpy()
    differ = [(one[:, 1:] != one[:, :-1]).any(axis=0) for one in (owners, started)]
    return (np.flatnonzero(np.logical_or(*differ)) + 1).tolist()


def _totals(load: pa.Table, t: npt.NDArray[Any], owner: npt.NDArray[Any], moments: int, brokers: int) -> Floats:
    """(figures and the count of bundles, moments, brokers): what the bundles of each broker add up to."""
    owned = owner >= 0
    cell = t[owned].astype(np.int64) * brokers + owner[owned]
    weights = [np.nan_to_num(load[figure].to_numpy()[owned].astype(np.float64)) for figure in FIGURES]
    sums = [np.bincount(cell, one, moments * brokers) for one in (*weights, np.ones(len(cell)))]
    totals: Floats = np.stack(sums).astype(np.float64).reshape(len(sums), moments, brokers)
    return totals


def _host_rows(
    hosts: ScrapedHosts, ids: Sequence[str], totals: Floats, traffic_known: bool, settings: LoadBalancerSettings
) -> pa.Table:
    rows = []
    position = np.cumsum(hosts.scraped) - 1
    for broker in hosts.brokers:
        there = hosts.reported(broker)
        t, number = position[there], ids.index(broker)
        usage = np.stack([hosts.figure(broker, column)[there] for column in HOST_METRICS], axis=1)
        limit = np.full(usage.shape, _PERCENT)
        started = hosts.figure(broker, "started")[there]
        started = np.where(started < _LATEST_START_S, started, np.nan)
        columns: dict[str, npt.NDArray[Any] | pa.Array] = {
            "t": t,
            "broker": np.full(len(t), number),
            "usage": weighted_maximum(np.nan_to_num(usage), limit, settings),
            "available": np.ones(len(t), bool),
            "complete": np.isfinite(usage).all(axis=1),
            "version": pa.array(hosts.version(broker)[there], pa.string()),
            "started_at_ms": _nullable(np.round(started * 1000)).cast(pa.int64()),
            "report_updated_at_ms": pa.nulls(len(t), pa.int64()),
            **{column: _nullable(usage[:, place]) for place, column in enumerate(HOST_METRICS)},
            **{column.replace("_usage", "_limit"): limit[:, 0] for column in HOST_METRICS},
            "bundles": totals[-1, t, number],
        }
        for place, figure in enumerate(FIGURES):
            unknown = figure in TRAFFIC and not traffic_known
            columns[figure] = pa.nulls(len(t), pa.float32()) if unknown else totals[place, t, number]
        rows.append(pa.table({name: columns[name] for name in HOSTS.names}).cast(HOSTS, safe=False))
    return pa.concat_tables(rows).sort_by([("t", "ascending"), ("broker", "ascending")])


def _nullable(figures: Floats) -> pa.Array:
    return pa.array(figures, from_pandas=True)


def _moments(
    window: Window,
    scraped: npt.NDArray[np.bool_],
    hosts: pa.Table,
    t: npt.NDArray[np.uint16],
    owner: npt.NDArray[np.int16],
) -> pa.Table:
    """The moments; one is fit if every broker that owns bundles reported all of its usage."""
    at_s = [window.start_s + place * window.step_s for place in np.flatnonzero(scraped).tolist()]
    complete = hosts.filter(hosts["complete"])
    reported = complete["t"].to_numpy().astype(np.int64) << 16 | complete["broker"].to_numpy()
    owned = owner >= 0
    needed = np.unique(t[owned].astype(np.int64) << 16 | owner[owned])
    unfit = np.unique(needed[~np.isin(needed, reported)] >> 16)
    number = len(at_s)
    columns = {
        "t": np.arange(number),
        "snapshot": [snapshot_id(datetime.fromtimestamp(one, UTC)) for one in at_s],
        "at_ms": [one * 1000 for one in at_s],
        "fit": ~np.isin(np.arange(number), unfit),
        "failed_checks": np.zeros(number),
        "leader": np.full(number, NO_BROKER),
        "leader_unloads": pa.nulls(number, pa.int64()),
    }
    return pa.table(columns).cast(MOMENTS, safe=False)
