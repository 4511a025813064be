"""What Pulsar's own balancer would do with a change of its settings, simulated beside what it does today.

A change is worth proposing only if the cluster ends better with it, at both ends of what is known of the base loads and
whatever is drawn: in a single draw, a change that improves nothing on average often looks better.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, Self

from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.configuration.resolved_settings import ResolvedSettings
from pulsar_advisor.model.errors import AdvisorError
from pulsar_advisor.planning.plans.own_balancer import SHEDDING_SWITCH, shedding_switched_off_by
from pulsar_advisor.planning.requests.what_if import Resolve
from pulsar_advisor.planning.situation import Situation
from pulsar_advisor.simulation.foresight import CYCLES
from pulsar_advisor.simulation.scores import Ending, cycle_scores, simulation_score
from pulsar_advisor.simulation.simulate import Simulation, simulate

MOST_TRIED: Final = 5
"""Changes that are simulated, each of them only once."""
_DRAWS: Final = 3
"""Draws in each of which a change has to be better; fewer where the bundles in all trials together are too many."""
_BUNDLES_TRIED: Final = 50_000
"""Bundles in all trials together, though at least one change is tried: 100,000 bundles take most of a minute."""
_BUNDLES_AT_BOTH_ENDS: Final = 10_000
"""In a larger cluster, only the likely base loads are simulated."""
SAME_RATIO: Final = 0.01
"""A difference in usage that decides nothing."""

Comparison = Literal["better", "same", "worse"]
"""Of a change, beside today."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A change of settings that would end a violation of lint's, and how the cluster ends with it and without it."""

    change: Mapping[str, str]
    error: str | None
    """Why it could not be simulated."""
    today: Ending | None = None
    """Without the change, with the same seed."""
    score: Ending | None
    verdict: Comparison | None = "better"
    """Beside today; null if either can't be simulated. Earlier releases compared nothing and proposed all."""
    switched_off_by: tuple[str, ...] = ()
    """Switches that keep Pulsar from shedding even then; taken as on."""

    @classmethod
    def failed(cls, change: Mapping[str, str], error: AdvisorError, off: tuple[str, ...] = ()) -> Self:
        """The trial of a change that could not be simulated."""
        return cls(change=change, error=str(error), score=None, verdict=None, switched_off_by=off)

    @property
    def is_proposed(self) -> bool:
        """Whether the change ends better than today."""
        return self.verdict == "better"


def compared(today: Ending, changed: Ending) -> Comparison:
    """How a cluster ends with a change, beside how it ends today: the worst ending and the busiest broker decide.

    A change is better if it settles where today doesn't, or lowers the busiest broker, or evens out the others, or gets
    there with fewer unloads, and is worse in neither of the first two, at either end of the base loads. A change of
    what counts as usage (weights) gains nothing by that: falls are compared, and deviations aren't.
    """
    endings = ((today.ended, changed.ended), (today.worst_ended, changed.worst_ended))
    shift = changed.first_usage_maximum_ratio - today.first_usage_maximum_ratio
    rises = [after - before - shift for before, after in zip(_maxima(today), _maxima(changed), strict=True)]
    likely = changed.last_usage_maximum_ratio - today.last_usage_maximum_ratio - shift
    # A cluster that is left as it is settles, but that is no merit where the busiest broker would likely be relieved.
    idle = not (today.unloads or today.splits) and changed.ended == "settled" and likely < -SAME_RATIO
    unsettles = not idle and any(before == "settled" != after for before, after in endings)
    if unsettles or max(rises) > SAME_RATIO:
        return "worse"
    deviation, deviation_today = (one.last_usage_standard_deviation_ratio for one in (changed, today))
    spread = deviation - deviation_today if counts_alike(today, changed) else 0.0
    lower = min(rises) < -SAME_RATIO or spread < -SAME_RATIO
    cheaper = spread <= SAME_RATIO and changed.unloads < today.unloads and changed.splits <= today.splits
    settles = any(before != "settled" == after for before, after in endings)
    return "better" if settles or lower or cheaper else "same"


