"""Corruptions of captures, each in a place of its own, with the checks that must name it.

    @corruption(RECORDED, "bundles.owners_agree")
    def owner_swapped_in_zookeeper(capture: Capture) -> str:
        ...                                   # change the raw lines; return what the check must name

Corruptions of one round are made together in one capture: a victim is handed out once, or chosen by hand, so that each
finding has one cause. A corruption that returns "" is one of a table as a whole: its checks must fail and name nothing.
"""

from __future__ import annotations

import copy
import itertools
import json
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import setitem
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
import zstandard

from corruptions.one_value import ABSENT, set_value
from pulsar_advisor.model.cluster.bundle_range import topic_hash
from snapshots import RATES, RawSnapshot, isolation_policy, skewed_modular_cluster

RECORDED: Final = "recorded"
"""A capture of three real brokers, 4.0.8."""
FROZEN: Final = "recorded, an hour later"
"""The same capture once more under a later time, after the real one."""
SYNTHETIC: Final = "synthetic"
"""150 brokers, two thousand bundles and twenty thousand topics, made up."""
CLUSTER: Final = "synthetic, the cluster as a whole"
NOTHING: Final = "synthetic, with nothing in it"
IDLE: Final = "synthetic, without traffic"
SILENT: Final = "synthetic, without any report"
TABLES: Final = "synthetic, its tables damaged after they were made"
STARTED: Final = "recorded, one broker just started"
SIMPLE: Final = "recorded from Simple brokers"
EXTENSIBLE: Final = "recorded from Extensible brokers"
TOPICLESS: Final = "recorded from Extensible brokers, one without topics"
UNSEEN: Final = "recorded from Extensible brokers, what no check sees"
"""Blind spots: its corruptions are caught by nothing, as `docs/blind-spots.md` says."""
ROUNDS: Final = (
    *(RECORDED, FROZEN, STARTED, SYNTHETIC, CLUSTER, NOTHING, IDLE, SILENT, TABLES, SIMPLE),
    *(EXTENSIBLE, TOPICLESS, UNSEEN),
)

_LOAD_MANAGERS: Final = {
    RECORDED: "modular",
    FROZEN: "modular",
    STARTED: "modular",
    SIMPLE: "simple",
    EXTENSIBLE: "extensible",
    TOPICLESS: "extensible",
    UNSEEN: "extensible",
}
"""Whose recording, of three real brokers 4.0.8, the corruptions of a round are made in."""
_RECORDINGS: Final = Path(__file__).parents[1] / "data" / "recorded"
AN_HOUR_MS: Final = 3_600_000
STRANGER: Final = "broker-999.pulsar.test:8080"
RATE_CODES: Final = {
    "msgRateIn": "msg_rate_in",
    "msgRateOut": "msg_rate_out",
    "msgThroughputIn": "msg_throughput_in",
    "msgThroughputOut": "msg_throughput_out",
}
"""Each figure as the checks are called that speak of it."""


@dataclass
class Capture:
    """The lines of one capture, and what the corruptions have already struck."""

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
        """A broker not struck yet; neither it nor its bundles are chosen again."""
        return next(b for b in reversed(self.raw.head["identity"]["broker_ids"]) if self._strike(b))

    def bundle(self) -> str:
        """A busy user bundle of a broker not struck yet."""
        broker = self.broker()
        stats = self.report(broker)["lastStats"]
        owned = {line["bundle"] for line in self.lines("owned_bundles", broker=broker, source="rest")}
        return max(
            (bundle for bundle in stats if bundle in owned and not bundle.startswith("pulsar/")),
            key=lambda bundle: (stats[bundle]["msgRateIn"], bundle),
        )

    def namespace(self) -> str:
        """A namespace without load not struck yet."""
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
        report = self.report(self.owner(bundle))
        stats: dict[str, Any] = report["lastStats" if "lastStats" in report else "bundleStats"][bundle]
        return stats

    def topics(self, bundle: str) -> list[dict[str, Any]]:
        namespace, _, range_ = bundle.rpartition("/")
        return self.lines("topic_stats", namespace=namespace, range=range_)

    def topic(self, topic: str) -> dict[str, Any]:
        """The line of a topic's statistics."""
        return self.lines("topic_stats", topic=topic)[0]

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

    def not_read(self, surface: str, reason: str, broker: str | None = None) -> None:
        self.raw.head["missing"].append({"surface": surface, "broker": broker, "namespace": None, "reason": reason})

    def text(self, name: str) -> bytes:
        """A file's lines as they would be written."""
        return b"".join(json.dumps(line).encode() + b"\n" for line in self.raw.lines[name])


@dataclass(frozen=True)
class Corruption:
    round: str
    name: str
    caught_by: tuple[str, ...]
    apply: Callable[[Capture], str]
    also: tuple[str, ...] = ()
    """Checks that fail with it and name something else."""


CORRUPTIONS: Final[list[Corruption]] = []


def corruption(
    round_: str, *caught_by: str, also: tuple[str, ...] = ()
) -> Callable[[Callable[[Capture], str]], Callable[[Capture], str]]:
    def register(apply: Callable[[Capture], str]) -> Callable[[Capture], str]:
        CORRUPTIONS.append(Corruption(round_, apply.__name__, caught_by, apply, also))
        return apply

    return register


def one_figure(
    victim: Callable[[Capture], str], documents: Callable[[Capture, str], Iterable[dict[str, Any]]]
) -> Callable[..., None]:
    """Returns what registers, a row each, corruptions of one figure in these documents of a victim of this kind.

    _report = one_figure(Capture.broker, lambda capture, broker: [capture.report(broker)])
    _report("cpu_over_its_limit", "cpu.usage", 1500.0, "brokers.cpu_percent")   # or what it was → what it becomes
    """

    def register(name: str, figure: str, becomes: Any, *caught_by: str, also: tuple[str, ...] = ()) -> None:
        def apply(capture: Capture) -> str:
            struck = victim(capture)
            for document in documents(capture, struck):
                set_value(document, figure, becomes)
            return struck

        CORRUPTIONS.append(Corruption(SYNTHETIC, name, caught_by, apply, also))

    return register


