"""Records what live brokers answer to unloads and splits, for the fault server to answer the same.

PYTHONPATH=tests python -m harness.record_puts
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from pathlib import Path
from typing import Any, Final

import requests

from faults.puts import BOUNDARIES, MIDDLE, PUTS, RANGE, Part, Put, Reply, as_documents, hops, reason_of
from harness.admin_api import CALL_LIMIT_S
from harness.cluster import ClusterOptions, LiveCluster
from harness.configuration import CLUSTER_NAME, LoadManager
from harness.errors import HarnessError
from harness.workload import topic_hash

CLUSTERS: Final[tuple[tuple[str, LoadManager], ...]] = (
    ("4.0.8", "modular"),
    ("4.0.8", "extensible"),
    ("4.2.4", "extensible"),
)
RECORDED: Final = Path(__file__).resolve().parents[1] / "data" / "recorded" / "puts.json"
TENANT: Final = "puts"
PLACEMENT_LIMIT_S: Final = 60
SETTLES_S: Final = 0.5
"""Boundaries and owners are the same at all brokers within this time."""


def record() -> None:
    """Put every request to a cluster of each kind, and write the answers and what they did."""
    recorded = [_of_cluster(*kind) for kind in CLUSTERS]
    RECORDED.write_text(json.dumps(recorded, indent=1) + "\n", encoding="utf-8")


def _of_cluster(release: str, load_manager: LoadManager) -> dict[str, Any]:
    with LiveCluster(ClusterOptions(release=release, load_manager=load_manager, cpu_sensor=False)) as cluster:
        cluster.admin.write("PUT", f"/tenants/{TENANT}", body={"allowedClusters": [CLUSTER_NAME], "adminRoles": []})
        puts = {put.name: _of_put(cluster, number, put) for number, put in enumerate(PUTS)}
    return {"release": release, "load_manager": load_manager, "puts": puts}


def _of_put(cluster: LiveCluster, number: int, put: Put) -> dict[str, Any]:
    namespace = f"{TENANT}/case-{number}"
    leader = str(cluster.admin.read("/brokers/leaderBroker")["brokerId"])
    owner, other = (broker for broker in cluster.broker_ids if broker != leader)
    parts: dict[Part, str] = {"leader": leader, "owner": owner, "other": other}
    _set_scene(cluster, namespace, put, owner)
    asked = {"there": namespace, "missing": f"{TENANT}/missing", "of a missing tenant": "nowhere/missing"}
    found = hops(put, asked[put.namespace], parts, _send)
    time.sleep(SETTLES_S)
    bounds = cluster.admin.read(f"/namespaces/{namespace}/bundles")["boundaries"]
    owners = cluster.admin.owners(CLUSTER_NAME)
    names = {broker: part for part, broker in parts.items()}
    now = {
        name.rpartition("/")[2]: names[broker] for name, broker in owners.items() if name.startswith(f"{namespace}/")
    }
    print(f"{put.name}: {[hop.status for hop in found]}", file=sys.stderr)
    return {"hops": as_documents(found), "boundaries": bounds, "owners": dict(sorted(now.items()))}


def _set_scene(cluster: LiveCluster, namespace: str, put: Put, owner: str) -> None:
    admin = cluster.admin
    admin.write("PUT", f"/namespaces/{namespace}", body={"bundles": {"numBundles": len(BOUNDARIES) - 1}})
    inside = (f"topic-{at}" for at in itertools.count())
    names = (f"persistent://{namespace}/{name}" for name in inside)
    topics = list(itertools.islice((name for name in names if topic_hash(name) < BOUNDARIES[1]), put.topics))
    for topic in topics:
        admin.write("PUT", f"/{topic.replace('://', '/')}")
    bundle = f"{namespace}/{RANGE}"
    deadline = time.monotonic() + PLACEMENT_LIMIT_S
    while admin.owners(CLUSTER_NAME).get(bundle) != owner:
        if time.monotonic() > deadline:
            raise HarnessError(f"{bundle} did not come to {owner}")
        admin.write("PUT", f"/namespaces/{bundle}/unload", params={"destinationBroker": owner})
        admin.look_up(topics[0])
    if put.was_split:
        split = {"splitAlgorithmName": "specified_positions_divide", "unload": "false"}
        admin.write("PUT", f"/namespaces/{bundle}/split", params=split, body=[MIDDLE])
    if not put.owned:
        admin.write("PUT", f"/namespaces/{bundle}/unload")
    time.sleep(SETTLES_S)


def _send(broker: str, path: str, query: Any, body: Any) -> Reply:
    answer = requests.put(
        f"http://{broker}{path}", params=query, json=body, allow_redirects=False, timeout=CALL_LIMIT_S
    )
    return Reply(answer.status_code, reason_of(answer.text), answer.headers.get("Location"))


if __name__ == "__main__":
    record()
