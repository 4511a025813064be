"""What holds of every answer about every scenario. Each property yields a complaint for whatever breaks it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import permutations
from typing import Final

from pulsar_advisor.model.errors import AdvisorError
from pulsar_advisor.planning.advice.options import Option
from scenarios.asked import Asked, GoalAnswer, goal_of
from scenarios.brute_force import BruteForce, Ends, Relief
from scenarios.scenario import PORT

Complaints = Iterator[str]
Property = Callable[[Asked, BruteForce], Complaints]

SAME: Final = 0.0006
"""Usages that read the same when written with a decimal."""
_WORTHWHILE_FALL: Final = 0.1
"""A fall of the busiest broker's usage that no operator would pass up."""


def goals_of(brute: BruteForce) -> tuple[str, ...]:
    """The goals that every cluster is asked for: about its busiest, its second and its idlest broker, and all."""
    now = brute.now()
    ranked = sorted(now, key=lambda host: -now[host])
    some = dict.fromkeys([*ranked[:2], *ranked[-1:]])
    about_one = [f"{kind} {host}{to}" for host in some for kind, to in (("relieve", " --to 60"), ("drain", ""))]
    filled = [f"fill {host}" for host in ranked[-1:]]
    return (*about_one, *filled, "balance", "balance --to 60", "split --to 60", "conform", *brute.scenario.ask)


def _answers(asked: Asked, brute: BruteForce, *kinds: str) -> Iterator[tuple[str, GoalAnswer]]:
    for text in goals_of(brute):
        if not kinds or text.split()[0] in kinds:
            found = asked.goal(text)
            if isinstance(found, GoalAnswer):
                yield text, found


def _limit(asked: Asked, answer: GoalAnswer) -> float:
    """What no destination may exceed."""
    ceiling = answer.plan.goal.ceiling_ratio if answer.plan.goal else None
    limit = asked.overloaded_ratio if ceiling is None else ceiling
    return limit if answer.goal.target_ratio is None else min(limit, answer.goal.target_ratio)


def _after(brute: BruteForce, answer: GoalAnswer) -> dict[str, Ends]:
    """What becomes of each broker; parts of bundles are left to the plan's own arithmetic."""
    if not answer.splits:
        return brute.after(answer.moves)
    brokers = answer.plan.predicted.after.brokers
    return {
        host: Ends(brokers[host + PORT].lowest_usage_ratio or 0.0, brokers[host + PORT].highest_usage_ratio or 0.0)
        for host in brute.hosts
    }


def _percent(ratio: float) -> str:
    return f"{ratio:.1%}"


def _destinations(answer: GoalAnswer) -> set[str]:
    return {
        str(step.destination).removesuffix(PORT)
        for step in answer.plan.steps
        if step.executable and step.action == "unload" and step.destination is not None
    }


def no_destination_ends_above(asked: Asked, brute: BruteForce) -> Complaints:
    """No destination ends above the target or the ceiling, whichever end of the model is true."""
    for text, answer in _answers(asked, brute):
        limit, after = _limit(asked, answer), _after(brute, answer)
        for host in sorted(_destinations(answer)):
            if after[host].highest > limit + SAME:
                yield f"{text}: {host} may end at {_percent(after[host].highest)}, above {_percent(limit)}"


def the_busiest_never_gets_worse(asked: Asked, brute: BruteForce) -> Complaints:
    """No plan for relief leaves a broker busier than the busiest was."""
    before = max(brute.now().values(), default=0.0)
    for text, answer in _answers(asked, brute, "relieve", "fill", "balance", "split"):
        after = _after(brute, answer)
        worst = max(after, key=lambda host: after[host].highest)
        if after[worst].highest > before + SAME:
            yield f"{text}: {worst} may get to {_percent(after[worst].highest)}; the busiest was at {_percent(before)}"


def predictions_hold_both_ends(asked: Asked, brute: BruteForce) -> Complaints:
    """The predicted range of a broker contains what each end of the model gives.

    Machines that are alike and show a line may leave out the end at which all CPU is base.
    """
    for text, answer in _answers(asked, brute):
        if answer.splits:
            continue
        follows = brute.after_if_cpu_follows_messages(answer.moves)
        for host, ends in brute.after(answer.moves).items():
            found = answer.plan.predicted.after.brokers[host + PORT]
            low, high = found.lowest_usage_ratio, found.highest_usage_ratio
            wanted = Ends(follows[host], follows[host]) if _has_peers(answer) else ends
            if low is None or high is None:
                yield f"{text}: {host} has no predicted range"
            elif low > wanted.lowest + SAME or high < wanted.highest - SAME:
                possible = f"{_percent(wanted.lowest)} to {_percent(wanted.highest)} is possible"
                yield f"{text}: {host} is predicted at {_percent(low)} to {_percent(high)}, but {possible}"


