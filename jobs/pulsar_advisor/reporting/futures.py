"""Simulations in words and lines: how each combination of strategies ends, and what it costs until then.

Runs that differ in their seed only are one line with ranges; placement strategies that make no difference share one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pulsar_advisor.placement.registry import PLACEMENTS
from pulsar_advisor.reporting.figures import count, percent

Score = Mapping[str, Any]
"""A row of the table `scores`, as in the simulation's result."""

_ENDS: Final = ("settled", "unfinished", "repeats")


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
    """The busiest broker's usage at the end, least and greatest of the runs; likewise the others."""
    standard_deviation_ratio: tuple[float, float]
    splits: tuple[int, int]
    unloads: tuple[int, int]
    moved_again: tuple[int, int]
    overshot: tuple[int, int]
    clients: tuple[int, int]
    """Producers and consumers that have to connect again."""
    moved_throughput_bytes_per_s: tuple[float, float]


def futures(scores: Iterable[Score], own: Mapping[str, str]) -> tuple[Future, ...]:
    """Every different future: the cluster's own strategies (`own`: shedder, placement) first, then the best ones."""
    runs: dict[tuple[str, str, str], list[Score]] = {}
    for score in scores:
        runs.setdefault((score["shedder"], score["what_if"], score["placement"]), []).append(score)
    alike: dict[Future, list[str]] = {}
    for (shedder, what_if, placement), group in runs.items():
        alike.setdefault(_future(shedder, what_if, group), []).append(placement)
    found = [replace(future, placements=tuple(placements)) for future, placements in alike.items()]

    def rank(future: Future) -> tuple[Any, ...]:
        is_own = future.shedder == own["shedder"] and own["placement"] in future.placements and not future.what_if
        worst = _ENDS.index(future.ended) if future.ended else len(_ENDS)
        return (
            not is_own,
            worst,
            round(future.highest_ratio[1], 3),
            future.unloads[1],
            future.shedder,
            future.what_if,
            future.placements,
        )

    return tuple(sorted(found, key=rank))


def _future(shedder: str, what_if: str, runs: Sequence[Score]) -> Future:
    judged = [run for run in runs if not run.get("error")]

    def between(*columns: str) -> tuple[Any, Any]:
        values = [sum(run[column] for column in columns) for run in judged]
        return (min(values), max(values)) if values else (0, 0)

    return Future(
        shedder=shedder,
        placements=(),
        what_if=what_if,
        ends=_ends(judged, runs),
        ended=max((run["ended"] for run in judged), key=_ENDS.index, default=""),
        highest_ratio=between("last_usage_maximum_ratio"),
        standard_deviation_ratio=between("last_usage_standard_deviation_ratio"),
        splits=between("splits"),
        unloads=between("unloads"),
        moved_again=between("bundles_moved_again"),
        overshot=between("brokers_overshot"),
        clients=between("producers", "consumers"),
        moved_throughput_bytes_per_s=between("moved_throughput_bytes_per_s"),
    )


def _ends(judged: Sequence[Score], runs: Sequence[Score]) -> str:
    if not judged:
        return f"could not be simulated: {runs[0]['error']}"
    if len(judged) == 1:
        return ending(judged[0])
    number = Counter(run["ended"] for run in judged)
    cycles = [run["settles_in_cycles"] for run in judged if run["ended"] == "settled"]
    if number["settled"] == len(judged):
        return f"settles in cycle {_range(min(cycles), max(cycles))}"
    words = {"settled": "settles", "repeats": "goes round", "unfinished": "does not settle"}
    return ", ".join(f"{words[end]} in {number[end]} of {len(judged)} runs" for end in _ENDS if number[end])


def ending(score: Score) -> str:
    """How one simulation ends, in words."""
    if score["ended"] == "repeats":
        return f"goes round: cycle {score['cycles']} leaves all as cycle {score['repeats_cycle']} did"
    if score["ended"] == "unfinished":
        return f"has not settled by cycle {score['cycles']}"
    if not happens(score):
        return "nothing happens"
    return f"settles in cycle {score['settles_in_cycles']} ({_minutes(score['settles_in_minutes'])})"


def happens(score: Score) -> bool:
    """Whether anything is unloaded or split; scores of earlier releases have no splits."""
    return bool(score["unloads"] or score.get("splits"))


