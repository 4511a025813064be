"""The few sentences about a cluster that matter most, and the share of its load that could be judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from pulsar_advisor.model.base_load import base_load
from pulsar_advisor.model.cluster_state import (
    BANDWIDTH_IN,
    BANDWIDTH_OUT,
    CPU,
    NO_ROW,
    RESOURCE_NAMES,
    Booleans,
    ClusterState,
    Floats,
    rate_per_s,
    throughput_bytes_per_s,
)
from pulsar_advisor.model.plan import Plan
from pulsar_advisor.model.proportional import shares_of
from pulsar_advisor.model.resource_usage import deciding_resources
from pulsar_advisor.model.settings import LoadBalancerSettings
from pulsar_advisor.planning.fitness import fit_part, judged_bundles, split_refusals
from pulsar_advisor.planning.forecast import loads_of, usage_ratios
from pulsar_advisor.planning.hot_topics import hot_topics

_HOT_TOPICS_NAMED: Final = 3

_GOES_WITH: Final = {CPU: "messages", BANDWIDTH_IN: "inbound bytes", BANDWIDTH_OUT: "outbound bytes"}
"""What a resource follows, by its column; the others stay with the broker."""

_HIGHEST_FIGURE: Final = 1e15
"""No machine reaches such a rate of messages or bytes; the checks of the figures use the same limit."""


@dataclass(frozen=True)
class Finding:
    """One sentence for an operator."""

    severity: Literal["warning", "info"]
    """`warning` if something is wrong or should be done."""
    sentence: str


@dataclass(frozen=True)
class Coverage:
    """What validation excluded. Shares are 0..1, and 1 where there is no traffic."""

    judged_ratio: float
    """Share of the cluster's throughput in usable bundles of complete brokers."""
    judged_msg_rate_ratio: float
    """Likewise for its message rate."""
    unmeasured_bundles: int
    """Owned bundles that could not be judged and whose load is unknown, or all bundles if no broker reports an owner or
    load; the shares leave them out."""
    excluded_brokers: tuple[str, ...]
    excluded_namespaces: tuple[str, ...]
    excluded_bundles: int

    @property
    def sentence(self) -> str:
        """What could not be judged, for an operator."""
        parts = []
        if min(self.judged_ratio, self.judged_msg_rate_ratio) < 1.0:
            parts.append(f"{1.0 - self.judged_msg_rate_ratio:.1%} of the messages")
            parts.append(f"{1.0 - self.judged_ratio:.1%} of the bytes")
        if self.unmeasured_bundles:
            noun = "bundle" if self.unmeasured_bundles == 1 else "bundles"
            parts.append(f"the load of {self.unmeasured_bundles} {noun} without figures")
        if not parts:
            return "All of the load could be judged."
        what = " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
        return f"{what[0].upper()}{what[1:]} could not be judged."


def coverage(state: ClusterState) -> Coverage:
    """How much of the load of a whole state, unfit parts included, could be judged."""
    bundles = state.bundles
    judged = judged_bundles(state)
    possible = np.asarray(((bundles.traffic >= 0) & (bundles.traffic <= _HIGHEST_FIGURE)).all(axis=1))
    traffic = np.where(possible[:, None], bundles.traffic, 0.0)
    owned, reporting = bundles.owner != NO_ROW, state.brokers.report_updated_at_ms > 0
    none_reports = not (owned.any() or reporting.any())
    silent = owned & ~reporting[bundles.owner]
    unusable = np.bincount(bundles.namespace, weights=~bundles.usable, minlength=len(state.namespaces))
    count = np.bincount(bundles.namespace, minlength=len(state.namespaces))
    whole = (count > 0) & (unusable == count)
    return Coverage(
        judged_ratio=_share(throughput_bytes_per_s(traffic), judged),
        judged_msg_rate_ratio=_share(rate_per_s(traffic), judged),
        unmeasured_bundles=int((none_reports | (~judged & (silent | ~possible))).sum()),
        excluded_brokers=_names(state.brokers.ids, ~state.brokers.complete),
        excluded_namespaces=_names(state.namespaces.names, whole),
        excluded_bundles=int((~bundles.usable).sum()),
    )


def _share(figure: Floats, judged: Booleans) -> float:
    total = float(figure.sum())
    return float(figure[judged].sum()) / total if total > 0 else 1.0


