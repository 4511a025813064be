"""Reads from Oxia with three calls of its published protocol.

Its Python client is not used: it has neither TLS nor tokens nor time limits, and 0.2.1 looks for a key where XXH64 puts
it, though the protocol (and the Java client) say XXH3.
Source: `io.streamnative.oxia.proto.OxiaClient`; Pulsar `OxiaMetadataStore`, Oxia's Java client 0.9.5 (of 5.0.1).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeVar

import grpc
import xxhash

from pulsar_advisor.admin import oxia_messages as proto
from pulsar_advisor.admin.metadata_store import Node, in_batches
from pulsar_advisor.admin.oxia import OxiaConnection, grpc_target
from pulsar_advisor.model.errors import ClusterUnreachable
from pulsar_advisor.model.text.plain_text import plain

_SERVICE: Final = f"{proto.PACKAGE}.OxiaClient"
_LARGEST_ANSWER_BYTES: Final = 64 << 20
_LARGEST_CALL_BYTES: Final = 256 << 20
"""A call has as many answers as the server likes to send."""
_MOST_SHARDS: Final = 4096
"""Each read asks all of them."""
_LONGEST_QUOTE: Final = 100
_DENIED: Final = (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED)
_LED_ELSEWHERE: Final = (grpc.StatusCode.ABORTED, grpc.StatusCode.UNAVAILABLE)
"""How a server ends a call that doesn't lead the shard, or has just started or gone (Oxia 0.17.1)."""
_ELECTION_PAUSE_S: Final = 0.5
_Found = TypeVar("_Found")


class _LedElsewhere(ClusterUnreachable):
    """A shard's server doesn't lead it any more."""


class _Shard(NamedTuple):
    number: int
    leader: str
    first: int
    last: int


