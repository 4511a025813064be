"""The few sentences about a cluster that matter most."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import (
    BANDWIDTH_IN,
    BANDWIDTH_OUT,
    CPU,
    LEAST_CPU,
    NO_ROW,
    RESOURCE_NAMES,
    ClusterState,
    rate_per_s,
    throughput_bytes_per_s,
)
from pulsar_advisor.model.cluster.namespaces import of_users
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.load.base_load import STEADY_RATIO, steady_samples
from pulsar_advisor.model.load.proportional import shares_of
from pulsar_advisor.model.load.resource_usage import ROUNDING_RATIO, busiest_first, deciding_resources, usage_ratios
from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.model.plans.plan import Plan, Step
from pulsar_advisor.model.text.some_of import count, first_of, some_of
from pulsar_advisor.planning.advice.capacity import full_direct_memory, unknown_network
from pulsar_advisor.planning.advice.coverage import Coverage
from pulsar_advisor.planning.advice.headline import highest_on_the_way
from pulsar_advisor.planning.advice.isolation import isolation_sentences
from pulsar_advisor.planning.advice.uneven import is_uneven
from pulsar_advisor.planning.advice.vain_splits import why_in_vain
from pulsar_advisor.planning.advice.verbs import Verbs, steps_found
from pulsar_advisor.planning.kinds.arrivals import may_have_arrived
from pulsar_advisor.planning.proposals.fitness import split_refusals
from pulsar_advisor.planning.situation import Situation
from pulsar_advisor.planning.usage.ailments import unused

_HOT_TOPICS_NAMED: Final = 3
_IDLE_FILLED: Final = 3
"""Idle brokers in the command that fills them; it can be given again."""

_ABOVE_ITS_LIMIT_RATIO: Final = 1.1
"""The tolerance of the checks about it: samples of usage and of time don't match to the millisecond."""

_UNLIKE_OTHERS: Final = 3.0
"""How many times as much CPU as on other brokers a message may cost: sizes, clients and compression differ."""
_LEAST_UNEXPLAINED_RATIO: Final = 0.1
"""Of a broker's CPU: what is beyond that is worth a look."""

_GOES_WITH: Final = {CPU: "messages", BANDWIDTH_IN: "inbound bytes", BANDWIDTH_OUT: "outbound bytes"}
"""What a resource follows, by its column; the others stay with the broker."""


_NO_SPLITS: Final = (
    "No split is proposed meanwhile: it can't be undone, and rates are also those of clients that come back and catch "
    "up."
)


Severity = Literal["warning", "info"]


@dataclass(frozen=True)
class Finding:
    """One sentence for an operator."""

    severity: Severity
    """`warning` if something is wrong or should be done."""
    sentence: str


def findings(
    situation: Situation, plans: Sequence[Plan], judged: Coverage, verbs: Verbs, advised: Plan | None = None
) -> tuple[Finding, ...]:
    """What matters besides the advice and the coverage, most important first; at least one if a broker is fit.

    `plans` are those of the cluster's own strategies, for unloads and for splits, or of the goal. `advised`: the plan
    that the advice is about.
    """
    return tuple(_findings(situation, plans, judged, verbs, advised))