def clean_capture(round_: str) -> Capture:
    """The capture that the corruptions of a round are made in."""
    if round_ in _LOAD_MANAGERS:
        return Capture(_recorded(_LOAD_MANAGERS[round_], later_ms=AN_HOUR_MS if round_ == FROZEN else 0))
    if round_ in (NOTHING, IDLE, SILENT, TABLES):
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


def _recorded(load_manager: str, later_ms: int) -> RawSnapshot:
    with tarfile.open(_RECORDINGS / f"{load_manager}-4.0.8.tar") as archive:
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


@corruption(RECORDED, "topics.counts")
def a_topic_of_less_than_no_producers(capture: Capture) -> str:
    line = capture.lines("topic_stats", namespace="retail/payments")[0]
    line["stats"]["producerCount"] = -1
    return str(line["topic"])


@corruption(RECORDED, "topics.segment_in_a_layout")
def a_loaded_segment_that_no_layout_has(capture: Capture) -> str:
    line = capture.lines("topic_stats", namespace="retail/payments")[-1]
    lower, upper = (int(bound, 16) for bound in line["range"].split("_"))
    names = (f"segment://retail/payments/lost/0000-7fff-{number}" for number in itertools.count(1))
    line["topic"] = next(name for name in names if lower <= topic_hash(name) < upper)
    return str(line["topic"])


@corruption(RECORDED, "bundles.topics_add_up", also=("brokers.msg_throughput_in_adds_up",))
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
@corruption(SIMPLE, "bundles.ring_to_above", "bundles.ring_from_below")
@corruption(EXTENSIBLE, "bundles.ring_to_above", "bundles.ring_from_below")
def one_bit_flipped_in_a_boundary(capture: Capture) -> str:
    for boundaries in capture.boundaries("public/default"):
        boundaries[-1] = "0xfffffffe"
        boundaries[0] = "0x00000001"
    return "public/default"


@corruption(RECORDED, "problems.clusters_lines")
def truncated_line_of_the_bundle_averages(capture: Capture) -> str:
    capture.raw.raw_text["bundle_data"] = capture.text("bundle_data")[:-40] + b"\n"
    return "bundle_data"


@corruption(RECORDED, "settings.brokers_agree", "settings.class_is_known")
@corruption(SIMPLE, "settings.brokers_agree", "settings.class_is_known")
@corruption(EXTENSIBLE, "settings.brokers_agree", "settings.class_is_known")
def a_shedder_of_ones_own_at_one_broker(capture: Capture) -> str:
    line = capture.lines("settings", origin="runtime")[0]
    line["values"]["loadBalancerLoadSheddingStrategy"] = "com.example.OurShedder"
    return "loadBalancerLoadSheddingStrategy"


@corruption(RECORDED, "capture.skew")
def read_over_ten_minutes(capture: Capture) -> str:
    capture.raw.head["skew_ms"] = 600_000
    return "600.0"


@corruption(RECORDED, "policies.expressions", "policies.namespaces", "policies.primaries")
@corruption(SIMPLE, "policies.expressions", "policies.namespaces", "policies.primaries")
@corruption(EXTENSIBLE, "policies.expressions", "policies.namespaces", "policies.primaries")
def isolation_policy_that_does_not_compile(capture: Capture) -> str:
    capture.raw.lines["isolation_policies"].append(_policy("broken", "retail/(", "broker-[0-9"))
    return "broken"


@corruption(RECORDED, "brokers.leader")
@corruption(SIMPLE, "brokers.leader")
@corruption(EXTENSIBLE, "brokers.leader")
def leader_missing(capture: Capture) -> str:
    capture.raw.head["leader"] = None
    for line in capture.lines("leader"):
        line["broker"] = None
    return ""


@corruption(FROZEN, "brokers.figures_moved")
def totals_frozen_for_an_hour(capture: Capture) -> str:
    return capture.broker()


@corruption(FROZEN, "bundles.figures_moved")
def figures_frozen_for_an_hour(capture: Capture) -> str:
    return capture.bundle()


@corruption(
    FROZEN,
    "bundles.steady",
    "bundles.topics_add_up",
    also=("bundles.averages_near", *(f"brokers.{code}_adds_up" for code in RATE_CODES.values())),
)
def traffic_a_thousand_times_what_it_was(capture: Capture) -> str:
    bundle = capture.bundle()
    for rate in RATES:
        capture.stats(bundle)[rate] *= 1000
    return bundle


# A capture of real Simple brokers -----------------------------------------------------------------------------------

_SIMPLE_BROKERS: Final = ("127.0.0.1:18125", "127.0.0.2:15380", "127.0.0.3:24995")


def _simple_resource(capture: Capture, broker: str, resource: str, **sides: Any) -> str:
    """Changes usage or limit of a resource in both places where a Simple broker's report has it."""
    report = capture.report(broker)
    for place in (report, report["systemResourceUsage"]):
        place[resource].update(sides)
    return broker


@corruption(SIMPLE, "bundles.owners_agree", "bundles.figures_are_the_owners")
def owner_swapped_in_simples_zookeeper(capture: Capture) -> str:
    bundle = "retail/payments/0x00000000_0x40000000"
    for line in capture.lines("owned_bundles", bundle=bundle, source="zookeeper"):
        line["broker"] = _SIMPLE_BROKERS[0]
    return bundle


@corruption(SIMPLE, "bundles.owners_agree")
def simples_node_without_a_claim(capture: Capture) -> str:
    return _claimed_by_none(capture, "retail/orders/0x80000000_0xc0000000")


@corruption(SIMPLE, "bundles.one_owner")
def claimed_by_two_simple_brokers(capture: Capture) -> str:
    return _claimed_also_by(capture, _SIMPLE_BROKERS[0], "telemetry/alerts/0x00000000_0x80000000")


@corruption(SIMPLE, "bundles.is_active")
def in_the_middle_of_simples_unload(capture: Capture) -> str:
    bundle = "retail/payments/0xc0000000_0xffffffff"
    for line in capture.lines("owned_bundles", bundle=bundle):
        line["isActive"] = False
    return bundle


