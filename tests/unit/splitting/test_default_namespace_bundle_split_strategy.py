from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pulsar_advisor.model.cluster.bundle_range import FULL_UPPER_BOUND
from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.strategy.decision import SplittingDecision
from pulsar_advisor.model.strategy.memory import SplitMemory
from pulsar_advisor.splitting.default_namespace_bundle_split_strategy import (
    Cycle,
    HitRules,
    Surroundings,
    decide,
    run_cycle,
)
from pulsar_advisor.splitting.limits import SplitLimits
from pulsar_advisor.splitting.verdicts import SplitOutcome
from states import QUARTERS, WHOLE, BrokerRow, BundleRow, cluster_state
from unit.splitting.bundle_figures import figures

LIMITS = SplitLimits(topics=10, sessions=0, msg_rate=100, bandwidth_bytes=1 << 20, namespace_bundles=8)


def cycle(
    topics: list[int],
    hits: list[int] | None = None,
    threshold: int = 0,
    per_cycle: int = 10,
    upper_bounds: dict[int, int] | None = None,
    **known: object,
) -> Cycle:
    """One cycle over quarter bundles of `t/ns1`, row i having topics[i] loaded topics; no hit is needed beforehand."""
    number = len(topics)
    lower = np.arange(number, dtype=np.int64) << 30
    upper = np.minimum(lower + (1 << 30), FULL_UPPER_BOUND)
    for row, bound in (upper_bounds or {}).items():
        upper[row] = bound
    surroundings = {
        "name": lambda row: f"t/ns1/{QUARTERS[row]}",
        "owned": np.ones(number, dtype=np.bool_),
        "bundle_count": np.array([4]),
        "splitting": (),
        "boundaries": lambda row: (int(lower[row]) + 5,),
        **known,
    }
    return run_cycle(
        figures(topics, lower=lower, upper=upper),
        np.array(hits or [0] * number, dtype=np.int64),
        LIMITS,
        HitRules(threshold, per_cycle),
        Surroundings(**surroundings),
    )


def codes(result: Cycle) -> list[str]:
    return [SplitOutcome(code).code for code in result.verdicts.code]


def test_a_bundle_is_split_once_it_has_more_hits_than_the_threshold():
    assert codes(cycle([11], hits=[2], threshold=3)) == ["hits_pending"]
    result = cycle([11], hits=[3], threshold=3)
    assert (codes(result), result.splits, result.hits.tolist()) == (["split_topics"], ((0, 5, "Topics"),), [0])


def test_a_bundle_below_its_limits_loses_its_hits():
    assert cycle([10], hits=[3]).hits.tolist() == [0]


def test_a_bundle_of_too_few_topics_keeps_its_hits():
    result = cycle([1], hits=[3])
    assert (codes(result), result.hits.tolist()) == (["few_topics"], [3])


def test_a_bundle_owned_elsewhere_keeps_its_hits():
    result = cycle([11], hits=[3], owned=np.array([False]))
    assert (codes(result), result.hits.tolist()) == (["not_owner"], [3])


def test_a_range_that_can_not_be_cut_is_a_failure():
    result = cycle([11], upper_bounds={0: 1})
    assert (codes(result), result.hits.tolist()) == (["narrow_range"], [0])


def test_a_bundle_count_that_can_not_be_read_is_a_failure_and_the_hit_stays():
    result = cycle([11], bundle_count=np.array([-1]))
    assert (codes(result), result.hits.tolist()) == (["bundle_count_unknown"], [1])


def test_bundles_chosen_before_count_towards_the_maximum():
    result = cycle([11, 11], bundle_count=np.array([7]))
    assert codes(result) == ["split_topics", "namespace_full"]
    assert (result.verdicts.left[1], result.verdicts.right[1]) == (8, 8)


@pytest.mark.parametrize(
    ("splitting", "expected"),
    [
        ("t/ns1/0x00000000_0x80000000", "splitting"),
        ("t/ns1/0x20000000_0x40000000", "splitting"),
        ("t/ns10/0x00000000_0x80000000", "splitting"),
        ("t/ns2/0x00000000_0x80000000", "split_topics"),
        ("t/ns1/0x40000000_0x80000000", "split_topics"),
    ],
)
def test_a_bundle_waits_while_one_that_shares_a_bound_is_being_split(splitting, expected):
    assert codes(cycle([11], splitting=(splitting,))) == [expected]


@pytest.mark.parametrize("boundaries", [None, (), (5, 6)])
def test_anything_but_one_boundary_is_a_failure(boundaries):
    result = cycle([11], boundaries=lambda row: boundaries)
    assert (codes(result), result.splits) == (["no_single_boundary"], ())


def test_the_cycle_stops_at_its_most_and_what_it_did_not_reach_keeps_its_hits():
    result = cycle([11, 11, 10, 1], hits=[5, 6, 7, 8], per_cycle=1)
    assert codes(result) == ["split_topics", "not_reached", "not_reached", "not_reached"]
    assert result.hits.tolist() == [0, 6, 7, 8]


