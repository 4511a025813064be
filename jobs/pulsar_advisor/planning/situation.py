"""A cluster before any plan: its state, and what follows from it for every plan and every sentence about it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.configuration.resolved_settings import ResolvedSettings
from pulsar_advisor.model.load.base_load import BaseLoad, base_load, with_usage_of_rates
from pulsar_advisor.model.load.resource_usage import usage_ratios
from pulsar_advisor.planning.proposals.configured import Configured, configured_of
from pulsar_advisor.planning.proposals.fitness import fit_part
from pulsar_advisor.planning.requests.what_if import with_what_if
from pulsar_advisor.planning.usage.ailments import Ailment, ailments
from pulsar_advisor.planning.usage.hot_topics import HotTopic, hot_topics
from pulsar_advisor.planning.usage.lower_bound import LowestUsage, lowest_usage
from pulsar_advisor.planning.usage.merit import Cost, Merit
from pulsar_advisor.planning.usage.noise import NoiseFloor, noise_floor


@dataclass(frozen=True, eq=False)
class Situation:
    """A cluster before any plan; what follows from the fields is computed once, when it is asked for."""

    fit: ClusterState
    """What validation didn't set aside."""
    settings: ResolvedSettings
    earlier: Sequence[ClusterState]
    """The fit part of earlier snapshots, oldest first."""
    state: ClusterState
    """With what was set aside."""

    @classmethod
    def of(cls, state: ClusterState, settings: ResolvedSettings, earlier: Sequence[ClusterState] = ()) -> Self:
        """The situation of a state, unfit parts included."""
        return cls(fit_part(state), settings, earlier, state)

    @classmethod
    def of_fit(cls, fit: ClusterState, settings: ResolvedSettings, earlier: Sequence[ClusterState] = ()) -> Self:
        """The situation of a state without unfit parts."""
        return cls(fit, settings, earlier, fit)

    def under(self, settings: ResolvedSettings, keys: Collection[str]) -> Self:
        """The situation had brokers run with these settings, which differ in `keys`.

        Raises `DataNotFit` if the reports don't contain enough.
        """
        if not keys:
            return self
        own, values = self.settings.values, settings.values
        fit, *earlier = (with_what_if(moment, own, values, keys) for moment in (self.fit, *self.earlier))
        return self.of_fit(fit, settings, earlier)

    @cached_property
    def base(self) -> BaseLoad:
        """The brokers' base load."""
        return base_load(self.fit, self.earlier)

    @cached_property
    def settled(self) -> ClusterState:
        """The fit part, with the usage that plans start from."""
        return with_usage_of_rates(self.fit, self.earlier, self.base)

    @cached_property
    def configured(self) -> Configured:
        """The cluster's own strategies."""
        return configured_of(self.fit.load_manager, self.settings.values)

    @cached_property
    def as_is(self) -> Merit | None:
        """The usage of the available brokers if nothing is done; None if none is known."""
        ratios = usage_ratios(self.settled.brokers, self.settings.values)[self.settled.brokers.available]
        known = ratios[np.isfinite(ratios)]
        highest = float(known.max(initial=0.0))
        return Merit(highest, highest, float(known.std()), Cost()) if len(known) else None

    @cached_property
    def noise(self) -> NoiseFloor:
        """How much usage varies from one snapshot to the next."""
        return noise_floor([*self.earlier, self.fit], self.settings.values)

    @cached_property
    def ailments(self) -> tuple[Ailment, ...]:
        """Gravest first."""
        return ailments(self.state, self.settings.values, self.earlier)

    @cached_property
    def hot(self) -> tuple[HotTopic, ...]:
        """The topics that need more than a fair share alone, the hottest first."""
        return hot_topics(self.settled, self.settings.values, self.base)

    @cached_property
    def lowest(self) -> LowestUsage | None:
        """The usage below which no moves bring brokers; None if unknown."""
        return lowest_usage(self.settled, self.settings.values, self.base.likely)
