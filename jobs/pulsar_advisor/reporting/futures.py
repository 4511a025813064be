"""Simulations in words: how each combination of strategies ends, and what it costs until then.

Runs that differ only in their seed are one line with ranges; placement strategies with the same result share one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pulsar_advisor.documents.simulation import NotSimulated, SimulatedScore, Strategies
from pulsar_advisor.model.configuration.class_names import without_package
from pulsar_advisor.placement.registry import PLACEMENTS
from pulsar_advisor.recommendation.endings import done, ending, may, minutes, sheds_nothing
from pulsar_advisor.reporting.figures import percent
from pulsar_advisor.reporting.wrapping import wrapped
from pulsar_advisor.simulation.scores import ENDINGS, Ending
from pulsar_advisor.simulation.trials import Trial, counts_alike

Score = SimulatedScore | NotSimulated
"""How one combination ends, or why it could not be simulated."""


@dataclass(frozen=True)
class Future:
    """What becomes of the cluster under one shedder, one or more placement strategies, and one set of settings."""

    shedder: str
    placements: tuple[str, ...]
    what_if: str
    ends: str
    """How it ends, in words."""
    ended: str
    """The worst of its runs: settled, unfinished, repeats; empty with an error."""
    highest_ratio: tuple[float, float]
    """The busiest broker's usage at the end: the least and the greatest over the runs and the possible base loads.
    Other ranges are over the runs alone."""
    likely_only: bool
    """Whether that covers only the likely base loads."""
    standard_deviation_ratio: tuple[float, float]
    splits: tuple[int, int]
    unloads: tuple[int, int]
    moved_again: tuple[int, int]
    overshot: tuple[int, int]
    clients: tuple[int, int]
    """Producers and consumers that have to connect again."""
    moved_throughput_bytes_per_s: tuple[float, float]
    own: bool = False
    """Whether these are the cluster's own strategies and settings."""


def futures(scores: Iterable[Score], own: Strategies | SimulatedScore) -> tuple[Future, ...]:
    """Every different future: the cluster's own strategies (`own`: shedder, placement) first, then the best ones.

    Futures that differ only in a setting are in the order of its values.
    """
    runs: dict[tuple[str, str, str], list[Score]] = {}
    for score in scores:
        runs.setdefault((score.shedder, score.what_if, score.placement), []).append(score)
    alike: dict[Future, list[str]] = {}
    for (shedder, what_if, placement), group in runs.items():
        alike.setdefault(_future(shedder, what_if, group), []).append(placement)

    def is_own(future: Future, placements: Sequence[str]) -> bool:
        return future.shedder == own.shedder and own.placement in placements and not future.what_if

    found = [
        replace(future, placements=tuple(placements), own=is_own(future, placements))
        for future, placements in alike.items()
    ]

    def rank(future: Future) -> tuple[Any, ...]:
        worst = ENDINGS.index(future.ended) if future.ended else len(ENDINGS)
        return (
            not future.own,
            worst,
            round(future.highest_ratio[1], 3),
            future.unloads[1],
            future.shedder,
            _by_number(future.what_if),
            future.placements,
        )

    if len({(future.shedder, future.placements) for future in found}) == 1:
        return tuple(sorted(found, key=lambda future: _by_number(future.what_if)))
    return tuple(sorted(found, key=rank))


def _by_number(text: str) -> list[tuple[bool, float, str]]:
    """A key that sorts the numbers in a text as numbers: 5 before 10."""
    parts = re.split(r"(\d+(?:\.\d+)?)", text)
    return [(True, float(part), "") if part[:1].isdecimal() else (False, 0.0, part) for part in parts]


def _future(shedder: str, what_if: str, runs: Sequence[Score]) -> Future:
    judged = [run for run in runs if isinstance(run, SimulatedScore)]

    def least_and_greatest(*columns: str) -> tuple[Any, Any]:
        values = [sum(getattr(run, column) for column in columns) for run in judged]
        return (min(values), max(values)) if values else (0, 0)

    ranges = [run.maximum_range_ratio for run in judged]
    return Future(
        shedder=shedder,
        placements=(),
        what_if=what_if,
        ends=_ends(judged, runs),
        ended=max((run.worst for run in judged), key=ENDINGS.index, default=""),
        highest_ratio=(min(least for least, _ in ranges), max(most for _, most in ranges)) if ranges else (0.0, 0.0),
        likely_only=any(run.lowest_maximum_ratio is None for run in judged),
        standard_deviation_ratio=least_and_greatest("last_usage_standard_deviation_ratio"),
        splits=least_and_greatest("splits"),
        unloads=least_and_greatest("unloads"),
        moved_again=least_and_greatest("bundles_moved_again"),
        overshot=least_and_greatest("brokers_overshot"),
        clients=least_and_greatest("producers", "consumers"),
        moved_throughput_bytes_per_s=least_and_greatest("moved_throughput_bytes_per_s"),
    )