@corruption(SIMPLE, "bundles.one_report")
def simples_bundle_in_two_reports(capture: Capture) -> str:
    bundle = "telemetry/alerts/0x80000000_0xffffffff"
    capture.report(_SIMPLE_BROKERS[2])["bundleStats"][bundle] = copy.deepcopy(capture.stats(bundle))
    return bundle


@corruption(
    SIMPLE,
    "bundles.loaded_is_reported",
    also=("brokers.msg_rate_in_adds_up", "brokers.msg_rate_out_adds_up", "brokers.counts_add_up"),
)
def loaded_bundle_without_simples_figures(capture: Capture) -> str:
    bundle = "telemetry/devices/0x00000000_0x40000000"
    del capture.report(capture.owner(bundle))["bundleStats"][bundle]
    return bundle


@corruption(SIMPLE, "bundles.topics_add_up")
def simples_throughput_in_kilobytes(capture: Capture) -> str:
    bundle = "retail/payments/0x40000000_0x80000000"
    capture.stats(bundle)["msgThroughputIn"] /= 1000
    return bundle


@corruption(
    SIMPLE,
    "bundles.msg_rate_in",
    "bundles.short_term_msg_rate_in",
    "bundles.long_term_msg_rate_in",
    "bundles.topics_add_up",
)
def simples_rate_negative(capture: Capture) -> str:
    bundle = "retail/orders/0xc0000000_0xffffffff"
    capture.stats(bundle)["msgRateIn"] *= -1
    return bundle


@corruption(SIMPLE, "brokers.msg_rate_out_adds_up")
def simples_total_forgets_half(capture: Capture) -> str:
    capture.report(_SIMPLE_BROKERS[0])["msgRateOut"] /= 2
    return _SIMPLE_BROKERS[0]


@corruption(SIMPLE, "brokers.load_manager_agrees", "settings.load_manager_agrees", "settings.class_is_known")
def a_manager_that_does_not_exist(capture: Capture) -> str:
    # As Pulsar's documentation of 3.1 says it; up to 4.0 the broker runs the Simple manager, and its report repeats it.
    named = {"loadManagerClassName": "org.apache.pulsar.broker.loadbalance.impl.ExtensibleLoadManagerImpl"}
    broker = _SIMPLE_BROKERS[1]
    capture.report(broker).update(named)
    capture.lines("settings", origin="runtime", broker=broker)[0]["values"] |= named
    return broker


@corruption(SIMPLE, "brokers.report_age")
def simples_report_of_an_hour_ago(capture: Capture) -> str:
    report = capture.report(_SIMPLE_BROKERS[2])
    for clock in ("lastUpdate", "timestamp"):
        report[clock] -= AN_HOUR_MS
    return _SIMPLE_BROKERS[2]


@corruption(SIMPLE, "brokers.cpu_usage", "brokers.cpu_percent")
def simples_cpu_is_nan_as_text(capture: Capture) -> str:
    return _simple_resource(capture, _SIMPLE_BROKERS[0], "cpu", usage="NaN")


@corruption(SIMPLE, "brokers.memory_limit", "brokers.memory_limit_is_common")
def simples_heap_without_a_limit(capture: Capture) -> str:
    return _simple_resource(capture, _SIMPLE_BROKERS[1], "memory", limit=-1.0)


@corruption(SIMPLE, "brokers.direct_memory_percent")
def simples_direct_memory_in_bytes(capture: Capture) -> str:
    return _simple_resource(capture, _SIMPLE_BROKERS[2], "directMemory", usage=32.0 * 2**20)


@corruption(SIMPLE, "brokers.carried_out", "brokers.bandwidth_out_limit_is_common")
def simples_network_card_too_slow(capture: Capture) -> str:
    return _simple_resource(capture, _SIMPLE_BROKERS[0], "bandwidthOut", usage=0.0, limit=1_000.0)


@corruption(SIMPLE, "brokers.version_agrees")
def one_simple_broker_already_upgraded(capture: Capture) -> str:
    capture.lines("brokers", broker=_SIMPLE_BROKERS[1])[0]["version"] = "4.2.4"
    return _SIMPLE_BROKERS[1]


@corruption(SIMPLE, "topics.in_reported_range")
def simples_topic_in_a_bundle_its_hash_is_not_in(capture: Capture) -> str:
    return _in_another_range(capture, "persistent://telemetry/devices/__change_events", "0x00000000_0x40000000")


# A capture of real Extensible brokers -------------------------------------------------------------------------------

_EXTENSIBLE_BROKERS: Final = ("127.0.0.1:21670", "127.0.0.2:21103", "127.0.0.3:29416")


def _metrics(capture: Capture, broker: str, **usages: Any) -> str:
    """Changes percentages of a broker's metrics."""
    document = capture.lines("broker_metrics", broker=broker)[0]["document"]
    document.update({f"brk_lb_{resource}_usage": usage for resource, usage in usages.items()})
    return broker


@corruption(EXTENSIBLE, "bundles.figures_are_the_owners")
def claimed_by_another_than_serves_it(capture: Capture) -> str:
    bundle = "telemetry/alerts/0x00000000_0x80000000"
    for claim in capture.lines("owned_bundles", bundle=bundle):
        claim["broker"] = _EXTENSIBLE_BROKERS[0]
    return bundle


@corruption(EXTENSIBLE, "bundles.figures_are_the_owners")
def served_and_claimed_by_none(capture: Capture) -> str:
    return _claimed_by_none(capture, "retail/payments/0x00000000_0x40000000")


@corruption(EXTENSIBLE, "bundles.one_owner")
def claimed_by_two_extensible_brokers(capture: Capture) -> str:
    return _claimed_also_by(capture, _EXTENSIBLE_BROKERS[0], "retail/orders/0x80000000_0xc0000000")


@corruption(EXTENSIBLE, "bundles.in_boundaries")
def claim_of_a_split_bundle(capture: Capture) -> str:
    template = capture.lines("owned_bundles", **{"pass": "end"})[0]
    capture.raw.lines["owned_bundles"].append({**template, "bundle": "telemetry/alerts/0x00000000_0x40000000"})
    return "telemetry/alerts"


