"""A recorded cluster as its brokers and its ZooKeeper answer: documents, to be corrupted one at a time and captured.

The recordings are of three real brokers under traffic, so there is something to advise on. What they were not asked
for at the time, or had nothing of (isolation policies, failure domains, quotas, dynamic values), is added.
"""

from __future__ import annotations

import copy
import json
import tarfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from functools import cache
from pathlib import Path
from typing import Any, Final
from unittest import mock
from urllib.parse import quote, unquote, urlsplit

from captures import capture
from pulsar_advisor.admin.answer import Answer
from pulsar_advisor.admin.clock import ClockDifference
from pulsar_advisor.admin.connection import AdminConnection
from pulsar_advisor.admin.metadata_store import MetadataReader
from pulsar_advisor.admin.options import CaptureOptions
from pulsar_advisor.admin.request_budget import RequestBudget
from pulsar_advisor.admin.transport import AdminTransport
from pulsar_advisor.admin.zookeeper import ZooKeeperConnection, ZooKeeperStore
from pulsar_advisor.capture.raw_files import read_lines
from pulsar_advisor.storage.root import Root, Snapshot
from snapshots import isolation_policy
from unit.admin.fake_zookeeper import FakeKazoo, Stat
from unit.capture.fake_cluster import leader_metrics

RECORDINGS: Final = Path(__file__).parents[1] / "data" / "recorded"
ADMIN: Final = "/admin/v2"
CLUSTER: Final = "live"

_ONE_AT_A_TIME: Final = threading.Lock()
"""What `_answering` replaces, it replaces for the whole process."""
_CLOCKS: Final = ("capture.now_ms", "journal.now_ms", "ownership.now_ms", "surfaces.now_ms", "system_topics.now_ms")
_QUOTA: Final = {"msgRateIn": 40.0, "msgRateOut": 120.0, "bandwidthIn": 1e5, "bandwidthOut": 3e5, "memory": 80.0}
_ISOLATION: Final = isolation_policy("retail/.*", r"127\.0\.0\.[123]")


class Text(str):
    """An answer that is sent as it is, where others are JSON."""


@dataclass
class Documents:
    """Every answer of a cluster: JSON values, or `Text`."""

    load_manager: str
    brokers: list[str]
    leader: str
    now_ms: int
    of_brokers: dict[str, dict[str, Any]]
    """Broker -> path -> what only this broker can answer."""
    of_any: dict[str, Any]
    """Path -> what any broker answers."""
    nodes: dict[str, Any]
    """Path -> a node of ZooKeeper."""
    statuses: dict[tuple[str, str], int] = field(default_factory=dict)
    """(broker, path) -> the status of an answer that isn't a success."""
    clocks_ahead_s: dict[str, float] = field(default_factory=dict)

    def report(self, broker: str) -> dict[str, Any]:
        """A broker's load report."""
        document: dict[str, Any] = self.of_brokers[broker][f"{ADMIN}/broker-stats/load-report"]
        return document

    def topics(self, broker: str) -> dict[str, Any]:
        """A broker's statistics of topics: namespace -> range -> domain -> topic -> statistics."""
        document: dict[str, Any] = self.of_brokers[broker][f"{ADMIN}/broker-stats/topics"]
        return document

    def copy(self) -> Documents:
        return copy.deepcopy(self)


