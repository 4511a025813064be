"""A double that replays the recorded answers of real brokers, with a secret planted wherever one may appear."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import zstandard
from werkzeug import Response

from pulsar_advisor.model.configuration.defaults import ALLOWED_KEYS
from web_server import HTTPServer

RECORDED = Path(__file__).parents[2] / "data" / "recorded"

PUBLIC_TEXTS = frozenset(
    (
        *ALLOWED_KEYS,
        *("clusterName", "loadManagerClassName", "loadManagerServiceUnitStateTableViewClassName"),
        *("loadReportType", "brokerVersionString", "brokerVersion", "brokerId", "name", "serviceUrl"),
        *("webServiceUrl", "webServiceUrlTls", "pulsarServiceUrl", "pulsarServiceUrlTls", "httpUrl", "httpUrlTls"),
        *("bundles", "boundaries", "lastBundleGains", "lastBundleLosses", "bundleGains", "bundleLosses", "brokers"),
        *("namespaces", "primary", "secondary", "policy_type", "min_limit", "usage_threshold", "unload_scope"),
        *("replication_clusters", "allowed_clusters", "resource_group_name", "antiAffinityGroup", "feature", "type"),
    )
)
"""Keys whose text a snapshot may hold: what brokers, bundles, policies and load-balancing settings are called."""
NAMES_AS_KEYS = frozenset(("subscriptions", "replication", "lastStats", "bundleStats"))
"""Fields that are maps by public names; an entry planted there would be one more subscription or bundle."""
_LEVELS_OF_NAMES = {"topics": 4, "ownedNamespaces": 1, "namespaceIsolationPolicies": 1, "failureDomains": 1}
"""How many levels a document of this last part of its path has above its first object: maps by public names."""


@dataclass
class Planting:
    """Numbered secrets, so that one that leaks shows where it came from."""

    secret: str
    places: list[str] = field(default_factory=list)

    def plant(self, place: str) -> str:
        self.places.append(place)
        return f"{self.secret}-{len(self.places)}"

    def in_document(self, text: str, place: str) -> str:
        """The document with every text that isn't public replaced, and one more entry in every object."""
        if not text.startswith(("{", "[")):
            return text  # a release, a group, or nothing
        document = json.loads(text)
        if isinstance(document, list) and all(isinstance(entry, str) for entry in document):
            return text  # names of brokers, tenants, namespaces or topics
        return json.dumps(self._in(document, place, _LEVELS_OF_NAMES.get(place.rpartition("/")[2], 0)))

    def _in(self, value: Any, place: str, levels_of_names: int) -> Any:
        if isinstance(value, str):
            return self.plant(place)
        if isinstance(value, list):
            return [self._in(entry, place, 0) for entry in value]
        if not isinstance(value, dict):
            return value
        if levels_of_names:
            return {key: self._in(entry, f"{place}.{key}", levels_of_names - 1) for key, entry in value.items()}
        planted = {
            key: entry
            if key in PUBLIC_TEXTS and not isinstance(entry, dict)
            else self._in(entry, f"{place}.{key}", int(key in NAMES_AS_KEYS))
            for key, entry in value.items()
        }
        return {**planted, self.plant(f"{place} key"): self.plant(f"{place} entry")}


class RecordedCluster:
    """Two real brokers' answers and nodes, served under addresses of this machine."""

    def __init__(self, load_manager: str, servers: list[HTTPServer], planting: Planting) -> None:
        content = (RECORDED / f"documents-{load_manager}.json.zst").read_bytes()
        text = zstandard.ZstdDecompressor().decompress(content).decode()
        self.servers = servers
        self.brokers = [f"{server.host}:{server.port}" for server in servers]
        for recorded, ours in zip(json.loads(text)["brokers"], self.brokers, strict=True):
            text = text.replace(recorded, ours)
        document = json.loads(text)
        self.paths: set[str] = set()
        for answer in document["answers"]:
            self.paths.add(answer["path"])
            body = planting.in_document(answer["body"], answer["path"])
            own = answer["path"].startswith(("/admin/v2/broker-stats/", "/admin/v2/brokers/configuration/runtime"))
            for server in servers:
                if not own or f"{server.host}:{server.port}" == answer["broker"]:
                    self._serve(server, answer["path"], body, answer["status"], planting)
        self.nodes = {path: planting.in_document(content, path).encode() for path, content in document["nodes"].items()}

    def _serve(self, server: HTTPServer, path: str, body: str, status: int, planting: Planting) -> None:
        headers = {"Set-Cookie": f"session={planting.secret}", "X-Secret": planting.secret}
        server.expect_request(path, method="GET").respond_with_response(Response(body, status, headers))

    @property
    def paths_asked(self) -> set[str]:
        return {request.path for server in self.servers for request, _ in server.log}


@contextmanager
def recorded_cluster(load_manager: str, planting: Planting) -> Iterator[RecordedCluster]:
    """The double, running."""
    with ExitStack() as stack:
        servers = [stack.enter_context(HTTPServer(host=f"127.0.0.{host}", port=0, threaded=True)) for host in (1, 2)]
        yield RecordedCluster(load_manager, servers, planting)
