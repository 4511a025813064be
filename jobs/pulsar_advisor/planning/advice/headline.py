"""The first sentence of an answer: what to do and what it brings, at the worse end too, or why nothing is done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple

from pulsar_advisor.model.cluster.cluster_state import RESOURCE_NAMES, RESOURCES
from pulsar_advisor.model.plans.plan import BrokerForecast, Forecast, Plan, Step
from pulsar_advisor.model.text.some_of import count, points
from pulsar_advisor.planning.advice.compare import Score, is_worthwhile
from pulsar_advisor.planning.proposals.fitness import Refusal
from pulsar_advisor.planning.situation import Situation
from pulsar_advisor.planning.usage.noise import DEFAULT_RATIO

_SOURCES_NAMED: Final = 3
_ROUNDING: Final = 1e-9


class ByItself(NamedTuple):
    """What Pulsar's own balancer does where the advisor advises nothing."""

    acts: bool
    sentence: str


def advised_sentence(plan: Plan, by_itself: ByItself, floor_ratio: float, uneven: str | None) -> str:
    """The advice to carry out a plan.

    Where it only splits, which moves no load: before it, what can be done about a broker that is too busy (`uneven`),
    and after it, what Pulsar does `by_itself`.
    """
    sentence = plan_sentence(plan, floor_ratio)
    if plan.unloads:
        return sentence
    return _one_text(uneven, sentence, by_itself.sentence if by_itself.acts else None)


def unjudged_sentence(scores: Sequence[Score], refusals: Sequence[Refusal]) -> str:
    """Why no combination could be judged."""
    lack = f"{refusals[0].missing} is missing ({refusals[0].reason})" if refusals else str(scores[0].error)
    return f"No unload can be judged: {lack.removesuffix('.')}."


def unadvised_sentence(
    situation: Situation,
    scores: Sequence[Score],
    by_itself: ByItself,
    uneven: str | None = None,
    *,
    limited: bool = False,
    warned: bool = False,
    overloading: str = "",
) -> str:
    """Why no plan is advised though some combination could be judged, and what Pulsar does `by_itself`.

    `uneven` says what else can be done about a broker that is too busy; `limited`: the operator's limits may leave
    steps out; `warned`: a finding says that something else is wrong or should be done; `overloading`: which broker a
    worthwhile plan takes above what it has on the way, and how far, so that it isn't advised.
    """
    if not situation.state.brokers.traffic.any():
        return "There is no load to balance: no broker reports any message, so no usage comes from bundles."
    why = _why_nothing(situation, scores, overloading)
    if limited:
        why = f"within the limits {why}"
    if uneven is not None:
        return _one_text(f"{why[0].upper()}{why[1:]}", uneven, by_itself.sentence if by_itself.acts else None)
    nothing = "Do nothing about the load, but see the findings" if warned else "Do nothing"
    return f"{'No plan is worthwhile' if by_itself.acts else nothing}: {why} {by_itself.sentence}"


def _one_text(*sentences: str | None) -> str:
    return " ".join(sentence for sentence in sentences if sentence is not None)


def _why_nothing(situation: Situation, scores: Sequence[Score], overloading: str) -> str:
    if situation.fit.load_manager == "simple" and any(row.unloads for row in scores):
        return "what a plan brings isn't known, as this load manager chooses where each unloaded bundle goes."
    if overloading:
        return f"each worthwhile plan overloads a broker on the way, as {overloading}."
    if any(is_worthwhile(row, 0.0) for row in scores):
        return (
            f"no strategy lowers the busiest broker by more than {points(situation.noise.ratio)}, and figures differ "
            "that much from one snapshot to the next."
        )
    if any(row.steps for row in scores):
        return "no strategy finds a move that lowers the busiest broker."
    reasons = {row.why_nothing or row.error for row in scores} - {None}
    only = f" {next(iter(reasons))}" if len(reasons) == 1 else ""
    return f"no strategy would act on these figures.{only}"


def none_judged(scores: Collection[Score], refusals: Iterable[Refusal]) -> bool:
    """Whether no combination could be judged: each has an error, or does nothing because of a refusal."""
    refused = {refusal.sentence for refusal in refusals}
    return bool(scores) and all(row.error is not None or row.why_nothing in refused for row in scores)


