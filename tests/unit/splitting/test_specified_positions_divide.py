"""`specified_positions_divide` as its page describes it; the vectors in tests/parity hold it to the Java class."""

from __future__ import annotations

import pytest

from pulsar_advisor.model.cluster.bundle_range import FULL_UPPER_BOUND
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.splitting import specified_positions_divide
from unit.splitting.options import option, topics


def test_keeps_the_positions_inside_the_bundle_in_order():
    given_positions = option(topics(1, 2), lower=10, upper=100, positions=(100, 60, 10, 20, 500))
    assert specified_positions_divide.split_boundary(given_positions) == (20, 60)


def test_keeps_duplicates_as_pulsar_does():
    assert specified_positions_divide.split_boundary(option(topics(1, 2), positions=(9, 9))) == (9, 9)


def test_finds_nothing_to_do_when_no_position_is_inside():
    assert specified_positions_divide.split_boundary(option(topics(1, 2), positions=(0, FULL_UPPER_BOUND))) is None


def test_finds_nothing_to_do_with_one_topic():
    assert specified_positions_divide.split_boundary(option(topics(1), positions=(9,))) is None


def test_does_not_look_at_topics_when_forced():
    assert specified_positions_divide.forced_split_boundary(option(None, positions=(9,))) == (9,)


@pytest.mark.parametrize(
    "algorithm", [specified_positions_divide.split_boundary, specified_positions_divide.forced_split_boundary]
)
def test_refuses_without_positions(algorithm):
    with pytest.raises(UsageError, match="needs positions"):
        algorithm(option(topics(1)))
