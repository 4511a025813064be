"""Every decoder of bytes that others wrote: genuine documents to break, and what it may refuse them with.

`python -m fuzz` breaks them for as long as it is told to; the unit level tries each target with a few.
"""

from __future__ import annotations

import gzip
import io
import json
import sqlite3
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import requests
import urllib3
import zstandard
from google.protobuf.message import DecodeError

from pulsar_advisor.admin.answer import Answer
from pulsar_advisor.admin.body import read_body
from pulsar_advisor.admin.connection import AdminConnection
from pulsar_advisor.admin.decoding import Document, decode
from pulsar_advisor.admin.oauth2 import AccessToken, ClientCredentials
from pulsar_advisor.admin.oxia import OxiaConnection
from pulsar_advisor.admin.oxia_messages import ListResponse, ReadResponse, ShardAssignments
from pulsar_advisor.admin.oxia_store import OxiaStore
from pulsar_advisor.admin.profiles import read_profiles
from pulsar_advisor.admin.prometheus import Question, Window, samples_of
from pulsar_advisor.admin.read_client import LEADER, ReadClient
from pulsar_advisor.admin.transport import AdminTransport
from pulsar_advisor.admin.web_address import WebAddress
from pulsar_advisor.capture import documents, system_topics
from pulsar_advisor.capture.raw_files import read_lines
from pulsar_advisor.capture.segments import SCALABLE_TOPIC
from pulsar_advisor.capture.service_unit_state import SERVICE_UNIT_STATE
from pulsar_advisor.capture.topic_decoders import topic_file
from pulsar_advisor.documents.document import Document as StageDocument
from pulsar_advisor.documents.history_day import HistoryDay
from pulsar_advisor.documents.manifest import Manifest
from pulsar_advisor.documents.recommendation import Recommendation
from pulsar_advisor.documents.tables_result import TablesResult
from pulsar_advisor.documents.validation import Validation
from pulsar_advisor.execution.cluster.cluster_writes import AdminCluster
from pulsar_advisor.execution.consent.policy import read_policy
from pulsar_advisor.execution.ledger.address import ledger_url as read_ledger_url
from pulsar_advisor.execution.ledger.address import shown_in_process_list, without_secrets
from pulsar_advisor.execution.ledger.audit import audit
from pulsar_advisor.execution.ledger.chain import ChainHead
from pulsar_advisor.execution.ledger.opening import open_ledger
from pulsar_advisor.model.cluster.bundle_range import parse_range
from pulsar_advisor.model.errors import AdvisorError
from pulsar_advisor.model.plans.canonical_json import canonical_json
from pulsar_advisor.model.plans.sealed import load_plan
from pulsar_advisor.monitor.tables import broker_tables
from pulsar_advisor.stages.brokers import run as load_in_snapshot
from pulsar_advisor.storage.archive import import_snapshot
from pulsar_advisor.storage.files import sha256_hex
from pulsar_advisor.storage.root import MANIFEST, Root, Snapshot
from unit.admin.mutated import answers, nodes

DATA = Path(__file__).parents[1] / "data"
WHERE = "http://127.0.0.1:8080/x"
BROKER = "127.0.0.1:8080"
RANGE = "0x00000000_0xffffffff"
STATE = b'{"state":"Owned","dstBroker":"a:8080","sourceBroker":null,"timestamp":1795249800000,"versionId":3}'
LOAD = (
    b'{"cpu":{"usage":1.0,"limit":200.0},"msgRateIn":5.0,"bundleCount":3,"maxResourceUsage":0.1,"updatedAt":1795249800}'
)
TOP = b'{"topBundlesLoadData":[{"bundleName":"a/b/0x00000000_0xffffffff","stats":{"msgRateIn":1.0,"topics":2}}]}'


SHARDS = ShardAssignments(
    namespaces=[{"key": "broker", "value": {"assignments": [{"shard": 0, "leader": "127.0.0.1:6648"}]}}]
).SerializeToString()
CHILDREN = ListResponse(keys=["/a/b", "/a/c"]).SerializeToString()
RECORD = ReadResponse(
    gets=[{"status": 0, "version": {"modifications_count": 3, "created_timestamp": 1, "modified_timestamp": 2}}]
).SerializeToString()


@dataclass(frozen=True)
class Target:
    """A decoder, the genuine documents that it reads, and the errors by which it may say that it can't read one."""

    seeds: tuple[bytes, ...]
    decode: Callable[[bytes], object]
    refusals: tuple[type[Exception], ...] = (AdvisorError,)


class Answering(AdminTransport):
    """Answers every call with one body."""

    def __init__(self, body: bytes) -> None:
        super().__init__(AdminConnection(admin_urls=(f"http://{BROKER}",)), writes=True)
        self.body = body

    def get(self, path: str, **_options: object) -> Answer:
        return Answer(200, f"http://{BROKER}{path}", self.body)

    def request(self, method: str, path: str, **_options: object) -> Answer:
        return self.get(path)


