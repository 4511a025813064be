"""Doubts about an unload, in words: why the confidence in it is not higher."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import ClusterState, Floats, throughput_bytes_per_s
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.plans.plan import Doubt
from pulsar_advisor.planning.proposals.proposal import Move

_ROUNDING: Final = 1e-9


def unpublished_changes(state: ClusterState, settings: LoadBalancerSettings, earlier: Sequence[ClusterState]) -> Floats:
    """Per broker, by how much (relative) its throughput may differ from what it last published.

    The change since the last snapshot, capped at the change that it needn't publish; without a snapshot, the cap.
    """
    most = settings.load_balancer_report_update_threshold_percentage / 100
    changes = np.full(len(state.brokers), most)
    if not earlier:
        return changes
    before = dict(zip(earlier[-1].brokers.ids, throughput_bytes_per_s(earlier[-1].brokers.traffic), strict=True))
    for row, (broker, now) in enumerate(
        zip(state.brokers.ids, throughput_bytes_per_s(state.brokers.traffic), strict=True)
    ):
        past = before.get(broker)
        if past is not None and max(past, now) > 0:
            changes[row] = min(most, abs(now - past) / max(past, now))
    return changes


def doubts_before(state: ClusterState, move: Move, change: float) -> tuple[Doubt, ...]:
    """Why Pulsar may decide otherwise; `change`: how far (relative) its source may be from the load it published."""
    sentences = (*_unpublished(state, move, change), *_may_stay(state, move), *_may_go_elsewhere(state, move))
    return tuple(Doubt(confidence="medium", sentence=sentence) for sentence in sentences)


def above_capacity(broker: str, likely: float, highest: float) -> Iterator[Doubt]:
    """A doubt if the broker would need more than it has: that can't be, so the figures or the plan are wrong."""
    if highest > 1.0:
        sentence = f"{broker} would need {likely:.0%} of a resource, {highest:.0%} at most."
        yield Doubt(confidence="low" if likely > 1.0 else "medium", sentence=sentence)


def may_not_fall(broker: str, above_likely_ratio: float, noise_ratio: float) -> Iterator[Doubt]:
    """A doubt if the source may end above its likely usage by more than the noise floor."""
    if above_likely_ratio > noise_ratio + _ROUNDING:
        follows = "depends on how much of its CPU follows messages, which the snapshots don't show"
        yield Doubt(confidence="medium", sentence=f"How far {broker} falls {follows}.")


def places_it_later(broker: str, why_no_destination: str | None) -> Iterator[Doubt]:
    """A doubt if the cluster doesn't keep the destination of an unload (a sentence): it is predicted, not named."""
    if why_no_destination is not None:
        sentence = f"{why_no_destination} It would choose {broker} now, and chooses when a client looks a topic up."
        yield Doubt(confidence="medium", sentence=sentence)


def _unpublished(state: ClusterState, move: Move, change: float) -> Iterator[str]:
    """A doubt if the deciding margin is smaller than what may have changed since the leader was last informed.

    Extensible brokers publish changes of more than `loadBalancerReportUpdateThresholdPercentage`; the leader doesn't
    see smaller ones. If what they published was not read, the decision is based on their present figures.
    """
    if move.awaits:
        yield (
            f"Pulsar unloads it only if {' and '.join(move.awaits)} will have published a new load by the next "
            "cycle. That is likely, as often as brokers have published lately."
        )
    elif state.load_manager == "extensible" and state.published_load is None and not move.margin >= change:
        source = state.brokers.ids[move.source]
        yield (
            f"It was decided by a margin of {move.margin:.1%}; the figures of {source} may have changed by "
            f"{change:.1%} since it published them to the leader (capture with --service-url to read those)."
        )


def _may_stay(state: ClusterState, move: Move) -> Iterator[str]:
    """A doubt if a Modular leader may draw the bundle's own broker: then it doesn't unload the bundle."""
    if state.load_manager == "modular" and move.source in move.possible:
        yield (
            f"Pulsar may draw its destination among {len(move.possible)} brokers, and leaves it where it is if it "
            f"draws {state.brokers.ids[move.source]}."
        )


def _may_go_elsewhere(state: ClusterState, move: Move) -> Iterator[str]:
    """A doubt if what brokers publish by its next cycle may make an Extensible leader choose another destination."""
    others = [state.brokers.ids[row] for row in move.possible if row != move.destination]
    if state.published_load is not None and others:
        yield f"Pulsar may choose {' or '.join(others)} instead, on what brokers publish before the next cycle."