def _ends(judged: Sequence[SimulatedScore], runs: Sequence[Score]) -> str:
    if not judged:
        return f"could not be simulated: {runs[0].error}"
    otherwise = may(max(judged, key=lambda run: ENDINGS.index(run.worst)))
    doubted = f"; may {otherwise}" if otherwise else ""
    if len(runs) == 1:
        return ending(judged[0]) + doubted
    number = Counter(run.ended for run in judged)
    cycles = [run.settles_in_cycles or 0 for run in judged if run.ended == "settled"]
    if number["settled"] == len(runs):
        if not any(run.happens for run in judged):
            return f"nothing happens{doubted}"
        return f"settles in cycle {_range(min(cycles), max(cycles))}{doubted}"
    last = max((run.cycles for run in judged if run.ended == "unfinished"), default=0)
    words = {"settled": "settles", "repeats": "oscillates", "unfinished": f"has not settled by cycle {last}"}
    numbers = [*((words[end], number[end]) for end in ENDINGS), ("could not be simulated", len(runs) - len(judged))]
    return ", ".join(f"{what} in {how_often} of {len(runs)} runs" for what, how_often in numbers if how_often) + doubted


def effect_sentence(trial: Trial) -> str:
    """What a change of settings does, compared with today's settings."""
    score, today = trial.score, trial.today
    if score is None:
        return f"no result: {str(trial.error).removesuffix('.')}"  # after "effect" and "Simulated:"
    needs = [f"{key}=true" for key in trial.switched_off_by]
    named = [f"{key}={without_package(value)}" for key, value in trial.change.items()]
    set_to = ["it"] if trial.is_proposed else named
    with_it = f"with {' and '.join([*set_to, *needs])}, Pulsar's own balancer {_fares(score)}"
    if trial.verdict is None:
        return f"{with_it}; today's own strategies can't be simulated, so nothing is compared"
    if today is None:  # from an earlier release, which didn't compare
        return with_it
    beside = f"{with_it}; without it, it {_fares(today)}"
    if counts_alike(today, score):
        return f"{_VERDICTS[trial.verdict]}: {beside}"
    if trial.verdict == "same":  # its gain is another measure, which "no better" would deny
        return f"balances as today, but usage counts differently: {beside}"
    return f"{_VERDICTS[trial.verdict]}: {beside}; usage counts differently with it"


_VERDICTS: Final = {
    "better": "better than today",
    "same": "no better than today in one simulation",
    "worse": "worse than today in one simulation",
}
"""A change is refuted by a single draw, which needn't be that of the other sentences about today's balancer."""


def _fares(score: Ending) -> str:
    """How the cluster's own balancer ends, at what cost and usage, as a predicate."""
    ends = ending(score).replace("nothing happens", "does nothing")
    after = f" after {acts}" if (acts := done(score)) else ""
    doubted = f", but may {otherwise}" if (otherwise := may(score)) else ""
    highest = _range(*map(percent, score.maximum_range_ratio))
    figures = f"highest usage {percent(score.first_usage_maximum_ratio)} → {highest}"
    deviation = percent(score.last_usage_standard_deviation_ratio)
    return f"{ends}{after}{doubted}, {figures}, standard deviation {deviation}"


def between(score: Ending) -> str:
    """The range of the busiest broker at the end, in brackets; empty if it is narrow, or unknown (earlier releases)."""
    lowest, highest = score.lowest_maximum_ratio, score.highest_maximum_ratio
    if lowest is None or highest is None or highest - lowest < _NARROW_RATIO:
        return ""
    return f" ({percent(lowest)} to {percent(highest)}, depending on how much CPU follows messages)"


def doubt(score: Ending) -> str:
    """The doubt that it may not settle although it is likely to; empty without that doubt."""
    return f", or {otherwise}, depending on how much CPU follows messages" if (otherwise := may(score)) else ""


_NARROW_RATIO: Final = 0.005
"""Ranges up to this width aren't shown."""


def own_sentence(
    scores: Iterable[Score], own: Strategies | SimulatedScore, switched_off_by: Sequence[str] = ()
) -> str | None:
    """What the cluster's own strategies would do in time; None if they were not simulated with its own settings.

    `switched_off_by` are the switches that prevent it; if there are any, they come first.
    """
    of_own = [
        score for score in scores if (score.shedder, score.placement, score.what_if) == (own.shedder, own.placement, "")
    ]
    if not of_own:
        return None
    doing = they_do(of_own, f"{own.shedder} with {own.placement}")
    if off := sheds_nothing(switched_off_by):
        return f"{off}. Switched on, its {doing}."
    return f"Pulsar's own {doing}."


