"""Earlier snapshots leave behind what the shedder would remember, unless too much time passed unseen."""

from dataclasses import replace

import pytest

from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.configuration.resolved_settings import ResolvedSettings
from pulsar_advisor.planning.proposals.replay import replay
from pulsar_advisor.shedding import registry

MINUTE_MS = 60_000


def at(state: ClusterState, minutes: int, cpu: float) -> ClusterState:
    usage = state.brokers.usage.copy()
    usage[0, 0] = cpu
    return replace(
        state,
        captured_at_ms=state.captured_at_ms + minutes * MINUTE_MS,
        brokers=replace(state.brokers, usage=usage),
    )


def smoothed(history: list[ClusterState], state: ClusterState, settings: ResolvedSettings) -> dict[str, float]:
    return dict(replay(registry.load("ThresholdShedder"), history, state, settings.values).history)


def test_without_history_nothing_is_remembered(state: ClusterState, settings: ResolvedSettings) -> None:
    assert smoothed([], state, settings) == {}


def test_a_snapshot_counts_as_many_cycles_as_lie_before_the_next(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    history = [at(state, 0, 400.0), at(state, 1, 0.0)]
    # One cycle at 100 %, then two at 0 %, each keeping 0.9 of what was.
    assert smoothed(history, at(state, 3, 0.0), settings)["a:8080"] == pytest.approx(0.81)


def test_a_gap_of_more_than_three_usual_ones_restarts_the_memory(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    history = [at(state, minutes, 400.0) for minutes in (0, 1, 2)]
    assert smoothed(history, at(state, 60, 0.0), settings) == {}


def test_snapshots_of_one_shedding_interval_are_one_cycle(state: ClusterState, settings: ResolvedSettings) -> None:
    def seconds(after: int, cpu: float) -> ClusterState:
        return replace(at(state, 0, cpu), captured_at_ms=state.captured_at_ms + after * 1000)

    history = [seconds(0, 400.0), *(seconds(60 + 5 * number, 0.0) for number in range(12))]
    # One cycle at 100 % and one at 0 %, though a dozen snapshots show the latter.
    assert smoothed(history, seconds(120, 0.0), settings)["a:8080"] == pytest.approx(0.9)


def test_a_gap_of_one_shedding_interval_among_shorter_ones_does_not_restart_the_memory(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    history = [replace(at(state, 0, 400.0), captured_at_ms=state.captured_at_ms + after * 1000) for after in (0, 5, 10)]
    assert smoothed(history, at(state, 1, 0.0), settings) != {}
