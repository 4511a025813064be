"""The cluster of the unit tests behind real sockets: one web server a broker, with the admin API's paths and answers.

Ownership, boundaries and loaded topics are those of `FakeCluster`; as on real brokers, a call that only the owner of a
bundle can carry out is redirected to it, a split is answered once it is done, and topics are reported by their owner.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from pulsar_advisor.execution.cluster.cluster_port import Override, Split, Unload
from pulsar_advisor.execution.run.guard.settings import GUARDED
from unit.execution.doubles import FakeCluster, FakeTime

MODULAR = "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl"
UNLOADING_TIMEOUT_MS = 1000


class RealTime(FakeTime):
    """The time of day; what the cluster is said to take, it takes."""

    @property
    def ms(self) -> int:
        return time.time_ns() // 1_000_000

    @ms.setter
    def ms(self, _value: int) -> None: ...

    def pass_s(self, seconds: float) -> None:
        time.sleep(seconds)


@contextmanager
def served(cluster: FakeCluster, brokers: int) -> Iterator[list[str]]:
    """Serve a cluster until the end of the block; gives the ids (`host:port`) of its brokers."""
    state = _State(cluster)
    servers = [ThreadingHTTPServer(("127.0.0.1", 0), _handler(state)) for _ in range(brokers)]
    cluster.brokers = {_id(server) for server in servers}
    with ExitStack() as stack:
        for server in servers:
            stack.callback(server.server_close)
            threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
            stack.callback(server.shutdown)
        yield [_id(server) for server in servers]


class _State:
    def __init__(self, cluster: FakeCluster) -> None:
        self.cluster = cluster

    def read(self, broker: str, path: list[str]) -> tuple[int, Any]:
        """Status and document of a GET; paths are those of `admin.read_client`."""
        cluster = self.cluster
        match path:
            case ["brokers", "configuration", "runtime"]:
                return 200, {
                    "clusterName": cluster.name,
                    "loadManagerClassName": MODULAR,
                    "namespaceBundleUnloadingTimeoutMs": str(UNLOADING_TIMEOUT_MS),
                    **{setting: cluster.effective(setting)[broker] for setting in GUARDED},
                }
            case ["brokers", "configuration", "values"]:
                return 200, cluster.overrides
            case ["brokers", "version"]:
                return 200, "4.0.8"
            case ["brokers", cluster.name]:
                return 200, sorted(cluster.active_brokers())
            case ["brokers", cluster.name, other, "ownedNamespaces"]:
                return 200, {bundle: {"is_active": True} for bundle in cluster.owned_bundles(other)}
            case ["broker-stats", "topics"]:
                return 200, self._topics(broker)
            case ["broker-stats", "load-report"]:
                return 200, {"cpu": {"usage": 100 * cluster.usage.get(broker, 0.1), "limit": 100.0}}
            case ["persistent", tenant, namespace]:
                prefix = f"persistent://{tenant}/{namespace}/"
                return 200, [topic for topic in cluster.all_topics if topic.startswith(prefix)]
            case ["non-persistent", *_]:
                return 200, []
            case ["namespaces", tenant, namespace] if boundaries := cluster.boundaries(f"{tenant}/{namespace}"):
                return 200, {"bundles": {"boundaries": list(boundaries)}}
            case ["namespaces", _, _, "antiAffinity"]:
                return 204, None
        return 404, {"reason": "nothing there"}

    def _topics(self, broker: str) -> dict[str, Any]:
        topics: dict[str, Any] = {}
        for bundle in self.cluster.owned_bundles(broker):
            namespace, _, text = bundle.rpartition("/")
            loaded = self.cluster.loaded_topics(broker, namespace, text)
            topics.setdefault(namespace, {})[text] = {"persistent": {topic: {} for topic in loaded}}
        return topics


def _id(server: ThreadingHTTPServer) -> str:
    return f"127.0.0.1:{server.server_port}"


def _handler(state: _State) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path = [unquote(part) for part in urlsplit(self.path).path.split("/")[1:]]
            with state.cluster.lock:
                if path[:3] == ["lookup", "v2", "topic"]:
                    state.cluster.look_up(f"{path[3]}://{'/'.join(path[4:])}")
                    return self._answer(200, {})
                return self._answer(*state.read(self._broker, path[2:]))

        def do_PUT(self) -> None:
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            path, query = parts.path.split("/"), parse_qs(parts.query)
            namespace, bundle, verb = "/".join(path[4:6]), path[6], path[7]
            with state.cluster.lock:
                owner = state.cluster.owners.get(f"{namespace}/{bundle}")
            if owner not in (None, self._broker):
                return self._answer(307, None, {"Location": f"http://{owner}{self.path}"})
            write: Unload | Split = (
                Unload(namespace, bundle, query.get("destinationBroker", [None])[0])
                if verb == "unload"
                else Split(namespace, bundle, tuple(json.loads(body)))
            )
            reply = state.cluster.send(write)
            return self._answer(reply.status or 500, {"reason": reply.text} if reply.text else None)

        def do_POST(self) -> None:
            *_, setting, value = urlsplit(self.path).path.split("/")
            self._answer(state.cluster.send(Override(setting, value)).status or 500, None)

        def do_DELETE(self) -> None:
            setting = urlsplit(self.path).path.rpartition("/")[2]
            self._answer(state.cluster.send(Override(setting, None)).status or 500, None)

        @property
        def _broker(self) -> str:
            return f"127.0.0.1:{self.server.server_address[1]}"

        def _answer(self, status: int, document: Any, headers: dict[str, str] | None = None) -> None:
            body = b"" if document is None else json.dumps(document).encode()
            self.send_response(status)
            for name, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    return Handler
