"""TransferShedder by example; the vectors hold it to the released classes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from conformance import codes
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.load.extensible_load import ExtensibleLoad, TopBundle
from pulsar_advisor.model.strategy.decision import SheddingDecision
from pulsar_advisor.shedding.transfer_shedder import Memory, decide

NOW_MS = 1_795_250_000_000


def settings(**config: object) -> LoadBalancerSettings:
    at_once = {"loadBalancerSheddingConditionHitCountThreshold": "0"}
    return resolve_settings("4.0.8", {**at_once, **{key: str(value) for key, value in config.items()}}).values


def top(*throughputs: float, first_row: int = 0) -> tuple[TopBundle, ...]:
    return tuple(
        TopBundle(first_row + place, throughput, owned=True, excluded_namespace=False, recently_unloaded=False)
        for place, throughput in enumerate(throughputs)
    )


def view(loads: dict[str, float], tops: dict[str, tuple[TopBundle, ...]], throughput: float = 100.0) -> ExtensibleLoad:
    ids = tuple(loads)
    number = len(ids)
    return ExtensibleLoad(
        now_ms=NOW_MS,
        broker_ids=ids,
        stored=np.arange(number, dtype=np.int32),
        available=np.ones(number, dtype=bool),
        load=np.array(list(loads.values())),
        throughput_bytes_per_s=np.full(number, throughput),
        throughput_ema_bytes_per_s=np.full(number, throughput),
        updated_at_ms=np.full(number, NOW_MS),
        top=lambda broker: tops.get(ids[broker], ()),
        transferable=lambda bundle, source, destination: True,
    )


def moves(load: ExtensibleLoad, decision: SheddingDecision) -> list[tuple[str, int, str | None]]:
    rows = zip(decision.source.tolist(), decision.bundle.tolist(), decision.destination.tolist(), strict=True)
    return [
        (load.broker_ids[source], bundle, load.broker_ids[destination] if destination >= 0 else None)
        for source, bundle, destination in rows
    ]


HOT_AND_COLD = {"hot": 0.9, "cold": 0.1}


def test_the_lightest_bundles_go_until_half_the_gap_has_moved() -> None:
    load = view(HOT_AND_COLD, {"hot": top(10, 20, 30)})
    decision, memory = decide(load, settings(), Memory())
    assert moves(load, decision) == [("hot", 0, "cold"), ("hot", 1, "cold")]
    assert codes(decision.bundles) == {0: "chosen", 1: "chosen", 2: "last_of_source"}
    assert memory.hits == 0


def test_the_first_bundle_that_does_not_fit_ends_it() -> None:
    load = view(HOT_AND_COLD, {"hot": top(10, 50, 60, 70)})
    decision, _ = decide(load, settings(), Memory())
    assert moves(load, decision) == [("hot", 0, "cold")]
    assert codes(decision.bundles) == {0: "chosen", 1: "exceeds_goal", 2: "after_the_end", 3: "after_the_end"}


def test_a_bundle_too_large_goes_in_exchange_for_others() -> None:
    load = view({"hot": 0.9, "cold": 0.2}, {"hot": top(70, 80), "cold": top(25, 10, 8, first_row=10)})
    load = replace(load, throughput_bytes_per_s=np.array([100.0, 40.0]))
    decision, _ = decide(load, settings(), Memory())
    assert codes(decision.bundles) == {
        10: "swapped_in",
        11: "swapped_in",
        12: "swapped_in",
        0: "chosen_for_swap",
        1: "last_of_source",
    }
    assert ("cold", 10, "hot") in moves(load, decision)
    assert ("hot", 0, "cold") in moves(load, decision)


def test_it_acts_once_more_hits_than_the_threshold_follow_each_other() -> None:
    load, of, memory = view(HOT_AND_COLD, {"hot": top(10, 20)}), settings(), Memory()
    of = of.model_copy(update={"load_balancer_shedding_condition_hit_count_threshold": 3})
    acted = []
    for _ in range(4):
        decision, memory = decide(load, of, memory)
        acted.append(len(decision.bundle))
    assert acted == [0, 0, 0, 1]
    assert memory.counters == {"Skip/HitCount": 3}


def test_even_loads_are_balanced() -> None:
    decision, memory = decide(view({"a": 0.5, "b": 0.5}, {}), settings(), Memory(hits=2))
    assert {*codes(decision.brokers).values()} == {"balanced"}
    assert memory.hits == 0


def test_a_registered_broker_without_load_data_stops_the_cycle() -> None:
    load = view({**HOT_AND_COLD, "new": 1.0}, {"hot": top(10, 20)})
    decision, memory = decide(replace(load, stored=load.stored[:2]), settings(), Memory(hits=1))
    assert {*codes(decision.brokers).values()} == {"no_load_data"}
    assert (memory.hits, memory.counters) == (1, {"Skip/NoLoadData": 1})


def test_without_any_load_data_there_is_no_broker_to_look_at() -> None:
    load = view(HOT_AND_COLD, {"hot": top(10, 20)})
    decision, memory = decide(replace(load, stored=load.stored[:0]), settings(), Memory())
    assert codes(decision.brokers) == {}
    assert memory.counters == {"Skip/NoBrokers": 1}


def test_an_idle_bundle_is_no_exchange() -> None:
    load = view({"hot": 0.9, "cold": 0.2}, {"hot": top(70, 80), "cold": top(0, 25, 10, 8, first_row=10)})
    decision, _ = decide(replace(load, throughput_bytes_per_s=np.array([100.0, 40.0])), settings(), Memory())
    assert [bundle for _, bundle, to in moves(load, decision) if to == "hot"] == [11, 12, 13]


def test_a_source_that_cools_down_stops_the_cycle_until_its_data_are_new_enough() -> None:
    load = view(HOT_AND_COLD, {"hot": top(10, 20)})
    decision, memory = decide(load, settings(), Memory(recently_unloaded_brokers={"hot": NOW_MS - 179_000}))
    assert {*codes(decision.brokers).values()} == {"cooling_down"}
    decision, memory = decide(load, settings(), Memory(recently_unloaded_brokers={"hot": NOW_MS - 180_000}))
    assert len(decision.bundle) == 1
    assert memory.recently_unloaded_brokers == {}


def test_sources_cool_down_after_their_unloads() -> None:
    memory = Memory(hits=2, recently_unloaded_brokers={"a:8080": 1}).after_unloads(["b:8080"], 5)
    assert memory == Memory(hits=2, recently_unloaded_brokers={"a:8080": 1, "b:8080": 5})


def test_old_data_alone_are_no_ground_to_act_on() -> None:
    load = view(HOT_AND_COLD, {"hot": top(10, 20)})
    decision, memory = decide(replace(load, now_ms=NOW_MS + 1_800_001), settings(), Memory())
    assert {*codes(decision.brokers).values()} == {"outdated"}
    assert memory.counters == {"Skip/OutDatedData": 1}


def test_without_transfer_no_destination_is_named() -> None:
    load = view(HOT_AND_COLD, {"hot": top(10, 20)})
    decision, _ = decide(load, settings(loadBalancerTransferEnabled="false"), Memory())
    assert moves(load, decision) == [("hot", 0, None)]


def test_bundles_that_may_not_move_say_why() -> None:
    entries = top(10, 20, 30, 0, 40)
    entries = (replace(entries[0], owned=False), replace(entries[1], recently_unloaded=True), *entries[2:])
    entries = (*entries[:2], replace(entries[2], excluded_namespace=True), *entries[3:])
    decision, memory = decide(view(HOT_AND_COLD, {"hot": entries}), settings(), Memory())
    assert codes(decision.bundles) == {
        0: "not_owned",
        1: "recently_unloaded",
        2: "excluded_namespace",
        3: "no_throughput",
        4: "chosen",
    }
    assert memory.counters == {}


def test_a_broker_that_reports_one_top_bundle_keeps_it() -> None:
    decision, memory = decide(view(HOT_AND_COLD, {"hot": top(10)}), settings(), Memory())
    assert "one_top_bundle" in {*codes(decision.brokers).values()}
    assert memory.counters == {"Skip/NoBundles": 1}