def _findings(
    situation: Situation, plans: Sequence[Plan], judged: Coverage, verbs: Verbs, advised: Plan | None
) -> Iterator[Finding]:
    state, fit, resolved, ails = situation.state, situation.fit, situation.settings, situation.ailments
    settings, hot = resolved.values, situation.hot
    of_plans = dict.fromkeys(caveat for plan in plans for caveat in plan.decision.caveats)
    yield from _warnings((*resolved.caveats, *of_plans))
    yield from _warnings(_no_topics_read(fit))
    yield from _warnings(ailment.sentence for ailment in ails)
    yield from _warnings(_restarted(state, situation.earlier))
    yield from _warnings(_above_limits(fit))
    if fit.brokers.available.any():
        yield _busiest_broker(situation, of_all=not (judged.decides or judged.excluded_brokers))
    if not any(plan.goal for plan in plans):
        yield from _infos(_idle(situation, verbs))
    if advised is not None:
        yield from _warnings(_peak(advised, settings))
    yield from _warnings(unknown_network(fit))
    yield from _warnings(unused(state, settings))
    yield from _infos(full_direct_memory(fit, settings))
    yield from _warnings(isolation_sentences(situation, verbs))
    yield from _warnings(topic.sentence for topic in hot[:_HOT_TOPICS_NAMED])
    if (more := len(hot) - _HOT_TOPICS_NAMED) > 0:
        need = "needs" if more == 1 else "need"
        yield Finding("warning", f"{count(more, 'more topic')} {need} more than a fair share alone.")
    refused = split_refusals(fit, settings)
    splits = [step for plan in plans for step in plan.executable_steps if step.action == "split"]
    if refused:
        yield Finding("warning", refused[0].sentence)
    elif not any(ailment.unsettles_rates for ailment in ails):
        yield from _splits(splits, fit, settings)
    elif splits:
        yield Finding("info", _NO_SPLITS)
    yield from _infos(_averages(fit))
    yield from _infos(resolved.notes)


def _warnings(sentences: Iterable[str]) -> Iterator[Finding]:
    return (Finding("warning", sentence) for sentence in sentences)


def _infos(sentences: Iterable[str]) -> Iterator[Finding]:
    return (Finding("info", sentence) for sentence in sentences)


def _no_topics_read(state: ClusterState) -> Iterator[str]:
    by_number = "the effect of a split is predicted from the number of topics, not from their load."
    if "topic_traffic" not in state.missing:
        return
    if "broker_usage" in state.missing:
        yield "No broker was read, and none has published fit figures."
    elif "settings" not in state.missing:
        yield f"No broker listed its loaded topics: {by_number}"
    else:
        yield (
            "No broker was read: figures and predictions are based on the last values in ZooKeeper, Pulsar's defaults "
            f"replace the brokers' settings, and {by_number}"
        )


def _restarted(state: ClusterState, earlier: Sequence[ClusterState]) -> Iterator[str]:
    """The brokers that have started anew since the last of the `earlier` states."""
    before = _starts(earlier[-1]) if earlier else {}
    if restarted := [broker for broker, at in _starts(state).items() if before.get(broker, at) != at]:
        yield f"Restarted since snapshot {earlier[-1].snapshot}: {some_of(restarted)}."


def _starts(state: ClusterState) -> dict[str, int]:
    """When each broker started (epoch milliseconds), as far as it says."""
    starts = zip(state.brokers.ids, state.brokers.started_at_ms.tolist(), strict=True)
    return {broker: at for broker, at in starts if at > 0}


