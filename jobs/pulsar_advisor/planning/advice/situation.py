"""A cluster before any plan: its state, and what follows from it for every sentence about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.configuration.resolved_settings import ResolvedSettings
from pulsar_advisor.model.load.base_load import BaseLoad, base_load, with_usage_of_rates
from pulsar_advisor.planning.advice.ailments import Ailment, ailments
from pulsar_advisor.planning.proposals.fitness import fit_part
from pulsar_advisor.planning.usage.hot_topics import HotTopic, hot_topics
from pulsar_advisor.planning.usage.lower_bound import LowestUsage, lowest_usage
from pulsar_advisor.planning.usage.noise import NoiseFloor, noise_floor


@dataclass(frozen=True, eq=False)
class Situation:
    """A cluster before any plan; all but the first three fields follow from these."""

    state: ClusterState
    settings: ResolvedSettings
    earlier: Sequence[ClusterState]
    """The fit part of earlier snapshots, oldest first."""
    fit: ClusterState
    """What validation didn't set aside."""
    settled: ClusterState
    """The fit part, with the usage that plans start from."""
    base: BaseLoad
    noise: NoiseFloor
    ailments: tuple[Ailment, ...]
    """Gravest first."""
    hot: tuple[HotTopic, ...]
    """The topics that need more than a fair share alone, the hottest first."""
    lowest: LowestUsage | None
    """The usage below which no moves bring brokers; None if unknown."""

    @classmethod
    def of(cls, state: ClusterState, settings: ResolvedSettings, earlier: Sequence[ClusterState] = ()) -> Situation:
        """The situation of a state, unfit parts included."""
        fit, values = fit_part(state), settings.values
        base = base_load(fit, earlier)
        settled = with_usage_of_rates(fit, earlier, base)
        return cls(
            state=state,
            settings=settings,
            earlier=earlier,
            fit=fit,
            settled=settled,
            base=base,
            noise=noise_floor([*earlier, fit], values),
            ailments=ailments(state, values, earlier),
            hot=hot_topics(settled, values, base),
            lowest=lowest_usage(settled, values, base.likely),
        )
