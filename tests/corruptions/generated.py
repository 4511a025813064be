"""Every corruption, generated from the types that decode what is read: each field absent, null, of another type,
negative, huge, not a number, empty, repeated; then whole documents; then what contradicts its neighbour.

Victims are the busiest broker and its busiest bundle: what happens to them decides the advice.
"""

from __future__ import annotations

import json
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import msgspec

from corruptions.contradictions import CONTRADICTIONS
from corruptions.documents import ADMIN, CLUSTER, Documents, Text, recorded
from corruptions.one_value import ABSENT
from corruptions.victims import Victims
from pulsar_advisor.admin.read_client import Leader
from pulsar_advisor.capture import documents as read
from pulsar_advisor.model.configuration.settings import FIELD_OF_KEY, LoadBalancerSettings

Change = Callable[[Any], Any]


@dataclass(frozen=True)
class Corruption:
    """One thing that can't be, in the documents of one recorded cluster."""

    load_manager: str
    surface: str
    field: str
    kind: str
    apply: Callable[[Documents], None]

    @property
    def name(self) -> str:
        return f"{self.load_manager}: {self.surface}, {self.field or 'the whole'}: {self.kind}"


NUMBERS: Final[Mapping[str, Change]] = {
    "absent": lambda _: ABSENT,
    "null": lambda _: None,
    "text": lambda _: "many",
    "NaN": lambda _: "NaN",
    "Infinity": lambda _: "Infinity",
    "negative": lambda value: -abs(value) or -1.0,
    "huge": lambda _: 1e300,
    "an object": lambda _: {},
}
COUNTS: Final[Mapping[str, Change]] = {
    "absent": lambda _: ABSENT,
    "null": lambda _: None,
    "text": lambda _: "many",
    "NaN": lambda _: "NaN",
    "negative": lambda value: -abs(value) or -1,
    "huge": lambda _: 2**62,
    "over 64 bits": lambda _: 10**30,
    "a fraction": lambda value: value + 0.5,
}
TEXTS: Final[Mapping[str, Change]] = {
    "absent": lambda _: ABSENT,
    "null": lambda _: None,
    "a number": lambda _: 7,
    "empty": lambda _: "",
    "another": lambda _: "somebody-else",
}
FLAGS: Final[Mapping[str, Change]] = {
    "absent": lambda _: ABSENT,
    "null": lambda _: None,
    "text": lambda _: "perhaps",
    "inverted": lambda value: not value,
}
NAMES: Final[Mapping[str, Change]] = {
    "absent": lambda _: ABSENT,
    "null": lambda _: None,
    "text": lambda _: "all of them",
    "empty": lambda _: [],
    "repeated": lambda value: [*value, *value],
    "with a null": lambda value: [*value, None],
    "with a stranger": lambda value: [*value, "somebody-else"],
}
PARTS: Final[Mapping[str, Change]] = {
    "absent": lambda _: ABSENT,
    "null": lambda _: None,
    "empty": lambda _: {},
    "a list": lambda _: [],
}
_LIKE_ANOTHER: Final = re.compile(
    r"(^|\.)(memory|directMemory|bandwidthIn|bandwidthOut|longTerm\w+|\w+Out|\w+ThroughputIn|numConsumers|numBundles)(\.|$)"
)
_OF_THE_FIRST: Final = ("absent", "null", "NaN", "Infinity", "huge")
"""Kinds not tried again on a field that is decoded, stored and checked together with one that gets them."""

DOCUMENTS: Final[Mapping[str, Change]] = {
    "not JSON": lambda _: Text("<html>busy</html>"),
    "empty": lambda _: Text(""),
    "cut": lambda value: Text(json.dumps(value)[:-7]),
    "null": lambda _: None,
    "an empty object": lambda _: {},
    "an empty list": lambda _: [],
}

_OF_TYPE: Final[Sequence[tuple[Any, Mapping[str, Change]]]] = (
    (read.Number, NUMBERS),
    (read.Count, COUNTS),
    (read.Text, TEXTS),
    (str | None, TEXTS),
    (read.Flag, FLAGS),
    (read.Names, NAMES),
    (list[str] | msgspec.UnsetType, NAMES),
)

Path = tuple[Any, ...]
"""Keys from an attribute of `Documents` down to a value."""


@cache
def corruptions() -> tuple[Corruption, ...]:
    """All of them: every kind in the Modular cluster, what differs in the others' documents in theirs."""
    found = [*_modular(), *_simple(), *_extensible()]
    names = [one.name for one in found]
    assert len(set(names)) == len(names), {name for name in names if names.count(name) > 1}
    return tuple(found)