def of_the_client(body: bytes) -> Iterator[Callable[[], object]]:
    client = ReadClient(Answering(body))
    yield client.runtime_configuration
    yield lambda: client.version(BROKER)
    yield lambda: client.active_brokers("c")
    yield client.leader
    yield lambda: client.owned_bundles("c", BROKER)
    yield lambda: client.failure_domains("c")
    yield client.tenants
    yield lambda: client.partitions("persistent://a/b/c")


def of_the_executor(body: bytes) -> Iterator[Callable[[], object]]:
    cluster = AdminCluster(Answering(body))
    yield cluster.cluster_name
    yield cluster.load_manager
    yield lambda: cluster.boundaries("a/b")
    yield lambda: cluster.loaded_topics(BROKER, "a/b", RANGE)
    yield lambda: cluster.topics("a/b", RANGE)
    yield cluster.isolation_policies
    yield lambda: cluster.anti_affinity_peers("a/b")
    yield lambda: cluster.usage_ratio(BROKER)
    yield lambda: cluster.look_up("persistent://a/b/c")


class _Answers(Iterator[Any]):
    """Of a call of gRPC."""

    def __init__(self, answer: Any) -> None:
        self._left = [answer]

    def __next__(self) -> Any:
        if not self._left:
            raise StopIteration
        return self._left.pop()

    def cancel(self) -> None:
        pass


class AnsweringOxia(OxiaStore):
    """Answers every call with one body."""

    def __init__(self, body: bytes) -> None:
        super().__init__(OxiaConnection(url="oxia://127.0.0.1:6648/broker"), ())
        self.body = body

    def _ask(self, server: str, method: str, request: Any, answer: Any) -> Any:
        return _Answers(answer.FromString(self.body))


def of_oxia(body: bytes) -> None:
    """What a server of Oxia answers, whatever was asked."""
    store, led = AnsweringOxia(body), AnsweringOxia(SHARDS)
    led.look_around()
    led.body = body
    for read in (store.look_around, lambda: list(led.children(["/a"])), lambda: list(led.nodes(["/a"]))):
        try:
            read()
        except (AdvisorError, DecodeError):
            continue


def decoded(decoder: msgspec.json.Decoder[Any]) -> Callable[[bytes], Any]:
    return lambda body: decode(Document(WHERE, body), decoder)


def _all(reads: Callable[[bytes], Iterator[Callable[[], object]]]) -> Callable[[bytes], None]:
    def each(body: bytes) -> None:
        for read in reads(body):
            try:
                read()
            except AdvisorError:
                continue

    return each


def _text(decode_text: Callable[[str], object]) -> Callable[[bytes], object]:
    """A decoder of text, which comes from a header or a command line: any characters, but characters."""
    return lambda body: decode_text(body.decode("utf-8", "replace"))


def _file(read: Callable[[Path], object]) -> Callable[[bytes], object]:
    """A decoder of a file."""

    def from_disk(body: bytes) -> object:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "document")
            path.write_bytes(body)
            return read(path)

    return from_disk


def _unpacked(body: bytes) -> bytes:
    """An HTTP body that says of itself that it is compressed."""
    raw = urllib3.HTTPResponse(io.BytesIO(body), {"content-encoding": "gzip"}, preload_content=False)
    response = requests.Response()
    response.raw, response.status_code = raw, 200
    return bytes(read_body(response, WHERE, limit_bytes=1 << 20, within_s=10))


class _Issuer:
    """A session whose every answer has one body."""

    def __init__(self, body: bytes) -> None:
        self.body = body

    def request(self, *_: object, **__: object) -> requests.Response:
        response = requests.Response()
        response.raw, response.status_code = urllib3.HTTPResponse(io.BytesIO(self.body), preload_content=False), 200
        return response


def _authorization(body: bytes) -> str:
    with tempfile.TemporaryDirectory() as folder:
        key = Path(folder, "key.json")
        key.write_text('{"client_id": "us", "client_secret": "planted"}', encoding="utf-8")
        token = AccessToken(ClientCredentials(issuer_url="https://issuer.example", key_file=key), "fuzz")
        token._session = _Issuer(body)  # type: ignore[assignment]
        return token.authorization()


def _resealed(body: bytes) -> object:
    """A plan whose digest fits: whoever writes plans can compute it."""
    try:
        document = json.loads(body)
        document.pop("digest", None)
        sealed = canonical_json({**document, "digest": f"sha256:{sha256_hex(canonical_json(document))}"})
    except (ValueError, TypeError, AttributeError, RecursionError, OverflowError):
        return None
    return load_plan(sealed)


