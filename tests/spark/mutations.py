"""Corruptions of captures, each in a place of its own, with the checks that must name it.

    @corruption(RECORDED, "bundles.owners_agree")
    def owner_swapped_in_zookeeper(capture: Capture) -> str:
        ...                                   # change the raw lines; return what the check must name

Corruptions of one round are made together in one capture: a victim is handed out once, so that each finding has one
cause. A corruption that returns "" is one of the cluster as a whole: its checks must fail, whatever they name.
"""

from __future__ import annotations

import copy
import itertools
import json
import tarfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from snapshots import RATES, RawSnapshot, skewed_modular_cluster

RECORDED: Final = "recorded"
"""A capture of three real brokers, 4.0.8."""
FROZEN: Final = "recorded, an hour later"
"""The same capture once more under a later time, after the real one."""
SYNTHETIC: Final = "synthetic"
"""150 brokers, two thousand bundles and twenty thousand topics, made up."""
CLUSTER: Final = "synthetic, the cluster as a whole"
NOTHING: Final = "synthetic, with nothing in it"
TABLES: Final = "synthetic, its tables damaged after they were made"
ROUNDS: Final = (RECORDED, FROZEN, SYNTHETIC, CLUSTER, NOTHING, TABLES)

ARCHIVE: Final = Path(__file__).parents[1] / "data" / "recorded" / "modular-4.0.8.tar"
AN_HOUR_MS: Final = 3_600_000
STRANGER: Final = "broker-999.pulsar.test:8080"


@dataclass
class Capture:
    """The lines of one capture, and whom the corruptions have already struck."""

    raw: RawSnapshot
    struck: set[str] = field(default_factory=set)
    table_damages: list[tuple[str, Callable[[Path], None]]] = field(default_factory=list)
    """Table, and what is done to the folder of its Parquet files once they are written."""

    def lines(self, surface: str, **columns: Any) -> list[dict[str, Any]]:
        """Lines of a surface (all files of it) with these values, to be changed in place."""
        return [
            line
            for name, lines in self.raw.lines.items()
            if name.partition("/")[0] == surface
            for line in lines
            if all(line[column] == value for column, value in columns.items())
        ]

    def broker(self) -> str:
        """A broker nobody has struck yet; it is no one's victim afterwards, nor are its bundles."""
        return next(b for b in reversed(self.raw.head["identity"]["broker_ids"]) if self._strike(b))

    def bundle(self) -> str:
        """A busy user bundle of a broker nobody has struck yet."""
        broker = self.broker()
        stats = self.report(broker)["lastStats"]
        owned = {line["bundle"] for line in self.lines("owned_bundles", broker=broker, source="rest")}
        return max(
            (bundle for bundle in stats if bundle in owned and not bundle.startswith("pulsar/")),
            key=lambda bundle: (stats[bundle]["msgRateIn"], bundle),
        )

    def namespace(self) -> str:
        """A namespace without load that nobody has struck yet."""
        return next(
            line["namespace"]
            for line in self.lines("namespaces")
            if line["namespace"].startswith("spare/") and self._strike(line["namespace"])
        )

    def _strike(self, victim: str) -> bool:
        fresh = victim not in self.struck
        self.struck.add(victim)
        return fresh

    def owner(self, bundle: str) -> str:
        return str(self.lines("owned_bundles", bundle=bundle, source="rest")[0]["broker"])

    def report(self, broker: str, source: str = "rest") -> dict[str, Any]:
        return self.raw.broker_report(broker, source)

    def stats(self, bundle: str) -> dict[str, Any]:
        """A bundle's figures in its owner's report."""
        stats: dict[str, Any] = self.report(self.owner(bundle))["lastStats"][bundle]
        return stats

    def topics(self, bundle: str) -> list[dict[str, Any]]:
        namespace, _, range_ = bundle.rpartition("/")
        return self.lines("topic_stats", namespace=namespace, range=range_)

    def topic_file(self, broker: str) -> str:
        """The file with the topics of one broker."""
        return next(
            name
            for name, lines in self.raw.lines.items()
            if name.startswith("topic_stats/") and lines and lines[0]["broker"] == broker
        )

    def boundaries(self, namespace: str) -> list[list[str]]:
        """The boundaries as both sources have them."""
        return [
            line["document"]["bundles"]["boundaries"]
            for surface in ("namespaces", "local_policies")
            for line in self.lines(surface, namespace=namespace)
        ]

    def text(self, name: str) -> bytes:
        """A file's lines as they would be written."""
        return b"".join(json.dumps(line).encode() + b"\n" for line in self.raw.lines[name])


