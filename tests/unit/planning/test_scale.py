"""How many brokers a load needs: by hand where it can be divided evenly, and never fewer than a packing needs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsar_advisor.model.base_load import BaseLoad
from pulsar_advisor.planning.kinds.room import Room
from pulsar_advisor.planning.scale import scale
from unit.planning.kinds.clusters import SETTINGS, cluster, room


def test_the_load_of_three_brokers_at_60_percent() -> None:
    found = scale(room(cluster({"a": [20, 20, 20], "b": [30, 30], "c": [60]})), 0.5)
    assert (found.brokers, found.needed) == (3, 4)
    usages = {size.brokers: size.even_usage_ratio for size in found.sizes}
    assert usages == pytest.approx({1: 1.8, 2: 0.9, 3: 0.6, 4: 0.45})
    assert (found.largest_bundle, found.largest_bundle_ratio) == ("t/c-0/0x00000000_0xffffffff", pytest.approx(0.6))
    assert found.losses_that_do_not_fit == ("a:8080", "b:8080", "c:8080")


def test_fewer_would_do() -> None:
    found = scale(room(cluster({"a": [10], "b": [10], "c": [10]})), 0.4)
    assert found.needed == 1
    assert found.losses_that_do_not_fit == ()


def test_what_stays_on_every_broker_may_be_above_the_target_already() -> None:
    state, nothing = cluster({"a": [80], "b": [80]}), np.zeros(2)
    base = BaseLoad(nothing, np.array([70.0, 70.0]), nothing, ("default", "default"))
    busy = Room(state, SETTINGS.values, base, 0.85)
    assert scale(busy, 0.6).needed is None
    assert scale(busy, 0.75).needed == 4


@given(
    sizes=st.lists(st.lists(st.integers(1, 30), max_size=4), min_size=1, max_size=4),
    target=st.sampled_from([0.3, 0.5, 0.85]),
)
@settings(max_examples=50, deadline=None)
def test_no_fewer_brokers_could_take_it(sizes: list[list[int]], target: float) -> None:
    found = scale(room(cluster({f"b{number}": own for number, own in enumerate(sizes)})), target)
    total = sum(map(sum, sizes)) / 100
    assert found.needed is not None
    assert total / found.needed <= target + 1e-6
    assert found.needed == 1 or total / (found.needed - 1) > target - 1e-6