def they_do(runs: Sequence[Score], strategies: str) -> str:
    """What these strategies do in simulations that differ in their seed: the first one's result, unless all agree."""
    first, *others = (does(run, strategies) for run in runs)
    if all(other == first for other in others):
        return first
    return does(runs[0], f"{strategies}, in the first of {len(runs)} runs,")


def does(score: Score, strategies: str) -> str:
    """What these strategies do in a simulation, in words."""
    if isinstance(score, NotSimulated):
        return f"{strategies} could not be simulated: {score.error}"
    if score.ended == "settled" and not score.happens:
        return f"{strategies} would leave the cluster as it is{doubt(score)}"
    before, after = score.first_usage_maximum_ratio, score.last_usage_maximum_ratio
    if score.ended == "settled":
        end = f"would settle in cycle {score.settles_in_cycles} ({minutes(score.settles_in_minutes or 0)})"
    elif score.ended == "repeats":
        end = f"would oscillate: cycle {score.cycles} ends as cycle {score.repeats_cycle} did"
    else:
        end = f"would not have settled by cycle {score.cycles}"
    acts = f"after {done(score)} " if score.happens else ""
    effects = [f"{acts}the busiest broker is at {percent(after)}{between(score)}, now at {percent(before)}"]
    if score.bundles_moved_again:
        effects.append(f"bundles moved more than once: {score.bundles_moved_again:,}")
    if score.brokers_overshot:
        effects.append(f"brokers that cross the mean and end further from it than now: {score.brokers_overshot:,}")
    return f"{strategies} {end}{doubt(score)}: {'; '.join(effects)}"


HEADINGS: Final = ("highest usage", "deviation", "splits", "unloads", "again", "overshot", "clients")
_INDENT: Final = "    "


def name(future: Future) -> str:
    """The strategies in full, and any settings that differ from the cluster's own."""
    every = len(future.placements) == len(PLACEMENTS)
    placements = "any placement" if every else " or ".join(future.placements)
    own = " (the cluster's own)" if future.own else ""
    what_if = f", {future.what_if}" if future.what_if else ""
    return f"{future.shedder} with {placements}{own}{what_if}"


def cells(future: Future) -> tuple[str, ...]:
    """The figures of one future under HEADINGS; none if it could not be simulated."""
    if not future.ended:
        return ()
    counts = (future.splits, future.unloads, future.moved_again, future.overshot, future.clients)
    likely = "~" if future.likely_only else ""
    return (
        likely + _percents(future.highest_ratio),
        _percents(future.standard_deviation_ratio),
        *(_range(f"{least:,}", f"{greatest:,}", "\N{EN DASH}") for least, greatest in counts),
    )


def _percents(ratios: tuple[float, float]) -> str:
    """`51.1–60.0%`, or one figure where both are the same as shown."""
    least, greatest = map(percent, ratios)
    number = least.removesuffix("%")
    return greatest if least == greatest else f"{number}\N{EN DASH}{greatest}"


def _range(least: object, greatest: object, to: str = " to ") -> str:
    return f"{least}" if least == greatest else f"{least}{to}{greatest}"


@dataclass(frozen=True)
class Lines:
    """One future as text: what it is and how it ends, wrapped, then its figures under the headings."""

    name: str
    figures: str
    ended: str


def table(found: Sequence[Future], width: int, names: Sequence[str] = ()) -> tuple[str, tuple[Lines, ...]]:
    """The headings and the futures below them; no line is wider than `width` unless a name or the figures are.

    `names`: names of the futures in place of their strategies.
    """
    rows = [HEADINGS, *map(cells, found)]
    widths = [max(len(row[column]) for row in rows if row) for column in range(len(HEADINGS))]

    def line(row: Sequence[str]) -> str:
        return _INDENT + "  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True))

    shown = tuple(
        Lines(
            wrapped(f"{called}: {future.ends}".replace(" min)", "\N{NO-BREAK SPACE}min)"), width, len(_INDENT)),
            line(row) if row else "",
            future.ended,
        )
        for called, future, row in zip(names or map(name, found), found, rows[1:], strict=True)
    )
    return line(HEADINGS), shown


def notes(found: Iterable[Future]) -> Iterator[str]:
    """What the marks of the table mean."""
    shown = [future for future in found if future.ended]
    if any(not future.likely_only and future.highest_ratio[0] != future.highest_ratio[1] for future in shown):
        yield (
            "highest usage: the range over all runs, and over how much CPU may follow messages, as far as that is known"
        )
    if any(future.likely_only for future in shown):
        yield "~ covers the likely base loads only"


def lines(found: Sequence[Future], width: int = 80, names: Sequence[str] = ()) -> Iterator[str]:
    """The table as text, with its notes."""
    heading, shown = table(found, width, names)
    yield heading
    for one in shown:
        yield one.name
        if one.figures:
            yield one.figures
    yield from notes(found)
