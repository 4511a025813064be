"""Small clusters for plan kinds, and the plan that a kind makes of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pulsar_advisor.model.cluster.cluster_state import ClusterState, IsolationPolicy
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.model.plans.plan import Plan, Step
from pulsar_advisor.planning.kinds.goal import resolved_goal
from pulsar_advisor.planning.kinds.room import Room
from pulsar_advisor.planning.plans.build_plan import build_plan
from pulsar_advisor.planning.plans.propose import propose
from pulsar_advisor.planning.proposals.limits import Limits
from pulsar_advisor.planning.proposals.proposal import Proposal
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.planning.situation import Situation
from states import WHOLE, BrokerRow, BundleRow, cluster_state
from unit.planning.made_plans import INPUTS

SETTINGS = resolve_settings("4.0.8")
OVERLOADED = 0.85
MESSAGES = 10.0
"""Messages per second, in and out each, of a bundle of size 1: one percent of a broker's CPU."""


def cluster(
    sizes: Mapping[str, Sequence[float]],
    *,
    clients: Mapping[str, Sequence[int]] | None = None,
    limits: Mapping[str, float] | None = None,
    namespaces: Mapping[str, Sequence[str]] | None = None,
    idle: Sequence[str] = (),
    groups: Mapping[str, str] | None = None,
    policies: Sequence[IsolationPolicy] = (),
    topics: Sequence[str] = (),
) -> ClusterState:
    """Brokers by name, each with bundles of these sizes: percent points of CPU, of 100 unless `limits` says otherwise.

    Without `namespaces` (parallel to the sizes) each bundle has one: `t/<broker>-<number>`. `idle` namespaces have no
    loaded topic. No broker has a base load. `topics` are names of topics.
    """
    bundles = []
    for broker, own in sizes.items():
        for number, size in enumerate(own):
            namespace = namespaces[broker][number] if namespaces else f"t/{broker}-{number}"
            place = number * 0x10000000 if namespaces else 0
            text = f"0x{place:08x}_0x{place + 0x10000000:08x}" if namespaces else WHOLE
            rate = 0.0 if namespace in idle else size * MESSAGES
            loaded = 0 if namespace in idle else 1
            consumers = clients[broker][number] if clients else 1
            traffic = (rate, rate, rate, rate)
            bundles.append(BundleRow(namespace, text, f"{broker}:8080", traffic, topics=loaded, consumers=consumers))
    rows = [
        BrokerRow(
            f"{broker}:8080",
            cpu=(sum(own), (limits or {}).get(broker, 100.0)),
            traffic=(sum(own) * MESSAGES,) * 4,
        )
        for broker, own in sizes.items()
    ]
    return cluster_state(rows, bundles, anti_affinity_groups=groups, isolation_policies=tuple(policies), topics=topics)


def room(state: ClusterState, *, follows_messages: bool = True) -> Room:
    """The room in it, under the overload threshold; by default history shows that no broker has a base load."""
    return Room.of(Situation.of_fit(state, SETTINGS, _history(state) if follows_messages else ()))


def proposed(state: ClusterState, goal: Goal) -> Proposal:
    """What a kind proposes, under the settings of 4.0.8."""
    [(_, proposal)] = propose(Request(goal=_resolved(state, goal)), Situation.of_fit(state, SETTINGS, _history(state)))
    assert isinstance(proposal, Proposal)
    return proposal


def planned(state: ClusterState, goal: Goal, *, follows_messages: bool = True, **limits: Any) -> Plan:
    """The plan of it; by default history shows that no broker has a base load, else one snapshot is all there is."""
    request = Request(goal=_resolved(state, goal), limits=Limits(**limits))
    situation = Situation.of_fit(state, SETTINGS, _history(state) if follows_messages else [])
    [(_, proposal)] = propose(request, situation)
    assert isinstance(proposal, Proposal)
    return build_plan(situation, proposal, request, INPUTS)


def _history(state: ClusterState) -> list[ClusterState]:
    """Earlier moments that show that no broker has a base load: its CPU usage follows its messages."""
    brokers = state.brokers
    return [
        replace(state, brokers=replace(brokers, usage=brokers.usage * part, traffic=brokers.traffic * part))
        for part in (0.25, 0.5, 0.75)
    ]


def _resolved(state: ClusterState, goal: Goal) -> Goal:
    return resolved_goal(goal, state.brokers.ids, OVERLOADED)


def moved(plan: Plan) -> dict[str, str]:
    """Namespace to destination host, of a plan's executable steps."""
    return {step.namespace: host(step.destination) for step in executable(plan)}


def executable(plan: Plan) -> list[Step]:
    return list(plan.executable_steps)


def host(broker: str | None) -> str:
    return (broker or "").removesuffix(":8080")
