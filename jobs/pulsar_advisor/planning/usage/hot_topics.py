"""Load that no unload and no split can balance: topics that alone take any broker above its fair share.

A topic is served by one broker at a time, so the busiest broker can't get below what the hottest topic needs. The
certificate is proven for the model: the topic has the broker with the highest limits and the lowest base load, and
nothing else. If it doesn't hold with the greatest base load, it names its condition: that CPU follows messages.
What helps is more partitions or segments: each is served on its own.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Final

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import CPU, NO_ROW, RESOURCES, ClusterState, Floats, possible
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.load.base_load import BaseLoad, usage_that_moves
from pulsar_advisor.model.load.resource_usage import mean_by_cpu_limit, usage_ratios, weighted_maximum
from pulsar_advisor.planning.usage.scalable_topics import cure
from pulsar_advisor.shedding.minimal_move_shedder import TARGET_OF_MEAN

MOST_PARTITIONS: Final = 10_000
_MOSTLY_READ: Final = 0.8
"""More than four consumers of each message, or one that reads what was written before."""


@dataclass(frozen=True)
class HotTopic:
    """One such topic; ratios 0..1."""

    topic: str
    bundle: str
    topics_of_bundle: int
    """Loaded ones."""
    alone_ratio: float
    """Usage of a broker that serves nothing else."""
    fair_ratio: float
    is_certain: bool
    """Whether it holds with every base load that is possible."""
    partitions: int | None
    """The fewest equal parts of which each leaves a broker within the fair share; None if no number does."""
    cure: str
    """What helps, as a clause."""
    out_share: float = 0.0
    """Of its messages, those that are sent to consumers."""

    @property
    def in_words(self) -> str:
        """With what it makes of a broker."""
        return f"{self.topic}, which alone makes {self.alone_ratio:.1%}"

    @property
    def sentence(self) -> str:
        """The certificate, for an operator."""
        only = (
            "; its bundle holds no other loaded topic, so a split changes nothing" if self.topics_of_bundle == 1 else ""
        )
        read = ""
        if self.out_share > _MOSTLY_READ:
            read = f" ({self.out_share:.0%} of it is read: by many subscriptions, or from a backlog that will end)"
        condition = "" if self.is_certain else "If CPU follows messages, "
        return (
            f"{condition}{self.topic}{read} alone takes any broker to {self.alone_ratio:.1%}, above the fair share of "
            f"{self.fair_ratio:.1%}: no unload and no split gets the busiest broker below that; {self.cure}{only}."
        )


@np.errstate(over="ignore", invalid="ignore")
def hot_topics(state: ClusterState, settings: LoadBalancerSettings, base: BaseLoad) -> tuple[HotTopic, ...]:
    """The topics of a fit state that need more than a fair share alone, the hottest first; none without their load."""
    brokers, bundles, topics = state.brokers, state.bundles, state.topics
    fit = brokers.fit
    held = np.flatnonzero(topics.loaded & (topics.bundle != NO_ROW) & possible(topics.traffic))
    held = held[(bundles.owner[topics.bundle[held]] != NO_ROW)] if len(held) else held
    if "topic_traffic" in state.missing or not fit.any() or not len(held):
        return ()
    owner = bundles.owner[topics.bundle[held]]
    held, owner = held[fit[owner]], owner[fit[owner]]
    needs = usage_that_moves(state, base.likely, topics.traffic[held], owner)
    limit = brokers.limit[fit].max(axis=0)
    empty = np.zeros(len(RESOURCES))
    empty[CPU] = base.least[fit].min()

    def usage(amount: Floats) -> Floats:
        return weighted_maximum(empty + amount, np.broadcast_to(limit, amount.shape), settings)

    alone = usage(needs)
    at_least = usage(usage_that_moves(state, base.greatest, topics.traffic[held], owner))
    fair = TARGET_OF_MEAN * mean_by_cpu_limit(usage_ratios(brokers, settings), brokers.limit, fit)
    hot = np.flatnonzero(alone > fair)
    hottest = hot[np.lexsort((held[hot], -alone[hot]))].tolist() if fair > 0 else []

    def partitions(need: Floats) -> int | None:
        def enough(number: int) -> bool:
            return float(usage(need[None, :] / number)[0]) <= fair

        if not enough(MOST_PARTITIONS):
            return None
        return bisect_left(range(1, MOST_PARTITIONS), True, key=enough) + 1

    rates = topics.traffic[held, :2]
    parts = {row: partitions(needs[row]) for row in hottest}
    return tuple(
        HotTopic(
            topic=str(topics.names[held[row]]),
            bundle=state.bundle_name(int(topics.bundle[held[row]])),
            topics_of_bundle=int(bundles.topics[topics.bundle[held[row]]]),
            alone_ratio=float(alone[row]),
            fair_ratio=fair,
            is_certain=bool(at_least[row] > fair),
            partitions=parts[row],
            cure=cure(state, settings, int(held[row]), parts[row]),
            out_share=float(rates[row, 1] / rates[row].sum()) if rates[row].any() else 0.0,
        )
        for row in hottest
    )
