"""A bundle moved if the brokers answer differently about it the second time."""

from __future__ import annotations

from pulsar_advisor.capture.ownership import moved_bundles

BROKERS = ("b1", "b2")


def test_another_owner_at_the_end() -> None:
    assert moved_bundles({"x": ["b1"], "y": ["b1"]}, {"x": ["b2"], "y": ["b1"]}, BROKERS) == {"x"}


def test_an_owner_gained_or_lost() -> None:
    assert moved_bundles({"x": ["b1"]}, {"y": ["b1"]}, BROKERS) == {"x", "y"}


def test_two_owners_in_one_pass_moved_while_it_was_read() -> None:
    assert moved_bundles({"x": ["b1", "b2"]}, {"x": ["b2"]}, BROKERS) == {"x"}


def test_a_broker_that_did_not_answer_twice_proves_nothing() -> None:
    assert moved_bundles({"x": ["b1"]}, {}, ["b2"]) == set()
