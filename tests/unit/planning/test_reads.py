"""What a strategy says it reads of a snapshot is what it reads: nothing else changes its answer, all of that can."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.cluster.inputs import EVERY_STEP_READS, INPUTS, Input
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.strategy.entry import Strategy
from pulsar_advisor.model.strategy.memory import SplitMemory
from pulsar_advisor.placement import registry as placements
from pulsar_advisor.shedding import registry as shedders
from pulsar_advisor.shedding.cycle import steady_state
from pulsar_advisor.splitting.registry import SPLIT_ALGORITHMS, SPLIT_DECIDERS, split_decider
from pulsar_advisor.splitting.steady_splits import steady_splits
from unit.planning.any_state import EAGER, any_state, changed, plain

SEEDS = range(12)
OF_A_STEP: frozenset[Input] = frozenset(EVERY_STEP_READS)


def shed(strategy: Strategy, state: ClusterState, settings: LoadBalancerSettings) -> str:
    shedder = shedders.load(strategy.name)
    view = shedder.observe(state, settings, state.captured_at_ms)
    return plain(steady_state(shedder, view, settings, shedder.Memory()).decision)


def place(strategy: Strategy, state: ClusterState, settings: LoadBalancerSettings) -> str:
    """Three choices, with what is remembered of another state."""
    placement = placements.load(strategy.name)
    candidates, memory, answer = np.arange(len(state.brokers), dtype=np.int32), placement.Memory(), None
    for moment in (any_state(99, state.load_manager), state):
        view = placement.observe(moment, settings, moment.captured_at_ms)
        for bundle in range(3):
            answer, memory = placement.choose(view, candidates, bundle, settings, memory)
    return plain(answer)


def split(strategy: Strategy, state: ClusterState, settings: LoadBalancerSettings) -> str:
    return plain(split_decider(state.load_manager).decide(state, settings, SplitMemory())[0].bundles)


def cut(strategy: Strategy, state: ClusterState, settings: LoadBalancerSettings) -> str:
    decision = steady_splits(state, settings).decision
    return plain([(one.bundle, one.algorithm, one.boundaries) for one in decision.splits])


Ask = Callable[[Strategy, ClusterState, LoadBalancerSettings], str]

STRATEGIES: list[tuple[Ask, Strategy]] = [
    *((shed, strategy) for strategy in shedders.SHEDDERS),
    *((place, strategy) for strategy in placements.PLACEMENTS),
    *((split, strategy) for strategy in SPLIT_DECIDERS),
    # No broker uses positions by itself, and none are given.
    *((cut, strategy) for strategy in SPLIT_ALGORITHMS if strategy.name != "specified_positions_divide"),
]

every_strategy = pytest.mark.parametrize(
    ("ask", "strategy"), STRATEGIES, ids=[f"{ask.__name__}-{strategy.name}" for ask, strategy in STRATEGIES]
)


def reads_of(ask: Ask, strategy: Strategy) -> frozenset[Input]:
    """What decides the answer: a boundary also hangs on what made the decider choose the bundle."""
    chosen_by = SPLIT_DECIDERS[0].reads if ask is cut else frozenset()
    return strategy.reads | chosen_by


def settings_for(ask: Ask, strategy: Strategy) -> LoadBalancerSettings:
    algorithm = {"defaultNamespaceBundleSplitAlgorithm": strategy.name} if ask is cut else {}
    return resolve_settings("4.0.8", what_if={**EAGER, **algorithm}).values


def manager_of(ask: Ask, strategy: Strategy) -> str:
    return "modular" if ask is cut else strategy.load_managers[0]


@pytest.mark.sampled(every=4)
@every_strategy
def test_what_a_strategy_does_not_say_it_reads_does_not_change_its_answer(ask: Ask, strategy: Strategy) -> None:
    settings = settings_for(ask, strategy)
    others = INPUTS.keys() - OF_A_STEP - reads_of(ask, strategy)
    for seed in SEEDS:
        state = any_state(seed, manager_of(ask, strategy))
        assert ask(strategy, changed(state, others, seed + 100), settings) == ask(strategy, state, settings)


@pytest.mark.sampled(every=4)
@every_strategy
def test_everything_a_strategy_says_it_reads_can_change_its_answer(ask: Ask, strategy: Strategy) -> None:
    settings = settings_for(ask, strategy)
    for name in strategy.reads:
        answers = [
            (ask(strategy, changed(state, frozenset({name}), seed + 100), settings), ask(strategy, state, settings))
            for seed in SEEDS
            for state in [any_state(seed, manager_of(ask, strategy))]
        ]
        assert any(one != other for one, other in answers), name