@corruption(EXTENSIBLE, "bundles.stayed")
def moved_while_reading_extensible_brokers(capture: Capture) -> str:
    bundle = "retail/orders/0x00000000_0x40000000"
    capture.raw.head["moved_bundles"].append(bundle)
    return bundle


@corruption(
    EXTENSIBLE,
    "topics.msg_rate_in",
    also=("bundles.msg_rate_in", "bundles.short_term_msg_rate_in", "bundles.long_term_msg_rate_in"),
)
def topics_rate_negative(capture: Capture) -> str:
    line = capture.topic("persistent://retail/payments/settlement-503")
    line["stats"]["msgRateIn"] *= -1
    return str(line["topic"])


@corruption(EXTENSIBLE, "topics.msg_throughput_out", also=("bundles.figures_complete", "brokers.figures_complete"))
def topics_throughput_is_nan_as_text(capture: Capture) -> str:
    line = capture.topic("persistent://retail/payments/audit-822")
    line["stats"]["msgThroughputOut"] = "NaN"
    return str(line["topic"])


@corruption(EXTENSIBLE, "bundles.bytes_and_messages")
def topics_lost_their_bytes(capture: Capture) -> str:
    bundle = "telemetry/devices/0x00000000_0x40000000"
    for line in capture.topics(bundle):
        line["stats"]["msgThroughputIn"] = 0.0
    return bundle


@corruption(EXTENSIBLE, "topics.one_report", also=("bundles.one_report",))
def topic_of_two_extensible_brokers(capture: Capture) -> str:
    line = capture.topic("persistent://telemetry/devices/position-121")
    other = _EXTENSIBLE_BROKERS[0]
    capture.raw.lines[capture.topic_file(other)].append({**line, "broker": other})
    return str(line["topic"])


@corruption(EXTENSIBLE, "topics.in_reported_range")
def topic_summed_into_a_bundle_its_hash_is_not_in(capture: Capture) -> str:
    return _in_another_range(capture, "persistent://retail/orders/refund-883", "0x00000000_0x40000000")


@corruption(
    EXTENSIBLE,
    "brokers.reported",
    "brokers.complete",
    "brokers.cpu_known",
    "problems.brokers_documents",
    "bundles.loaded_is_reported",
)
def metrics_not_answered(capture: Capture) -> str:
    broker = _EXTENSIBLE_BROKERS[2]
    capture.raw.lines["broker_metrics"].remove(capture.lines("broker_metrics", broker=broker)[0])
    capture.raw.head["incomplete_brokers"].append(broker)
    capture.not_read("broker_metrics", "503 from the broker", broker)
    return broker


@corruption(EXTENSIBLE, "brokers.cpu_percent")
def cpu_over_100_percent(capture: Capture) -> str:
    return _metrics(capture, _EXTENSIBLE_BROKERS[0], cpu=250.0)


@corruption(EXTENSIBLE, "brokers.direct_memory_usage", "brokers.direct_memory_percent")
def direct_memory_percent_is_nan_as_text(capture: Capture) -> str:
    return _metrics(capture, _EXTENSIBLE_BROKERS[0], directMemory="NaN")


@corruption(EXTENSIBLE, "brokers.memory_usage")
def heap_percent_negative(capture: Capture) -> str:
    return _metrics(capture, _EXTENSIBLE_BROKERS[1], memory=-50.0)


@corruption(EXTENSIBLE, "brokers.bandwidth_in_percent")
def bandwidth_in_over_100_percent(capture: Capture) -> str:
    return _metrics(capture, _EXTENSIBLE_BROKERS[1], bandwidth_in=900.0)


@corruption(EXTENSIBLE, "brokers.load_manager_agrees", "settings.load_manager_agrees")
def one_broker_not_migrated_yet(capture: Capture) -> str:
    record = capture.report(_EXTENSIBLE_BROKERS[0], "zookeeper")
    record["loadManagerClassName"] = "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl"
    return _EXTENSIBLE_BROKERS[0]


@corruption(EXTENSIBLE, "brokers.version_agrees")
def one_extensible_broker_already_upgraded(capture: Capture) -> str:
    capture.lines("brokers", broker=_EXTENSIBLE_BROKERS[0])[0]["version"] = "4.2.4"
    return _EXTENSIBLE_BROKERS[0]


# What no check sees under the Extensible load manager ---------------------------------------------------------------


@corruption(UNSEEN)
def topic_missing_from_the_only_statistics(capture: Capture) -> str:
    topic = "persistent://retail/orders/checkout-242"
    capture.raw.lines[capture.topic_file(_EXTENSIBLE_BROKERS[0])].remove(capture.topic(topic))
    return topic


@corruption(UNSEEN)
def topics_figures_a_thousand_times_too_much(capture: Capture) -> str:
    line = capture.topic("persistent://retail/payments/audit-822")
    line["stats"].update({rate: line["stats"][rate] * 1000 for rate in RATES})
    return str(line["topic"])


@corruption(UNSEEN)
def topics_exchanged_their_figures(capture: Capture) -> str:
    one, other = (capture.topic(f"persistent://retail/payments/ledger-{number}")["stats"] for number in (533, 662))
    for rate in RATES:
        one[rate], other[rate] = other[rate], one[rate]
    return "persistent://retail/payments/ledger-533"


@corruption(STARTED, "brokers.serves_its_bundles")
def report_before_the_first_statistics_pass(capture: Capture) -> str:
    broker = capture.broker()
    nothing = dict.fromkeys((*RATES, "numTopics", "numBundles", "numProducers", "numConsumers"), 0)
    for source in ("rest", "zookeeper"):
        report = capture.report(broker, source)
        report.update(nothing, bundles=[], lastStats={}, startTimestamp=report["lastUpdate"] - 1_000)
    capture.raw.lines[capture.topic_file(broker)].clear()
    return broker