@cache
def recorded(load_manager: str) -> Documents:
    """The documents of a recorded cluster; `copy` them before changing any."""
    with tarfile.open(RECORDINGS / f"{load_manager}-4.0.8.tar") as archive:
        content = {file.name: archive.extractfile(file) for file in archive.getmembers()}
        raw = {name: file.read() for name, file in content.items() if file is not None}
    head = json.loads(raw.pop("manifest.json"))
    lines: dict[str, list[dict[str, Any]]] = {}
    for name, data in raw.items():
        surface = name.removesuffix(".jsonl.zst").partition("/")[0]
        lines.setdefault(surface, []).extend(json.loads(line) for line in read_lines(data))
    brokers, leader = head["identity"]["broker_ids"], head["leader"]
    of_brokers: dict[str, dict[str, Any]] = {broker: {} for broker in brokers}
    of_any: dict[str, Any] = {
        f"/brokers/{CLUSTER}": brokers,
        "/brokers/leaderBroker": {"serviceUrl": f"http://{leader}", "brokerId": leader},
        "/brokers/configuration/values": {"loadBalancerSheddingGracePeriodMinutes": "30"},
        f"/clusters/{CLUSTER}/namespaceIsolationPolicies": {"apart": _ISOLATION},
        f"/clusters/{CLUSTER}/failureDomains": {"zone-a": {"brokers": brokers[:1]}},
        "/tenants": [line["tenant"] for line in lines["tenants"]],
    }
    nodes: dict[str, Any] = {
        "/loadbalance/leader": {"serviceUrl": f"http://{leader}", "brokerId": leader},
        "/loadbalance/resource-quota/default": {**_QUOTA, "dynamic": True},
        "/loadbalance/resource-quota/namespace/retail/orders/0x00000000_0x40000000": {**_QUOTA, "dynamic": False},
    }
    for line in lines["settings"]:
        if line["origin"] == "runtime":
            of_brokers[line["broker"]]["/brokers/configuration/runtime"] = {"clusterName": CLUSTER, **line["values"]}
    for broker in brokers:
        of_brokers[broker]["/brokers/version"] = Text("4.0.8")
        of_brokers[broker]["/broker-stats/topics"] = {}
        of_brokers[broker]["/broker-stats/metrics"] = leader_metrics(unloads=3 if broker == leader else None)
    for line in lines["load_reports"]:
        if line["source"] == "rest":
            of_brokers[line["broker"]]["/broker-stats/load-report"] = line["document"]
        else:
            nodes[f"/loadbalance/brokers/{line['broker']}"] = line["document"]
    for line in lines.get("broker_metrics", []):
        of_brokers[line["broker"]]["/broker-stats/metrics"] = _metrics(line["document"])
    for line in lines["topic_stats"]:
        ranges = of_brokers[line["broker"]]["/broker-stats/topics"].setdefault(line["namespace"], {})
        ranges.setdefault(line["range"], {}).setdefault(line["domain"], {})[line["topic"]] = line["stats"]
    for line in lines["owned_bundles"]:
        if line["pass"] == "end" and line["source"] == "rest":
            path = f"/brokers/{CLUSTER}/{line['broker']}/ownedNamespaces"
            owned = of_brokers[line["broker"]].setdefault(path, {})
            owned[line["bundle"]] = {
                "broker_assignment": "shared",
                "is_controlled": False,
                "is_active": line["isActive"],
            }
        elif line["pass"] == "end":
            nodes[f"/namespace/{line['bundle']}"] = {
                "nativeUrl": "pulsar://127.0.0.1:6650",
                "httpUrl": f"http://{line['broker']}",
                "disabled": False,
            }
    for line in lines["namespaces"]:
        namespace = line["namespace"]
        of_any[f"/namespaces/{namespace.partition('/')[0]}"] = sorted(
            {*of_any.get(f"/namespaces/{namespace.partition('/')[0]}", ()), namespace}
        )
        of_any[f"/namespaces/{namespace}"] = line["document"]
        of_any[f"/namespaces/{namespace}/antiAffinity"] = Text(line["antiAffinityGroup"] or "")
        for domain in ("persistent", "non-persistent"):
            of_any[f"/{domain}/{namespace}/partitioned"] = []
        of_any[f"/persistent/{namespace}"] = []
    for tenant in of_any["/tenants"]:
        of_any.setdefault(f"/namespaces/{tenant}", [])
    for line in lines["topic_names"]:
        if line["source"] == "rest":
            of_any[f"/persistent/{line['namespace']}"].append(line["topic"])
        else:
            name = line["topic"].rpartition("/")[2]
            nodes[f"/managed-ledgers/{line['namespace']}/persistent/{quote(name, safe='')}"] = Text("-")
    for line in lines["partitioned_topics"]:
        of_any[f"/{line['domain']}/{line['namespace']}/partitioned"].append(line["topic"])
        of_any[f"/{line['topic'].replace('://', '/')}/partitions"] = {"partitions": line["partitions"]}
    for surface, path, key in (
        ("local_policies", "/admin/local-policies", "namespace"),
        ("bundle_data", "/loadbalance/bundle-data", "bundle"),
        ("broker_time_averages", "/loadbalance/broker-time-average", "broker"),
    ):
        for line in lines.get(surface, []):
            nodes[f"{path}/{line[key]}"] = line["document"]
    return Documents(
        load_manager=load_manager,
        brokers=brokers,
        leader=leader,
        now_ms=head["started_at_ms"],
        of_brokers={broker: _below_admin(answers) for broker, answers in of_brokers.items()},
        of_any=_below_admin(of_any),
        nodes=nodes,
    )


