"""The few sentences about a cluster that matter most, and what share of its load could be judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pulsar_advisor.model.cluster_state import NOBODY, Booleans, ClusterState
from pulsar_advisor.model.plan import Plan
from pulsar_advisor.model.settings import LoadBalancerSettings
from pulsar_advisor.planning.forecast import loads_of, usage_ratios


@dataclass(frozen=True)
class Finding:
    """One sentence for an operator."""

    severity: Literal["warning", "info"]
    """`warning` where something should be done or is wrong."""
    sentence: str


@dataclass(frozen=True)
class Coverage:
    """What validation took out of the running."""

    judged_ratio: float
    """Share of the cluster's throughput in usable bundles of complete brokers, 0..1; 1 where there is no traffic."""
    excluded_brokers: tuple[str, ...]
    excluded_namespaces: tuple[str, ...]
    excluded_bundles: int


def coverage(state: ClusterState) -> Coverage:
    """How much of the load could be judged."""
    bundles = state.bundles
    throughput = bundles.traffic[:, 2] + bundles.traffic[:, 3]
    owned = bundles.owner != NOBODY
    judged = bundles.usable & (~owned | state.brokers.complete[bundles.owner])
    total = float(throughput.sum())
    unusable = np.bincount(bundles.namespace, weights=~bundles.usable, minlength=len(state.namespaces))
    count = np.bincount(bundles.namespace, minlength=len(state.namespaces))
    whole = (count > 0) & (unusable == count)
    return Coverage(
        judged_ratio=float(throughput[judged].sum()) / total if total > 0 else 1.0,
        excluded_brokers=_names(state.brokers.ids, ~state.brokers.complete),
        excluded_namespaces=_names(state.namespaces.names, whole),
        excluded_bundles=int((~bundles.usable).sum()),
    )


def _names(names: tuple[str, ...], marked: Booleans) -> tuple[str, ...]:
    return tuple(names[row] for row in np.flatnonzero(marked))


def findings(
    state: ClusterState, settings: LoadBalancerSettings, advice: str, advised: Plan | None, plans: Sequence[Plan]
) -> tuple[Finding, ...]:
    """What matters most, most important first; at least three where the cluster has an available broker."""
    found = [Finding("warning" if advised else "info", advice)]
    busiest = _busiest_broker(state, settings)
    if busiest is not None:
        found.append(busiest)
    found.append(_splits(advised or (plans[0] if plans else None)))
    if advised is not None:
        found.append(Finding("info", advised.decision.would_pulsar_act + "."))
    judged = coverage(state)
    if judged.judged_ratio < 1.0:
        found.append(Finding("warning", f"{1.0 - judged.judged_ratio:.0%} of the load could not be judged."))
    return tuple(found)


def _busiest_broker(state: ClusterState, settings: LoadBalancerSettings) -> Finding | None:
    available = np.flatnonzero(state.brokers.available)
    if not len(available):
        return None
    ratios = usage_ratios(loads_of(state), settings)
    broker = int(available[np.argmax(ratios[available])])
    mean = float(ratios[available].mean())
    sentence = f"{state.brokers.ids[broker]} is the busiest broker at {ratios[broker]:.1%}; the mean is {mean:.1%}."
    mine = np.flatnonzero(state.bundles.owner == broker)
    throughput = state.bundles.traffic[mine, 2] + state.bundles.traffic[mine, 3]
    if len(mine) and throughput.sum() > 0:
        top = int(np.argmax(throughput))
        share = throughput[top] / throughput.sum()
        sentence += f" {state.bundle_name(int(mine[top]))} causes {share:.0%} of its throughput."
    return Finding("info", sentence)


def _splits(plan: Plan | None) -> Finding:
    splits = [step for step in plan.steps if step.action == "split"] if plan else []
    if not splits:
        return Finding("info", "No bundle is over a split limit.")
    first = splits[0]
    more = f" and {len(splits) - 1} more" if len(splits) > 1 else ""
    return Finding("warning", f"{first.namespace}/{first.bundle}{more} should be split: {first.reason}.")