def _names(names: tuple[str, ...], marked: Booleans) -> tuple[str, ...]:
    return tuple(names[row] for row in np.flatnonzero(marked))


def findings(state: ClusterState, settings: LoadBalancerSettings, plans: Sequence[Plan]) -> tuple[Finding, ...]:
    """What matters besides the advice, most important first; at least two if the cluster has a fit broker.

    `plans` are those of the cluster's own strategies, for unloads and for splits, or of the goal.
    """
    found = [Finding("warning", caveat) for plan in plans for caveat in plan.decision.caveats]
    fit = fit_part(state)
    if "topic_traffic" in state.missing:
        found.append(_no_broker_asked(fit))
    busiest = _busiest_broker(fit, settings)
    if busiest is not None:
        found.append(busiest)
    hot = hot_topics(fit, settings, base_load(fit))
    found += [Finding("warning", topic.sentence) for topic in hot[:_HOT_TOPICS_NAMED]]
    if (more := len(hot) - _HOT_TOPICS_NAMED) > 0:
        found.append(Finding("warning", f"{more} more topics need more than a fair share alone."))
    refused = split_refusals(fit, settings)
    found.append(Finding("warning", refused[0].sentence) if refused else _splits(plans))
    if (averages := _averages(fit)) is not None:
        found.append(averages)
    judged = coverage(state)
    if min(judged.judged_ratio, judged.judged_msg_rate_ratio) < 1.0 or judged.unmeasured_bundles:
        found.append(Finding("warning", judged.sentence))
    return tuple(found)


def _no_broker_asked(state: ClusterState) -> Finding:
    if "broker_usage" in state.missing:
        return Finding("warning", "No broker was read, and none has published fit figures.")
    return Finding(
        "warning",
        "No broker was read: figures and predictions are based on the last values in ZooKeeper, Pulsar's "
        "defaults replace the brokers' settings, and the effect of a split is predicted from the number of topics, "
        "not from their load.",
    )


def _busiest_broker(state: ClusterState, settings: LoadBalancerSettings) -> Finding | None:
    available = np.flatnonzero(state.brokers.available)
    if not len(available):
        return None
    ratios = usage_ratios(loads_of(state), settings)
    broker = int(available[np.argmax(ratios[available])])
    mean = float(ratios[available].mean())
    resource = int(deciding_resources(state.brokers.usage, state.brokers.limit, settings)[broker])
    sentence = (
        f"{state.brokers.ids[broker]} is the busiest broker at {ratios[broker]:.1%} ({RESOURCE_NAMES[resource]}); "
        f"the mean is {mean:.1%}."
    )
    mine = np.flatnonzero((state.bundles.owner == broker) & state.bundles.reported)
    if resource not in _GOES_WITH:
        return Finding("info", f"{sentence} No bundle takes {RESOURCE_NAMES[resource]} along, so no unload lowers it.")
    if len(mine):
        shares = shares_of(state.bundles.traffic[mine], state.brokers.traffic[np.full(len(mine), broker)])[:, resource]
        if (share := float(shares.max())) > 0:
            bundle = state.bundle_name(int(mine[np.argmax(shares)]))
            sentence += f" {bundle} has the largest part of its {_GOES_WITH[resource]}: {share:.0%}."
    return Finding("info", sentence)


def _averages(state: ClusterState) -> Finding | None:
    """How many samples the leader's averages gained after it stored them."""
    folded, unknown = (
        int(count.max(initial=0)) for count in (state.bundles.folded_samples, state.bundles.unknown_samples)
    )
    if not (folded or unknown):
        return None
    sentence = "The averages of the leader are those it stored"
    if folded:
        sentence += f", with up to {folded} {'sample' if folded == 1 else 'samples'} from load reports written since"
    if unknown:
        sentence += (
            f"; the figures of up to {unknown} more are assumed, as no snapshot shows them, so steps that depend on "
            "these averages have medium confidence at most: snapshots at shorter intervals show more"
        )
    return Finding("info", sentence + ".")


def _splits(plans: Sequence[Plan]) -> Finding:
    splits = [step for plan in plans for step in plan.steps if step.action == "split"]
    if not splits:
        return Finding("info", "No split is planned.")
    first = splits[0]
    more = f" and {len(splits) - 1} more" if len(splits) > 1 else ""
    return Finding("warning", f"{first.namespace}/{first.bundle}{more} should be split: {first.reason}.")