def _has_peers(answer: GoalAnswer) -> bool:
    """Whether the plan learns what is base from machines that are alike."""
    return any(base.origin == "peers" for base in answer.plan.predicted.base.values())


def outcomes_say_what_plans_do(asked: Asked, brute: BruteForce) -> Complaints:
    """The outcome of a goal is what its plan brings about: reached, perhaps, in part or missed.

    In part, too, if only the better end of the model reaches it.
    """
    for text, answer in _answers(asked, brute, "relieve", "balance", "drain"):
        expected = _outcome(brute, answer)
        if expected is not None and answer.outcome not in expected:
            yield f"{text}: the outcome is {answer.outcome}, not {' or '.join(sorted(expected))}"


def _outcome(brute: BruteForce, answer: GoalAnswer) -> set[str] | None:
    """The outcomes that an expert would accept; None if that isn't judged."""
    after, moves = _after(brute, answer), answer.moves
    short = {"in part"} if moves or answer.splits else {"missed"}
    if answer.goal.kind == "drain":
        hosts: tuple[str, ...] = answer.hosts
        left = [b.name for b in brute.movable if b.load.broker in hosts and b.name not in moves]
        unfit = any(b.load.broker in hosts and not b.load.fit for b in brute.scenario.bundles)
        if unfit:
            return {"in part", "missed"}
        return {"reached"} if not left else short
    target = answer.plan.decision.figures.get("target_ratio")
    if not isinstance(target, float | int):
        return None
    hosts = answer.hosts or tuple(after)
    ends = Ends(max(after[host].lowest for host in hosts), max(after[host].highest for host in hosts))
    if abs(ends.highest - target) < SAME or abs(ends.lowest - target) < SAME:
        return None
    if ends.highest <= target:
        return {"reached"}
    return {"perhaps", "in part", *({"reached"} if _has_peers(answer) else ())} if ends.lowest <= target else short


def headlines_name_the_asked_broker(asked: Asked, brute: BruteForce) -> Complaints:
    """The first sentence of an answer about a broker names it."""
    for text, answer in _answers(asked, brute, "relieve", "drain", "fill"):
        if not all(host in answer.headline for host in answer.hosts):
            yield f"{text}: {answer.headline}"


def what_is_possible_is_found(asked: Asked, brute: BruteForce) -> Complaints:
    """A goal that trying everything reaches, if CPU follows messages, is reached by the plan in that case."""
    if not asked.keeps_destinations:
        return
    for text, answer in _answers(asked, brute, "relieve"):
        target = answer.goal.target_ratio
        (host,) = answer.hosts
        relief = None if target is None else brute.relief(host, target, asked.overloaded_ratio)
        lowest = brute.after(answer.moves)[host].lowest
        if isinstance(relief, Relief) and target is not None and lowest > target + SAME:
            possible = f"moving {relief.clients} clients would do"
            yield f"{text}: {host} gets to {_percent(lowest)}, and {possible}: {answer.headline}"
    for text, answer in _answers(asked, brute, "drain"):
        (host,) = answer.hosts
        if brute.drain_fits(host, asked.overloaded_ratio) and not answer.splits:
            left = [b.name for b in brute.movable if b.load.broker == host and b.name not in answer.moves]
            if left:
                yield f"{text}: {len(left)} bundles stay though all fit elsewhere: {answer.headline}"


