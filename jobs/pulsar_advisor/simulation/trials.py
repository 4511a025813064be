"""What Pulsar's own balancer would do with a change of its settings, simulated from a snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pulsar_advisor.model.cluster_state import ClusterState
from pulsar_advisor.model.errors import AdvisorError
from pulsar_advisor.model.settings import LoadBalancerSettings
from pulsar_advisor.planning.configured import configured_of
from pulsar_advisor.planning.own_balancer import shedding_switched_off_by
from pulsar_advisor.planning.what_if import Resolve, with_what_if
from pulsar_advisor.simulation.foresight import CYCLES
from pulsar_advisor.simulation.scores import SimulationScore, cycle_scores, simulation_score
from pulsar_advisor.simulation.simulate import simulate

MOST_TRIED: Final = 5
"""Changes that are simulated, each of them only once."""
_BUNDLES_TRIED: Final = 50_000
"""Bundles in all simulations together, though at least one change is tried: 100,000 bundles take most of a minute."""


@dataclass(frozen=True)
class Trial:
    """A change of settings and how it ends; `error` says why it could not be simulated."""

    change: Mapping[str, str]
    score: SimulationScore | None
    error: str | None
    switched_off_by: tuple[str, ...] = ()
    """The switches that would keep Pulsar from shedding even with the change: the simulation takes them as true."""

    def document(self) -> dict[str, Any]:
        """The trial as `recommendation.json` and `lint --json` hold it."""
        return {
            "change": dict(self.change),
            "error": self.error,
            "score": self.score.columns() if self.score else None,
            "switched_off_by": list(self.switched_off_by),
        }


def trials(
    changes: Iterable[Mapping[str, str]],
    state: ClusterState,
    resolve: Resolve,
    history: Sequence[ClusterState] = (),
    seed: int = 0,
) -> tuple[Trial, ...]:
    """The first few different changes that name any setting, simulated for as long as the foresight looks ahead."""
    different = list({tuple(sorted(change.items())): change for change in changes if change}.values())
    affordable = max(_BUNDLES_TRIED // max(len(state.bundles), 1), 1)
    return tuple(_trial(change, state, resolve, history, seed) for change in different[: min(MOST_TRIED, affordable)])


def _trial(
    change: Mapping[str, str], state: ClusterState, resolve: Resolve, history: Sequence[ClusterState], seed: int
) -> Trial:
    try:
        own, settings = resolve({}), resolve(change)
        score = _simulated(change, state, own, settings, history, seed)
        return Trial(change, score, None, shedding_switched_off_by(settings))
    except AdvisorError as error:
        return Trial(change, None, str(error))


def _simulated(
    change: Mapping[str, str],
    state: ClusterState,
    own: LoadBalancerSettings,
    settings: LoadBalancerSettings,
    history: Sequence[ClusterState],
    seed: int,
) -> SimulationScore:
    seen, *earlier = (with_what_if(moment, own, settings, change) for moment in (state, *history))
    strategies = configured_of(state.load_manager, settings)
    found = simulate(*strategies, seen, settings, cycles=CYCLES, seed=seed, history=earlier)
    return simulation_score(found, cycle_scores(found))
