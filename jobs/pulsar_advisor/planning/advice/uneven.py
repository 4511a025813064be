"""What can be done about the busiest broker where no strategy acts, as the verbs of goals find it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import floor
from typing import Final

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import DIRECT_MEMORY, MEMORY, RESOURCE_NAMES, ClusterState
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.load.resource_usage import ROUNDING_RATIO, deciding_resources, usage_ratios
from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.model.text.some_of import points
from pulsar_advisor.placement.filters import placement_facts, policy_candidates
from pulsar_advisor.planning.advice.capacity import only_more_brokers
from pulsar_advisor.planning.advice.goal_sentence import usage_after
from pulsar_advisor.planning.advice.headline import busiest_of
from pulsar_advisor.planning.advice.verbs import Verbs, steps_found
from pulsar_advisor.planning.proposals.executable import is_movable
from pulsar_advisor.planning.proposals.limits import LEAVE_OUT
from pulsar_advisor.planning.situation import Situation
from pulsar_advisor.planning.usage.hot_topics import HotTopic

_MOST_BESIDE_SPLITS: Final = 500
"""Steps of a plan without splits, above which none with splits is made: it takes longer than all other answers."""


@dataclass(frozen=True)
class _Busiest:
    """The busiest available broker of an uneven cluster."""

    row: int
    broker: str
    usage_ratio: float
    resource: int
    """The resource that decides it."""
    even_ratio: float
    """The usage at which the load counts as even."""
    how: str
    goals: tuple[Goal, ...]
    """In the order in which they are tried."""

    @property
    def is_above(self) -> str:
        """Which broker is too busy, by which resource, and how much too busy."""
        return f"{self.broker} is at {self.usage_ratio:.1%} ({RESOURCE_NAMES[self.resource]}), {self.how}"


@dataclass(frozen=True)
class Uneven:
    """What can be done about the busiest broker."""

    sentence: str
    plan: Plan | None = None
    """The plan that helps; None if none does."""
    command: str = ""
    """What makes it, as an operator types it; empty without a plan."""


def is_uneven(state: ClusterState, settings: LoadBalancerSettings) -> bool:
    """Whether the busiest broker is overloaded, or far above the mean, as `uneven` has it."""
    return _busiest(state, settings) is not None


def uneven(situation: Situation, verbs: Verbs, excluded: Collection[str] = ()) -> Uneven | None:
    """What can be done about the busiest available broker if no strategy acts; None if the load is even.

    It is uneven if that broker is overloaded, or above the mean by more than
    `loadBalancerBrokerThresholdShedderPercentage`, as Pulsar's default shedder up to 5.0 has it. Nothing can be done
    about a broker that the operator `excluded` (ids).
    """
    if (busiest := _busiest(situation.settled, situation.settings.values)) is None:
        return None
    why = _why_no_verb(situation, busiest, excluded)
    return _found(situation, busiest, verbs) if why is None else Uneven(why)


def _why_no_verb(situation: Situation, busiest: _Busiest, excluded: Collection[str]) -> str | None:
    """What is said where no verb can help, so that none has to be asked; None where one may."""
    state, settings = situation.settled, situation.settings.values
    usage = usage_ratios(state.brokers, settings)[state.brokers.available]
    if busiest.usage_ratio > settings.overloaded_ratio and (reason := only_more_brokers(usage, settings)):
        return f"Only more brokers help: {reason}."
    if busiest.resource in (MEMORY, DIRECT_MEMORY):
        return f"{busiest.is_above}: no bundle takes {RESOURCE_NAMES[busiest.resource]} along, so no move lowers it."
    if busiest.broker in excluded:
        return f"{busiest.is_above}, and is excluded by --exclude-broker."
    least = min(settings.overloaded_ratio, busiest.usage_ratio - situation.noise.ratio)
    if undivided := _undivided(situation, busiest, least):
        return f"{busiest.is_above}, and no unload and no split divides {undivided}."
    return None


def _busiest(state: ClusterState, settings: LoadBalancerSettings) -> _Busiest | None:
    """The busiest broker; None if no usage is known, one is infinite, or the load is even."""
    rows = np.flatnonzero(state.brokers.available)
    usage = usage_ratios(state.brokers, settings)[rows]
    if not np.isfinite(usage).any() or np.isinf(usage).any():
        return None
    highest, mean = float(np.nanmax(usage)), float(usage[np.isfinite(usage)].mean())
    row, overloaded = int(rows[np.nanargmax(usage)]), settings.overloaded_ratio
    threshold = settings.load_balancer_broker_threshold_shedder_percentage
    broker, resource = state.brokers.ids[row], int(deciding_resources(state.brokers, settings)[row])
    relieve, balance, split = Goal("relieve", (broker,)), Goal("balance"), Goal("split")
    if highest > overloaded:
        how = f"above the overload threshold of {overloaded:.0%}"
        return _Busiest(row, broker, highest, resource, overloaded, how, (relieve, balance, split))
    if (highest - mean) * 100 > threshold:
        how = f"{points(highest - mean)} above the mean"
        return _Busiest(row, broker, highest, resource, mean + threshold / 100, how, (balance, relieve, split))
    return None


def _undivided(situation: Situation, busiest: _Busiest, least: float) -> str:
    """The topics, in words, that alone keep the busiest broker above a usage (ratio); empty if none does."""
    state, overloaded = situation.settled, situation.settings.values.overloaded_ratio
    names = frozenset(map(state.bundle_name, np.flatnonzero(state.bundles.owner == busiest.row).tolist()))
    hottest = next((one for one in situation.hot if one.alone_ratio > least and one.bundle in names), None)
    if hottest is None:
        return ""
    others = [one for one in situation.hot if one != hottest and one.alone_ratio > overloaded]
    return f"{hottest.in_words}{_nor(others)}"


def _found(situation: Situation, busiest: _Busiest, verbs: Verbs) -> Uneven:
    """What the first verb that helps finds, with its usual target or with that of an even load; or that none helps."""
    to = max(1, floor(round(100 * busiest.even_ratio, 3)))
    plans = list[Plan]()
    for goal in (*busiest.goals, *(replace(goal, target_ratio=to / 100) for goal in busiest.goals)):
        if goal.kind == "split" and any(len(plan.executable_steps) > _MOST_BESIDE_SPLITS for plan in plans[:2]):
            continue
        if (plan := verbs.plan_for(goal)) is None:
            continue
        if falls := _falls(plan, busiest.broker, situation.noise.ratio):
            command = verbs.command(goal)
            return Uneven(f"{busiest.is_above}: {command} finds {steps_found(plan)}: {falls}.", plan, command)
        plans.append(plan)
    if not plans:
        return Uneven(f"{busiest.is_above}.")
    *first, last = dict.fromkeys(f"`{plan.title}`" for plan in plans)
    asked = f"{', '.join(first)} and {last}" if first else last
    nothing = f"and {asked}{verbs.options}, also with `--to {to}%`, find nothing that lowers it by more than noise"
    hot = _undivided(situation, busiest, 0.0)
    whole = f" No unload and no split divides {hot}." if hot else ""
    return Uneven(f"{busiest.is_above}, {nothing}{_why_nothing(situation, busiest.row, plans)}{whole}")


def _falls(plan: Plan, broker: str, floor_ratio: float) -> str:
    """What becomes of the busiest broker, as a clause; empty if that isn't lower by more than noise."""
    before, after = plan.predicted.before, plan.predicted.after
    was, then = before.brokers[broker].usage_ratio, after.brokers[broker]
    least = max(floor_ratio, ROUNDING_RATIO)
    if was is None or then.usage_ratio is None or was - then.usage_ratio < least:
        return ""
    is_sure = then.highest_usage_ratio is None or was - then.highest_usage_ratio >= least
    falls = f"{broker} {'falls' if is_sure else 'may fall'} to {usage_after(after, broker, floor_ratio)}"
    busiest = busiest_of(after)
    if busiest is None or after.maximum_ratio is None or was - after.maximum_ratio >= least:
        return falls
    return f"{falls}, and {busiest} is the busiest, at {after.maximum_ratio:.1%}"