def the_cheapest_way_is_taken(asked: Asked, brute: BruteForce) -> Complaints:
    """`relieve` moves the fewest clients, then bundles, onto the brokers that are the least busy then; `balance` moves
    the fewest bundles. What stays on a hot broker is what the plan takes for likely."""
    for text, answer in _answers(asked, brute, "relieve"):
        target = answer.goal.target_ratio
        (host,) = answer.hosts
        bases = _bases(answer)
        if target is None or not answer.moves or host not in bases:
            continue
        relief = brute.relief(host, target, asked.overloaded_ratio, bases[host])
        if not isinstance(relief, Relief):
            continue
        loads = {bundle.name: bundle.load for bundle in brute.movable}
        clients = sum(loads[name].producers + loads[name].consumers for name in answer.moves)
        maximum = max(ends.highest for name, ends in brute.after(answer.moves).items() if name != host)
        if answer.outcome in ("reached", "perhaps") and clients > relief.clients:
            yield f"{text}: {clients} clients move, and {relief.clients} would do"
        if (clients, len(answer.moves)) == relief[:2] and maximum > relief.others + SAME:
            yield f"{text}: another broker ends at {_percent(maximum)}, and {_percent(relief.others)} costs no more"
    for text, answer in _answers(asked, brute, "balance"):
        if answer.goal.target_ratio is None or answer.outcome not in ("reached", "perhaps"):
            continue
        fewest = brute.fewest_moves_within(answer.goal.target_ratio, _bases(answer))
        if fewest is not None and fewest is not False and len(answer.moves) > fewest:
            yield f"{text}: {len(answer.moves)} bundles move, and {fewest} would do"


def _bases(answer: GoalAnswer) -> dict[str, float]:
    """What the plan takes for the likely base of each broker, in percent."""
    base = answer.plan.predicted.base
    return {name.removesuffix(PORT): 100 * one.ratio for name, one in base.items() if one.ratio is not None}


def best_way(text: str, brute: BruteForce) -> Relief | int | bool | None:
    """What trying everything finds for `drain`, `relieve --to` or `balance --to`; None if that isn't tried."""
    goal = goal_of(text)
    ceiling = brute.scenario.values.overloaded_ratio
    if goal.kind == "drain":
        return brute.drain_fits(goal.brokers[0], ceiling)
    if goal.target_ratio is None:
        return None
    if goal.kind == "relieve":
        return brute.relief(goal.brokers[0], goal.target_ratio, ceiling)
    return brute.fewest_moves_within(goal.target_ratio) if goal.kind == "balance" else None


def computed(brute: BruteForce) -> Mapping[str, object]:
    """Question -> the answer of the brute force, which properties hold against the advisor's."""
    found = {text: best_way(text, brute) for text in goals_of(brute)}
    of_all = {"recommend": brute.best_maximum(), "scale": brute.even_usage()}
    return {text: answer for text, answer in {**found, **of_all}.items() if answer is not None}


def no_goal_is_reached_that_cannot_be(asked: Asked, brute: BruteForce) -> Complaints:
    """Nothing is said to be reached that trying everything doesn't reach."""
    for text, answer in _answers(asked, brute, "relieve", "drain", "balance"):
        target = answer.goal.target_ratio
        is_there = answer.goal.kind == "relieve" and brute.now()[answer.hosts[0]] <= (target or 0.0)
        possible = None if is_there else best_way(text, brute)
        if possible is False and answer.outcome in ("reached", "perhaps"):
            yield f"{text}: {answer.outcome}, but no moves do: {answer.headline}"


def scale_is_never_refuted(asked: Asked, brute: BruteForce) -> Complaints:
    """`scale` calls no number of brokers enough for work that they can't do, and none too few that can do it."""
    for target in (0.6, 0.8):
        try:
            found = asked.scale(target)
        except AdvisorError:
            continue
        even, most = brute.even_usage(), brute.most_that_may_stay()
        said = f"scale --to {target:.0%}: {found.sentence}"
        if even is None:
            continue
        if found.verdict in ("right", "over") and even > target + SAME:
            yield f"{said} But divided evenly the work makes {_percent(even)}"
        if found.verdict in ("right", "over") and most > target + SAME and not brute.is_informed:
            yield f"{said} But nobody knows that the {_percent(most)} of the busiest would move"
        if found.verdict == "under" and even <= target and not brute.is_informed:
            yield f"{said} But divided evenly the work may make {_percent(even)}"
        for machine in found.machines:
            cores = float(machine.title.split()[0]) if machine.title[0].isdigit() else None
            if machine.needed is not None and cores is not None:
                least = brute.even_usage({cores: machine.needed - machine.brokers})
                if least is None or least > target + SAME:
                    shown = "no machine is left" if least is None else f"the work makes {_percent(least)}"
                    yield f"{said} With {machine.needed} of {machine.title} {shown}"
        for size in found.sizes:
            if size.lowest_ratio > size.likely_ratio + SAME or size.likely_ratio > size.highest_ratio + SAME:
                yield f"{said} {size} is no range"


