"""The tables of `pulsar-perf monitor-brokers`: one per broker, with its load manager's rows, and an overall one.

Source of rows, headings and figures: Pulsar `BrokerMonitor` (4.0). Two faults are corrected, and `notes` says so: the
original prints each broker's throughput under LONG/S and its long-term rate under KB/S, and MAX % of its overall table
is a ratio (0..1) under the Modular manager. The original has no overall table under Extensible.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np

from pulsar_advisor.documents.broker_tables import (
    BrokerTables,
    Figure,
    OneBroker,
    Overall,
    OverallRow,
    PlannedUsage,
    Unknown,
)
from pulsar_advisor.model.cluster.cluster_state import RESOURCES, LoadManagerKind
from pulsar_advisor.model.load.resource_usage import percent

_NOTES: Final = (
    "LONG/S and KB/S are under their own headings; `pulsar-perf monitor-brokers` swaps them in broker rows. KB/S "
    "counts 1,024 bytes, as there; kB/s in a report is 1,000.",
    "MAX % is always a percentage; the original shows a ratio (0..1) in the overall table under Modular.",
)

_UNWEIGHTED: Final = (
    "MAX % leaves the heap (MEMORY %) out and is unweighted, as brokers report it; plans weight the resources "
    "(loadBalancerCPUResourceWeight and so on)."
)
T = TypeVar("T")

_NOTE_ON_SIMPLE: Final = "KB/S of RAW MSG is the network card's usage in kbit/s divided by 1024, as Pulsar prints it."

_BYTES_PER_KIB: Final = 1024


Report = Mapping[str, Any]
"""A document of Pulsar's own, or a part of one, in its field names."""


@dataclass(frozen=True)
class BrokerLoad:
    """What one broker reported, in Pulsar's field names.

    `report` is `LocalBrokerData` (Modular), `LoadReport` (Simple) or `BrokerLoadData` (Extensible); `averages` is
    `TimeAverageBrokerData`, which only the Modular leader writes, and only to the metadata store.
    """

    broker: str
    load_manager: LoadManagerKind
    report: Report
    averages: Report | None = None


@dataclass(frozen=True)
class ClusterLoad:
    """All brokers at one moment, and why some are missing."""

    where: str
    """The cluster or snapshot, in words."""
    read_at_ms: int
    brokers: tuple[BrokerLoad, ...]
    missing: Mapping[str, str]
    """Broker id -> why its load is unknown."""
    planned: PlannedUsage | None = None
    """What plans start from, where a snapshot has been normalized."""


@dataclass(frozen=True)
class Column:
    """A column's heading as Pulsar prints it, and its name with the unit."""

    heading: str
    name: str


@dataclass(frozen=True)
class Row:
    """One row of a broker's table."""

    label: str
    columns: tuple[Column, ...]
    figures: tuple[Figure, ...]

    def by_name(self) -> dict[str, Figure]:
        """The figures by name."""
        return {column.name: figure for column, figure in zip(self.columns, self.figures, strict=True)}


SYSTEM: Final = (
    Column("CPU %", "cpu_percent"),
    Column("MEMORY %", "memory_percent"),
    Column("DIRECT %", "direct_memory_percent"),
    Column("BW IN %", "bandwidth_in_percent"),
    Column("BW OUT %", "bandwidth_out_percent"),
    Column("MAX %", "max_percent"),
)
_COUNT: Final = (
    Column("TOPIC", "topics"),
    Column("BUNDLE", "bundles"),
    Column("PRODUCER", "producers"),
    Column("CONSUMER", "consumers"),
    Column("BUNDLE +", "bundles_gained"),
    Column("BUNDLE -", "bundles_lost"),
)
_MESSAGES: Final = (
    Column("MSG/S IN", "msg_rate_in_per_s"),
    Column("MSG/S OUT", "msg_rate_out_per_s"),
    Column("TOTAL", "msg_rate_per_s"),
    Column("KB/S IN", "throughput_in_kib_per_s"),
    Column("KB/S OUT", "throughput_out_kib_per_s"),
    Column("TOTAL", "throughput_kib_per_s"),
)
OVERALL_HEADINGS: Final = ("BROKER", "BUNDLE", "MSG/S", "LONG/S", "KB/S", "MAX %")