def _why_nothing(situation: Situation, broker: int, plans: Sequence[Plan]) -> str:
    """The end of a sentence: why the plans of verbs do no more for a broker (a row); first why that about it doesn't,
    then what keeps bundles whole."""
    plan = next((plan for plan in plans if plan.goal is not None and plan.goal.brokers), plans[0])
    state, settings = situation.settled, situation.settings.values
    whole = _why_whole(
        plans, [state.bundle_name(row) for row in np.flatnonzero(state.bundles.owner == broker).tolist()]
    )
    if plan.executable_steps:
        # Where limits leave steps out, the others are about what it would do without them.
        of_limits = [one for one in plan.decision.caveats if one.lower().startswith(LEAVE_OUT)]
        return " ".join((".", *(of_limits or (*plan.decision.caveats, *whole))))
    finds_no_move = plan.decision.figures.get("moves") == 0
    if finds_no_move and state.isolation_policies and not _may_go_below_mean(state, settings, broker):
        return ": isolation policies leave its bundles no other broker with room."
    is_stuck = finds_no_move and "usage_ratio_after" in plan.decision.figures  # and has bundles that may move
    why = (plan.decision.why_nothing or "no bundle can be moved").removesuffix(".")
    return " ".join((f". `{plan.title}`: {why}.", *(whole if is_stuck else ())))


def _why_whole(plans: Sequence[Plan], bundles: Sequence[str]) -> list[str]:
    """A sentence: why the first of these bundles that splits would have to cut can't be; none where one can."""
    caveats = (one for plan in plans if plan.decision.figures.get("splits") == 0 for one in plan.decision.caveats)
    of_these = (f"`split`: {one}" for one in caveats if any(bundle in one for bundle in bundles))
    return list(islice(of_these, 1))


def _nor(others: Sequence[HotTopic]) -> str:
    """The other topics that overload any broker alone."""
    if len(others) > 1:
        return f", nor {len(others)} other topics above the threshold"
    return "".join(f", nor {one.in_words}" for one in others)


def _may_go_below_mean(state: ClusterState, settings: LoadBalancerSettings, owner: int) -> bool:
    """Whether isolation policies allow a bundle of this broker (a row) on another one that isn't above the mean; they
    do without a bundle that can be moved."""
    facts, usage = placement_facts(state, settings), usage_ratios(state.brokers, settings)
    others = ~(usage > np.nanmean(usage[state.brokers.available]))
    others[owner] = False
    rows = [row for row in np.flatnonzero(state.bundles.owner == owner).tolist() if is_movable(state, row)]
    kinds = {(int(state.bundles.namespace[row]), bool(facts.non_persistent[row])) for row in rows}
    return not kinds or any(
        bool((policy_candidates(facts, namespace, non_persistent=non_persistent) & others).any())
        for namespace, non_persistent in kinds
    )
