"""What the Modular shedders share: ranking, the greedy take, the order of the result, the answers."""

from __future__ import annotations

import numpy as np
import pytest

from conformance import codes
from pulsar_advisor.model.load.load_data import LoadData
from pulsar_advisor.shedding.candidates import greedy_take, in_result_order, rank, take_outcomes
from unit.shedding.leader import broker, bundle, settings, view

BUNDLES = {name: bundle(mib_per_s=size) for name, size in {"s": 1, "m": 2, "l": 3}.items()}


def load(recently_unloaded: tuple[str, ...] = ()) -> LoadData:
    return view({"a": broker(0, ["s", "m"]), "b": broker(0, ["l"])}, BUNDLES, recently_unloaded)


def rows(*brokers: int) -> np.ndarray:
    return np.array(brokers, dtype=np.int32)


def test_bundles_are_ranked_by_broker_greatest_first() -> None:
    of = load()
    ranked = rank(of, rows(1, 0), of.bundles.throughput_bytes_per_s())
    assert [of.bundles.name(row) for row in ranked.bundle] == ["l", "m", "s"]
    assert ranked.starts.tolist() == [0, 1, 3]
    assert ranked.source_position().tolist() == [0, 1, 1]


def test_each_broker_can_be_ranked_by_a_dimension_of_its_own() -> None:
    of = load()
    figures = np.stack((of.bundles.throughput_bytes_per_s(), -of.bundles.throughput_bytes_per_s()))
    ranked = rank(of, rows(0, 1), figures, np.array([1, 0]))
    assert [of.bundles.name(row) for row in ranked.bundle] == ["s", "m", "l"]


def test_what_was_unloaded_within_the_grace_period_is_not_ranked() -> None:
    of = load(recently_unloaded=("m",))
    ranked = rank(of, rows(0), of.bundles.throughput_bytes_per_s())
    assert [of.bundles.name(row) for row in ranked.bundle] == ["s"]


@pytest.mark.parametrize(
    ("minimum", "taken"), [(0.0, [True, False]), (2.0, [True, False]), (2.1, [True, True]), (9.0, [True, True])]
)
def test_bundles_are_taken_until_the_minimum_is_reached_and_the_first_always_goes(
    minimum: float, taken: list[bool]
) -> None:
    ranked = rank(load(), rows(0), np.array([1.0, 2.0, 3.0]))
    take = greedy_take(ranked, np.array([minimum]))
    assert take.taken.tolist() == taken


def test_a_value_that_is_no_number_ends_the_taking() -> None:
    ranked = rank(load(), rows(0), np.array([1.0, np.nan, 3.0]))
    assert greedy_take(ranked, np.array([5.0])).taken.tolist() == [True, False]


def test_without_sources_nothing_is_taken() -> None:
    ranked = rank(load(), rows(), np.array([1.0, 2.0, 3.0]))
    assert len(greedy_take(ranked, np.empty(0)).taken) == 0


def test_the_result_keeps_each_brokers_order() -> None:
    of = load()
    ranked = rank(of, rows(0, 1), of.bundles.throughput_bytes_per_s())
    source, bundles = in_result_order(of, ranked, np.ones(3, dtype=np.bool_), settings())
    names = [of.bundles.name(row) for row in bundles]
    assert {*zip(source.tolist(), names, strict=True)} == {(0, "m"), (0, "s"), (1, "l")}
    assert names.index("m") < names.index("s")


def test_every_listed_bundle_gets_an_answer() -> None:
    of = load(recently_unloaded=("s",))
    ranked = rank(of, rows(0), of.bundles.throughput_bytes_per_s())
    outcomes = take_outcomes(of, ranked, greedy_take(ranked, np.array([1.0])), np.array([1.0]))
    answers = {of.bundles.name(row): code for row, code in codes(outcomes).items()}
    assert answers == {
        "m": "chosen",
        "s": "recently_unloaded",
    }