@corruption(STARTED, "brokers.serves_its_bundles")
def report_of_nothing_but_zeros_beside_topics_with_traffic(capture: Capture) -> str:
    broker = capture.broker()
    nothing = dict.fromkeys((*RATES, "numTopics", "numProducers", "numConsumers"), 0)
    for source in ("rest", "zookeeper"):
        report = capture.report(broker, source)
        report.update(nothing, lastStats={name: dict.fromkeys(of, 0) for name, of in report["lastStats"].items()})
        report["cpu"]["usage"] = 0.0
    return broker


@corruption(TOPICLESS, "brokers.serves_its_bundles")
def statistics_empty_before_their_first_pass(capture: Capture) -> str:
    capture.raw.lines[capture.topic_file(_EXTENSIBLE_BROKERS[2])].clear()
    return _EXTENSIBLE_BROKERS[2]


@corruption(UNSEEN)
def idle_bundle_claimed_by_a_broker_that_does_not_own_it(capture: Capture) -> str:
    claim = capture.lines("owned_bundles", broker=_EXTENSIBLE_BROKERS[0], **{"pass": "end"})[0]
    bundle = "public/default/0x00000000_0x10000000"
    capture.raw.lines["owned_bundles"].append({**claim, "bundle": bundle})
    return bundle


@corruption(UNSEEN)
def metrics_of_another_time(capture: Capture) -> str:
    return _metrics(capture, _EXTENSIBLE_BROKERS[0], cpu=12.0, memory=34.0)


@corruption(UNSEEN)
def percentages_as_fractions(capture: Capture) -> str:
    return _metrics(capture, _EXTENSIBLE_BROKERS[1], cpu=0.3446479, memory=0.3043049, directMemory=0.125)


# 150 brokers: figures of bundles ----------------------------------------------------------------------------------


_bundle = one_figure(Capture.bundle, lambda capture, bundle: [capture.stats(bundle)])

for _rate, _code in RATE_CODES.items():
    _bundle(f"{_rate}_is_nan_as_text", _rate, "NaN", f"bundles.{_code}")
    _bundle(f"{_rate}_is_negative", _rate, lambda rate: -rate, f"bundles.{_code}")
    _bundle(f"{_rate}_is_a_thousand_times_too_much", _rate, lambda rate: rate * 1000, "bundles.topics_add_up")
_bundle("msgRateIn_is_infinite", "msgRateIn", "Infinity", "bundles.msg_rate_in")
_bundle("msgThroughputOut_is_absent", "msgThroughputOut", None, "bundles.figures_complete")
_bundle("msgRateOut_is_lost", "msgRateOut", 0.0, "bundles.bytes_and_messages")
_bundle("msgThroughputIn_is_lost", "msgThroughputIn", 0.0, "bundles.bytes_and_messages")
_bundle("msgRateIn_is_denormal", "msgRateIn", 5e-324, "bundles.not_denormal")
_bundle("fewer_than_no_consumers", "consumerCount", -5, "bundles.counts", also=("brokers.counts_add_up",))


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


@corruption(SYNTHETIC, "bundles.reported_is_loaded", "bundles.topics_add_up")
def no_topic_of_a_busy_bundle_in_the_statistics(capture: Capture) -> str:
    bundle = capture.bundle()
    lines = capture.raw.lines[capture.topic_file(capture.owner(bundle))]
    for line in capture.topics(bundle):
        lines.remove(line)
    return bundle


@corruption(SYNTHETIC, "bundles.averages_complete")
def an_average_without_its_figures(capture: Capture) -> str:
    bundle = capture.bundle()
    (node,) = capture.lines("bundle_data", bundle=bundle)
    node["document"]["shortTermData"] = {"maxSamples": 10, "numSamples": 10}
    return bundle


@corruption(SYNTHETIC, "bundles.loaded_is_reported")
def loaded_bundle_without_figures(capture: Capture) -> str:
    bundle = capture.bundle()
    del capture.report(capture.owner(bundle))["lastStats"][bundle]
    return bundle


def _averages_written_last(capture: Capture, bundle: str) -> list[dict[str, Any]]:
    """A bundle's averages, dated so that no samples of reports since outweigh them."""
    (node,) = capture.lines("bundle_data", bundle=bundle)
    node["modifiedAt"] = capture.raw.head["started_at_ms"]
    return [node["document"]]


_average = one_figure(Capture.bundle, _averages_written_last)

for _rate, _code in RATE_CODES.items():
    _average(f"negative_short_average_of_{_rate}", f"shortTermData.{_rate}", -1.0, f"bundles.short_term_{_code}")
    _average(f"nan_in_the_long_average_of_{_rate}", f"longTermData.{_rate}", "NaN", f"bundles.long_term_{_code}")


@corruption(SYNTHETIC, "bundles.averages_are_stored")
def averages_cut_to_the_busiest(capture: Capture) -> str:
    bundle = capture.bundle()
    capture.raw.lines["bundle_data"].remove(capture.lines("bundle_data", bundle=bundle)[0])
    return bundle


@corruption(SYNTHETIC, "bundles.averages_near")
def averages_of_another_load(capture: Capture) -> str:
    bundle = capture.bundle()
    (node,) = capture.lines("bundle_data", bundle=bundle)
    for rate in ("msgRateIn", "msgRateOut"):
        node["document"]["longTermData"][rate] *= 1000
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


_claims = one_figure(Capture.bundle, lambda capture, bundle: capture.lines("owned_bundles", bundle=bundle))

_claims(
    "owned_by_a_broker_that_is_gone", "broker", STRANGER, "bundles.owner_is_active", "bundles.figures_are_the_owners"
)
_claims("caught_in_the_middle_of_an_unload", "isActive", False, "bundles.is_active")


@corruption(SYNTHETIC, "bundles.one_owner")
def claimed_by_two_brokers(capture: Capture) -> str:
    bundle = capture.bundle()
    return _claimed_also_by(capture, capture.broker(), bundle)


@corruption(SYNTHETIC, "bundles.owners_agree")
def node_of_a_bundle_that_its_owner_does_not_list(capture: Capture) -> str:
    return _claimed_by_none(capture, capture.bundle())