def counts_alike(today: Ending, changed: Ending) -> bool:
    """Whether the same counts as usage: both begin with the same snapshot."""
    return (today.first_usage_maximum_ratio, today.first_usage_standard_deviation_ratio) == (
        changed.first_usage_maximum_ratio,
        changed.first_usage_standard_deviation_ratio,
    )


def _maxima(score: Ending) -> tuple[float, ...]:
    likely = score.last_usage_maximum_ratio
    if score.lowest_maximum_ratio is None or score.highest_maximum_ratio is None:
        return (likely,)
    return score.lowest_maximum_ratio, likely, score.highest_maximum_ratio


def trials(
    changes: Iterable[Mapping[str, str]],
    situation: Situation,
    resolve: Resolve,
    seed: int = 0,
    alone: Simulation | AdvisorError | None = None,
) -> tuple[Trial, ...]:
    """The first few different changes that name any setting, simulated for as long as the foresight looks ahead.

    The seeds count from `seed`. Of a change that isn't better with each of them, the trial is of the first such seed.

    `alone`: what `left_alone` found of the same situation and seed, if that was asked.
    """
    different = list({tuple(sorted(change.items())): change for change in changes if change}.values())
    affordable = max(_BUNDLES_TRIED // max(len(situation.fit.bundles), 1), 1)
    tried = different[: min(MOST_TRIED, affordable)]
    seeds = range(seed, seed + min(_DRAWS, affordable // max(len(tried), 1)))
    own = situation.settings
    simulated: dict[tuple[frozenset[tuple[str, str]], bool, int], Ending | AdvisorError] = {}
    if alone is not None:
        simulated[frozenset(), True, seed] = alone if isinstance(alone, AdvisorError) else _ending(alone)

    def ends(change: Mapping[str, str], settings: ResolvedSettings, sheds: bool, drawn: int) -> Ending | AdvisorError:
        # The switch itself is taken as on.
        key = frozenset(item for item in change.items() if item[0] != SHEDDING_SWITCH), sheds, drawn
        if key not in simulated:
            try:
                seen = situation.under(settings, change)
                simulated[key] = _ending(
                    simulate(
                        *seen.configured,
                        seen,
                        cycles=CYCLES,
                        seed=drawn,
                        sheds=sheds,
                        both_ends=_at_both_ends(seen.fit),
                    )
                )
            except AdvisorError as error:
                simulated[key] = error
        return simulated[key]

    def trial(change: Mapping[str, str]) -> Trial:
        first, *others = seeds
        found = trial_of(change, first)
        again = (trial_of(change, other) for other in others if found.is_proposed)
        return next((one for one in again if not one.is_proposed), found)

    def trial_of(change: Mapping[str, str], drawn: int) -> Trial:
        try:
            settings = resolve(change)
        except AdvisorError as error:
            return Trial.failed(change, error)
        off = shedding_switched_off_by(settings.values)
        # A change that switches shedding on is compared with nothing, any other one with the same balancer.
        sheds = len(off) == len(shedding_switched_off_by(own.values))
        before, score = ends({}, own, sheds, drawn), ends(change, settings, True, drawn)
        if isinstance(score, AdvisorError):
            return Trial.failed(change, score, off)
        alone = None if isinstance(before, AdvisorError) else before
        return Trial(
            change=change,
            error=None,
            today=alone,
            score=score,
            verdict=None if alone is None else compared(alone, score),
            switched_off_by=off,
        )

    return tuple(map(trial, tried))


def _at_both_ends(state: ClusterState) -> bool:
    return len(state.bundles) <= _BUNDLES_AT_BOTH_ENDS


def _ending(found: Simulation) -> Ending:
    compared_at = found if _at_both_ends(found.state) else replace(found, ends=())
    return simulation_score(compared_at, cycle_scores(compared_at))
