"""A row for each snapshot of a day: how evenly the load lay, and what changed since the one before."""

from math import nan

from moments import FIRST, SECOND, THIRD, moment, with_set_aside
from pulsar_advisor.history.columns import INDEX
from pulsar_advisor.history.day import fold
from pulsar_advisor.history.index import index_of


def test_usage_is_that_of_the_available_brokers() -> None:
    index = fold([moment(1, {FIRST: "a:8080"}, usage={"a:8080": 0.75, "b:8080": 0.25})])["index"]
    [row] = index.to_pylist()
    assert (row["brokers"], row["busiest"], row["mean"], row["deviation"]) == (2, 0.75, 0.5, 0.25)
    assert index.schema == INDEX


def test_a_broker_whose_usage_is_not_known_is_no_idle_one() -> None:
    index = fold([moment(1, {}, usage={"a:8080": 0.75, "b:8080": 0.25, "c:8080": nan})])["index"]
    [row] = index.to_pylist()
    assert (row["brokers"], row["busiest"], row["mean"], row["deviation"]) == (3, 0.75, 0.5, 0.25)


def test_a_broker_that_validation_set_aside_is_neither_the_busiest_nor_an_idle_one() -> None:
    seen = moment(1, {}, usage={"a:8080": 0.75, "b:8080": 0.25, "c:8080": 1e9, "d:8080": 0.0})
    index = fold([with_set_aside(seen, "c:8080", "d:8080")])["index"]
    [row] = index.to_pylist()
    assert (row["brokers"], row["busiest"], row["mean"], row["deviation"]) == (4, 0.75, 0.5, 0.25)


def test_a_bundle_moved_if_another_broker_owns_it_than_in_the_snapshot_before() -> None:
    index = fold(
        [
            moment(1, {FIRST: "a:8080", SECOND: "a:8080", THIRD: None}),
            moment(2, {FIRST: "b:8080", SECOND: "a:8080", THIRD: "a:8080"}),
            moment(3, {FIRST: "b:8080", SECOND: None, THIRD: "b:8080"}),
        ]
    )["index"]
    assert index["moves"].to_pylist() == [0, 1, 1]
    assert index["bundles"].to_pylist() == [3, 3, 3]


def test_a_snapshot_without_a_broker_has_no_usage() -> None:
    day = fold([moment(1, {}), moment(2, {})])
    first = day["hosts"].filter(day["hosts"]["t"].to_numpy() == 0)
    index = index_of({**day, "hosts": first})
    assert index["brokers"].to_pylist() == [2, 0]
    assert [str(value) for value in index["busiest"].to_pylist()] == ["0.5", "nan"]
