"""How a simulation of Pulsar's own balancer ends: in words, and as options beside the plans."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pulsar_advisor.documents.recommendation import Foresight
from pulsar_advisor.model.configuration.defaults import takes_effect_at_once
from pulsar_advisor.model.text.some_of import count
from pulsar_advisor.planning.advice.headline import ByItself
from pulsar_advisor.planning.advice.options import Balancing
from pulsar_advisor.simulation.scores import Ending
from pulsar_advisor.simulation.trials import Trial


def ending(score: Ending) -> str:
    """How one simulation ends, in words."""
    if score.ended == "repeats":
        return f"oscillates: cycle {score.cycles} ends as cycle {score.repeats_cycle} did"
    if score.ended == "unfinished":
        return f"has not settled by cycle {score.cycles}"
    if not score.happens:
        return "nothing happens"
    return f"settles in cycle {score.settles_in_cycles} ({minutes(score.settles_in_minutes or 0)})"


_MAY: Final = {"repeats": "oscillate", "unfinished": "not settle"}


def may(score: Ending) -> str:
    """What it may do at the worst possible base loads although it will probably settle: `oscillate`, `not settle`;
    empty without that doubt."""
    return _MAY[score.worst] if score.ended == "settled" != score.worst else ""


def done(score: Ending) -> str:
    """What one simulation unloads and splits until it ends; empty if it does nothing."""
    numbers = (score.unloads, "unload"), (score.splits, "split")
    return " and ".join(count(number, noun) for number, noun in numbers if number)


def by_itself(foresight: Foresight) -> ByItself:
    """What Pulsar does if nothing is carried out, from the foresight of a recommendation."""
    own, off = foresight.own, sheds_nothing(foresight.switched_off_by)
    if off:
        return ByItself(False, f"{off}.")
    if own is None:
        return ByItself(
            False, f"What Pulsar itself would do can't be simulated: {str(foresight.error).removesuffix('.')}."
        )
    does = f"{ending(own)} after {done(own)}" if own.happens else "does nothing either"
    start = "In one simulation, " if own.happens else ""  # another draw may end otherwise
    return ByItself(own.happens, f"{start}Pulsar's own {own.shedder} {does}{may(own) and f'; it may {may(own)}'}.")


def sheds_nothing(switched_off_by: Iterable[str]) -> str:
    """A sentence without full stop if Pulsar itself doesn't shed, with the reason; empty if it does."""
    off = ", ".join(f"{key}=false" for key in switched_off_by)
    return f"Pulsar itself sheds no load: {off}" if off else ""


def minutes(number: float) -> str:
    """A number of whole minutes with its unit: `1,440 min`."""
    return f"{number:,.0f} min"


def balancing(foresight: Foresight, tried: Sequence[Trial], release: str) -> list[Balancing]:
    """How each simulation ends; a change also switches on shedding that is off. `release` is Pulsar's."""
    found = []
    if foresight.own is not None:
        found.append(_balancing({}, foresight.switched_off_by, foresight.own, release))
    found += [
        _balancing(trial.change, trial.switched_off_by, trial.score, release)
        for trial in tried
        if trial.is_proposed and trial.score is not None
    ]
    return found


def _balancing(wanted: Mapping[str, str], switched_off_by: Sequence[str], score: Ending, release: str) -> Balancing:
    change = {**dict.fromkeys(switched_off_by, "true"), **wanted}
    otherwise = may(score)
    effect = f", {_takes_effect(change, release)}" if change else ""
    return Balancing(
        change=change,
        ends=ending(score) + (f", but may {otherwise}" if otherwise else ""),
        settles=score.ended == "settled",
        first_maximum_ratio=score.first_usage_maximum_ratio,
        merit=score.merit,
        condition=f"the load stays as it is{effect}, and Pulsar's random choices turn out as simulated",
    )


def _takes_effect(change: Mapping[str, str], release: str) -> str:
    if all(takes_effect_at_once(release, key) for key in change):
        return "the values are set dynamically"
    return "the brokers are restarted with it"