def plan_sentence(plan: Plan, floor_ratio: float = DEFAULT_RATIO) -> str:
    """What the executable steps of a plan do and gain; less than the noise floor doesn't count as a gain."""
    unloads = plan.unloads
    splits = [step for step in plan.executable_steps if step.action == "split"]
    if not unloads:
        before = plan.predicted.before
        busiest = busiest_of(before)
        stays = f": the busiest broker stays at {usage_text(before.brokers[busiest])}" if busiest is not None else ""
        return f"Split {_split_what(splits)}, which can't be undone. A split alone moves no load{stays}."
    bundles, then = f"{count(len(unloads), 'bundle')}{_sources(unloads)}", ""
    what, needed = f"Unload {bundles}", {name for step in unloads for name in step.after}
    if any(step.id in needed for step in splits):  # it is their parts that move
        what = f"Split {_split_what(splits)}, which can't be undone, then unload {bundles}"
    elif splits:
        then = f" Then split {_split_what(splits)}, which can't be undone."
    first = [ratio for ratio in unloads[0].predicted.brokers.values() if ratio is not None]
    # Of bundles that brokers exchange, one alone may overload a broker.
    can_try = len(unloads) > 1 and max(first, default=0.0) <= (plan.predicted.before.maximum_ratio or 0.0) + _ROUNDING
    effect = _effect(what, plan.predicted.before, plan.predicted.after, floor_ratio, can_try=can_try)
    return f"{effect}.{then}"


def _effect(what: str, before: Forecast, after: Forecast, floor_ratio: float, *, can_try: bool) -> str:
    """What is done, and how that changes the busiest broker's usage, with the resources that decide it.

    The worse end of the range is named if it differs by more than noise, and comes first if it is a loss. If it is no
    gain, one of several unloads shows on the cluster which end is true, if one `can_try` it alone.
    """
    busiest, expected = busiest_of(before), busiest_of(after)
    now, then, worst = before.maximum_ratio, after.maximum_ratio, after.highest_maximum_ratio
    if busiest is None or expected is None or now is None or then is None:
        return what
    start = usage_text(before.brokers[busiest])
    if f"{now:.1%}" == f"{then:.1%}":
        return f"{what}: the busiest broker stays at {start}"
    same_resource = after.brokers[expected].resource == before.brokers[busiest].resource
    end = f"{then:.1%}" if same_resource else usage_text(after.brokers[expected])
    worst = then if worst is None else worst
    is_close = worst - then <= floor_ratio + _ROUNDING
    is_sure = is_close or now - worst >= floor_ratio
    falls = "should fall" if is_sure else "may fall"
    verb = "rises" if then >= now else falls
    change = f"{what}: the busiest broker {verb} from {start} to {end}"
    if is_close:
        return change
    if then >= now or is_sure:
        return f"{change}, at worst to {worst:.1%}"
    if worst - now >= floor_ratio:
        loss = f"at worst the busiest broker rises from {now:.1%} to {worst:.1%}"
        first = f"Try one bundle first: {loss}" if can_try else loss.capitalize()
        return f"{first}. {change}"
    hint = ": try one bundle first" if can_try else ""
    return f"{change}, at worst not at all{hint}"


class Peak(NamedTuple):
    """The usage of a broker right after a step."""

    usage_ratio: float
    broker: str
    step: str


def highest_on_the_way(plan: Plan) -> Peak:
    """The highest usage that a plan predicts right after a step; 0 without one."""
    between = [
        Peak(ratio, broker, step.id)
        for step in plan.executable_steps
        for broker, ratio in step.predicted.brokers.items()
        if ratio is not None
    ]
    return max(between, default=Peak(0.0, "", ""))


def usage_text(broker: BrokerForecast) -> str:
    """`92.5% (CPU)`: a known usage, and the resource that decides it, if the plan says so."""
    resource = f" ({RESOURCE_NAMES[RESOURCES.index(broker.resource)]})" if broker.resource in RESOURCES else ""
    return f"{broker.usage_ratio:.1%}{resource}"


def busiest_of(forecast: Forecast) -> str | None:
    """The busiest of the brokers that count; None if there is none."""
    ratios = {broker: one.usage_ratio for broker, one in forecast.brokers.items()}
    return next((broker for broker, ratio in ratios.items() if ratio == forecast.maximum_ratio is not None), None)


def _sources(unloads: Sequence[Step]) -> str:
    """` from a`, or ` (3 from a, 2 from b)`, those with the most unloads first."""
    sources = Counter(step.source for step in unloads)
    if len(sources) == 1:
        return f" from {next(iter(sources))}"
    named = [f"{number} from {source}" for source, number in sources.most_common(_SOURCES_NAMED)]
    rest = len(sources) - len(named)
    named += [f"the rest from {count(rest, 'more broker')}"] if rest else []
    return f" ({', '.join(named)})"


def _split_what(splits: Sequence[Step]) -> str:
    namespaces = sorted({step.namespace for step in splits})
    of = f"of {namespaces[0]}" if len(namespaces) == 1 else f"of {count(len(namespaces), 'namespace')}"
    return f"{count(len(splits), 'bundle')} {of}"
