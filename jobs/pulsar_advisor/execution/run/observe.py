"""Gathers the facts for one step: the owner of its bundle, open calls, and all inputs of its preconditions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace

from pulsar_advisor.execution.cluster.cluster_port import ClusterPort
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.plans import readable_plan
from pulsar_advisor.execution.ledger.steps import last_confirmed_at_ms, open_steps
from pulsar_advisor.execution.ledger.unfinished import ways
from pulsar_advisor.execution.run.preconditions import Found, OpenCall, leaves_destination
from pulsar_advisor.model.errors import ClusterUnreachable
from pulsar_advisor.model.plans.plan import Plan, Step


def find_owner(cluster: ClusterPort, namespace: str, bundle: str, likely: Iterable[str]) -> str | None:
    """The broker that reports owning a bundle, or None. `likely` brokers are queried first."""
    name = f"{namespace}/{bundle}"
    active = cluster.active_brokers()
    for broker in dict.fromkeys((*(broker for broker in likely if broker in active), *sorted(active))):
        if name in cluster.owned_bundles(broker):
            return broker
    return None


def look(
    cluster: ClusterPort,
    step: Step,
    moved: Mapping[str, str | None],
    open_calls: tuple[OpenCall, ...],
    arriving: Collection[str] = (),
) -> Found:
    """The current facts about a step.

    `moved`: bundles by full name, and the broker on which each counts, whatever the brokers show. `open_calls`: see
    `Found`. `arriving`: the namespaces of bundles on their way to the step's destination, which count there, too.
    """
    active, boundaries = cluster.active_brokers(), cluster.boundaries(step.namespace)
    if not boundaries:
        return Found(active_brokers=active, boundaries=(), owner=None, topics=0)
    brokers = [broker for broker in (step.source, step.destination) if broker]
    owner = find_owner(cluster, step.namespace, step.bundle, brokers)
    if step.action == "split":
        topics = cluster.topics(step.namespace, step.bundle)
    else:
        topics = cluster.loaded_topics(owner, step.namespace, step.bundle) if owner else ()
    peers = cluster.anti_affinity_peers(step.namespace) if step.destination else frozenset()
    policies = cluster.isolation_policies() if step.destination else ()
    return Found(
        active_brokers=active,
        boundaries=boundaries,
        owner=owner,
        topics=len(topics),
        topic_names=topics,
        isolation_policies=policies,
        release=_matching_release(cluster, active, owner or min(active)) if policies else "",
        peers_at_source=_count_at(cluster, step.source, peers, moved),
        peers_at_destination=_count_at(cluster, step.destination, peers, moved, arriving),
        destination_usage_ratio=cluster.usage_ratio(step.destination) if step.destination in active else None,
        open_calls=open_calls,
    )


def _matching_release(cluster: ClusterPort, active: Collection[str], broker: str) -> str:
    """The leader's release, or this broker's: a leader that can't be asked takes no part in a step."""
    with suppress(ClusterUnreachable):
        if (leader := cluster.leader()) is not None and leader in active:
            return cluster.release(leader)
    return cluster.release(broker)


def foresee(
    cluster: ClusterPort,
    ledger: Ledger,
    plan: Plan,
    step: Step,
    moved: Mapping[str, str | None],
    open_calls: tuple[OpenCall, ...],
) -> Found:
    """As `look`, for a step that is sent later, once its bundle's owner has reported the topics."""
    found = look(cluster, step, moved, open_calls)
    name = step.bundle_name
    found = replace(found, owner=moved.get(name, found.owner))
    is_late = name in moved or (step.action == "unload" and reported_late(cluster, ledger, plan, step))
    return replace(found, topics=max(found.topics, step.expect.topics)) if is_late else found


def reported_late(cluster: ClusterPort, ledger: Ledger, plan: Plan, step: Step) -> bool:
    """Whether we moved or split bundles of the namespace too recently for their owner to report topics."""
    late_ms, now_ms = int(cluster.reports_within_s() * 1000), ledger.now_ms()
    touched_at_ms = last_confirmed_at_ms(ledger, plan.identity.cluster_name, step.namespace, now_ms - late_ms)
    return abs(now_ms - touched_at_ms) < late_ms


def _count_at(
    cluster: ClusterPort,
    broker: str | None,
    namespaces: frozenset[str],
    moved: Mapping[str, str | None],
    arriving: Collection[str] = (),
) -> int:
    if not namespaces or not broker:
        return 0
    there = {name for name in cluster.owned_bundles(broker) if moved.get(name, broker) == broker}
    there |= {name for name, to in moved.items() if to == broker}
    return len(namespaces & {*arriving, *(name.rpartition("/")[0] for name in there)})


def open_calls(ledger: Ledger, cluster_name: str, except_of: str = "") -> tuple[OpenCall, ...]:
    """The calls of unknown outcome on a cluster (Pulsar's own name), except for one plan's if it is given.

    Those of runs that may go on, each with what settles it.
    """
    still_open = open_steps(ledger, cluster_name, except_of)
    runs = {run.id: run for run, _ in still_open}
    plans = {run.id: readable_plan(ledger, run.digest) for run in runs.values()}
    to_do = {run.id: ways(ledger, run) for run in runs.values()}
    return tuple(
        OpenCall(record.bundle, run.id, may_leave_destination(plans[run.id], record.step_id), to_do[run.id])
        for run, record in still_open
    )


def may_leave_destination(plan: Plan | None, step_id: str) -> bool:
    """As `leaves_destination`, for a step of a run; also if its plan can't be read (None), or has no such step."""
    return plan is None or all(leaves_destination(plan, step) for step in plan.steps if step.id == step_id)
