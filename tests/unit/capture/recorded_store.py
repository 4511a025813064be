"""The metadata store of real brokers without the brokers: what a capture finds there, and what it asks for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from captures import capture, lines_of, manifest_of
from pulsar_advisor.admin.options import CaptureOptions
from pulsar_advisor.storage.root import Root
from unit.admin.fake_zookeeper import FakeKazoo, read_by_captures
from unit.capture.fake_cluster import SECRET
from unit.capture.recorded_cluster import Planting, recorded_cluster

NAMESPACE = "shy/data"
CONFIGURATION = {
    "/admin/clusters/global": "{}",
    "/admin/clusters/live/namespaceIsolationPolicies": json.dumps({"apart": {"namespaces": ["x/.*"]}, "b": {}}),
    "/admin/clusters/live/failureDomain/zone-a": json.dumps({"brokers": ["b2:8080", "b1:8080"]}),
    "/admin/configuration": json.dumps({"loadBalancerSheddingEnabled": "false", "anything": SECRET}),
    "/admin/policies/shy/data": json.dumps(
        {"bundles": {"boundaries": ["0x00000000", "0xffffffff"]}, "properties": {"password": SECRET}}
    ),
    "/admin/policies/empty": json.dumps({"adminRoles": [SECRET]}),
    "/admin/partitioned-topics/shy/data/persistent/a%2Fb": json.dumps({"partitions": 3, "properties": {"k": SECRET}}),
}


class RecordedStore:
    """The metadata store of a recorded cluster, and the snapshot taken of it."""

    def __init__(self, load_manager: str, monkeypatch: pytest.MonkeyPatch, **configuration: str) -> None:
        with recorded_cluster(load_manager, Planting(SECRET)) as cluster:
            self.brokers = cluster.brokers
            kept = {path: text.encode() for path, text in (CONFIGURATION | configuration).items() if text}
            self.kazoo = FakeKazoo(cluster.nodes | kept)
            self.configuration = FakeKazoo({})

        read_by_captures(self.kazoo, monkeypatch, self.configuration)

    def part_configuration(self) -> None:
        """Keep what several clusters may share in the second store only."""
        for path in list(self.kazoo.nodes):
            if path.startswith(("/admin/clusters", "/admin/policies", "/admin/partitioned-topics")):
                self.configuration.nodes[path] = self.kazoo.nodes.pop(path)

    def captured(self, root: Root, **more: Any) -> tuple[dict[str, Any], dict[str, list[dict[str, Any]]]]:
        """The manifest, and the lines of each surface. The brokers themselves are gone: asking one would show."""
        options = CaptureOptions.model_validate({"zookeeper": {"hosts": "zk1:2181"}, **more})
        snapshot = capture(options, root)
        manifest = manifest_of(snapshot)
        return manifest, {file["surface"]: lines_of(snapshot, file["surface"]) for file in manifest["files"]}