def _busiest_broker(situation: Situation, *, of_all: bool) -> Finding:
    """The busiest broker and what it is busy with, a warning if the load is uneven; without `of_all` one that was set
    aside may be busier."""
    state, settings, base = situation.settled, situation.settings.values, situation.base
    available = np.flatnonzero(state.brokers.available)
    ratios = usage_ratios(state.brokers, settings)
    rates = rate_per_s(state.brokers.traffic[available])
    broker = int(available[busiest_first(ratios[available], rates)[0]])
    mean = float(ratios[available].mean())
    resource = int(deciding_resources(state.brokers, settings)[broker])
    among = "" if of_all else "Of the brokers that could be judged, "
    sentence = (
        f"{among}{state.brokers.ids[broker]} is the busiest broker at {ratios[broker]:.1%} "
        f"({RESOURCE_NAMES[resource]}); the mean is {mean:.1%}."
    )
    mine = np.flatnonzero((state.bundles.owner == broker) & state.bundles.reported)
    severity: Severity = "warning" if is_uneven(state, settings) else "info"
    if resource == CPU and (before := _cpu_before(state, broker, situation.earlier)) is not None:
        as_then = f"With as many messages, earlier reports had it at {before:.1%} at most"
        why = "they cost more now, or something else on its machine uses CPU, which no unload lowers"
        return Finding("warning", f"{sentence} {as_then}: {why}.")
    if resource == CPU and (alike := _cpu_like_others(state, broker)) is not None:
        why = "its messages cost more, as small batches do, or something else on its machine uses CPU"
        if base.origin[broker] == "history":
            stays = base.likely[broker] / state.brokers.limit[broker, CPU]
            why = f"by its own earlier reports, about {stays:.0%} stays without any message"
        as_others = f"At the other brokers' CPU per message it would be at {alike:.1%}"
        return Finding("warning", f"{sentence} {as_others}: {why}, which no unload lowers.")
    if resource not in _GOES_WITH:
        memory = RESOURCE_NAMES[resource]
        stays = f"No bundle takes {memory} along, so no unload lowers it."
        see = "" if state.load_manager == "simple" else ": see `lint`"
        return Finding(severity, f"{sentence} {memory.capitalize()} says little about load{see}. {stays}")
    if len(mine):
        shares = shares_of(state.bundles.traffic[mine], state.brokers.traffic[np.full(len(mine), broker)])[:, resource]
        if (share := float(shares.max())) > 0:
            bundle = state.bundle_name(int(mine[np.argmax(shares)]))
            sentence += f" {bundle} has the largest part of its {_GOES_WITH[resource]}: {share:.0%}."
    return Finding(severity, sentence)


def _idle(situation: Situation, verbs: Verbs) -> Iterator[str]:
    """The brokers that surely serve no user's topic, as new ones don't, where others serve some; and what `fill` finds
    for them."""
    state = situation.fit
    bundles, users = state.bundles, of_users(state.namespaces.names)
    serves = (bundles.topics > 0) & (bundles.owner != NO_ROW) & users[bundles.namespace]
    may_serve = serves | may_have_arrived(state, situation.earlier)
    idle = [state.brokers.ids[row] for row in np.setdiff1d(np.flatnonzero(state.brokers.fit), bundles.owner[may_serve])]
    if not idle or not serves.any():
        return
    serve = "serves" if len(idle) == 1 else "serve"
    sentence = f"{some_of(idle)} {serve} no topic of users"
    goal = Goal("fill", tuple(idle[:_IDLE_FILLED]))
    found = ""
    if (plan := verbs.plan_for(goal)) is not None:
        nothing = f"nothing: {str(plan.decision.why_nothing).removesuffix('.')}"
        found = f": {verbs.command(goal)} finds {steps_found(plan) if plan.executable_steps else nothing}"
    yield f"{sentence}{found}."


def _cpu_before(state: ClusterState, broker: int, earlier: Sequence[ClusterState]) -> float | None:
    """The highest usage (ratio) of a broker in earlier reports with as much load as now; None where that may explain
    what it uses, or there is none."""
    now = state.brokers.traffic[broker]
    least = (1.0 - STEADY_RATIO) * rate_per_s(now), (1.0 - STEADY_RATIO) * throughput_bytes_per_s(now)
    samples = steady_samples(earlier).get(state.brokers.ids[broker], [])
    alike = [one.cpu for one in samples if one.rate_per_s >= least[0] and one.throughput_bytes_per_s >= least[1]]
    used, limit = state.brokers.usage[broker, CPU], state.brokers.limit[broker, CPU]
    if not (alike and limit > 0 and used > max(alike) + _LEAST_UNEXPLAINED_RATIO * limit):
        return None
    return max(alike) / float(limit)


