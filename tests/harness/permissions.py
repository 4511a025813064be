"""Asks brokers, as one role after another, for everything that the advisor ever asks them for, and notes who may.

The calls are the advisor's own, so that a path that changes there changes here. Each role has a bundle of its own,
which its unload and its split can't take away from the next one.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from harness.cluster import ClusterOptions, LiveCluster
from harness.configuration import CLUSTER_NAME, SUPER_USER_ROLE
from pulsar_advisor.admin.answer import ErrorAnswer
from pulsar_advisor.admin.connection import AdminConnection
from pulsar_advisor.admin.read_client import ReadClient
from pulsar_advisor.admin.transport import AdminTransport
from pulsar_advisor.execution.cluster.cluster_port import Override, Reply, Split, Unload
from pulsar_advisor.execution.cluster.cluster_writes import AdminCluster

ROLES = ("valid token", "client", "tenant admin", "super-user")
"""Each may do whatever those before it may: a role with no permission, one that may produce and consume in the
namespace, the administrator of its tenant, and a super-user."""
RELEASES = ("2.11.0", "3.0.7", "4.0.8", "4.2.4", "5.0.1")
RECORDED = Path(__file__).parents[1] / "data" / "permissions.json"
"""What `python -m harness record-permissions` found, by release."""

TENANT, NAMESPACE = "permissions", "permissions/bundles"
SETTING = "loadBalancerSheddingEnabled"
TOPIC = f"persistent://{NAMESPACE}/topic"
BOUNDS = ("0x00000000", "0x10000000", "0x20000000", "0x30000000", "0xffffffff")
REFUSED, SERVER_ERROR = (401, 403), 500


@dataclass(frozen=True)
class _Asking:
    """One role that asks one broker."""

    reads: ReadClient
    cluster: AdminCluster
    broker: str
    bundle: str
    """Which only this role unloads and splits."""


def _sent(reply: Reply) -> int:
    if reply.status is None:
        raise AssertionError(f"no answer, so that who may do this isn't known: {reply}")
    return reply.status


CALLS: Mapping[str, Callable[[_Asking], object]] = {
    "release of a broker": lambda asking: asking.reads.version(asking.broker),
    "settings": lambda asking: asking.reads.runtime_configuration(),
    "dynamic settings": lambda asking: asking.reads.dynamic_configuration(),
    "active brokers": lambda asking: asking.reads.active_brokers(CLUSTER_NAME),
    "leader": lambda asking: asking.reads.leader(),
    "owned bundles": lambda asking: asking.reads.owned_bundles(CLUSTER_NAME, asking.broker),
    "load report": lambda asking: asking.reads.load_report(asking.broker),
    "metrics": lambda asking: asking.reads.broker_metrics(asking.broker),
    "topic statistics": lambda asking: asking.reads.broker_topics(asking.broker),
    "isolation policies": lambda asking: asking.reads.isolation_policies(CLUSTER_NAME),
    "failure domains": lambda asking: asking.reads.failure_domains(CLUSTER_NAME),
    "tenants": lambda asking: asking.reads.tenants(),
    "namespaces of a tenant": lambda asking: asking.reads.namespaces(TENANT),
    "policies of a namespace": lambda asking: asking.reads.policies(NAMESPACE),
    "anti-affinity group": lambda asking: asking.reads.anti_affinity_group(NAMESPACE),
    "topic names": lambda asking: asking.reads.persistent_topics(NAMESPACE),
    "partitioned topics": lambda asking: asking.reads.partitioned_topics(NAMESPACE, "persistent"),
    "partitions of a topic": lambda asking: asking.reads.partitions(TOPIC),
    "look-up of a topic": lambda asking: _sent(asking.cluster.look_up(TOPIC)),
    "unload of a bundle": lambda asking: _sent(asking.cluster.send(Unload(NAMESPACE, asking.bundle, None))),
    "unload to a broker": lambda asking: _sent(asking.cluster.send(Unload(NAMESPACE, asking.bundle, asking.broker))),
    "split of a bundle": lambda asking: _sent(asking.cluster.send(Split(NAMESPACE, asking.bundle, ()))),
    "override of a setting": lambda asking: _sent(asking.cluster.send(Override(SETTING, "false"))),
    "deletion of an override": lambda asking: _sent(asking.cluster.send(Override(SETTING, None))),
}
"""What the advisor asks brokers for; the outcome of a write is its HTTP status."""


def recorded() -> dict[str, dict[str, str]]:
    """Release -> call -> the least role that may make it."""
    found: dict[str, dict[str, str]] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return found


def options(release: str) -> ClusterOptions:
    """A cluster to ask."""
    return ClusterOptions(release=release, brokers=1, token_authentication=True, cpu_sensor=False)


def record_permissions() -> None:
    """Ask a cluster of each release, one after the other, and keep what they answer."""
    found = {}
    for release in RELEASES:
        with LiveCluster(options(release)) as cluster:
            found[release] = permissions(cluster)
    RECORDED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def permissions(cluster: LiveCluster) -> dict[str, str]:
    """The least role of `ROLES` that may make each call.

    Raises:
        AssertionError: a role may do what a greater one may not, or may not do anything at all.
    """
    _set_scene(cluster)
    tokens = {role: cluster.token_of(SUPER_USER_ROLE if role == "super-user" else role) for role in ROLES}
    may = {role: _allowed(cluster, tokens[role], bundle) for role, bundle in zip(ROLES, _bundles(), strict=True)}
    for less, more in pairwise(ROLES):
        assert may[less] <= may[more], f"{less} may, {more} may not: {sorted(may[less] - may[more])}"
    assert may[ROLES[-1]] == CALLS.keys(), f"not even a super-user may: {sorted(CALLS.keys() - may[ROLES[-1]])}"
    return {call: next(role for role in ROLES if call in may[role]) for call in CALLS}


def _bundles() -> list[str]:
    return [f"{lower}_{upper}" for lower, upper in pairwise(BOUNDS)]


def _set_scene(cluster: LiveCluster) -> None:
    admin = cluster.admin
    tenant = {"allowedClusters": [CLUSTER_NAME], "adminRoles": ["tenant admin"]}
    admin.write("PUT", f"/tenants/{TENANT}", body=tenant)
    policies = {"bundles": {"numBundles": len(BOUNDS) - 1, "boundaries": BOUNDS}}
    admin.write("PUT", f"/namespaces/{NAMESPACE}", body=policies)
    admin.write("POST", f"/namespaces/{NAMESPACE}/permissions/client", body=["produce", "consume"])
    admin.write("PUT", f"/{TOPIC.replace('://', '/')}")


def _allowed(cluster: LiveCluster, token: str, bundle: str) -> set[str]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "token")
        file.write_text(token, encoding="utf-8")
        connection = AdminConnection(admin_urls=tuple(cluster.admin_urls), token_file=file)
        with AdminTransport(connection, writes=True) as transport:
            asking = _Asking(ReadClient(transport), AdminCluster(transport), cluster.broker_ids[0], bundle)
            return {name for name, call in CALLS.items() if _may(call, asking)}


def _may(call: Callable[[_Asking], object], asking: _Asking) -> bool:
    try:
        outcome = call(asking)
    except ErrorAnswer as error:
        outcome = error.status
    if isinstance(outcome, int) and outcome >= SERVER_ERROR:
        raise AssertionError(f"answer {outcome}, so that who may do this isn't known")
    return outcome not in REFUSED