def captured(documents: Documents, root: Root) -> Snapshot:
    """Capture the cluster that gives these answers. Nothing in it depends on the time of day."""
    options = CaptureOptions(
        admin=AdminConnection(admin_urls=tuple(f"http://{broker}" for broker in documents.brokers)),
        zookeeper=ZooKeeperConnection(hosts="zk1:2181"),
    )
    with _ONE_AT_A_TIME, _answering(documents):
        return capture(options, root)


class _InMemory(AdminTransport):
    """A transport without a network: what it would fetch is in `documents`."""

    def __init__(self, documents: Documents, connection: AdminConnection, **options: Any) -> None:
        super().__init__(connection, sleep=lambda _s: None, **options)
        self._documents = documents

    def _exchange(self, method: str, url: str, *_options: Any) -> Answer:  # type: ignore[override]
        assert method == "GET"
        broker, path = urlsplit(url).netloc, unquote(urlsplit(url).path)
        documents = self._documents
        status = documents.statuses.get((broker, path), 200)
        answers = documents.of_brokers.get(broker, {})
        answer = answers.get(path, documents.of_any.get(path, _MISSING))
        # A broker owns what it lists: any broker redirects the call to it.
        if answer is _MISSING and path.endswith("/ownedNamespaces"):
            answer = next((one[path] for one in documents.of_brokers.values() if path in one), _MISSING)
        if answer is _MISSING or status != 200:
            return Answer(status if status != 200 else 404, url, b'{"reason":"as a test wants it"}')
        ahead_s = documents.clocks_ahead_s.get(broker, 0.0)
        return Answer(200, url, _encoded(answer), ClockDifference(ahead_s - 0.5, ahead_s + 0.5))


_MISSING: Final = object()


@contextmanager
def _answering(documents: Documents) -> Iterator[None]:
    """Everything that the capture reads comes from these documents, and its clock doesn't move."""
    written = Stat(ctime=documents.now_ms - 86_400_000, mtime=documents.now_ms - 500)
    kazoo = FakeKazoo({path: _encoded(node) for path, node in documents.nodes.items()}, stat=written)

    @contextmanager
    def connected(connection: ZooKeeperConnection, budget: RequestBudget, _: object) -> Iterator[MetadataReader]:
        yield MetadataReader(ZooKeeperStore(kazoo, connection), budget)

    class Then(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime.fromtimestamp(documents.now_ms / 1000, tz or UTC)

    with ExitStack() as stack:
        for name, double in (
            (
                "capture.capture.AdminTransport",
                lambda connection, **options: _InMemory(documents, connection, **options),
            ),
            ("capture.capture.connected", connected),
            ("stages.capture.datetime", Then),
            *((f"capture.{clock}", lambda: documents.now_ms) for clock in _CLOCKS),
        ):
            stack.enter_context(mock.patch(f"pulsar_advisor.{name}", double))
        yield


def _metrics(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A broker's metrics as Extensible brokers give them, from the part that a snapshot keeps."""
    usage = {name: value for name, value in document.items() if name.startswith("brk_lb")}
    features = [
        {"dimensions": {"feature": name}, "metrics": {"brk_lb_resource_usage": document[name]}}
        for name in ("max", "max_ema")
    ]
    return [{"dimensions": {"metric": "loadBalancing"}, "metrics": usage}, *features]


def _below_admin(answers: Mapping[str, Any]) -> dict[str, Any]:
    return {ADMIN + path: answer for path, answer in answers.items()}


def _encoded(answer: Any) -> bytes:
    text = answer if isinstance(answer, Text) else json.dumps(answer)
    return text.encode("utf-8", "surrogatepass")


def lines_of(folder: Path) -> dict[str, list[bytes]]:
    """Path of each raw file of a snapshot -> its lines."""
    return {
        str(path.relative_to(folder)): list(read_lines(path.read_bytes())) for path in sorted(folder.rglob("*.zst"))
    }
