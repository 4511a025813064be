"""Two snapshots differ in who carries what, what moved and why, and which settings changed."""

from math import nan

from moments import FIRST, SECOND, moment, with_set_aside
from published import faults
from pulsar_advisor.documents.document import as_json
from pulsar_advisor.history.columns import UNFIT
from pulsar_advisor.history.difference import Growth, difference

A, B = "a:8080", "b:8080"


def test_nothing_is_named_that_is_the_same() -> None:
    found = difference(moment(1, {FIRST: A}), moment(1, {FIRST: A}), {})
    assert (found.namespaces, found.brokers, found.events) == ([], [], [])


def test_the_largest_change_comes_first() -> None:
    before = moment(1, {}, usage={A: 0.5, B: 0.5})
    found = difference(before, moment(2, {}, usage={A: 0.5625, B: 0.25}), {})
    assert found.brokers == [Growth(B, 0.5, 0.25), Growth(A, 0.5, 0.5625)]


def test_a_namespace_carries_what_its_bundles_do() -> None:
    found = difference(moment(1, {FIRST: A}), moment(2, {FIRST: A, SECOND: A}), {})
    assert found.namespaces == [Growth("t/n", 2.0, 2 * (2.0 + 102.0))]


def test_what_a_broker_that_did_not_report_carries_has_not_fallen() -> None:
    before = moment(1, {FIRST: A, SECOND: B}, usage={A: 0.5, B: 0.5})
    silent = moment(1, {FIRST: A, SECOND: B}, usage={A: 0.5, B: nan})
    silent.traffic[1] = nan
    found = difference(before, silent, {})
    assert (found.namespaces, found.brokers) == ([], [])


def test_a_bundle_that_is_not_in_the_report_of_its_owner_carries_nothing() -> None:
    idle = moment(1, {FIRST: A, SECOND: A})
    idle.traffic[1] = nan
    assert difference(idle, moment(1, {FIRST: A, SECOND: A}), {}).namespaces == [Growth("t/n", 2.0, 2 * (1.0 + 101.0))]


def test_what_validation_set_aside_has_neither_grown_nor_fallen() -> None:
    before = moment(1, {FIRST: A}, usage={A: 0.5, B: 0.5})
    absurd = with_set_aside(moment(2, {FIRST: A}, usage={A: 0.5, B: 1e9}), B)
    absurd.flags[0] = UNFIT
    found = difference(before, absurd, {})
    assert (found.namespaces, found.brokers) == ([], [])


def test_a_difference_keeps_to_its_schema() -> None:
    before, after = moment(1, {FIRST: A}, usage={A: 0.5, B: 0.25}), moment(2, {FIRST: B}, usage={A: 0.25, B: 0.5})
    document = as_json(difference(before, after, {}))
    assert not faults(document)
    assert document["brokers"]
    assert document["events"]
