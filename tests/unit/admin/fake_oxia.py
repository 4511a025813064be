"""A double of Oxia's published protocol: a gRPC server on loopback that serves records from memory, and writes nothing.

Sharding is the real rule (XXH3 of the key, or of its partition key), and so is the order of keys; a namespace that
doesn't exist is refused as Oxia 0.17.1 refuses it (`live/test_oxia.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cmp_to_key
from pathlib import Path
from typing import Any

import grpc
import xxhash
from oxia.internal.compare import compare_with_slash
from oxia.internal.proto.io.streamnative.oxia import proto

SERVICE = "io.streamnative.oxia.proto.OxiaClient"
NAMESPACE = "broker"
_IN_ORDER = cmp_to_key(compare_with_slash)


@dataclass(frozen=True)
class Record:
    value: bytes
    created_at_ms: int = 1_600_000_000_000
    modified_at_ms: int = 1_700_000_000_000
    modifications: int = 3
    partition_key: str | None = None


def with_parents(records: Mapping[str, Record]) -> dict[str, Record]:
    """The records with an empty one for every parent, as Pulsar makes them when it puts the first child."""
    parents: dict[str, Record] = {}
    for path, record in records.items():
        while path := path.rpartition("/")[0]:
            parents.setdefault(path, Record(b"", record.created_at_ms, record.modified_at_ms, record.modifications))
    return parents | dict(records)


@dataclass
class FakeOxia:
    """One server that leads all shards of a namespace."""

    records: Mapping[str, Record]
    shards: int = 4
    namespace: str = NAMESPACE
    token: str | None = None
    """The one that every call must bring."""
    refuse: Callable[[str], grpc.StatusCode | None] = lambda _method: None
    """By method, how a call ends."""
    asked: list[tuple[str, Any]] = field(default_factory=list)
    """Method and message of each call."""
    address: str = ""

    def __post_init__(self) -> None:
        self._of_shard: list[list[str]] = [[] for _ in range(self.shards)]
        for key in sorted(self.records, key=_IN_ORDER):
            self._of_shard[self.shard_of(self.records[key].partition_key or key)].append(key)

    def shard_of(self, key: str) -> int:
        return (xxhash.xxh3_64_intdigest(key.encode()) & 0xFFFFFFFF) * self.shards >> 32

    def assignments(self, request: proto.ShardAssignmentsRequest) -> Iterator[proto.ShardAssignments]:
        width = 2**32 // self.shards
        found = [
            proto.ShardAssignment(
                shard=number,
                leader=self.address,
                int32_hash_range=proto.Int32HashRange(
                    min_hash_inclusive=number * width, max_hash_inclusive=(number + 1) * width - 1
                ),
            )
            for number in range(self.shards)
        ]
        of_namespace = proto.NamespaceShardsAssignment(assignments=found, shard_key_router=proto.ShardKeyRouter.XXHASH3)
        yield proto.ShardAssignments(namespaces={self.namespace: of_namespace})

    def list(self, request: proto.ListRequest) -> Iterator[proto.ListResponse]:
        first, end = _IN_ORDER(request.start_inclusive), _IN_ORDER(request.end_exclusive)
        keys = [key for key in self._of_shard[request.shard or 0] if first <= _IN_ORDER(key) < end]
        for start in range(0, len(keys), 3):
            yield proto.ListResponse(keys=keys[start : start + 3])

    def read(self, request: proto.ReadRequest) -> Iterator[proto.ReadResponse]:
        for get in request.gets:
            yield proto.ReadResponse(gets=[self._get(get.key, request.shard or 0)])

    def _get(self, key: str, shard: int) -> proto.GetResponse:
        if key not in self._of_shard[shard]:
            return proto.GetResponse(status=proto.Status.KEY_NOT_FOUND)
        record = self.records[key]
        version = proto.Version(
            version_id=77_000 + len(key),
            modifications_count=record.modifications,
            created_timestamp=record.created_at_ms,
            modified_timestamp=record.modified_at_ms,
        )
        return proto.GetResponse(status=proto.Status.OK, version=version, value=record.value)


@contextmanager
def served(oxia: FakeOxia, key_and_certificate: Sequence[Path] = ()) -> Iterator[FakeOxia]:
    """The double, listening on a free port; with a key and a certificate, by TLS."""

    def handler(method: str, answer: Callable[[Any], Iterator[Any]], request: Any) -> Any:
        def handle(message: Any, context: grpc.ServicerContext) -> Iterator[Any]:
            oxia.asked.append((method, message))
            token = dict(context.invocation_metadata()).get("authorization")
            if oxia.token is not None and token != f"Bearer {oxia.token}":
                context.abort(grpc.StatusCode.UNAUTHENTICATED, "no")
            if (refused := oxia.refuse(method)) is not None:
                context.abort(refused, "refused")
            if getattr(message, "namespace", oxia.namespace) != oxia.namespace:
                context.abort(grpc.StatusCode.NOT_FOUND, "oxia: namespace not found")
            yield from answer(message)

        return grpc.unary_stream_rpc_method_handler(handle, request.FromString, bytes)

    server = grpc.server(ThreadPoolExecutor(8))
    methods = {
        "GetShardAssignments": handler("GetShardAssignments", oxia.assignments, proto.ShardAssignmentsRequest),
        "List": handler("List", oxia.list, proto.ListRequest),
        "Read": handler("Read", oxia.read, proto.ReadRequest),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, methods),))
    if key_and_certificate:
        pair = (key_and_certificate[0].read_bytes(), key_and_certificate[1].read_bytes())
        port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([pair]))
    else:
        port = server.add_insecure_port("127.0.0.1:0")
    oxia.address = f"127.0.0.1:{port}"
    server.start()
    try:
        yield oxia
    finally:
        server.stop(None).wait()
