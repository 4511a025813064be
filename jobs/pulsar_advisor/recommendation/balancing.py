"""Pulsar's own balancer as options beside the plans: as it is, and with each proposed change of its settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pulsar_advisor.documents.recommendation import Foresight
from pulsar_advisor.model.configuration.defaults import takes_effect_at_once
from pulsar_advisor.planning.advice.options import Balancing
from pulsar_advisor.recommendation.endings import ending, may
from pulsar_advisor.simulation.scores import Ending
from pulsar_advisor.simulation.trials import Trial


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