def the_bound_is_a_bound(asked: Asked, brute: BruteForce) -> Complaints:
    """No way to place all bundles beats the bound, if what stays on each broker is what plans take for likely."""
    plan = asked.goal("balance")
    bases = _bases(plan) if isinstance(plan, GoalAnswer) else {}
    bound, best = asked.recommendation.document.lowest_maximum_ratio, brute.best_maximum(bases)
    if bound is not None and best is not None and best < bound - SAME:
        yield f"{_percent(best)} is reachable, below the bound of {_percent(bound)}"


def no_option_is_dominated(asked: Asked, brute: BruteForce) -> Complaints:
    """No option is worse in usage or cost, and better in neither, than one that is no more work.

    A plan is somebody's work, and so is a setting; to wait is none.
    """
    done = [one for one in asked.recommendation.options if one.kind != "nothing"]
    for worse, better in permutations(done, 2):
        comparable = better.kind == "own_balancer" or {worse.kind, better.kind} <= {"move", "split"}
        first, second = _worth(worse), _worth(better)
        no_better = all(one >= two - SAME for one, two in zip(first, second, strict=True))
        if comparable and no_better and any(one > two + SAME for one, two in zip(first, second, strict=True)):
            yield f"'{worse.sentence}' {first} is dominated by '{better.sentence}' {second}"


def _worth(option: Option) -> tuple[float, ...]:
    """What counts against it: the usage it leaves, and what it costs."""
    usage, cost = option.maximum_ratio, option.cost
    clients = cost.producers + cost.consumers
    moved = cost.moved_throughput_bytes_per_s / 1e6
    return (1.0 if usage is None else usage, cost.splits, cost.unloads, clients, moved)


def no_option_is_impossible(asked: Asked, brute: BruteForce) -> Complaints:
    """No option is to wait for a balancer that is switched off."""
    values = asked.values
    if values.load_balancer_enabled and values.load_balancer_shedding_enabled:
        return
    for option in asked.recommendation.options:
        if option.kind == "own_balancer":
            yield option.sentence


def no_split_without_need(asked: Asked, brute: BruteForce) -> Complaints:
    """A split, which can't be undone, is not part of a plan whose unloads alone do the same."""
    for option in asked.recommendation.options:
        cost = option.cost
        if option.kind == "move" and cost.splits:
            yield f"{option.sentence}: {cost.splits} splits move no load"
    for text, answer in _answers(asked, brute, "split"):
        if answer.splits and brute.fewest_moves_within(answer.goal.target_ratio or 0.0) not in (None, False):
            yield f"{text}: cuts {answer.splits}, though moves alone do"


_WOULD_DECIDE: Final = re.compile("would decide|would show|one bundle first|trial move", re.IGNORECASE)


def nothing_is_never_the_answer_to_a_crisis(asked: Asked, brute: BruteForce) -> Complaints:
    """'Do nothing' is not said where a few moves would take a tenth off a broker that is too busy, unless the page says
    which measurement would decide."""
    headline, now = asked.recommendation.headline, brute.now()
    if not headline.startswith("Do nothing") or not now or _WOULD_DECIDE.search(asked.recommendation.words):
        return
    busiest = max(now, key=lambda host: now[host])
    if now[busiest] < asked.overloaded_ratio or asked.scenario.load_manager == "simple":
        return
    wanted = now[busiest] - _WORTHWHILE_FALL
    if wanted > 0 and isinstance(relief := brute.relief(busiest, wanted, asked.overloaded_ratio), Relief):
        possible = f"moving {relief.bundles} of its bundles would bring it to {_percent(wanted)}"
        yield f"{busiest} is at {_percent(now[busiest])}, and {possible}: {headline}"


def low_coverage_comes_first(asked: Asked, brute: BruteForce) -> Complaints:
    """Where much of the load, or the busiest broker, was set aside, no answer says that nothing is to be done."""
    judged = asked.recommendation.document.coverage
    active = {name: one for name, one in asked.scenario.brokers.items() if one.active}
    busiest = max(active, key=lambda name: active[name].cpu, default="")
    if min(judged.judged_ratio, judged.judged_msg_rate_ratio) >= 0.9 and (not busiest or active[busiest].fit):
        return
    if asked.recommendation.headline.startswith("Do nothing"):
        yield f"recommend: {asked.recommendation.headline}"


