"""A cluster and what becomes of it without a plan: under its own strategies, and with lint's changes of settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pulsar_advisor.documents.recommendation import Foresight
from pulsar_advisor.documents.simulation import SimulatedScore
from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.errors import AdvisorError
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.planning.plans.own_balancer import shedding_switched_off_by
from pulsar_advisor.planning.requests.what_if import Resolve
from pulsar_advisor.planning.situation import Situation
from pulsar_advisor.planning.usage.scalable_topics import not_simulated
from pulsar_advisor.simulation.foresight import CYCLES, acting, after_plan, left_alone
from pulsar_advisor.simulation.scores import cycle_scores, simulation_score
from pulsar_advisor.simulation.simulate import Simulation
from pulsar_advisor.simulation.trials import Trial, trials


@dataclass(frozen=True)
class LeftAlone:
    """What becomes of a cluster without a plan."""

    situation: Situation
    own: Simulation | AdvisorError
    """By its own strategies; an error if they can't judge it."""
    tried: tuple[Trial, ...]
    """By each change of settings."""
    published: ClusterState | None = None
    """What the leader sees, where that may show how busy a broker is that was set aside."""
    set_aside_by: tuple[str, ...] = ()
    """The failed checks that set something aside."""
    seed: int = 0
    """Of these simulations."""

    @classmethod
    def simulated(
        cls,
        situation: Situation,
        changes: Sequence[Mapping[str, str]],
        resolve: Resolve,
        seed: int,
        published: ClusterState | None,
        set_aside_by: tuple[str, ...],
    ) -> LeftAlone:
        """Simulate the fit part as it is and with each of these changes; the fields say the rest."""
        own: Simulation | AdvisorError
        try:
            own = left_alone(situation, seed)
        except AdvisorError as error:
            own = error
        tried = trials(changes, situation, resolve, seed, own)
        return cls(situation, own, tried, published, set_aside_by, seed)

    def foresight(self, plan: Plan | None) -> Foresight:
        """What happens next under the cluster's own strategies, by themselves and after the advised plan."""
        own, settings = self.situation.configured, self.situation.settings.values
        off = shedding_switched_off_by(settings)
        try:
            if isinstance(self.own, AdvisorError):
                raise self.own
            undone = None if plan is None else after_plan(self.situation, plan)
        except AdvisorError as error:
            return Foresight(cycles=CYCLES, own=None, acting=(), plan=None, error=str(error), switched_off_by=off)
        scores = cycle_scores(self.own)
        ends = simulation_score(self.own, scores)
        return Foresight(
            cycles=CYCLES,
            own=SimulatedScore(**vars(ends), shedder=own.shedder, placement=own.placement, what_if="", seed=self.seed),
            acting=acting(self.own, scores),
            plan=undone,
            error=None,
            switched_off_by=off,
            not_simulated=not_simulated(self.situation.state, settings),
        )
