"""What carrying out a plan disturbs, in total and per tenant, and the least time it takes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from pulsar_advisor.model.bounds import VALID_FOR_S
from pulsar_advisor.model.cluster.bundle_range import FULL_UPPER_BOUND, parse_range
from pulsar_advisor.model.cluster.cluster_state import (
    NO_ROW,
    ClusterState,
    Floats,
    possible,
    rate_per_s,
    throughput_bytes_per_s,
)
from pulsar_advisor.model.plans.goal import ROLL
from pulsar_advisor.model.plans.plan import Plan, Step
from pulsar_advisor.planning.advice.compare import clients_of
from pulsar_advisor.reporting.figures import count, throughput

TakesS = Callable[[int], float]
"""Calls -> the seconds that they take at the default pace."""


@dataclass(frozen=True)
class Disturbance:
    """An estimate for all executable steps of a plan. Clients are producers and consumers, which connect again."""

    calls: int
    least_duration_s: float | None
    """At the default pace, without the brokers' time for each call; None if unknown."""
    topics: int
    clients: int
    throughput_bytes_per_s: float
    largest_step: str
    """The unload that closes the most topics; empty without one."""
    largest_step_topics: int
    largest_step_clients: int
    non_persistent_topics: int = 0
    """Those of `topics` whose messages no bookie keeps."""
    is_first_turn: bool = False
    """Whether it is that of a roll's first turn: the later ones are planned when they come."""

    @property
    def sentences(self) -> tuple[str, ...]:
        """The estimate in words."""
        return tuple(self._sentences())

    def _sentences(self) -> Iterator[str]:
        if self.least_duration_s:
            yield (
                f"{'The first turn' if self.is_first_turn else 'Applying'} takes at least "
                f"{_duration(self.least_duration_s)}: {count(self.calls, 'call')} at the default pace."
            )
            if self.least_duration_s > VALID_FOR_S and not self.is_first_turn:  # a roll has a day
                yield (
                    f"An approval expires after {VALID_FOR_S // 3600} h by default: allow more steps in flight, or "
                    "limit the plan's unloads."
                )
        if self.largest_step:
            close, reconnect = (
                ("closes" if self.topics == 1 else "close"),
                ("reconnects" if self.clients == 1 else "reconnect"),
            )
            yield (
                f"{count(self.topics, 'topic')} with {throughput(self.throughput_bytes_per_s)} {close}, one bundle "
                f"at a time, and {count(self.clients, 'client')} {reconnect}; at most "
                f"{count(self.largest_step_topics, 'topic')} and {count(self.largest_step_clients, 'client')} at once "
                f"({self.largest_step})."
            )
        if self.non_persistent_topics:
            are = "is" if self.non_persistent_topics == 1 else "are"
            yield (
                f"{self.non_persistent_topics:,} of these topics {are} non-persistent: messages sent until the clients "
                "are back are lost."
            )


@dataclass(frozen=True)
class Tenant:
    """One tenant: its share of the cluster's load (ratio, None without load), and what of it the plan disturbs."""

    name: str
    namespaces: int
    bundles: int
    msg_rate_per_s: float
    msg_rate_share: float | None
    throughput_bytes_per_s: float
    throughput_share: float | None
    unloads: int
    splits: int
    topics: int
    """Closed by the unloads, with `clients` that connect again."""
    clients: int


def disturbance_of(state: ClusterState, plan: Plan | None, takes_s: TakesS | None) -> Disturbance | None:
    """The estimate; None if there is nothing to carry out."""
    if plan is None or not plan.executable_steps:
        return None
    steps = plan.executable_steps
    unloads = [step for step in steps if step.action == "unload"]
    clients = _clients(state, plan)
    largest = max(unloads, key=lambda step: (step.expect.topics, clients[step.id]), default=None)
    return Disturbance(
        calls=len(steps),
        least_duration_s=None if takes_s is None else takes_s(len(steps)),
        topics=sum(step.expect.topics for step in unloads),
        clients=clients.total(),
        throughput_bytes_per_s=sum(step.expect.throughput_bytes_per_s or 0.0 for step in unloads),
        largest_step="" if largest is None else largest.id,
        largest_step_topics=0 if largest is None else largest.expect.topics,
        largest_step_clients=0 if largest is None else clients[largest.id],
        non_persistent_topics=_non_persistent(state, unloads),
        is_first_turn=plan.shedder == ROLL,
    )


def _non_persistent(state: ClusterState, unloads: Iterable[Step]) -> int:
    """How many loaded non-persistent topics the bundles of these steps have, children of splits included."""
    topics, namespaces = state.topics, {name: row for row, name in enumerate(state.namespaces.names)}
    rows = np.flatnonzero(topics.loaded & topics.is_non_persistent)
    namespace, position, closed = topics.namespace[rows], topics.hash[rows], np.zeros(len(rows), dtype=np.bool_)
    for step in unloads:
        lower, upper = parse_range(step.bundle)
        inside = (position >= lower) & ((position < upper) | (upper == FULL_UPPER_BOUND))
        closed |= inside & (namespace == namespaces.get(step.namespace, NO_ROW))
    return int(closed.sum())


def tenants_of(state: ClusterState, plan: Plan | None) -> tuple[Tenant, ...]:
    """All tenants, by how much the plan disturbs them, then by throughput."""
    names = [name.partition("/")[0] for name in state.namespaces.names]
    namespaces = Counter(names)
    tenants = sorted(namespaces)
    row_of = {name: row for row, name in enumerate(tenants)}
    tenant_of_namespace = np.array([row_of[name] for name in names], dtype=np.int64)
    rows = tenant_of_namespace[state.bundles.namespace]
    traffic = np.where(possible(state.bundles.traffic)[:, None], state.bundles.traffic, 0.0)
    rates, flows = (
        np.asarray(np.bincount(rows, weights=figure, minlength=len(tenants)), dtype=np.float64)
        for figure in (rate_per_s(traffic), throughput_bytes_per_s(traffic))
    )
    bundles = np.bincount(rows, minlength=len(tenants))
    steps: defaultdict[str, list[Step]] = defaultdict(list)
    for step in plan.executable_steps if plan is not None else ():
        steps[step.namespace.partition("/")[0]].append(step)
    clients = _clients(state, plan) if plan is not None else Counter()

    def tenant(row: int) -> Tenant:
        name = tenants[row]
        unloads = [step for step in steps[name] if step.action == "unload"]
        return Tenant(
            name=name,
            namespaces=namespaces[name],
            bundles=int(bundles[row]),
            msg_rate_per_s=float(rates[row]),
            msg_rate_share=_share(rates, row),
            throughput_bytes_per_s=float(flows[row]),
            throughput_share=_share(flows, row),
            unloads=len(unloads),
            splits=len(steps[name]) - len(unloads),
            topics=sum(step.expect.topics for step in unloads),
            clients=sum(clients[step.id] for step in unloads),
        )

    found = [tenant(row) for row in range(len(tenants))]
    return tuple(sorted(found, key=lambda one: (-one.topics - one.clients, -one.throughput_bytes_per_s, one.name)))


def _share(figures: Floats, row: int) -> float | None:
    total = float(figures.sum())
    return float(figures[row]) / total if total > 0 else None


def _clients(state: ClusterState, plan: Plan) -> Counter[str]:
    """Step id -> the clients of its bundle."""
    return Counter({step: sum(both) for step, both in clients_of(plan, state).items()})


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