def lint_proposes_nothing_worse(asked: Asked, brute: BruteForce) -> Complaints:
    """A setting that lint proposes leaves the cluster no worse than today's does."""
    today = asked.today
    if isinstance(today, AdvisorError):
        return
    proposed = [dict(finding.change) for finding in asked.proposals if finding.change and finding.effect is not None]
    for trial in asked.trials:
        if trial.score is None or dict(trial.change) not in proposed:
            continue
        worse = trial.score.last_usage_maximum_ratio - today.last_usage_maximum_ratio
        unsettled = today.ended == "settled" and trial.score.ended != "settled"
        if worse > 0.01 or unsettled:
            change = " ".join(f"{key}={value.rpartition('.')[2] or value}" for key, value in trial.change.items())
            yield (
                f"{change}: {trial.score.ended} at {_percent(trial.score.last_usage_maximum_ratio)} after "
                f"{trial.score.unloads} unloads; today {today.ended} at {_percent(today.last_usage_maximum_ratio)} "
                f"after {today.unloads}"
            )


def restarts_are_honest(asked: Asked, brute: BruteForce) -> Complaints:
    """Every broker has its turn once, and no turn leaves the others less busy than the work that is left allows."""
    try:
        restarts = asked.restarts.restarts
    except AdvisorError:
        return
    hosts = sorted(one.broker.removesuffix(PORT) for one in restarts)
    if hosts != sorted(brute.hosts):
        yield f"the turns are {hosts}"
    for one in restarts:
        host = one.broker.removesuffix(PORT)
        least = brute.even_without(host)
        if not one.stay and least is not None and one.highest_usage_ratio < least - SAME:
            said = _percent(one.highest_usage_ratio)
            yield f"without {host} the others are said to be at {said} at most, but the work takes {_percent(least)}"


_UNREADABLE: Final = re.compile(
    r"\b(nan|inf|None)\b|\b1 (bundles|brokers|topics|clients|unloads|splits)\b|-0\.0%|\.\.|\bT/"
)


def sentences_can_be_read(asked: Asked, brute: BruteForce) -> Complaints:
    """No sentence contains NaN or infinity, Python's None, or a plural after 1."""
    found = asked.recommendation
    sentences = [found.headline, *(one.sentence for one in (*found.document.findings, *found.options))]
    for _, answer in _answers(asked, brute):
        sentences += [answer.headline, *answer.plan.decision.caveats]
    sentences += [one.sentence for one in asked.lint]
    yield from (sentence for sentence in dict.fromkeys(sentences) if _UNREADABLE.search(sentence))


def explanations_can_be_read(asked: Asked, brute: BruteForce) -> Complaints:
    """Likewise the sentences of `explain` about the cluster and each broker."""
    for kind, name in (("cluster", ""), *(("broker", host) for host in brute.hosts)):
        found = asked.explanation(kind, name)  # type: ignore[arg-type]
        if not isinstance(found, AdvisorError):
            sentences = [found.sentence, *(flip.sentence for flip in found.flips)]
            sentences += [one.sentence for link in found.chain for one in link.answers]
            yield from (sentence for sentence in dict.fromkeys(sentences) if _UNREADABLE.search(sentence))


def simulations_begin_with_the_snapshot(asked: Asked, brute: BruteForce) -> Complaints:
    """A simulation starts from the usage that was found, and loses no message."""
    if isinstance(asked.today, AdvisorError) or isinstance(asked.alone, AdvisorError):
        return
    today = asked.today
    now = max(brute.now().values(), default=0.0)
    if abs(today.first_usage_maximum_ratio - now) > SAME and asked.scenario.load_manager != "extensible":
        yield f"it starts at {_percent(today.first_usage_maximum_ratio)}, and the busiest is at {_percent(now)}"
    before, after = today.first_throughput_mean_bytes_per_s, today.last_throughput_mean_bytes_per_s
    if abs(before - after) > 1e-6 * max(before, 1.0):
        yield f"throughput was {before} B/s on average, and becomes {after}"


PROPERTIES: Final[Mapping[str, Property]] = {
    one.__name__: one
    for one in (
        no_destination_ends_above,
        the_busiest_never_gets_worse,
        predictions_hold_both_ends,
        outcomes_say_what_plans_do,
        headlines_name_the_asked_broker,
        what_is_possible_is_found,
        the_cheapest_way_is_taken,
        no_goal_is_reached_that_cannot_be,
        scale_is_never_refuted,
        the_bound_is_a_bound,
        no_option_is_dominated,
        no_option_is_impossible,
        no_split_without_need,
        nothing_is_never_the_answer_to_a_crisis,
        low_coverage_comes_first,
        lint_proposes_nothing_worse,
        restarts_are_honest,
        sentences_can_be_read,
        explanations_can_be_read,
        simulations_begin_with_the_snapshot,
    )
}