def _modular() -> Iterator[Corruption]:
    victims = Victims(recorded("modular"))
    structs: tuple[tuple[str, Path, Any], ...] = (
        ("load report", victims.report, read.LoadReport),
        ("topic statistics", victims.topic, read.TopicStats),
        ("policies", victims.policies, read.Policies),
        ("local policies", victims.local_policies, read.LocalPolicies),
        ("isolation policy", victims.isolation_policy, read.IsolationPolicy),
        ("averages of a bundle", victims.bundle_data, read.BundleData),
        ("averages of a broker", victims.broker_time_average, read.BrokerTimeAverage),
        ("resource quota", victims.quota, read.ResourceQuota),
        ("owner in ZooKeeper", victims.ownership, read.OwnershipNode),
        ("leader in ZooKeeper", victims.leader_node, Leader),
        ("leader", victims.leader, Leader),
    )
    for surface, path, struct in structs:
        yield from _of_struct("modular", surface, path, struct)
    yield from _of_struct("modular", "published load report", victims.published_report, read.LoadReport, ("a list",))
    yield from _of_lists(victims)
    yield from _of_settings(victims)
    yield from _of_documents("modular", victims)
    for surface, kind, apply in CONTRADICTIONS["modular"]:
        yield Corruption("modular", surface, "", kind, apply)


def _simple() -> Iterator[Corruption]:
    victims = Victims(recorded("simple"))
    for one in _of_struct("simple", "load report", victims.report, read.LoadReport, ("text", "negative")):
        if one.field.startswith(("systemResourceUsage", "bundleStats", "timestamp")):
            yield one
    for surface, kind, apply in CONTRADICTIONS["simple"]:
        yield Corruption("simple", surface, "", kind, apply)


def _extensible() -> Iterator[Corruption]:
    victims = Victims(recorded("extensible"))
    for number, entry in enumerate(victims.documents.of_brokers[victims.broker][f"{ADMIN}/broker-stats/metrics"]):
        for name in entry["metrics"]:
            feature = entry["dimensions"].get("feature", "")
            for kind, change in NUMBERS.items():
                if kind in _OF_THE_FIRST and name not in ("brk_lb_cpu_usage", "brk_lb_resource_usage"):
                    continue
                path = (*victims.metrics, number, "metrics", name)
                yield _changed("extensible", "metrics", f"{name} {feature}".strip(), kind, path, change)
    kinds = ("negative", "text")
    yield from _of_struct("extensible", "topic statistics", victims.topic, read.TopicStats, kinds)
    for surface, kind, apply in CONTRADICTIONS["extensible"]:
        yield Corruption("extensible", surface, "", kind, apply)


def _of_struct(
    load_manager: str, surface: str, path: Path, struct: Any, kinds: Sequence[str] | None = None
) -> Iterator[Corruption]:
    """Each field that the recorded document has, in each kind (or these kinds) of its type, and the fields below it."""
    document = _value(recorded(load_manager), path)
    for field in msgspec.structs.fields(struct):
        if field.encode_name not in document:
            continue
        below = (*path, field.encode_name)
        yield from _of_value(load_manager, surface, (field.encode_name,), below, field.type, kinds)


def _of_value(
    load_manager: str, surface: str, name: tuple[str, ...], path: Path, annotation: Any, kinds: Sequence[str] | None
) -> Iterator[Corruption]:
    documents = recorded(load_manager)
    changes = next((changes for known, changes in _OF_TYPE if known == annotation), PARTS)
    label = ".".join(name)
    for kind, change in changes.items():
        like_another = kind in _OF_THE_FIRST and _LIKE_ANOTHER.search(label)
        if (kinds is None or kind in kinds) and not like_another:
            yield _changed(load_manager, surface, label, kind, path, change)
    if changes is not PARTS:
        return
    value = _value(documents, path)
    struct, is_map = _struct_in(annotation)
    if is_map and value:
        key = Victims(documents).entry_of(value)
        yield from _entry(load_manager, surface, name, (*path, key), kinds)
        path, name = (*path, key), (*name, "*")
    inner = _value(documents, path)
    if struct is not None and isinstance(inner, dict):
        for field in msgspec.structs.fields(struct):
            if field.encode_name in inner:
                below = (*path, field.encode_name)
                yield from _of_value(load_manager, surface, (*name, field.encode_name), below, field.type, kinds)