@corruption(SYNTHETIC, "bundles.owners_agree")
def owned_without_a_node(capture: Capture) -> str:
    bundle = capture.bundle()
    for line in capture.lines("owned_bundles", bundle=bundle, source="zookeeper"):
        capture.raw.lines["owned_bundles"].remove(line)
    return bundle


# 150 brokers: their reports ---------------------------------------------------------------------------------------


@corruption(SYNTHETIC, "namespaces.not_migrated")
def namespace_migrated_to_another_cluster(capture: Capture) -> str:
    namespace = capture.namespace()
    capture.lines("namespaces", namespace=namespace)[0]["document"]["migrated"] = True
    return namespace


@corruption(SYNTHETIC, "topics.hash_can_be_found")
def topic_whose_hash_is_the_last_one(capture: Capture) -> str:
    namespace = "shop/orders"
    topic = "persistent://shop/orders/aabaaaababaabbaaaaaaaaabbbaabaabaa"
    assert topic_hash(topic) == 0xFFFFFFFF
    for source in ("rest", "zookeeper"):
        capture.raw.lines["topic_names"].append(
            {"source": source, "namespace": namespace, "domain": "persistent", "topic": topic}
        )
    return namespace


@corruption(CLUSTER, "brokers.our_clock")
def clock_of_our_machine_an_hour_behind(capture: Capture) -> str:
    for line in capture.raw.lines["brokers"]:
        line["clockAheadMs"] = AN_HOUR_MS
        capture.report(line["broker"])["lastUpdate"] += AN_HOUR_MS
    return "3600.0"


@corruption(SYNTHETIC, "brokers.reported", "brokers.complete")
def report_missing(capture: Capture) -> str:
    broker = capture.broker()
    capture.raw.lines["load_reports"].remove(capture.lines("load_reports", broker=broker, source="rest")[0])
    return broker


_broker = one_figure(Capture.broker, lambda capture, broker: capture.lines("brokers", broker=broker))

_broker("broker_going_down", "available", False, "brokers.available")


@corruption(SYNTHETIC, "policies.primaries", also=("brokers.available", "bundles.owner_is_active"))
def the_only_primary_goes_down(capture: Capture) -> str:
    broker = capture.broker()
    capture.lines("brokers", broker=broker)[0]["available"] = False
    capture.raw.lines["isolation_policies"].append(_policy("goes-down", "shop/.*", broker.partition(":")[0]))
    return "goes-down"


@corruption(SYNTHETIC, "policies.namespaces")
def the_only_namespace_of_a_policy_is_being_deleted(capture: Capture) -> str:
    namespace = capture.namespace()
    capture.lines("namespaces", namespace=namespace)[0]["document"]["deleted"] = True
    capture.raw.lines["isolation_policies"].append(_policy("deleted", namespace, ".*"))
    return "deleted"


_broker("clock_of_a_broker_behind_all_others", "clockAheadMs", -90_000, "brokers.clock_agrees")

_report = one_figure(Capture.broker, lambda capture, broker: [capture.report(broker)])

_report("a_report_without_its_time", "lastUpdate", ABSENT, "brokers.report_dated")
_report("report_of_an_hour_ago", "lastUpdate", lambda ms: ms - AN_HOUR_MS, "brokers.report_age")
_report("clock_five_minutes_ahead", "lastUpdate", lambda ms: ms + 360_000, "brokers.clock")
_report("loaded_but_serves_no_persistent_topics", "persistentTopicsEnabled", False, "brokers.serves_what_is_loaded")

_report("fewer_than_no_producers", "numProducers", -1, "brokers.counts", "brokers.counts_add_up")
_report("a_rate_left_out", "msgRateIn", ABSENT, "brokers.figures_complete")
_report("total_rate_in_is_nan_as_text", "msgRateIn", "NaN", "brokers.msg_rate_in")
_report("total_rate_out_is_negative", "msgRateOut", lambda rate: -rate, "brokers.msg_rate_out")
_report("total_throughput_in_is_negative", "msgThroughputIn", lambda rate: -rate, "brokers.msg_throughput_in")
_report("total_throughput_out_beyond_any_machine", "msgThroughputOut", 1e18, "brokers.msg_throughput_out")
_report("total_rate_a_thousand_times_too_much", "msgRateIn", lambda rate: rate * 1000, "brokers.msg_rate_in_adds_up")
_report("total_rate_out_forgets_half", "msgRateOut", lambda rate: rate / 2, "brokers.msg_rate_out_adds_up")
_report("total_throughput_in_twice", "msgThroughputIn", lambda rate: rate * 2, "brokers.msg_throughput_in_adds_up")
_report("total_in_kilobytes", "msgThroughputOut", lambda rate: rate / 1000, "brokers.msg_throughput_out_adds_up")

_report("cpu_is_nan_as_text", "cpu.usage", "NaN", "brokers.cpu_usage")
_report("cpu_far_below_zero", "cpu.usage", -50.0, "brokers.cpu_usage")
_report("cpu_not_measured", "cpu.usage", 0.0, "brokers.cpu_is_measured")
_report("cpu_sampled_once_since_the_start", "cpu.usage", 6e-7, "brokers.cpu_is_measured")
_report("cpu_usage_is_absent", "cpu.usage", None, "brokers.cpu_known")
_report("cpu_of_the_host_against_the_containers_limit", "cpu.usage", 1500.0, "brokers.cpu_percent")
_report("cpu_limit_of_zero", "cpu.limit", 0.0, "brokers.cpu_limit", "brokers.cpu_limit_is_common")
_report("cpu_limit_left_out", "cpu.limit", ABSENT, "brokers.cpu_limit")

_report("heap_usage_far_below_zero", "memory.usage", -50.0, "brokers.memory_usage")
_report("heap_over_its_limit", "memory.usage", 9_000.0, "brokers.memory_percent")
_report("heap_limit_of_minus_one", "memory.limit", -1.0, "brokers.memory_limit", "brokers.memory_limit_is_common")