def _cpu_like_others(state: ClusterState, broker: int) -> float | None:
    """The usage (ratio) that a broker's load would cause on the others; None where it may explain what the broker uses.

    By messages or by bytes, whichever gives more. The least of the others shows what a broker uses without load.
    """
    brokers = state.brokers
    used = brokers.usage[:, CPU]
    others = brokers.fit & (used >= LEAST_CPU) & (np.arange(len(brokers)) != broker)
    loads = np.stack((rate_per_s(brokers.traffic), throughput_bytes_per_s(brokers.traffic)))
    totals, limit = loads[:, others].sum(axis=1), brokers.limit[broker, CPU]
    if not ((totals > 0).all() and limit > 0):
        return None
    alike = float((loads[:, broker] / totals).max() * used[others].sum())
    explained = max(_UNLIKE_OTHERS * alike, float(used[others].min()))
    if not used[broker] > explained + _LEAST_UNEXPLAINED_RATIO * limit:  # or one of them is no number
        return None
    return alike / float(limit)


def _peak(plan: Plan, settings: LoadBalancerSettings) -> Iterator[str]:
    """A broker that is overloaded between the steps, and busier than the busiest before and after them: bundles that
    brokers exchange move one after the other.
    """
    ends = [one.maximum_ratio for one in (plan.predicted.before, plan.predicted.after) if one.maximum_ratio is not None]
    peak = highest_on_the_way(plan)
    if peak.usage_ratio > max(settings.overloaded_ratio, *ends) + ROUNDING_RATIO:
        yield (
            f"After {peak.step} of the advised plan, {peak.broker} is at {peak.usage_ratio:.1%} until later steps "
            "relieve it: apply the plan when load is low."
        )


def _above_limits(state: ClusterState) -> Iterator[str]:
    """The brokers that report more usage than their limit: one of the two is wrong.

    A usage may be for one sample, as it is divided by the time between two samples by the wall clock
    (`LinuxBrokerHostUsageImpl.calculateBrokerHostUsage`).
    """
    brokers = state.brokers
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(brokers.fit[:, None] & (brokers.limit > 0), brokers.usage / brokers.limit, 0.0)
    above = [
        f"{ratios[row, resource]:.0%} of the {RESOURCE_NAMES[resource]} of {brokers.ids[row]}"
        for row, resource in np.argwhere(ratios > _ABOVE_ITS_LIMIT_RATIO).tolist()
    ]
    causes = "-XX:ActiveProcessorCount below the machine's cores, a cgroup without a quota, a NIC speed set too low"
    if above:
        yield (
            f"By these figures more is in use than there is: {some_of(above)}. If the next snapshot says so too, a "
            f"limit is too low ({causes}), else a clock was set back. To Pulsar such a broker is overloaded."
        )


def _averages(state: ClusterState) -> Iterator[str]:
    """How many samples the leader's averages gained after it stored them."""
    folded, unknown = (
        int(count.max(initial=0)) for count in (state.bundles.folded_samples, state.bundles.unknown_samples)
    )
    sentence = "The leader's averages are those it stored"
    if folded:
        sentence += f", plus up to {count(folded, 'sample')} from load reports written since"
    if unknown:
        sentence += (
            f"; the figures of up to {unknown} more are assumed, as no snapshot shows them, so steps that depend on "
            "these averages have medium confidence at most: snapshots at shorter intervals show more"
        )
    if folded or unknown:
        yield f"{sentence}."


def _splits(splits: Sequence[Step], state: ClusterState, settings: LoadBalancerSettings) -> Iterator[Finding]:
    """Which bundles should be split, and which Pulsar's rule splits in vain."""
    reasons = [why_in_vain(step, state, settings) for step in splits]
    useful = [step for step, why in zip(splits, reasons, strict=True) if why is None]
    vain = [(step, why) for step, why in zip(splits, reasons, strict=True) if why is not None]
    if useful:
        of = first_of([step.bundle_name for step in useful])
        yield Finding("warning", f"{of} should be split: {useful[0].reason}.")
    if vain:
        first, why = vain[0]
        of = first_of([step.bundle_name for step, _ in vain])
        yield Finding("info", f"By Pulsar's rule {of} would be split, in vain: {first.reason}, but {why}.")