def _entry(
    load_manager: str, surface: str, name: tuple[str, ...], path: Path, kinds: Sequence[str] | None
) -> Iterator[Corruption]:
    for kind, change in PARTS.items():
        if kinds is None or kind in kinds:
            yield _changed(load_manager, surface, ".".join((*name, "*")), kind, path, change)


def _struct_in(annotation: Any) -> tuple[Any, bool]:
    """The struct in an annotation, if any, and whether it is the value of a map."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        parts = [part for part in typing.get_args(annotation) if part not in (type(None), msgspec.UnsetType)]
        annotation = parts[0]
    if typing.get_origin(annotation) is dict:
        return typing.get_args(annotation)[1], True
    is_struct = isinstance(annotation, type) and issubclass(annotation, msgspec.Struct)
    return (annotation if is_struct else None), False


def _of_lists(victims: Victims) -> Iterator[Corruption]:
    """Answers that are lists of names, or maps of one field."""
    for surface, path in (
        ("active brokers", ("of_any", f"{ADMIN}/brokers/{CLUSTER}")),
        ("tenants", ("of_any", f"{ADMIN}/tenants")),
        ("namespaces of a tenant", ("of_any", f"{ADMIN}/namespaces/retail")),
        ("topic names", ("of_any", f"{ADMIN}/persistent/{victims.namespace}")),
        ("partitioned topics", ("of_any", f"{ADMIN}/persistent/{victims.namespace}/partitioned")),
        ("brokers of a failure domain", ("of_any", f"{ADMIN}/clusters/{CLUSTER}/failureDomains", "zone-a", "brokers")),
    ):
        for kind in ("null", "text", "empty", "repeated", "with a null", "with a stranger"):
            yield _changed("modular", surface, "", kind, path, NAMES[kind])
    partitions = ("of_any", f"{ADMIN}/persistent/retail/orders/events/partitions", "partitions")
    for kind, change in COUNTS.items():
        yield _changed("modular", "partitions of a topic", "partitions", kind, partitions, change)
    owned = (*victims.owned, victims.bundle)
    for kind, change in PARTS.items():
        yield _changed("modular", "owned bundles", "*", kind, owned, change)
    for kind, change in FLAGS.items():
        yield _changed("modular", "owned bundles", "*.is_active", kind, (*owned, "is_active"), change)
    for kind, text in {
        "not a release": "latest",
        "older than 2.11": "2.10.4",
        "unknown": "9.9.9",
        "negative": "-4.0.8",
        "of one broker only": "3.0.7",
    }.items():
        yield Corruption("modular", "version", "", kind, _version(text, victims, alone=kind.endswith("only")))
    for kind, group in {"a group alone": "alone", "blank": " ", "JSON": '{"a":1}'}.items():
        path = ("of_any", f"{ADMIN}/namespaces/{victims.namespace}/antiAffinity")
        yield _changed("modular", "anti-affinity group", "", kind, path, lambda _, group=group: Text(group))


def _version(text: str, victims: Victims, *, alone: bool) -> Callable[[Documents], None]:
    def apply(documents: Documents) -> None:
        for broker in [victims.broker] if alone else documents.brokers:
            documents.of_brokers[broker][f"{ADMIN}/brokers/version"] = Text(text)

    return apply


SETTINGS: Final = (
    *("loadBalancerSheddingIntervalMinutes", "loadBalancerReportUpdateMaxIntervalMinutes"),
    *("loadBalancerResourceQuotaUpdateIntervalMinutes", "loadBalancerBrokerThresholdShedderPercentage"),
    *("loadBalancerHistoryResourcePercentage", "loadBalancerCPUResourceWeight", "loadBalancerEnabled"),
    *("loadManagerClassName", "loadBalancerLoadSheddingStrategy", "loadBalancerLoadPlacementStrategy"),
    *("defaultNamespaceBundleSplitAlgorithm", "statsUpdateFrequencyInSecs"),
)
"""One of each kind of setting that the advice of a Modular cluster depends on; unit tests go through all of them."""

_OF_SETTING: Final[Mapping[type, Mapping[str, str]]] = {
    bool: {"empty": "", "text": "perhaps"},
    int: {"empty": "", "text": "many", "negative": "-5", "over 32 bits": str(2**40)},
    float: {"text": "many", "negative": "-0.5", "NaN": "NaN", "Infinity": "Infinity"},
    str: {"empty": "", "a class that doesn't exist": "com.example.Nothing"},
}
_OF_DYNAMIC: Final = ("text", "negative", "a class that doesn't exist")


def _of_settings(victims: Victims) -> Iterator[Corruption]:
    """Values of settings, at all brokers alike or in the dynamic configuration."""
    runtime = f"{ADMIN}/brokers/configuration/runtime"

    def at_all_brokers(key: str, text: str) -> Callable[[Documents], None]:
        def apply(documents: Documents) -> None:
            for broker in documents.brokers:
                documents.of_brokers[broker][runtime][key] = text

        return apply

    for key in SETTINGS:
        annotation = LoadBalancerSettings.model_fields[FIELD_OF_KEY[key]].annotation
        for kind, text in _OF_SETTING[annotation].items():  # type: ignore[index]
            yield Corruption("modular", "settings", key, kind, at_all_brokers(key, text))
            if kind in _OF_DYNAMIC:
                path = ("of_any", f"{ADMIN}/brokers/configuration/values", key)
                yield _changed("modular", "dynamic settings", key, kind, path, lambda _, text=text: text)
    for kind, change in {"a number": lambda _: 7, "null": lambda _: None}.items():
        path = ("of_brokers", victims.leader_broker, runtime, "loadBalancerSheddingGracePeriodMinutes")
        yield _changed("modular", "settings", "any", kind, path, change)


_POSSIBLE: Final = frozenset({("isolation policy", "an empty object"), ("isolation policy", "status 404")})
"""What brokers answer for a cluster without any: no document that a snapshot has contradicts it."""


def _of_documents(load_manager: str, victims: Victims) -> Iterator[Corruption]:
    """Whole answers and nodes."""
    for one in _of_whole_documents(load_manager, victims):
        if (one.surface, one.kind) not in _POSSIBLE:
            yield one


def _of_whole_documents(load_manager: str, victims: Victims) -> Iterator[Corruption]:
    places: dict[str, Path] = {
        "load report": victims.report,
        "topic statistics": victims.topics,
        "metrics": ("of_brokers", victims.leader_broker, f"{ADMIN}/broker-stats/metrics"),
        "version": ("of_brokers", victims.broker, f"{ADMIN}/brokers/version"),
        "settings": ("of_brokers", victims.broker, f"{ADMIN}/brokers/configuration/runtime"),
        "owned bundles": victims.owned,
        "dynamic settings": ("of_any", f"{ADMIN}/brokers/configuration/values"),
        "isolation policy": ("of_any", f"{ADMIN}/clusters/{CLUSTER}/namespaceIsolationPolicies"),
        "failure domains": ("of_any", f"{ADMIN}/clusters/{CLUSTER}/failureDomains"),
        "policies": victims.policies,
        "leader": victims.leader,
        "published load report": victims.published_report,
        "local policies": victims.local_policies,
        "averages of a bundle": victims.bundle_data,
        "averages of a broker": victims.broker_time_average,
        "resource quota": victims.quota,
        "owner in ZooKeeper": victims.ownership,
        "leader in ZooKeeper": victims.leader_node,
    }
    for surface, path in places.items():
        for kind, change in DOCUMENTS.items():
            yield _changed(load_manager, surface, "", kind, path, change)
        if path[0] == "nodes":
            yield _changed(load_manager, surface, "", "gone", path, lambda _: ABSENT)
            continue
        for status in (403, 404, 500):
            asked = [victims.broker] if path[0] == "of_brokers" else list(victims.documents.brokers)
            asked = [path[1]] if path[0] == "of_brokers" else asked
            yield Corruption(load_manager, surface, "", f"status {status}", _status(asked, path[-1], status))
            if path[0] == "of_brokers" and status == 403:
                everywhere = list(victims.documents.brokers)
                apply = _status(everywhere, path[-1].replace(victims.broker, "{}"), status)
                yield Corruption(load_manager, surface, "", "refused by every broker", apply)


def _status(brokers: Sequence[str], path: str, status: int) -> Callable[[Documents], None]:
    def apply(documents: Documents) -> None:
        documents.statuses |= {(broker, path.format(broker)): status for broker in brokers}

    return apply


def _changed(load_manager: str, surface: str, field: str, kind: str, path: Path, change: Change) -> Corruption:
    def apply(documents: Documents) -> None:
        holder = _value(documents, path[:-1])
        old = holder[path[-1]] if isinstance(holder, list) else holder.get(path[-1])
        new = change(old)
        if new is ABSENT:
            del holder[path[-1]]
        else:
            holder[path[-1]] = new

    return Corruption(load_manager, surface, field, kind, apply)


def _value(documents: Documents, path: Path) -> Any:
    value = getattr(documents, path[0])
    for key in path[1:]:
        value = value[key]
    return value