class OxiaStore:
    """A `MetadataStore` over the shards of one namespace.

    A record written with a partition key is in a different shard from that of its own key. So children are listed in
    all shards, and a record that isn't in its key's shard is requested from the others.
    """

    def __init__(self, connection: OxiaConnection, authorization: tuple[tuple[str, str], ...]) -> None:
        self.kind = connection.kind
        self._connection = connection
        self._authorization = authorization
        self._channels: dict[str, grpc.Channel] = {}
        self._shards: tuple[_Shard, ...] = ()

    def look_around(self, server: str | None = None) -> None:
        """Find out which server leads each shard, by default from the connection's. Raises `ClusterUnreachable`."""
        namespace = self._connection.namespace
        request = proto.ShardAssignmentsRequest(namespace=namespace)
        answers = self._ask(server or self._connection.address, "GetShardAssignments", request, proto.ShardAssignments)
        try:
            found = next((one.value for one in next(answers).namespaces if one.key == namespace), None)
        except (grpc.RpcError, StopIteration) as error:
            if not isinstance(error, grpc.Call) or error.code() is not grpc.StatusCode.NOT_FOUND:
                raise self._unreachable("listing its shards", error) from error
            found = None
        finally:
            answers.cancel()
        if found is None or not found.assignments:
            raise ClusterUnreachable(f"{self._connection.name}: no such namespace: see the brokers' metadataStoreUrl")
        if len(found.assignments) > _MOST_SHARDS:
            raise self._strange(f"it lists {len(found.assignments):,} shards, more than {_MOST_SHARDS:,}")
        for shard in found.assignments:
            if grpc_target(shard.leader) is None:
                leader = plain(str(shard.leader))[:_LONGEST_QUOTE]
                raise self._strange(f"the server of a shard, '{leader}', is not host:port")
        self._shards = tuple(
            _Shard(
                one.shard,
                one.leader,
                one.int32_hash_range.min_hash_inclusive if one.HasField("int32_hash_range") else 0,
                one.int32_hash_range.max_hash_inclusive if one.HasField("int32_hash_range") else 2**32 - 1,
            )
            for one in found.assignments
        )

    def close(self) -> None:
        """End the session."""
        while self._channels:
            self._channels.popitem()[1].close()

    def children(self, paths: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
        """See `MetadataStore`."""
        for some in in_batches(paths):
            # All are read before the first is yielded: the time limits go on while the caller works with it.
            yield from self._from_leaders(self._children, some)

    def _children(self, paths: list[str]) -> list[tuple[str, list[str]]]:
        asked = [(path, self._listings(path)) for path in paths]
        return [(path, self._names(path, listings)) for path, listings in asked]

    def _names(self, path: str, listings: list[Any]) -> list[str]:
        """The names of a path's children, sorted, from every shard's answer."""
        names = set()
        for answers in listings:
            for answer in self._each(path, answers):
                for key in answer.keys:
                    if not isinstance(key, str):
                        raise self._strange(f"it lists a key below {path} that is not text")
                    name = key.removeprefix(f"{path}/")
                    if name == key or not name or "/" in name:
                        raise self._strange(f"it lists '{plain(key)[:_LONGEST_QUOTE]}' as a child of {path}")
                    names.add(name)
        return sorted(names)

    def nodes(self, paths: Iterable[str]) -> Iterator[Node]:
        """See `MetadataStore`."""
        for some in in_batches(paths):
            found = self._from_leaders(self._read, some)
            yield from (found[path] for path in some if path in found)

    def _from_leaders(self, read: Callable[[list[str]], _Found], paths: list[str]) -> _Found:
        """What a read of paths returns, repeated for one time limit while shards change their leaders."""
        deadline = time.monotonic() + self._connection.timeout_s
        while True:
            try:
                return read(paths)
            except _LedElsewhere:
                if time.monotonic() > deadline:
                    raise
            time.sleep(_ELECTION_PAUSE_S)
            self._look_again(deadline)

    def _look_again(self, deadline: float) -> None:
        """Look around from the first server that answers; if none does by then, the shards stay as they were."""
        self.close()  # waits for a server that is gone grow longer, and leaders may be new each time
        for server in dict.fromkeys((self._connection.address, *(shard.leader for shard in self._shards))):
            if time.monotonic() > deadline:  # each may take as long as that
                return
            with suppress(_LedElsewhere):
                self.look_around(server)
                return

    def _listings(self, path: str) -> list[Any]:
        """The keys below a path in every shard: in Oxia's order they lie between these two."""
        return [
            self._ask(
                shard.leader,
                "List",
                proto.ListRequest(shard=shard.number, start_inclusive=f"{path}/", end_exclusive=f"{path}//"),
                proto.ListResponse,
            )
            for shard in self._shards
        ]

    def _read(self, paths: list[str]) -> dict[str, Node]:
        """The existing records, each requested from its key's shard and then from the others."""
        own = {path: self._shard_of(path).number for path in paths}
        found = self._read_at({shard: [path for path in paths if own[path] == shard.number] for shard in self._shards})
        missing = [path for path in paths if path not in found]
        elsewhere = {shard: [path for path in missing if own[path] != shard.number] for shard in self._shards}
        return found | self._read_at(elsewhere)

    def _read_at(self, wanted: dict[_Shard, list[str]]) -> dict[str, Node]:
        asked = [
            (
                paths,
                self._ask(
                    shard.leader,
                    "Read",
                    proto.ReadRequest(
                        shard=shard.number, gets=[proto.GetRequest(key=path, include_value=True) for path in paths]
                    ),
                    proto.ReadResponse,
                ),
            )
            for shard, paths in wanted.items()
            if paths
        ]
        found: dict[str, Node] = {}
        for paths, answers in asked:
            records = [record for answer in self._each(paths[0], answers) for record in answer.gets]
            if len(records) != len(paths):
                raise self._strange(f"it returned {len(records)} records for {len(paths)} paths")
            found |= {path: _node(path, record) for path, record in zip(paths, records, strict=True) if _exists(record)}
        return found

    def _shard_of(self, key: str) -> _Shard:
        hashed = xxhash.xxh3_64_intdigest(key.encode()) & 0xFFFFFFFF
        return next((shard for shard in self._shards if shard.first <= hashed <= shard.last), self._shards[0])

    def _ask(self, server: str, method: str, request: Any, answer: Any) -> Any:
        """Begin a call; returns an iterator over its answers."""
        if server not in self._channels:
            target = grpc_target(server)
            assert target is not None
            options = [("grpc.max_receive_message_length", _LARGEST_ANSWER_BYTES), ("grpc.enable_http_proxy", 0)]
            self._channels[server] = (
                grpc.secure_channel(target, _credentials(self._connection), options)
                if self._connection.tls
                else grpc.insecure_channel(target, options)
            )
        call = self._channels[server].unary_stream(
            f"/{_SERVICE}/{method}", type(request).SerializeToString, answer.FromString
        )
        return call(request, timeout=self._connection.timeout_s, metadata=self._authorization)

    def _each(self, path: str, answers: Any) -> Iterator[Any]:
        size = 0
        try:
            for answer in answers:
                size += answer.ByteSize()
                if size > _LARGEST_CALL_BYTES:
                    raise self._strange(f"it returns more than {_LARGEST_CALL_BYTES:,} bytes for {path}")
                yield answer
        except grpc.RpcError as error:
            raise self._unreachable(f"reading {path}", error) from error
        finally:
            answers.cancel()

    def _strange(self, what: str) -> ClusterUnreachable:
        return ClusterUnreachable(f"{self._connection.name}: {what}: check that this is the cluster's metadata store")

    def _unreachable(self, what: str, error: Exception) -> ClusterUnreachable:
        code = error.code() if isinstance(error, grpc.Call) else None
        if code in _DENIED:
            todo = "give another token" if self._authorization else "give a token_file"
            return ClusterUnreachable(f"{self._connection.name}: no permission ({what}): {todo}")
        why = code.name if code is not None else "no answer"
        if isinstance(error, grpc.Call) and (said := plain(error.details() or "")[:_LONGEST_QUOTE]):
            why += f", '{said}'"
        todo = "check host, port, firewall and certificates, then try again"
        kind = _LedElsewhere if code in _LED_ELSEWHERE else ClusterUnreachable
        return kind(f"{self._connection.name}: {what} failed ({why}): {todo}")


def _exists(record: Any) -> bool:
    return bool(record.status == proto.FOUND)


def _node(path: str, record: Any) -> Node:
    """A node. Oxia counts a record's modifications as ZooKeeper counts versions: from 0, one per write."""
    version = record.version
    return Node(
        path=path,
        data=record.value,
        created_at_ms=version.created_timestamp,
        modified_at_ms=version.modified_timestamp,
        version=version.modifications_count,
        store="oxia",
    )


def _credentials(connection: OxiaConnection) -> grpc.ChannelCredentials:
    files = (connection.tls_ca_file, connection.tls_key_file, connection.tls_cert_file)
    return grpc.ssl_channel_credentials(*(None if file is None else file.read_bytes() for file in files))