def broker_rows(load: BrokerLoad) -> tuple[Row, ...]:
    """One broker's rows, in its load manager's order and form."""
    return {"modular": _modular, "simple": _simple, "extensible": _extensible}[load.load_manager](load)


def overall(loads: Sequence[BrokerLoad]) -> Overall:
    """The table over all brokers. A total omits figures that any broker lacks."""
    rows = tuple(_overall_row(load) for load in loads)
    total = OverallRow(
        broker="TOTAL",
        bundles=sum(_known(row.bundles for row in rows)),
        msg_rate_per_s=_sum_of_known(row.msg_rate_per_s for row in rows),
        long_term_msg_rate_per_s=_sum_of_known(row.long_term_msg_rate_per_s for row in rows),
        throughput_kib_per_s=_sum_of_known(row.throughput_kib_per_s for row in rows),
        max_percent=max(_known(row.max_percent for row in rows), default=None),
    )
    return Overall(brokers=rows, total=total)


def notes(load: ClusterLoad) -> tuple[str, ...]:
    """Differences that readers of the original should know."""
    simple = any(broker.load_manager == "simple" for broker in load.brokers)
    planned = (load.planned.sentence,) if load.planned is not None else (_UNWEIGHTED,)
    return (*_NOTES, *((_NOTE_ON_SIMPLE,) if simple else ()), *planned)


def broker_tables(load: ClusterLoad) -> BrokerTables:
    """Everything the tables show, as data."""
    return BrokerTables(
        where=load.where,
        read_at_ms=load.read_at_ms,
        brokers=tuple(
            OneBroker(
                broker=broker.broker,
                load_manager=broker.load_manager,
                rows={row.label: row.by_name() for row in broker_rows(broker)},
            )
            for broker in load.brokers
        ),
        overall=overall(load.brokers),
        missing=tuple(Unknown(broker=broker, reason=reason) for broker, reason in sorted(load.missing.items())),
        planned=load.planned,
        notes=notes(load),
    )


def _modular(load: BrokerLoad) -> tuple[Row, ...]:
    report, averages = load.report, load.averages or {}
    return (
        Row("SYSTEM", SYSTEM, (*_usage_percents(report), _times_100(_number(report, "maxResourceUsage")))),
        Row("COUNT", _COUNT, _counts(report, "lastBundleGains", "lastBundleLosses")),
        Row("LATEST", _MESSAGES, _messages(report, "msg")),
        Row("SHORT", _MESSAGES, _messages(averages, "shortTermMsg")),
        Row("LONG", _MESSAGES, _messages(averages, "longTermMsg")),
    )


def _simple(load: BrokerLoad) -> tuple[Row, ...]:
    report = load.report
    system = report.get("systemResourceUsage") or {}
    raw = _usage_percents(system)
    allocated = (
        _allocated_percent(report, system, "CPU", "cpu"),
        _allocated_percent(report, system, "Memory", "memory"),
        None,
        _allocated_percent(report, system, "BandwidthIn", "bandwidthIn"),
        _allocated_percent(report, system, "BandwidthOut", "bandwidthOut"),
    )
    raw_traffic = (
        _number(report, "msgRateIn"),
        _number(report, "msgRateOut"),
        _number(system.get("bandwidthIn") or {}, "usage"),
        _number(system.get("bandwidthOut") or {}, "usage"),
    )
    return (
        Row("COUNT", _COUNT, _counts(report, "bundleGains", "bundleLosses")),
        Row("RAW SYSTEM", SYSTEM, (*raw, max(_known(raw), default=None))),
        Row("ALLOC SYSTEM", SYSTEM, (*allocated, max(_known(allocated), default=None))),
        Row("RAW MSG", _MESSAGES, _message_figures(*raw_traffic)),
        Row("ALLOC MSG", _MESSAGES, _traffic(report, "allocatedMsgRate", "allocatedBandwidth")),
    )