@dataclass(frozen=True)
class Corruption:
    round: str
    caught_by: tuple[str, ...]
    apply: Callable[[Capture], str]

    @property
    def name(self) -> str:
        return self.apply.__name__


CORRUPTIONS: Final[list[Corruption]] = []


def corruption(round_: str, *caught_by: str) -> Callable[[Callable[[Capture], str]], Callable[[Capture], str]]:
    def register(apply: Callable[[Capture], str]) -> Callable[[Capture], str]:
        CORRUPTIONS.append(Corruption(round_, caught_by, apply))
        return apply

    return register


def clean_capture(round_: str) -> Capture:
    """The capture that the corruptions of a round are made in."""
    if round_ in (RECORDED, FROZEN):
        return Capture(_recorded(later_ms=AN_HOUR_MS if round_ == FROZEN else 0))
    if round_ in (NOTHING, TABLES):
        small = skewed_modular_cluster()
        small.lines["isolation_policies"].append(_policy("shop", "shop/.*", "broker-1.*"))
        return Capture(small)
    spare = {f"spare/namespace-{number:02d}": 4 for number in range(16)}
    large = {"shop/orders": 1024, "shop/payments": 1024}
    return Capture(skewed_modular_cluster(brokers=150, bundles={**large, **spare}, topics=20_000))


def corrupted(round_: str) -> tuple[Capture, Mapping[str, str]]:
    """The capture of a round with all its corruptions, and what each must be named by."""
    capture = clean_capture(round_)
    return capture, {one.name: one.apply(capture) for one in CORRUPTIONS if one.round == round_}


def _recorded(later_ms: int) -> RawSnapshot:
    with tarfile.open(ARCHIVE) as archive:
        members = {member.name: archive.extractfile(member) for member in archive.getmembers()}
        content = {name: file.read() for name, file in members.items() if file is not None}
    head = json.loads(content.pop("manifest.json"))
    lines = {
        name.removesuffix(".jsonl.zst"): [json.loads(line) for line in _decompressed(packed).splitlines()]
        for name, packed in content.items()
    }
    head["started_at_ms"] += later_ms
    head["finished_at_ms"] += later_ms
    for line in _all(lines):
        for clock in ("readAt", "modifiedAt"):
            if clock in line:
                line[clock] += later_ms
        document = line.get("document")
        if isinstance(document, dict) and "lastUpdate" in document:
            document["lastUpdate"] += later_ms
    return RawSnapshot(lines, head)