@cache
def _archive(load_manager: str = "modular") -> bytes:
    return (DATA / "recorded" / f"{load_manager}-4.0.8.tar").read_bytes()


@cache
def _files() -> dict[str, bytes]:
    """The recorded snapshot's files by path, the manifest among them."""
    with tarfile.open(fileobj=io.BytesIO(_archive())) as archive:
        return {member.name: content.read() for member in archive if (content := archive.extractfile(member))}


def _packed(files: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def _imported(archive: bytes, read: Callable[[Snapshot], object]) -> object:
    with tempfile.TemporaryDirectory() as folder:
        file, root = Path(folder, "snapshot.tar"), Root(str(Path(folder, "root")), "fuzz")
        file.write_bytes(archive)
        try:
            snapshot = import_snapshot(file, root)
        except AdvisorError:
            assert not Path(folder, "root").exists(), "a refused archive left something behind"
            raise
        return read(snapshot)


def _import(archive: bytes) -> object:
    return _imported(archive, lambda snapshot: snapshot.id)


def _import_manifest(manifest: bytes) -> object:
    return _imported(_packed({**_files(), MANIFEST: manifest}), _brokers)


def _brokers(snapshot: Snapshot) -> object:
    """What `brokers` shows of a snapshot."""
    return broker_tables(load_in_snapshot(snapshot))


def _import_lines(surface: str) -> Callable[[bytes], object]:
    """A surface's lines, in an archive whose manifest fits them: what a stranger can have us take in."""

    def load(lines: bytes) -> object:
        manifest = json.loads(_files()[MANIFEST])
        files = dict(_files())
        (entry,) = (entry for entry in manifest["files"] if entry["surface"] == surface)
        content = zstandard.ZstdCompressor(write_content_size=False).compress(lines)
        files[entry["path"]] = content
        entry |= {"rows": lines.count(b"\n"), "bytes": len(content), "sha256": sha256_hex(content)}
        return _imported(_packed({**files, MANIFEST: json.dumps(manifest).encode()}), _brokers)

    return load


def _lines(surface: str) -> tuple[bytes, ...]:
    (path,) = (entry["path"] for entry in json.loads(_files()[MANIFEST])["files"] if entry["surface"] == surface)
    content = zstandard.ZstdDecompressor().decompressobj().decompress(_files()[path])
    return tuple(content.splitlines(keepends=True)[:3])


@cache
def _ledger() -> bytes:
    """A ledger of an earlier release, migrated."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "ledger.sqlite")
        with closing(sqlite3.connect(file)) as connection:
            connection.executescript((DATA / "earlier" / "ledger.sql").read_text(encoding="utf-8"))
        open_ledger(f"sqlite:///{file}").close()
        return file.read_bytes()


def _audited(file: Path) -> object:
    with closing(open_ledger(f"sqlite:///{file}")) as ledger:
        return audit(ledger)


_DOCUMENTS = (Manifest, TablesResult, Validation, Recommendation, HistoryDay)


def _stage_documents() -> Iterator[tuple[type[StageDocument], bytes]]:
    """Every document that an earlier release's stages wrote into a root."""
    kinds = {schema: kind for kind in _DOCUMENTS for schema in (kind.SCHEMA, *kind.EARLIER)}
    for path in sorted((DATA / "earlier").rglob("*.json")):
        schema = json.loads(path.read_bytes()).get("schema")
        if schema in kinds:
            yield kinds[schema], path.read_bytes()


POLICY = b"""schema: pulsar-advisor/approval-policy/1
require_authenticated: true
automatic:
  kinds: [ThresholdShedder, relieve]
  max_moves: 5
  min_gain_ratio: 0.05
  namespaces: [shop/*, logs/*]
  window: {days: [mon, tue], from: '09:00', to: '16:00', timezone: Europe/Berlin}
"""
CONFIG = b"""[profiles.prod]
root = "/var/lib/advisor"
ledger = "env:LEDGER"
zookeeper.hosts = "zk:2181"
[profiles.prod.admin]
admin_urls = ["http://b1:8080"]
token_file = "/run/secrets/token"
"""

LAYOUT = b"""{"epoch": 1, "segments": {"1": {"segmentId": 1, "hashRange": {"start": 0, "end": 32767},
 "state": "ACTIVE", "parentIds": [0], "childIds": [], "legacyTopicName": null}}}"""


def _named_segments(body: bytes) -> object:
    return [segment.topic("topic://t/n/clicks") for segment in decoded(SCALABLE_TOPIC)(body).segments.values()]


SERIES = (
    b'{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"instance":"a:8080"},'
    b'"values":[[1795249800,"1.5"],[1795249860,"NaN"]]},{"metric":{},"values":[]}]}}'
)
QUESTION = Question("up", Window(1795249800, 60, 2), ("instance",))


TARGETS: dict[str, Target] = {
    "topics": Target(answers("/broker-stats/topics"), lambda body: topic_file("b", Document(WHERE, body))),
    "metrics": Target(answers("/broker-stats/metrics"), lambda body: documents.broker_metrics(Document(WHERE, body))),
    "load report": Target(answers("/load-report") + nodes("/loadbalance/brokers"), decoded(documents.LOAD_REPORT)),
    "policies": Target(answers("/shy/data"), decoded(documents.POLICIES)),
    "isolation": Target(answers("/namespaceIsolationPolicies"), decoded(documents.ISOLATION_POLICIES)),
    "local policies": Target(nodes("/admin/local-policies"), decoded(documents.LOCAL_POLICIES)),
    "bundle data": Target(nodes("/loadbalance/bundle-data"), decoded(documents.BUNDLE_DATA)),
    "averages": Target(nodes("/loadbalance/broker-time-average"), decoded(documents.BROKER_TIME_AVERAGE)),
    "quota": Target((b'{"msgRateIn":40.0,"msgRateOut":120.0,"dynamic":true}',), decoded(documents.RESOURCE_QUOTA)),
    "ownership": Target(nodes("/namespace/"), lambda body: decoded(documents.OWNERSHIP_NODE)(body).owner),
    "leader": Target(nodes("/loadbalance/leader"), lambda body: decoded(LEADER)(body).broker_id),
    "service unit state": Target((STATE,), decoded(SERVICE_UNIT_STATE)),
    "scalable topic": Target((LAYOUT,), _named_segments),
    "published load": Target((LOAD,), decoded(system_topics.DECODERS[system_topics.BROKER_LOAD])),
    "top bundles": Target((TOP,), decoded(system_topics.DECODERS[system_topics.TOP_BUNDLES])),
    "reads of a capture": Target(answers(""), _all(of_the_client)),
    "reads of apply": Target(answers(""), _all(of_the_executor)),
    "Prometheus": Target((SERIES,), lambda body: samples_of(Answer(200, WHERE, body), QUESTION)),
    "Oxia": Target((SHARDS, CHILDREN, RECORD), of_oxia),
    "error answer": Target(answers(""), lambda body: Answer(500, WHERE, body).reason.isprintable() or 1 / 0),
    "compressed body": Target(
        tuple(gzip.compress(body) for body in answers("/load-report")),
        _unpacked,
        (AdvisorError, requests.RequestException, urllib3.exceptions.HTTPError),
    ),
    "redirect": Target(
        (b"http://b2:8080/admin/v2/brokers?x=1", b"/x", b"https://[::1]:8443/x"),
        _text(WebAddress.parse(f"http://{BROKER}/").redirected),
        (ValueError,),
    ),
    "oauth2": Target(
        (b'{"token_endpoint":"https://issuer.example/t","access_token":"abc","expires_in":3600}',), _authorization
    ),
    "plan": Target(tuple(path.read_bytes() for path in sorted((DATA / "plans").glob("*.json"))), load_plan),
    "plan with its digest": Target(
        tuple(path.read_bytes() for path in sorted((DATA / "plans").glob("*.json"))), _resealed
    ),
    "archive": Target((_archive()[: 64 << 10], _archive()), _import),
    "manifest": Target((_files()[MANIFEST],), _import_manifest),
    "raw load reports": Target(_lines("load_reports"), _import_lines("load_reports")),
    "raw averages": Target(_lines("broker_time_averages"), _import_lines("broker_time_averages")),
    "raw file": Target(
        tuple(content for path, content in _files().items() if path != MANIFEST)[:3],
        lambda body: list(read_lines(body)),
        (zstandard.ZstdError,),
    ),
    "ledger URL": Target(
        (b"sqlite:////var/lib/ledger.sqlite", b"postgresql+psycopg2://u:p@db:5432/l?sslmode=require", b"env:NOT_SET"),
        _text(lambda address: (shown_in_process_list(address), without_secrets(read_ledger_url(address)))),
    ),
    "ledger": Target((_ledger(),), _file(_audited)),
    "head of a ledger": Target((b"12:" + b"0123456789abcdef" * 4, b"0:"), _text(ChainHead.parse)),
    "approval policy": Target((POLICY,), _file(read_policy)),
    "profiles": Target((CONFIG,), _file(read_profiles)),
    "bundle range": Target((RANGE.encode(), b"0x40000000_0x80000000"), _text(parse_range)),
    **{
        kind.__name__: Target((content,), lambda body, kind=kind: kind.parsed(body, "document"))
        for kind, content in _stage_documents()
    },
}
"""By name, for `python -m fuzz --only`."""
