"""Plans by hand for a live cluster: each step expects what the brokers show when it is made."""

from __future__ import annotations

import itertools
import time
from datetime import UTC, datetime

from harness.cluster import LiveCluster
from harness.configuration import CLUSTER_NAME
from pulsar_advisor.admin.connection import AdminConnection
from pulsar_advisor.admin.transport import AdminTransport
from pulsar_advisor.model.cluster.bundle_range import contains, parse_range, topic_hash
from pulsar_advisor.model.cluster.snapshot_id import snapshot_id
from pulsar_advisor.model.plans.plan import Plan, Step
from unit.execution.doubles import forecast, make_plan

REPORTED_WITHIN_S = 60


def transport_to(cluster: LiveCluster) -> AdminTransport:
    return AdminTransport(AdminConnection(admin_urls=tuple(cluster.admin_urls)), writes=True)


def topics_inside(namespace: str, bundle: str, count: int) -> list[str]:
    """Topics of a bundle, taken in turn from the two halves of its range."""
    lower, upper = parse_range(bundle)
    middle = (lower + upper) // 2
    halves = itertools.cycle([(lower, middle), (middle, upper)])
    names = (f"persistent://{namespace}/topic-{number}" for number in itertools.count())
    return [
        next(name for name in names if contains(*half, topic_hash(name))) for half in itertools.islice(halves, count)
    ]


def wait_until_reported(cluster: LiveCluster, topics: set[str], *urls: str) -> None:
    """Until these brokers, by default any, report the topics; new owners do so at their next statistics pass."""
    deadline = time.monotonic() + REPORTED_WITHIN_S
    while missing := topics - {name for url in urls or cluster.admin_urls for name in cluster.admin.topics(url)}:
        assert time.monotonic() < deadline, f"not reported: {missing}"
        time.sleep(1)


def boundaries(cluster: LiveCluster, namespace: str) -> tuple[str, ...]:
    return tuple(cluster.admin.read(f"/namespaces/{namespace}/bundles")["boundaries"])


def ranges_of(cluster: LiveCluster, namespace: str) -> list[str]:
    return ["_".join(pair) for pair in itertools.pairwise(boundaries(cluster, namespace))]


def divide(cluster: LiveCluster, namespace: str, bundles: int) -> list[str]:
    """Make a namespace of this number of bundles, and its tenant; the bundles' ranges."""
    tenant = {"allowedClusters": [CLUSTER_NAME], "adminRoles": []}
    cluster.admin.write("PUT", f"/tenants/{namespace.partition('/')[0]}", body=tenant)
    cluster.admin.write("PUT", f"/namespaces/{namespace}", body={"bundles": {"numBundles": bundles}})
    return ranges_of(cluster, namespace)


def owner_of(cluster: LiveCluster, namespace: str, bundle: str) -> str:
    owner: str = cluster.admin.owners(CLUSTER_NAME)[f"{namespace}/{bundle}"]
    return owner


def at(step: Step, cluster: LiveCluster, namespace: str, bundle: str, **changes: object) -> Step:
    """The step for this bundle, expecting what the brokers show now; an unload goes to the next broker."""
    owner = owner_of(cluster, namespace, bundle)
    others = [broker for broker in cluster.broker_ids if broker != owner]
    expect = step.expect.model_copy(update={"owner": owner, "boundaries": boundaries(cluster, namespace)})
    return step.model_copy(
        update={
            "namespace": namespace,
            "bundle": bundle,
            "source": owner,
            "destination": others[0] if step.action == "unload" else None,
            "expect": expect,
            **changes,
        }
    )


def plan_of(cluster: LiveCluster, /, *steps: Step, **changes: object) -> Plan:
    ids = tuple(sorted(cluster.broker_ids))
    usage = forecast(dict.fromkeys(ids, 0.1))
    plan = make_plan(steps, snapshot=snapshot_id(datetime.now(UTC)), **changes)
    return plan.model_copy(
        update={
            "identity": plan.identity.model_copy(update={"cluster_name": CLUSTER_NAME, "broker_ids": ids}),
            "predicted": plan.predicted.model_copy(update={"before": usage, "after": usage}),
        }
    )