_report("direct_memory_usage_is_nan_as_text", "directMemory.usage", "NaN", "brokers.direct_memory_usage")
_report("usage_of_direct_memory_left_out", "directMemory.usage", ABSENT, "brokers.figures_complete")
_report("direct_memory_in_bytes", "directMemory.usage", lambda mib: mib * 2**20, "brokers.direct_memory_percent")
_report("direct_memory_limit_of_zero", "directMemory.limit", 0.0, "brokers.direct_memory_limit")
_report("direct_memory_unlike_the_others", "directMemory.limit", 4_096.0, "brokers.direct_memory_limit_is_common")

_report("bandwidth_in_is_negative", "bandwidthIn.usage", -7.0, "brokers.bandwidth_in_not_negative")
_report("bandwidth_out_is_negative", "bandwidthOut.usage", -241_125.7, "brokers.bandwidth_out_not_negative")
_report("bandwidth_in_is_infinite", "bandwidthIn.usage", "Infinity", "brokers.bandwidth_in_usage")
_report("bandwidth_out_is_infinite", "bandwidthOut.usage", "Infinity", "brokers.bandwidth_out_usage")
_report("bandwidth_in_over_its_limit", "bandwidthIn.usage", 2e10, "brokers.bandwidth_in_percent")
_report("bandwidth_out_in_bits_instead_of_kilobits", "bandwidthOut.usage", 2e10, "brokers.bandwidth_out_percent")
_report("network_card_of_unknown_speed_in", "bandwidthIn.limit", -1.0, "brokers.bandwidth_in_limit")
_report(
    *("network_card_with_no_speed_out", "bandwidthOut.limit", 0.0),
    *("brokers.bandwidth_out_limit", "brokers.bandwidth_out_limit_is_common"),
)

_both_reports = one_figure(
    Capture.broker,
    lambda capture, broker: [line["document"] for line in capture.lines("load_reports", broker=broker)],
)
_both_reports("web_address_of_another_host", "webServiceUrl", f"http://{STRANGER}", "brokers.web_address")


@corruption(SYNTHETIC, "brokers.carried_out")
def network_card_out_a_thousand_times_too_slow(capture: Capture) -> str:
    broker = capture.broker()
    report = capture.report(broker)
    report["bandwidthOut"] = {"usage": 1.0, "limit": report["msgThroughputOut"] / 1_000_000}
    return broker


@corruption(SYNTHETIC, "brokers.carried_in", "brokers.bandwidth_in_limit_is_common")
def network_card_a_thousand_times_too_slow(capture: Capture) -> str:
    broker = capture.broker()
    report = capture.report(broker)
    report["bandwidthIn"] = {"usage": 1.0, "limit": report["msgThroughputIn"] / 1_000_000}
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
    capture.not_read("topic_stats", "503 from the broker", broker)
    return broker


# 150 brokers: boundaries ------------------------------------------------------------------------------------------


def _boundaries(name: str, change: Callable[[list[str]], object], check: str) -> None:
    """Registers one corruption of a namespace's boundaries, as both sources have them."""

    def apply(capture: Capture) -> str:
        namespace = capture.namespace()
        for boundaries in capture.boundaries(namespace):
            change(boundaries)
        return namespace

    CORRUPTIONS.append(Corruption(SYNTHETIC, name, (check,), apply))


_boundaries("last_boundary_missing", lambda edges: edges.pop(), "bundles.ring_to_above")
_boundaries("first_boundary_missing", lambda edges: edges.pop(0), "bundles.ring_from_below")
_boundaries("boundaries_out_of_order", lambda edges: edges.insert(1, edges.pop(2)), "namespaces.boundaries_ascend")
_boundaries("boundary_twice", lambda edges: setitem(edges, 1, edges[2]), "namespaces.boundaries_ascend")
_boundaries("boundary_that_is_no_number", lambda edges: setitem(edges, 2, "0xzz"), "namespaces.boundaries_readable")
_boundaries("fewer_boundaries_than_declared", lambda edges: edges.pop(1), "namespaces.boundaries_counted")


@corruption(SYNTHETIC, "namespaces.boundaries_ascend")
def one_boundary_and_no_range(capture: Capture) -> str:
    namespace = capture.namespace()
    for boundaries in capture.boundaries(namespace):
        del boundaries[1:]
    for line in (*capture.lines("namespaces"), *capture.lines("local_policies")):
        if line["namespace"] == namespace:
            line["document"]["bundles"]["numBundles"] = 0
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


_topic = one_figure(
    lambda capture: str(capture.topics(capture.bundle())[0]["topic"]),
    lambda capture, topic: [capture.topic(topic)["stats"]],
)
_topic("topics_rate_in_is_nan_as_text", "msgRateIn", "NaN", "topics.msg_rate_in")
_topic("topics_rate_out_is_negative", "msgRateOut", lambda rate: -rate, "topics.msg_rate_out")
_topic("topics_throughput_in_is_infinite", "msgThroughputIn", "Infinity", "topics.msg_throughput_in")
_topic("topics_throughput_out_beyond_any_machine", "msgThroughputOut", 1e18, "topics.msg_throughput_out")


# The cluster as a whole ---------------------------------------------------------------------------------------------


@corruption(CLUSTER, "brokers.load_manager_agrees", "settings.load_manager_agrees")
def one_broker_already_migrated(capture: Capture) -> str:
    broker = capture.broker()
    capture.report(broker)["loadManagerClassName"] = (
        "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl"
    )
    return broker


@corruption(CLUSTER, "brokers.version_agrees")
def one_broker_already_upgraded(capture: Capture) -> str:
    broker = capture.broker()
    capture.lines("brokers", broker=broker)[0]["version"] = "4.2.4"
    return broker


@corruption(CLUSTER, "settings.some")
def configuration_of_the_leader_not_read(capture: Capture) -> str:
    capture.raw.lines["settings"].remove(capture.lines("settings", broker=capture.raw.head["leader"])[0])
    return ""


@corruption(CLUSTER, "settings.topic_assignment")
def topics_assigned_by_a_class_of_ones_own(capture: Capture) -> str:
    for line in capture.lines("settings", origin="runtime"):
        line["values"]["topicBundleAssignmentStrategy"] = "com.example.OurAssigner"
    return "com.example.OurAssigner"