def _extensible(load: BrokerLoad) -> tuple[Row, ...]:
    report = load.report
    count = (None, _count(report, "bundleCount"), None, None, None, None)
    return (
        Row("SYSTEM", SYSTEM, (*_usage_percents(report), _times_100(_number(report, "maxResourceUsage")))),
        Row("COUNT", _COUNT, count),
        Row("LATEST", _MESSAGES, _messages(report, "msg")),
    )


def _overall_row(load: BrokerLoad) -> OverallRow:
    rows = {row.label: row.by_name() for row in broker_rows(load)}
    simple = load.load_manager == "simple"
    latest, long_term = (rows["RAW MSG"], rows["ALLOC MSG"]) if simple else (rows["LATEST"], rows.get("LONG", {}))
    bundles = rows["COUNT"]["bundles"]
    return OverallRow(
        broker=load.broker,
        bundles=None if bundles is None else int(bundles),
        msg_rate_per_s=latest["msg_rate_per_s"],
        long_term_msg_rate_per_s=long_term.get("msg_rate_per_s"),
        throughput_kib_per_s=(long_term if simple else latest)["throughput_kib_per_s"],
        max_percent=rows["RAW SYSTEM" if simple else "SYSTEM"]["max_percent"],
    )


def _counts(report: Report, gains: str, losses: str) -> tuple[Figure, ...]:
    names = ("numTopics", "numBundles", "numProducers", "numConsumers")
    return (*(_count(report, name) for name in names), len(report.get(gains) or ()), len(report.get(losses) or ()))


def _messages(source: Report, prefix: str) -> tuple[Figure, ...]:
    return _traffic(source, f"{prefix}Rate", f"{prefix}Throughput")


def _traffic(source: Report, rate: str, size: str) -> tuple[Figure, ...]:
    names = (f"{name}{way}" for name in (rate, size) for way in ("In", "Out"))
    return _message_figures(*(_number(source, name) for name in names))


def _message_figures(
    rate_in: float | None, rate_out: float | None, bytes_in: float | None, bytes_out: float | None
) -> tuple[Figure, ...]:
    return (rate_in, rate_out, _plus(rate_in, rate_out), *map(_kib, (bytes_in, bytes_out, _plus(bytes_in, bytes_out))))


def _usage_percents(resources: Report) -> tuple[float | None, ...]:
    """CPU, heap, direct memory, bandwidth in and out, as `ResourceUsage.percentUsage` computes them."""
    return tuple(_usage_percent(resources.get(name) or {}) for name in RESOURCES)


def _usage_percent(resource: Report) -> float | None:
    usage, limit = _number(resource, "usage"), _number(resource, "limit")
    if usage is None or limit is None:
        return None
    return float(percent(np.array([usage]), np.array([limit]))[0])


def _allocated_percent(report: Report, system: Report, allocated: str, resource: str) -> float | None:
    usage, limit = _number(report, f"allocated{allocated}"), _number(system.get(resource) or {}, "limit")
    if usage is None or limit is None:
        return None
    return 100 * min(1.0, usage / limit) if limit > 0 and usage >= 0 else 0.0


def _number(source: Report, name: str) -> float | None:
    value = source.get(name)
    number = math.nan if value is None else float(value)
    return number if math.isfinite(number) else None  # Jackson writes a non-finite number as text: "NaN"


def _count(source: Report, name: str) -> int | None:
    value = source.get(name)
    return None if value is None else int(value)


def _times_100(ratio: float | None) -> float | None:
    return None if ratio is None else ratio * 100


def _kib(size: float | None) -> float | None:
    return None if size is None else size / _BYTES_PER_KIB


def _plus(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else first + second


def _known(values: Iterable[T | None]) -> list[T]:
    return [value for value in values if value is not None]


def _sum_of_known(values: Iterable[float | None]) -> float | None:
    known = _known(values)
    return sum(known) if known else None
