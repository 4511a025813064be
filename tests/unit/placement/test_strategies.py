"""The placement strategies by example; the vectors hold them to the released classes."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest

from pulsar_advisor.model.decision import PlacementDecision
from pulsar_advisor.model.load_data import LoadData
from pulsar_advisor.model.settings import LoadBalancerSettings
from pulsar_advisor.placement import registry
from pulsar_advisor.shedding import avg_shedder
from unit.shedding.leader import broker, bundle, settings, view


def choose(
    name: str, load: LoadData, of: LoadBalancerSettings, memory: Any = None, row: int = 0, among: tuple[str, ...] = ()
) -> tuple[list[str], dict[str, str], Any]:
    """Eligible brokers, the code of each candidate, the memory after."""
    strategy = registry.load(name)
    candidates = np.array(
        [load.brokers.ids.index(name) for name in among or load.brokers.ids],
        dtype=np.int32,
    )
    memory = strategy.Memory() if memory is None else memory
    decision: PlacementDecision
    decision, memory = strategy.choose(load, candidates, row, of, memory)
    outcomes = decision.brokers
    codes = {
        load.brokers.ids[index]: outcomes.vocabulary[code].code
        for index, code in zip(outcomes.index, outcomes.code, strict=True)
    }
    return [load.brokers.ids[index] for index in decision.eligible], codes, memory


def with_rate(cpu_percent: float, long_term_rate_per_s: float) -> dict[str, Any]:
    return {**broker(cpu_percent, []), "longTermMsgRateIn": long_term_rate_per_s}


class TestLeastLongTermMessageRate:
    NAME = "LeastLongTermMessageRate"

    def test_the_lowest_rate_wins_and_overloaded_brokers_are_out(self) -> None:
        load = view({"a": with_rate(10, 300), "b": with_rate(10, 200), "c": with_rate(90, 100)}, {})
        eligible, codes, _ = choose(self.NAME, load, settings())
        assert eligible == ["b"]
        assert codes == {"a": "higher_rate", "b": "lowest_rate", "c": "overloaded"}

    def test_equal_rates_are_drawn_among(self) -> None:
        load = view({"a": with_rate(10, 200), "b": with_rate(10, 200)}, {})
        assert choose(self.NAME, load, settings())[0] == ["a", "b"]

    def test_a_broker_at_the_threshold_is_not_overloaded(self) -> None:
        load = view({"a": with_rate(50, 100), "b": with_rate(10, 200)}, {})
        assert choose(self.NAME, load, settings(loadBalancerBrokerOverloadedThresholdPercentage=50))[0] == ["a"]

    def test_if_all_are_overloaded_all_are_drawn_among(self) -> None:
        load = view({"a": with_rate(90, 100), "b": with_rate(95, 200)}, {})
        eligible, codes, _ = choose(self.NAME, load, settings())
        assert eligible == ["a", "b"]
        assert set(codes.values()) == {"all_overloaded"}

    def test_bundles_on_their_way_count(self) -> None:
        on_its_way = {"preallocated": {"t/n/x": {"longTerm": {"msgRateIn": 150}}}}
        load = view({"a": {**with_rate(10, 100), **on_its_way}, "b": with_rate(10, 200)}, {})
        assert choose(self.NAME, load, settings())[0] == ["b"]


class TestLeastResourceUsageWithWeight:
    NAME = "LeastResourceUsageWithWeight"

    @staticmethod
    def load_of(a: float, b: float, rate_per_s: float = 1) -> LoadData:
        return view(
            {"a": broker(a, ["x"], rate_per_s=rate_per_s), "b": broker(b, ["x"], rate_per_s=rate_per_s)},
            {"x": bundle()},
        )

    def test_brokers_far_enough_below_the_mean_are_eligible(self) -> None:
        eligible, codes, _ = choose(self.NAME, self.load_of(20, 60), settings())
        assert eligible == ["a"]
        assert codes == {"a": "below_mean", "b": "near_mean"}

    def test_in_an_even_cluster_everybody_is(self) -> None:
        eligible, codes, _ = choose(self.NAME, self.load_of(50, 60), settings())
        assert eligible == ["a", "b"]
        assert set(codes.values()) == {"none_below"}

    def test_the_history_advances_with_every_choice(self) -> None:
        _, _, memory = choose(self.NAME, self.load_of(20, 60), settings())
        _, _, memory = choose(self.NAME, self.load_of(80, 60), settings(), memory)
        assert memory.history == pytest.approx({"a": 0.26, "b": 0.6})

    @pytest.mark.parametrize(("release", "remembered"), [("2.11.0", 0.26), ("4.0.8", 0.8)])
    def test_an_idle_broker_starts_afresh_from_3_0_on(self, release: str, remembered: float) -> None:
        of = settings(release, loadBalancerDirectMemoryResourceWeight=0, loadBalancerMemoryResourceWeight=0)
        _, _, memory = choose(self.NAME, self.load_of(20, 60, rate_per_s=0), of)
        _, _, memory = choose(self.NAME, self.load_of(80, 60, rate_per_s=0), of, memory)
        assert memory.history["a"] == pytest.approx(remembered)

    def test_brokers_that_are_no_candidates_keep_their_history(self) -> None:
        load = self.load_of(20, 60)
        _, _, memory = choose(self.NAME, load, settings())
        _, _, memory = choose(self.NAME, load, settings(), memory, among=("b",))
        assert memory.history["a"] == pytest.approx(0.2)


class TestRoundRobinBrokerSelector:
    NAME = "RoundRobinBrokerSelector"

    def test_one_after_the_other(self) -> None:
        load, memory, chosen = view({"a": broker(0, []), "b": broker(0, [])}, {}), None, []
        for _ in range(3):
            eligible, _, memory = choose(self.NAME, load, settings(), memory)
            chosen += eligible
        assert chosen == ["a", "b", "a"]

    def test_the_order_of_an_earlier_set_persists_while_its_members_remain(self) -> None:
        load = view({name: broker(0, []) for name in "abc"}, {})
        _, _, memory = choose(self.NAME, load, settings())
        assert choose(self.NAME, load, settings(), memory, among=("c", "a", "b"))[0] == ["b"]

    def test_a_broker_that_comes_back_is_where_it_was_in_the_list(self) -> None:
        before, between = (view({name: broker(0, []) for name in names}, {}) for names in ("abc", "acd"))
        chosen, _, memory = choose(self.NAME, before, settings(), among=("b", "c", "a"))
        for load, among in ((between, ("a", "c", "d")), (between, ("a", "c", "d")), (before, ("a", "b", "c"))):
            eligible, _, memory = choose(self.NAME, load, settings(), memory, among=among)
            chosen += eligible
        assert chosen == ["b", "c", "a", "b"]

    def test_the_counter_wraps(self) -> None:
        load, strategy = view({"a": broker(0, []), "b": broker(0, [])}, {}), registry.load(self.NAME)
        eligible, _, memory = choose(self.NAME, load, settings(), strategy.Memory(2**31 - 1))
        assert (eligible, memory.counter) == (["b"], 0)

    def test_without_candidates_nobody_is_chosen_and_no_turn_is_lost(self) -> None:
        load, strategy = view({}, {}), registry.load(self.NAME)
        decision, memory = strategy.choose(load, np.empty(0, dtype=np.int32), 0, settings(), strategy.Memory(7))
        assert (len(decision.eligible), memory.counter) == (0, 7)


class TestAvgShedder:
    BUNDLES: ClassVar = {"big": bundle(rate_per_s=1500), "other": bundle(rate_per_s=30_000)}

    def shed(self, release: str, calm_percent: float = 20) -> tuple[LoadData, LoadBalancerSettings, Any]:
        of = settings(
            release,
            loadBalancerAvgShedderHitCountHighThreshold=1,
            loadBalancerAvgShedderHitCountLowThreshold=1,
            loadBalancerAvgShedderLowThreshold=5,
        )
        brokers = {
            "busy": broker(95, list(self.BUNDLES), rate_per_s=31_500),
            "calm": broker(calm_percent, []),
            "free": broker(60, []),
        }
        load = view(brokers, self.BUNDLES, of=of)
        _, memory = avg_shedder.decide(load, of, avg_shedder.Memory())
        return load, of, memory

    @pytest.mark.parametrize("release", ["4.0.8", "5.0.1"])
    def test_a_chosen_bundle_goes_where_the_shedder_had_in_mind(self, release: str) -> None:
        load, of, memory = self.shed(release)
        eligible, codes, _ = choose("AvgShedder", load, of, memory, row=0)
        assert eligible == ["calm"]
        assert codes == {"busy": "another_remembered", "calm": "remembered", "free": "another_remembered"}

    def test_any_other_bundle_is_drawn(self) -> None:
        load, of, memory = self.shed("4.0.8")
        assert choose("AvgShedder", load, of, memory, row=1)[0] == ["busy", "calm", "free"]

    @pytest.mark.parametrize(("release", "eligible"), [("5.0.0-M1", ["busy", "free"]), ("5.0.1", ["free"])])
    def test_a_destination_that_is_no_candidate_leads_to_a_draw(self, release: str, eligible: list[str]) -> None:
        load, of, memory = self.shed(release)
        assert choose("AvgShedder", load, of, memory, among=("busy", "free"))[0] == eligible

    def test_from_5_0_1_an_overloaded_destination_gives_way(self) -> None:
        load, of, memory = self.shed("5.0.1")
        strict = of.model_copy(update={"load_balancer_broker_overloaded_threshold_percentage": 10})
        lenient = of.model_copy(update={"load_balancer_broker_overloaded_threshold_percentage": 15})
        hot = view({"busy": broker(95, []), "calm": broker(20, []), "free": broker(12, [])}, self.BUNDLES, of=of)
        assert choose("AvgShedder", hot, lenient, memory)[0] == ["free"]
        assert choose("AvgShedder", hot, strict, memory)[0] == ["calm"]
        assert choose("AvgShedder", load, of, memory)[0] == ["calm"]