@corruption(CLUSTER, "problems.optional_surfaces")
def failure_domains_not_readable(capture: Capture) -> str:
    del capture.raw.lines["failure_domains"]
    capture.not_read("failure_domains", "401 from the admin API")
    return "failure_domains"


@corruption(CLUSTER, "capture.required_surfaces", also=("bundles.figures_are_the_owners",))
def ownership_never_read(capture: Capture) -> str:
    del capture.raw.lines["owned_bundles"]
    return "owned_bundles"


@corruption(CLUSTER, "problems.required_surfaces")
def namespaces_not_readable(capture: Capture) -> str:
    capture.not_read("namespaces", "401 from the admin API")
    return "namespaces"


@corruption(CLUSTER, "namespaces.brokers_have_domains", "namespaces.group_has_others")
def groups_spread_over_domains_that_no_broker_is_in(capture: Capture) -> str:
    capture.lines("settings", origin="dynamic")[0]["values"]["failureDomainsEnabled"] = "true"
    namespace = capture.namespace()
    _join_group(capture, namespace, "payment-lines")
    return namespace


@corruption(CLUSTER, "problems.bundle_names")
def bundle_name_that_is_no_range(capture: Capture) -> str:
    report = capture.report(capture.broker())
    report["lastStats"]["shop/orders/0x0000_0x1"] = dict(next(iter(report["lastStats"].values())))
    return "shop/orders/0x0000_0x1"


@corruption(CLUSTER, "capture.duration")
def clock_set_back_while_reading(capture: Capture) -> str:
    capture.raw.head["finished_at_ms"] = capture.raw.head["started_at_ms"] - 1
    return "-0.001"


@corruption(CLUSTER, "policies.limits")
def isolation_policy_with_a_limit_below_zero(capture: Capture) -> str:
    policy = _policy("below", "shop/.*", "broker-1.*")
    policy["document"]["auto_failover_policy"]["parameters"]["min_limit"] = "-1"
    capture.raw.lines["isolation_policies"].append(policy)
    return "below"


@corruption(CLUSTER, "policies.namespaces", "policies.primaries")
def isolation_policy_that_matches_nothing(capture: Capture) -> str:
    capture.raw.lines["isolation_policies"].append(_policy("idle", "shop", "broker-1"))
    return "idle"


@corruption(NOTHING, "brokers.some", "brokers.leader", "bundles.some", "settings.some")
def every_answer_empty(capture: Capture) -> str:
    for lines in capture.raw.lines.values():
        lines.clear()
    return ""


@corruption(IDLE, "brokers.some_traffic")
def nobody_sends(capture: Capture) -> str:
    for line in capture.lines("load_reports"):
        for figures in (line["document"], *line["document"]["lastStats"].values()):
            figures.update(dict.fromkeys(RATES, 0.0))
    for line in capture.lines("topic_stats"):
        line["stats"].update(dict.fromkeys(RATES, 0.0))
    for line in capture.lines("bundle_data"):
        for term in ("shortTermData", "longTermData"):
            line["document"][term].update(dict.fromkeys(RATES, 0.0))
    return "broker-1.pulsar.test:8080"


@corruption(
    SILENT,
    "brokers.some_load",
    also=("brokers.reported", "brokers.complete", "brokers.cpu_known", "bundles.loaded_is_reported"),
)
def every_report_refused(capture: Capture) -> str:
    lines = capture.raw.lines["load_reports"]
    lines[:] = [line for line in lines if line["source"] != "rest"]
    return "broker-1.pulsar.test:8080"


# Tables that were damaged after they were made ----------------------------------------------------------------------


def _table_damage(
    name: str, table: str, victim: str, damage: Callable[[Path], None], *caught_by: str, also: tuple[str, ...] = ()
) -> None:
    def apply(capture: Capture) -> str:
        capture.table_damages.append((table, damage))
        return victim

    CORRUPTIONS.append(Corruption(TABLES, name, caught_by, apply, also))


def _written_twice(folder: Path) -> None:
    """What a task that was retried, and whose first file stayed, leaves behind."""
    for file in list(folder.glob("*.parquet")):
        file.with_name(f"again-{file.name}").write_bytes(file.read_bytes())


_RINGS = ("bundles.ring_from_below", "bundles.ring_to_above")
for _table, _row, _caught_by, _also in (
    ("brokers", "broker-1.pulsar.test:8080", (), ("brokers.leader",)),
    ("bundles", "public/default/0x00000000_0x10000000", _RINGS, ()),
    ("namespaces", "public/default", (), ()),
    ("policies", "shop", (), ()),
    ("settings", "clusterName", (), ()),
    ("topics", "persistent://shop/orders/__change_events", (), ()),
):
    _table_damage(
        f"rows_of_{_table}_written_twice", _table, _row, _written_twice, f"{_table}.unique", *_caught_by, also=_also
    )


def _without_sizes(folder: Path) -> None:
    for file in folder.glob("*.parquet"):
        rows = pq.read_table(file).replace_schema_metadata(None)  # Spark would believe the columns it noted there
        pq.write_table(rows.drop_columns("bytes"), file)


_table_damage("column_that_is_absent", "documents", "documents.bytes: absent", _without_sizes, "capture.columns")


def _claimed_by_none(capture: Capture, bundle: str) -> str:
    for claim in capture.lines("owned_bundles", bundle=bundle, source="rest"):
        capture.raw.lines["owned_bundles"].remove(claim)
    return bundle


def _claimed_also_by(capture: Capture, broker: str, bundle: str) -> str:
    claim = capture.lines("owned_bundles", bundle=bundle, source="rest", **{"pass": "end"})[0]
    capture.raw.lines["owned_bundles"].append({**claim, "broker": broker})
    return bundle


def _in_another_range(capture: Capture, topic: str, range_: str) -> str:
    capture.topic(topic)["range"] = range_
    return topic


def _join_group(capture: Capture, namespace: str, group: str) -> None:
    capture.lines("namespaces", namespace=namespace)[0]["antiAffinityGroup"] = group


def _policy(name: str, namespaces: str, primary: str) -> dict[str, Any]:
    return {"name": name, "document": isolation_policy(namespaces, primary)}