def effect_sentence(trial: Mapping[str, Any]) -> str:
    """What a change of settings does, from a trial as `recommendation.json` holds it."""
    score = trial["score"]
    if score is None:
        return f"its effect could not be simulated: {trial['error']}"
    figures = (
        f"{name} {percent(score[f'first_usage_{column}_ratio'])} → {percent(score[f'last_usage_{column}_ratio'])}"
        for name, column in (("highest usage", "maximum"), ("standard deviation", "standard_deviation"))
    )
    unloads = f", {count(score['unloads'], 'unload')}, {', '.join(figures)}" if score["unloads"] else ""
    needs = "".join(f" and {key}=true" for key in trial.get("switched_off_by", ()))
    return f"with it{needs}, Pulsar's own balancer {ending(score).replace('nothing happens', 'does nothing')}{unloads}"


def sheds_nothing(switched_off_by: Iterable[str]) -> str:
    """That Pulsar itself doesn't shed, and why, without full stop; empty if it does."""
    off = ", ".join(f"{key}=false" for key in switched_off_by)
    return f"Pulsar itself sheds no load: {off}" if off else ""


def own_sentence(scores: Iterable[Score], own: Mapping[str, str], switched_off_by: Sequence[str] = ()) -> str | None:
    """What the cluster's own strategies would do in time; None if they were not simulated with its own settings.

    `switched_off_by` are the switches that keep them from it: then that comes first.
    """
    of_own = [
        score
        for score in scores
        if (score["shedder"], score["placement"], score["what_if"]) == (own["shedder"], own["placement"], "")
    ]
    if not of_own:
        return None
    does = _does(of_own[0], f"{own['shedder']} with {own['placement']}")
    if off := sheds_nothing(switched_off_by):
        return f"{off}. Switched on, its {does}."
    return f"Pulsar's own {does}."


def _does(score: Score, strategies: str) -> str:
    """What these strategies do in a simulation, in words."""
    if score.get("error"):
        return f"{strategies} could not be simulated: {score['error']}"
    if score["ended"] == "settled" and not happens(score):
        return f"{strategies} would leave the cluster as it is"
    before, after = score["first_usage_maximum_ratio"], score["last_usage_maximum_ratio"]
    if score["ended"] == "settled":
        end = f"would settle in cycle {score['settles_in_cycles']} ({_minutes(score['settles_in_minutes'])})"
    elif score["ended"] == "repeats":
        end = f"would go round: cycle {score['cycles']} leaves all as cycle {score['repeats_cycle']} did"
    else:
        end = f"would not have settled by cycle {score['cycles']}"
    effects = [
        f"after {count(score['unloads'], 'unload')} the busiest broker is at {percent(after)}, now at {percent(before)}"
    ]
    if score.get("splits"):
        effects.append(f"bundles split: {score['splits']:,}")
    if score["bundles_moved_again"]:
        effects.append(f"bundles moved more than once: {score['bundles_moved_again']:,}")
    if score["brokers_overshot"]:
        effects.append(f"brokers carried past the mean, further from it than now: {score['brokers_overshot']:,}")
    return f"{strategies} {end}: {'; '.join(effects)}"


def _minutes(minutes: float) -> str:
    return f"{minutes:g} min"


HEADINGS: Final = (
    "shedder",
    "placement",
    "outcome",
    "highest usage",
    "deviation",
    "splits",
    "unloads",
    "again",
    "overshot",
    "clients",
)
TEXT_COLUMNS: Final = 3
"""The first of them hold text, the others figures."""


def cells(future: Future) -> tuple[str, ...]:
    """One line of the table under HEADINGS."""
    every = len(future.placements) == len(PLACEMENTS)
    names = (
        f"{future.shedder} {future.what_if}".strip(),
        "any" if every else ", ".join(future.placements),
        future.ends,
    )
    if not future.ended:
        return (*names, *("" for _ in HEADINGS[TEXT_COLUMNS:]))
    return (
        *names,
        _range(*(percent(ratio) for ratio in future.highest_ratio)),
        _range(*(percent(ratio) for ratio in future.standard_deviation_ratio)),
        *(
            _range(*(f"{number:,}" for number in figure))
            for figure in (future.splits, future.unloads, future.moved_again, future.overshot, future.clients)
        ),
    )


def _range(least: object, greatest: object) -> str:
    return f"{least}" if least == greatest else f"{least} to {greatest}"


def lines(found: Iterable[Future]) -> Iterator[str]:
    """The table as text, one line per future."""
    rows = [HEADINGS, *map(cells, found)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    for row in rows:
        sides = [text.ljust(width) for text, width in zip(row[:TEXT_COLUMNS], widths, strict=False)]
        figures = zip(row[TEXT_COLUMNS:], widths[TEXT_COLUMNS:], strict=True)
        yield "  ".join([*sides, *(text.rjust(width) for text, width in figures)]).rstrip()