def _all(lines: Mapping[str, list[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    for of_surface in lines.values():
        yield from of_surface


def _decompressed(packed: bytes) -> bytes:
    content: bytes = zstandard.ZstdDecompressor().stream_reader(packed).read()
    return content


# A capture of real brokers ------------------------------------------------------------------------------------------


@corruption(RECORDED, "bundles.owners_agree", "bundles.figures_are_the_owners")
def owner_swapped_in_zookeeper(capture: Capture) -> str:
    bundle = capture.bundle()
    others = [b for b in capture.raw.head["identity"]["broker_ids"] if b != capture.owner(bundle)]
    for line in capture.lines("owned_bundles", bundle=bundle, source="zookeeper"):
        line["broker"] = others[0]
    return bundle


@corruption(RECORDED, "bundles.msg_rate_in")
def negative_rate(capture: Capture) -> str:
    bundle = capture.bundle()
    capture.stats(bundle)["msgRateIn"] *= -1
    return bundle


@corruption(RECORDED, "bundles.topics_add_up")
def throughput_in_kilobytes(capture: Capture) -> str:
    bundle = capture.bundle()
    capture.stats(bundle)["msgThroughputIn"] /= 1000
    return bundle


@corruption(RECORDED, "bundles.in_boundaries")
def stale_node_of_a_split_bundle(capture: Capture) -> str:
    template = capture.lines("owned_bundles", source="zookeeper", **{"pass": "end"})[0]
    capture.raw.lines["owned_bundles"].append({**template, "bundle": "retail/orders/0x00000000_0x80000000"})
    return "retail/orders"


@corruption(RECORDED, "bundles.ring_to_above", "bundles.ring_from_below")
def one_bit_flipped_in_a_boundary(capture: Capture) -> str:
    for boundaries in capture.boundaries("public/default"):
        boundaries[-1] = "0xfffffffe"
        boundaries[0] = "0x00000001"
    return "public/default"


@corruption(RECORDED, "problems.clusters_lines")
def truncated_line_of_the_bundle_averages(capture: Capture) -> str:
    capture.raw.raw_text["bundle_data"] = capture.text("bundle_data")[:-40] + b"\n"
    return ""


@corruption(RECORDED, "settings.brokers_agree", "settings.class_is_known")
def a_shedder_of_ones_own_at_one_broker(capture: Capture) -> str:
    line = capture.lines("settings", origin="runtime")[0]
    line["values"]["loadBalancerLoadSheddingStrategy"] = "com.example.OurShedder"
    return ""


@corruption(RECORDED, "capture.skew")
def read_over_ten_minutes(capture: Capture) -> str:
    capture.raw.head["skew_ms"] = 600_000
    return ""


@corruption(RECORDED, "policies.expressions", "policies.namespaces", "policies.primaries")
def isolation_policy_that_does_not_compile(capture: Capture) -> str:
    capture.raw.lines["isolation_policies"].append(_policy("broken", "retail/(", "broker-[0-9"))
    return "broken"


@corruption(RECORDED, "brokers.leader")
def leader_missing(capture: Capture) -> str:
    capture.raw.head["leader"] = None
    for line in capture.lines("leader"):
        line["broker"] = None
    return ""


@corruption(FROZEN, "brokers.figures_moved", "bundles.figures_moved")
def reports_frozen_for_an_hour(capture: Capture) -> str:
    return ""


@corruption(FROZEN, "bundles.steady")
def traffic_a_thousand_times_what_it_was(capture: Capture) -> str:
    bundle = capture.bundle()
    for rate in RATES:
        capture.stats(bundle)[rate] *= 1000
    return bundle


# 150 brokers: figures of bundles ----------------------------------------------------------------------------------


def _figure(name: str, check: str, change: Callable[[Any], Any]) -> None:
    """Registers one corruption of one figure of a bundle under a name of its own."""

    def apply(capture: Capture, figure: str = name.partition("_is_")[0]) -> str:
        bundle = capture.bundle()
        stats = capture.stats(bundle)
        stats[figure] = change(stats[figure])
        return bundle

    apply.__name__ = name
    CORRUPTIONS.append(Corruption(SYNTHETIC, (check,), apply))


_SUITE_NAMES = {
    "msgRateIn": "msg_rate_in",
    "msgRateOut": "msg_rate_out",
    "msgThroughputIn": "msg_throughput_in",
    "msgThroughputOut": "msg_throughput_out",
}
for _rate, _code in _SUITE_NAMES.items():
    _figure(f"{_rate}_is_nan_as_text", f"bundles.{_code}", lambda _: "NaN")
    _figure(f"{_rate}_is_negative", f"bundles.{_code}", lambda value: -value)
    _figure(f"{_rate}_is_a_thousand_times_too_much", "bundles.topics_add_up", lambda value: value * 1000)
_figure("msgRateIn_is_infinite", "bundles.msg_rate_in", lambda _: "Infinity")
_figure("msgThroughputOut_is_absent", "bundles.figures_complete", lambda _: None)
_figure("msgRateOut_is_lost", "bundles.bytes_and_messages", lambda _: 0.0)
_figure("msgThroughputIn_is_lost", "bundles.bytes_and_messages", lambda _: 0.0)
_figure("msgRateIn_is_denormal", "bundles.not_denormal", lambda _: 5e-324)


@corruption(SYNTHETIC, "bundles.topics_add_up")
def figures_half_as_much_again(capture: Capture) -> str:
    bundle = capture.bundle()
    stats = capture.report(capture.owner(bundle))["lastStats"]
    stats[bundle].update({rate: value * 1.5 for rate, value in stats[bundle].items() if rate in RATES})
    return bundle


@corruption(SYNTHETIC, "bundles.topics_add_up")
def a_topic_missing_from_the_statistics(capture: Capture) -> str:
    bundle = capture.bundle()
    lines = capture.raw.lines[capture.topic_file(capture.owner(bundle))]
    lines.remove(capture.topics(bundle)[0])
    return bundle


@corruption(SYNTHETIC, "bundles.loaded_is_reported")
def loaded_bundle_without_figures(capture: Capture) -> str:
    bundle = capture.bundle()
    del capture.report(capture.owner(bundle))["lastStats"][bundle]
    return bundle


def _average(name: str, check: str, term: str, value: Any) -> None:
    """Registers one corruption of one stored average of a bundle under a name of its own."""

    def apply(capture: Capture) -> str:
        bundle = capture.bundle()
        capture.lines("bundle_data", bundle=bundle)[0]["document"][term][name.rpartition("_of_")[2]] = value
        return bundle

    apply.__name__ = name
    CORRUPTIONS.append(Corruption(SYNTHETIC, (check,), apply))


for _rate, _code in _SUITE_NAMES.items():
    _average(f"negative_short_average_of_{_rate}", f"bundles.short_term_{_code}", "shortTermData", -1.0)
    _average(f"nan_as_text_in_the_long_average_of_{_rate}", f"bundles.long_term_{_code}", "longTermData", "NaN")


@corruption(SYNTHETIC, "bundles.averages_are_stored")
def averages_cut_to_the_busiest(capture: Capture) -> str:
    bundle = capture.bundle()
    capture.raw.lines["bundle_data"].remove(capture.lines("bundle_data", bundle=bundle)[0])
    return bundle


# 150 brokers: ownership -------------------------------------------------------------------------------------------


@corruption(SYNTHETIC, "bundles.one_report")
def bundle_duplicated_by_a_raced_move(capture: Capture) -> str:
    bundle, other = capture.bundle(), capture.broker()
    report = capture.report(other)
    report["lastStats"][bundle] = copy.deepcopy(capture.stats(bundle))
    return bundle


@corruption(SYNTHETIC, "bundles.stayed")
def moved_while_reading(capture: Capture) -> str:
    bundle = capture.bundle()
    capture.raw.head["moved_bundles"].append(bundle)
    return bundle


@corruption(SYNTHETIC, "bundles.owner_is_active")
def owned_by_a_broker_that_is_gone(capture: Capture) -> str:
    bundle = capture.bundle()
    for line in capture.lines("owned_bundles", bundle=bundle):
        line["broker"] = STRANGER
    return bundle


@corruption(SYNTHETIC, "bundles.one_owner")
def claimed_by_two_brokers(capture: Capture) -> str:
    bundle, other = capture.bundle(), capture.broker()
    claim = capture.lines("owned_bundles", bundle=bundle, source="rest", **{"pass": "end"})[0]
    capture.raw.lines["owned_bundles"].append({**claim, "broker": other})
    return bundle


@corruption(SYNTHETIC, "bundles.owners_agree")
def node_of_a_bundle_that_its_owner_does_not_list(capture: Capture) -> str:
    bundle = capture.bundle()
    for line in capture.lines("owned_bundles", bundle=bundle, source="rest"):
        capture.raw.lines["owned_bundles"].remove(line)
    return bundle


@corruption(SYNTHETIC, "bundles.owners_agree")
def owned_without_a_node(capture: Capture) -> str:
    bundle = capture.bundle()
    for line in capture.lines("owned_bundles", bundle=bundle, source="zookeeper"):
        capture.raw.lines["owned_bundles"].remove(line)
    return bundle


@corruption(SYNTHETIC, "bundles.is_active")
def caught_in_the_middle_of_an_unload(capture: Capture) -> str:
    bundle = capture.bundle()
    for line in capture.lines("owned_bundles", bundle=bundle):
        line["isActive"] = False
    return bundle


# 150 brokers: their reports ---------------------------------------------------------------------------------------


@corruption(SYNTHETIC, "brokers.report_age")
def report_of_an_hour_ago(capture: Capture) -> str:
    broker = capture.broker()
    capture.report(broker)["lastUpdate"] -= AN_HOUR_MS
    return broker


@corruption(SYNTHETIC, "brokers.clock")
def clock_five_minutes_ahead(capture: Capture) -> str:
    broker = capture.broker()
    capture.report(broker)["lastUpdate"] += 360_000
    return broker


@corruption(SYNTHETIC, "brokers.clock_agrees")
def clock_of_a_broker_behind_all_others(capture: Capture) -> str:
    broker = capture.broker()
    capture.lines("brokers", broker=broker)[0]["clockAheadMs"] = -90_000
    return broker


@corruption(CLUSTER, "brokers.our_clock")
def clock_of_our_machine_an_hour_behind(capture: Capture) -> str:
    for line in capture.raw.lines["brokers"]:
        line["clockAheadMs"] = AN_HOUR_MS
    return ""


@corruption(SYNTHETIC, "brokers.reported", "brokers.complete")
def report_missing(capture: Capture) -> str:
    broker = capture.broker()
    capture.raw.lines["load_reports"].remove(capture.lines("load_reports", broker=broker, source="rest")[0])
    return broker


@corruption(SYNTHETIC, "brokers.available")
def broker_going_down(capture: Capture) -> str:
    broker = capture.broker()
    capture.lines("brokers", broker=broker)[0]["available"] = False
    return broker


@corruption(SYNTHETIC, "brokers.cpu_usage")
def cpu_is_nan_as_text(capture: Capture) -> str:
    broker = capture.broker()
    capture.report(broker)["cpu"]["usage"] = "NaN"
    return broker


@corruption(SYNTHETIC, "brokers.cpu_usage")
def cpu_far_below_zero(capture: Capture) -> str:
    broker = capture.broker()
    capture.report(broker)["cpu"]["usage"] = -50.0
    return broker


@corruption(SYNTHETIC, "brokers.cpu_is_measured")
def cpu_not_measured(capture: Capture) -> str:
    broker = capture.broker()
    capture.report(broker)["cpu"]["usage"] = 0.0
    return broker


@corruption(SYNTHETIC, "brokers.cpu_percent")
def cpu_of_the_host_against_the_containers_limit(capture: Capture) -> str:
    broker = capture.broker()
    capture.report(broker)["cpu"]["usage"] = 1500.0
    return broker


@corruption(SYNTHETIC, "brokers.cpu_limit", "brokers.cpu_limit_is_common")
def cpu_limit_of_zero(capture: Capture) -> str:
    broker = capture.broker()
    capture.report(broker)["cpu"]["limit"] = 0.0
    return broker


@corruption(SYNTHETIC, "brokers.memory_limit", "brokers.memory_limit_is_common")
def heap_limit_of_minus_one(capture: Capture) -> str:
    broker = capture.broker()
    capture.report(broker)["memory"]["limit"] = -1.0
    return broker


def _usage(name: str, resource: str, side: str, value: Any, *checks: str) -> None:
    """Registers one corruption of one resource of a broker under a name of its own."""

    def apply(capture: Capture) -> str:
        broker = capture.broker()
        capture.report(broker)[resource][side] = value
        return broker

    apply.__name__ = name
    CORRUPTIONS.append(Corruption(SYNTHETIC, checks, apply))


_usage("cpu_usage_is_absent", "cpu", "usage", None, "brokers.cpu_known")
_usage("heap_usage_far_below_zero", "memory", "usage", -50.0, "brokers.memory_usage")
_usage("direct_memory_usage_is_nan_as_text", "directMemory", "usage", "NaN", "brokers.direct_memory_usage")
_usage("bandwidth_in_usage_is_negative", "bandwidthIn", "usage", -7.0, "brokers.bandwidth_in_usage")
_usage("bandwidth_out_usage_is_infinite", "bandwidthOut", "usage", "Infinity", "brokers.bandwidth_out_usage")
_usage("bandwidth_in_over_its_limit", "bandwidthIn", "usage", 2e10, "brokers.bandwidth_in_percent")
_usage("direct_memory_limit_of_zero", "directMemory", "limit", 0.0, "brokers.direct_memory_limit")
_usage(
    "network_card_with_no_speed_out",
    "bandwidthOut",
    "limit",
    0.0,
    "brokers.bandwidth_out_limit",
    "brokers.bandwidth_out_limit_is_common",
)


def _total(name: str, figure: str, change: Callable[[float], Any], check: str) -> None:
    """Registers one corruption of one total of a broker's report under a name of its own."""

    def apply(capture: Capture) -> str:
        report = capture.report(broker := capture.broker())
        report[figure] = change(report[figure])
        return broker

    apply.__name__ = name
    CORRUPTIONS.append(Corruption(SYNTHETIC, (check,), apply))


_total("total_rate_in_is_nan_as_text", "msgRateIn", lambda _: "NaN", "brokers.msg_rate_in")
_total("total_throughput_in_is_negative", "msgThroughputIn", lambda value: -value, "brokers.msg_throughput_in")
_total("total_throughput_out_beyond_any_machine", "msgThroughputOut", lambda _: 1e18, "brokers.msg_throughput_out")
_total("total_rate_out_forgets_half", "msgRateOut", lambda value: value / 2, "brokers.msg_rate_out_adds_up")
_total("total_throughput_in_twice", "msgThroughputIn", lambda value: value * 2, "brokers.msg_throughput_in_adds_up")


@corruption(SYNTHETIC, "brokers.carried_out")
def network_card_out_a_thousand_times_too_slow(capture: Capture) -> str:
    broker = capture.broker()
    report = capture.report(broker)
    report["bandwidthOut"] = {"usage": 1.0, "limit": report["msgThroughputOut"] / 1_000_000}
    return broker


@corruption(SYNTHETIC, "brokers.memory_percent")
def heap_over_its_limit(capture: Capture) -> str:
    broker = capture.broker()
    capture.report(broker)["memory"]["usage"] = 9_000.0
    return broker


@corruption(SYNTHETIC, "brokers.direct_memory_limit_is_common")
def direct_memory_limit_unlike_the_others(capture: Capture) -> str:
    broker = capture.broker()
    capture.report(broker)["directMemory"]["limit"] = 4_096.0
    return broker


@corruption(SYNTHETIC, "brokers.direct_memory_percent")
def direct_memory_in_bytes(capture: Capture) -> str:
    broker = capture.broker()
    capture.report(broker)["directMemory"]["usage"] *= 2**20
    return broker


@corruption(SYNTHETIC, "brokers.bandwidth_in_limit")
def network_card_of_unknown_speed(capture: Capture) -> str:
    broker = capture.broker()
    capture.report(broker)["bandwidthIn"]["limit"] = -1.0
    return broker


@corruption(SYNTHETIC, "brokers.bandwidth_out_percent")
def bandwidth_in_bits_instead_of_kilobits(capture: Capture) -> str:
    broker = capture.broker()
    capture.report(broker)["bandwidthOut"]["usage"] = 2e10
    return broker


@corruption(SYNTHETIC, "brokers.carried_in", "brokers.bandwidth_in_limit_is_common")
def network_card_a_thousand_times_too_slow(capture: Capture) -> str:
    broker = capture.broker()
    report = capture.report(broker)
    report["bandwidthIn"] = {"usage": 1.0, "limit": report["msgThroughputIn"] / 1_000_000}
    return broker


@corruption(SYNTHETIC, "brokers.msg_rate_in_adds_up")
def total_rate_a_thousand_times_too_much(capture: Capture) -> str:
    broker = capture.broker()
    capture.report(broker)["msgRateIn"] *= 1000
    return broker


@corruption(SYNTHETIC, "brokers.msg_throughput_out_adds_up")
def total_throughput_in_kilobytes(capture: Capture) -> str:
    broker = capture.broker()
    capture.report(broker)["msgThroughputOut"] /= 1000
    return broker


@corruption(SYNTHETIC, "brokers.msg_rate_out")
def total_rate_negative(capture: Capture) -> str:
    broker = capture.broker()
    capture.report(broker)["msgRateOut"] *= -1
    return broker


@corruption(SYNTHETIC, "problems.brokers_lines")
def truncated_line_of_topic_statistics(capture: Capture) -> str:
    broker = capture.broker()
    name = capture.topic_file(broker)
    capture.raw.raw_text[name] = capture.text(name)[:-30] + b"\n"
    return broker


@corruption(SYNTHETIC, "problems.brokers_documents")
def topic_statistics_not_answered(capture: Capture) -> str:
    broker = capture.broker()
    del capture.raw.lines[capture.topic_file(broker)]
    capture.raw.head["missing"].append(
        {"surface": "topic_stats", "broker": broker, "namespace": None, "reason": "503 from the broker"}
    )
    return broker


# 150 brokers: boundaries ------------------------------------------------------------------------------------------


@corruption(SYNTHETIC, "bundles.ring_to_above")
def last_boundary_missing(capture: Capture) -> str:
    namespace = capture.namespace()
    for boundaries in capture.boundaries(namespace):
        boundaries.pop()
    return namespace


@corruption(SYNTHETIC, "bundles.ring_from_below")
def first_boundary_missing(capture: Capture) -> str:
    namespace = capture.namespace()
    for boundaries in capture.boundaries(namespace):
        boundaries.pop(0)
    return namespace


@corruption(SYNTHETIC, "namespaces.boundaries_ascend")
def boundaries_out_of_order(capture: Capture) -> str:
    namespace = capture.namespace()
    for boundaries in capture.boundaries(namespace):
        boundaries[1], boundaries[2] = boundaries[2], boundaries[1]
    return namespace


@corruption(SYNTHETIC, "namespaces.boundaries_ascend")
def boundary_twice(capture: Capture) -> str:
    namespace = capture.namespace()
    for boundaries in capture.boundaries(namespace):
        boundaries[1] = boundaries[2]
    return namespace


@corruption(SYNTHETIC, "namespaces.boundaries_readable")
def boundary_that_is_no_number(capture: Capture) -> str:
    namespace = capture.namespace()
    for boundaries in capture.boundaries(namespace):
        boundaries[2] = "0x8000zzzz"
    return namespace


@corruption(SYNTHETIC, "namespaces.boundaries_counted")
def fewer_boundaries_than_declared(capture: Capture) -> str:
    namespace = capture.namespace()
    for boundaries in capture.boundaries(namespace):
        del boundaries[1]
    return namespace


@corruption(SYNTHETIC, "namespaces.boundaries_agree")
def split_seen_by_one_source_only(capture: Capture) -> str:
    namespace = capture.namespace()
    boundaries = capture.boundaries(namespace)[0]
    boundaries.insert(1, "0x10000000")
    return namespace


@corruption(SYNTHETIC, "bundles.in_boundaries")
def owned_range_that_is_no_bundle(capture: Capture) -> str:
    namespace = capture.namespace()
    template = capture.lines("owned_bundles", source="zookeeper")[0]
    capture.raw.lines["owned_bundles"] += [
        {**template, "bundle": f"{namespace}/0x00000000_0x12345678", "pass": when} for when in ("begin", "end")
    ]
    return namespace


@corruption(SYNTHETIC, "namespaces.boundaries_known")
def namespace_without_boundaries(capture: Capture) -> str:
    namespace = capture.namespace()
    for surface in ("namespaces", "local_policies"):
        for line in capture.lines(surface, namespace=namespace):
            line["document"]["bundles"] = None
    return namespace


@corruption(SYNTHETIC, "namespaces.group_has_others")
def anti_affinity_group_misspelt(capture: Capture) -> str:
    namespace = capture.namespace()
    _join_group(capture, namespace, "payment-lnes")
    return namespace


@corruption(SYNTHETIC, "namespaces.domains_are_counted")
def failure_domains_that_nothing_looks_at(capture: Capture) -> str:
    namespace = capture.namespace()
    _join_group(capture, namespace, "payment-lines")
    _join_group(capture, capture.namespace(), "Payment-Lines")
    zone = {"domain": "zone-a", "brokers": capture.raw.head["identity"]["broker_ids"]}
    capture.raw.lines["failure_domains"].append(zone)
    return namespace


@corruption(SYNTHETIC, "topics.in_reported_range")
def topic_in_a_bundle_its_hash_is_not_in(capture: Capture) -> str:
    line = capture.lines("topic_stats", namespace="shop/payments")[0]
    edges = capture.boundaries("shop/payments")[0]
    line["range"] = next(f"{low}_{up}" for low, up in itertools.pairwise(edges) if f"{low}_{up}" != line["range"])
    return "shop/payments"


# 150 brokers: topics ------------------------------------------------------------------------------------------------


@corruption(SYNTHETIC, "topics.in_a_range")
def topic_of_a_namespace_without_boundaries(capture: Capture) -> str:
    namespace, broker = capture.namespace(), capture.broker()
    for surface in ("namespaces", "local_policies"):
        for line in capture.lines(surface, namespace=namespace):
            line["document"]["bundles"] = None
    of_broker = capture.raw.lines[capture.topic_file(broker)]
    topic = f"persistent://{namespace}/homeless"
    of_broker.append({**of_broker[0], "namespace": namespace, "range": "0x00000000_0x40000000", "topic": topic})
    return topic


@corruption(SYNTHETIC, "topics.one_report")
def topic_reported_by_two_brokers(capture: Capture) -> str:
    line, other = capture.topics(capture.bundle())[0], capture.broker()
    capture.raw.lines[capture.topic_file(other)].append({**line, "broker": other})
    return str(line["topic"])


def _topic_figure(name: str, rate: str, change: Callable[[float], Any]) -> None:
    """Registers one corruption of one figure of a topic under a name of its own."""

    def apply(capture: Capture) -> str:
        line = capture.topics(capture.bundle())[0]
        line["stats"][rate] = change(line["stats"][rate])
        return str(line["topic"])

    apply.__name__ = name
    CORRUPTIONS.append(Corruption(SYNTHETIC, (f"topics.{_SUITE_NAMES[rate]}",), apply))


_topic_figure("topics_rate_in_is_nan_as_text", "msgRateIn", lambda _: "NaN")
_topic_figure("topics_rate_out_is_negative", "msgRateOut", lambda value: -value)
_topic_figure("topics_throughput_in_is_infinite", "msgThroughputIn", lambda _: "Infinity")
_topic_figure("topics_throughput_out_beyond_any_machine", "msgThroughputOut", lambda _: 1e18)


# The cluster as a whole ---------------------------------------------------------------------------------------------


@corruption(CLUSTER, "brokers.load_manager_agrees")
def one_broker_already_migrated(capture: Capture) -> str:
    capture.report(capture.broker())["loadManagerClassName"] = (
        "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl"
    )
    return ""


@corruption(CLUSTER, "brokers.version_agrees")
def one_broker_already_upgraded(capture: Capture) -> str:
    capture.lines("brokers", broker=capture.broker())[0]["version"] = "4.2.4"
    return ""


@corruption(CLUSTER, "settings.topic_assignment")
def topics_assigned_by_a_class_of_ones_own(capture: Capture) -> str:
    for line in capture.lines("settings", origin="runtime"):
        line["values"]["topicBundleAssignmentStrategy"] = "com.example.OurAssigner"
    return ""


@corruption(CLUSTER, "problems.optional_surfaces")
def failure_domains_not_readable(capture: Capture) -> str:
    del capture.raw.lines["failure_domains"]
    capture.raw.head["missing"].append(
        {"surface": "failure_domains", "broker": None, "namespace": None, "reason": "401 from the admin API"}
    )
    return ""


@corruption(CLUSTER, "capture.required_surfaces")
def ownership_never_read(capture: Capture) -> str:
    del capture.raw.lines["owned_bundles"]
    return ""


@corruption(CLUSTER, "problems.required_surfaces")
def namespaces_not_readable(capture: Capture) -> str:
    capture.raw.head["missing"].append(
        {"surface": "namespaces", "broker": None, "namespace": None, "reason": "401 from the admin API"}
    )
    return ""


@corruption(CLUSTER, "namespaces.brokers_have_domains")
def groups_spread_over_domains_that_no_broker_is_in(capture: Capture) -> str:
    capture.lines("settings", origin="dynamic")[0]["values"]["failureDomainsEnabled"] = "true"
    namespace = capture.namespace()
    _join_group(capture, namespace, "payment-lines")
    return namespace


@corruption(CLUSTER, "problems.bundle_names")
def bundle_name_that_is_no_range(capture: Capture) -> str:
    report = capture.report(capture.broker())
    report["lastStats"]["shop/orders/0x0000_0x1"] = dict(next(iter(report["lastStats"].values())))
    return ""


@corruption(CLUSTER, "capture.duration")
def clock_set_back_while_reading(capture: Capture) -> str:
    capture.raw.head["finished_at_ms"] = capture.raw.head["started_at_ms"] - 1
    return ""


@corruption(CLUSTER, "policies.namespaces", "policies.primaries")
def isolation_policy_that_matches_nothing(capture: Capture) -> str:
    capture.raw.lines["isolation_policies"].append(_policy("idle", "shop", "broker-1"))
    return "idle"


@corruption(NOTHING, "brokers.some", "bundles.some", "settings.some")
def every_answer_empty(capture: Capture) -> str:
    for lines in capture.raw.lines.values():
        lines.clear()
    return ""


# Tables that were damaged after they were made ----------------------------------------------------------------------


def _table_damage(name: str, table: str, check: str, damage: Callable[[Path], None]) -> None:
    def apply(capture: Capture) -> str:
        capture.table_damages.append((table, damage))
        return ""

    apply.__name__ = name
    CORRUPTIONS.append(Corruption(TABLES, (check,), apply))


def _written_twice(folder: Path) -> None:
    """What a task that was retried, and whose first file stayed, leaves behind."""
    for file in list(folder.glob("*.parquet")):
        file.with_name(f"again-{file.name}").write_bytes(file.read_bytes())


for _table in ("brokers", "bundles", "namespaces", "policies", "settings", "topics"):
    _table_damage(f"rows_of_{_table}_written_twice", _table, f"{_table}.unique", _written_twice)


def _sizes_as_text(folder: Path) -> None:
    for file in folder.glob("*.parquet"):
        rows = pq.read_table(file).replace_schema_metadata(None)  # Spark would believe the types it noted there
        at = rows.schema.get_field_index("bytes")
        pq.write_table(rows.set_column(at, "bytes", rows["bytes"].cast(pa.string())), file)
        file.with_name(f".{file.name}.crc").unlink()  # Hadoop's own checksum would keep it from being read at all


_table_damage("column_of_another_type", "documents", "capture.columns", _sizes_as_text)


def _join_group(capture: Capture, namespace: str, group: str) -> None:
    capture.lines("namespaces", namespace=namespace)[0]["antiAffinityGroup"] = group


def _policy(name: str, namespaces: str, primary: str) -> dict[str, Any]:
    return {
        "name": name,
        "document": {
            "namespaces": [namespaces],
            "primary": [primary],
            "secondary": [],
            "auto_failover_policy": {
                "policy_type": "min_available",
                "parameters": {"min_limit": "1", "usage_threshold": "80"},
            },
        },
    }