@pytest.mark.parametrize("per_cycle", [0, -1])
def test_a_most_that_is_not_positive_never_stops_the_cycle(per_cycle):
    assert len(cycle([11, 11, 11], per_cycle=per_cycle).splits) == 3


def test_a_boundary_outside_the_bundle_ends_the_cycle_with_nothing_done():
    cuts = {0: (5,), 1: (5,), 2: ((2 << 30) + 5,)}
    result = cycle([11, 11, 11], hits=[0, 4, 6], boundaries=cuts.get)
    assert (result.aborted, result.splits) == (True, ())
    assert codes(result) == ["cycle_fails", "boundary_outside", "cycle_fails"]
    assert result.hits.tolist() == [0, 5, 6]


def test_a_boundary_on_the_end_of_the_ring_passes_but_is_not_reported_as_a_split():
    result = cycle([1, 1, 1, 11], boundaries=lambda row: (FULL_UPPER_BOUND,))
    assert (result.aborted, result.splits) == (False, ((3, FULL_UPPER_BOUND, "Topics"),))
    assert codes(result)[3] == "boundary_outside"


def test_a_threshold_below_zero_splits_everything():
    result = cycle([5], threshold=-1)
    assert (codes(result), result.splits) == (["split"], ((0, 5, "Unknown"),))


HOT = (101.0, 0.0, 0.0, 0.0)


def state(*rows: BundleRow) -> ClusterState:
    return cluster_state([BrokerRow("a:8080"), BrokerRow("b:8080")], rows, load_manager="extensible")


def run(of: ClusterState, memory: SplitMemory, **what_if: object) -> tuple[SplittingDecision, SplitMemory]:
    given = {"loadBalancerNamespaceBundleMaxMsgRate": 100, **what_if}
    settings = resolve_settings("4.0.8", what_if={key: str(value) for key, value in given.items()}).values
    return decide(of, settings, memory)


def test_the_fourth_cycle_in_a_row_splits_by_default():
    hot = state(BundleRow("t/n", QUARTERS[0], "a:8080", HOT, 3))
    memory = SplitMemory()
    for hits in (1, 2, 3):
        decision, memory = run(hot, memory)
        assert (decision.splits, memory.hits) == ((), {"a:8080": {f"t/n/{QUARTERS[0]}": hits}})
    decision, memory = run(hot, memory)
    assert [(split.bundle, split.boundaries) for split in decision.splits] == [(0, (0x20000000,))]
    assert memory == SplitMemory()


def test_a_bundle_that_moved_starts_again_at_its_new_owner():
    _, memory = run(state(BundleRow("t/n", QUARTERS[0], "a:8080", HOT, 3)), SplitMemory())
    _, memory = run(state(BundleRow("t/n", QUARTERS[0], "b:8080", HOT, 3)), memory)
    assert memory.hits == {"b:8080": {f"t/n/{QUARTERS[0]}": 1}}


def test_every_broker_has_its_own_most_per_cycle():
    hot = state(*(BundleRow("t/n", QUARTERS[row], owner, HOT, 3) for row, owner in enumerate(["a:8080", "b:8080"] * 2)))
    decision, _ = run(
        hot,
        SplitMemory(),
        loadBalancerMaxNumberOfBundlesToSplitPerCycle=1,
        loadBalancerNamespaceBundleSplitConditionHitCountThreshold=0,
    )
    assert sorted(int(hot.bundles.owner[split.bundle]) for split in decision.splits) == [0, 1]


def test_a_bundle_whose_topics_are_not_completely_listed_is_left_out_and_the_others_are_split():
    topics = [f"persistent://t/{namespace}/{number}" for namespace in ("n", "other") for number in range(4)]
    whole = (WHOLE, "a:8080", (20_000.0, 20_000.0, 0.0, 0.0), 3)
    of = cluster_state(
        [BrokerRow("a:8080")], [BundleRow(f"t/{name}", *whole) for name in ("n", "other")], topics=topics
    )
    decision, _ = run(
        replace(of, unlisted_namespaces=frozenset({"t/n"})),
        SplitMemory(),
        defaultNamespaceBundleSplitAlgorithm="topic_count_equally_divide",
        loadBalancerNamespaceBundleSplitConditionHitCountThreshold=0,
    )
    answers = {
        int(row): SplitOutcome(code).code
        for row, code in zip(decision.bundles.index, decision.bundles.code, strict=True)
    }
    assert answers == {0: "topics_unknown", 1: "split_msg_rate"}
    assert [split.bundle for split in decision.splits] == [1]


def test_a_cluster_without_bundles_is_left_alone():
    decision, memory = run(state(), SplitMemory())
    assert (decision.splits, len(decision.bundles), memory) == ((), 0, SplitMemory())


def test_two_positions_are_enough_for_a_cut() -> None:
    assert codes(cycle([11], upper_bounds={0: 2}, boundaries=lambda _: (1,))) == ["split_topics"]
