"""How many brokers a load needs: by hand where it can be divided evenly, and never on the likely base load alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.model.cluster.cluster_state import BANDWIDTH_OUT
from pulsar_advisor.model.load.base_load import BaseLoad, Origin
from pulsar_advisor.planning.kinds.room import Room
from pulsar_advisor.planning.questions.scale import Scale, scale
from unit.planning.kinds.clusters import SETTINGS, cluster, room
from unit.properties import examples


def scaled(
    sizes: Mapping[str, Sequence[float]],
    target: float,
    *,
    limits: Mapping[str, float] | None = None,
    follows_messages: bool = True,
) -> Scale:
    return scale(room(cluster(sizes, limits=limits), follows_messages=follows_messages), target)


def test_the_load_of_three_brokers_at_60_percent() -> None:
    found = scaled({"a": [20, 20, 20], "b": [30, 30], "c": [60]}, 0.5)
    assert (found.brokers, found.verdict, found.confidence) == (3, "under", "high")
    assert found.sentence == "3 brokers are not enough for 50%, whatever the base load is: 4 would be."
    usages = {size.brokers: size.highest_ratio for size in found.sizes}
    assert usages == pytest.approx({1: 1.8, 2: 0.9, 3: 0.6, 4: 0.45})
    assert (found.largest_bundle, found.largest_bundle_ratio) == ("t/c-0/0x00000000_0xffffffff", pytest.approx(0.6))
    assert found.losses_that_do_not_fit == ("a:8080", "b:8080", "c:8080")


def test_fewer_would_do_if_one_more_may_fail_then() -> None:
    found = scaled({"a": [10], "b": [10], "c": [10]}, 0.4)
    assert (found.verdict, found.machines[0].needed) == ("over", 1)
    assert found.sentence.endswith("one could go; divided evenly, 1 would do.")
    assert scaled({"a": [15], "b": [15], "c": [15]}, 0.4).sentence.endswith("one could go.")
    assert found.losses_that_do_not_fit == ()
    of_two = scaled({"a": [10], "b": [10]}, 0.4)
    assert (of_two.verdict, of_two.sentence) == (
        "right",
        "2 brokers are enough for 40%; one fewer would leave no room for a failure.",
    )


def test_a_broker_whose_bundles_fit_nowhere_is_not_kept_for_a_failure() -> None:
    """Three would be at 53 % on average, and two at 80 %, but two bundles of 40 are above 75 %."""
    found = scaled({"a": [40], "b": [40], "c": [40], "d": [40]}, 0.75)
    assert found.sentence == "4 brokers are enough for 75%; one fewer would leave no room for its bundles."


def test_without_a_known_network_speed_no_broker_can_surely_go() -> None:
    state = cluster({"a": [10], "b": [10], "c": [10]})
    state.brokers.limit[:, BANDWIDTH_OUT] = 0.0
    found = scale(room(state), 0.4)
    assert (found.verdict, found.confidence) == ("right", "low")
    assert found.sentence.startswith(
        "3 brokers are enough for 40%, as far as is known; whether one fewer would be is unknown. No network speed"
    )


def test_the_load_that_moves_is_work_and_machines_differ() -> None:
    # 23.2 of 72 cores are in use, half of the brokers are at 90 %.
    cores = {"a": 400.0, "b": 400.0, "c": 3200.0, "d": 3200.0}
    found = scaled({"a": [180, 180], "b": [360], "c": [800], "d": [800]}, 0.6, limits=cores, follows_messages=False)
    assert [(machine.title, machine.brokers) for machine in found.machines] == [("4 cores", 2), ("32 cores", 2)]
    now = next(size for size in found.sizes if size.change == 0)
    assert (now.lowest_ratio, now.highest_ratio) == pytest.approx((2320 / 7200, 0.9))
    assert (found.verdict, found.confidence) == ("unknown", "low")
    assert "32.2% to 90.0%" in found.sentence
    assert "enough" not in found.sentence.replace("are enough for 60% is unknown", "")


def test_machines_with_as_many_cores_are_told_apart_by_a_broker() -> None:
    state = cluster({"a": [60], "b": [60], "c": [60]}, limits=dict.fromkeys("abc", 400.0))
    state.brokers.limit[2, BANDWIDTH_OUT] /= 10
    assert [(one.title, one.brokers) for one in scale(room(state), 0.75).machines] == [
        ("4 cores like c:8080", 1),
        ("4 cores like a:8080", 2),
    ]


def test_brokers_that_reach_the_target_exactly_are_enough() -> None:
    """Of all CPU as base, 35 of 100 comes out as 0.35000000000000003."""
    found = scaled({"a": [35], "b": [35], "c": [35]}, 0.35, follows_messages=False)
    assert (found.machines[0].needed, found.verdict) == (3, "right")


def test_equal_brokers_whose_cpu_does_not_follow_their_messages() -> None:
    # The base may be all of it: then three have 52 % each; or nothing: then they have to carry all.
    found = scaled({"a": [50], "b": [51], "c": [51.5], "d": [52]}, 0.6, follows_messages=False)
    assert (found.verdict, found.confidence) == ("right", "low")
    assert found.sentence.startswith("4 brokers are enough for 60%. Whether 3 would be is unknown: 52.0% to 68.2% each")
    assert found.machines[0].needed == 4


def test_too_few_whatever_the_base_is() -> None:
    found = scaled({"a": [92], "b": [93], "c": [94], "d": [94]}, 0.6, follows_messages=False)
    assert (found.verdict, found.machines[0].needed, found.machines[0].needed_if_messages) == ("under", None, 7)
    assert "7 would be if CPU follows messages; if it doesn't, no number is." in found.sentence


def test_what_stays_on_every_broker_may_be_above_the_target_already() -> None:
    state, all_of_it = cluster({"a": [80], "b": [80]}), np.array([70.0, 70.0])
    busy = Room(state, SETTINGS.values, BaseLoad(all_of_it, all_of_it, all_of_it, ("history", "history")), 0.85)
    assert scale(busy, 0.6).sentence.endswith("no number of such brokers is: what stays on each is above 60%.")
    assert scale(busy, 0.75).machines[0].needed == 4


def with_bases(sizes: Mapping[str, Sequence[float]], bases: Sequence[float]) -> Room:
    """The room of brokers whose base loads history shows, percent points of 100."""
    base = np.array(bases)
    return Room(cluster(sizes), SETTINGS.values, BaseLoad(base, base, base, ("history",) * len(bases)), 0.85)


def test_a_broker_keeps_its_own_base() -> None:
    found = scale(
        with_bases({"a": [39], "b": [30], "c": [20]}, [30.0, 30.0, 0.0]), 0.35
    )  # c takes what moves, 9 and 20
    now = next(size for size in found.sizes if size.change == 0)
    assert (now.lowest_ratio, now.highest_ratio) == pytest.approx((0.3, 0.3))
    assert found.verdict == "right"


@given(
    loads=st.lists(st.tuples(st.integers(0, 40), st.integers(1, 40)), min_size=2, max_size=4), target=st.integers(5, 80)
)
@examples(60)
def test_as_many_brokers_as_are_needed_are_enough_and_fewer_are_not(loads: list[tuple[int, int]], target: int) -> None:
    sizes = {name: [base + moves] for name, (base, moves) in zip("abcd", loads, strict=False)}
    found = scale(with_bases(sizes, [float(base) for base, _ in loads]), target / 100)
    needed = found.machines[0].needed
    for size in found.sizes:
        if size.highest_ratio != pytest.approx(target / 100):
            assert (needed is not None and size.brokers >= needed) == (size.highest_ratio < target / 100)


def test_one_more_of_a_machine_that_may_be_above_the_target_by_itself_is_no_help() -> None:
    """All of `a` may be base. Without it the rest would do then, but not if its CPU follows messages."""
    state = cluster({"a": [100], "b": [7], "c": [47]}, limits=dict.fromkeys("abc", 100.0))
    state.brokers.limit[0, BANDWIDTH_OUT] *= 10
    found = scale(room(state, follows_messages=False), 0.5)
    assert [(one.brokers, one.needed, one.needed_if_messages) for one in found.machines] == [(2, None, 3), (1, None, 2)]
    assert (
        "1 more with cores not reported like b:8080 would be if CPU follows messages; if it doesn't" in found.sentence
    )


def test_of_machines_of_which_as_many_are_lacking_the_smallest_is_named() -> None:
    state = cluster({"a": [300], "b": [1200]}, limits={"a": 400.0, "b": 1600.0})
    assert scale(room(state), 0.7).sentence.endswith("1 more with 4 cores would be.")


def test_a_machine_that_stays_above_the_target_is_no_help_however_few_there_are() -> None:
    state = cluster({"a": [80], "b": [40], "c": [40]}, limits={"a": 100.0, "b": 200.0, "c": 200.0})
    base = np.array([70.0, 0.0, 0.0])
    found = scale(Room(state, SETTINGS.values, BaseLoad(base, base, base, ("history",) * 3), 0.85), 0.6)
    assert [(one.brokers, one.needed) for one in found.machines] == [(1, 0), (2, None)]
    assert found.sentence.endswith("and no number of such brokers is: what stays on some is above 60%.")
    state.brokers.usage[:, BANDWIDTH_OUT] = 65.0  # of 100 each, so another one is needed
    found = scale(Room(state, SETTINGS.values, BaseLoad(base, base, base, ("history",) * 3), 0.85), 0.6)
    assert [one.needed for one in found.machines] == [None, None]


@pytest.mark.parametrize(
    ("greatest", "origin", "confidence"),
    [(0.5, "default", "high"), (10.0, "default", "medium"), (10.0, "history", "high"), (40.0, "history", "low")],
)
def test_a_size_is_as_sure_as_what_stays_on_each_broker(greatest: float, origin: Origin, confidence: str) -> None:
    state = cluster({"a": [50], "b": [20], "c": [30]})
    none, most = np.zeros(3), np.array([greatest, 0.0, 0.0])
    base = BaseLoad(none, none, most, (origin,) * 3)
    assert scale(Room(state, SETTINGS.values, base, 0.85), 0.6).confidence == confidence


def test_nothing_is_enough_by_figures_that_are_doubted() -> None:
    def doubted(target: float) -> Scale:
        state = cluster({"a": [10], "b": [10], "c": [10]})
        return scale(
            room(replace(state, brokers=replace(state.brokers, doubtful=np.array([True, False, False])))), target
        )

    assert (doubted(0.4).verdict, doubted(0.4).confidence) == ("unknown", "low")
    assert doubted(0.4).sentence.startswith(
        "Whether 3 brokers are enough for 40% is unknown: validation doubts the figures of a:8080, by which the "
        "busiest would be at 10.0%, divided evenly."
    )
    assert (doubted(0.05).verdict, doubted(0.05).confidence) == ("under", "low")
    assert doubted(0.05).sentence.startswith("If the figures of a:8080, which validation doubts, are right, 3 brokers")


@given(
    sizes=st.lists(st.lists(st.integers(1, 30), max_size=4), min_size=1, max_size=4),
    target=st.sampled_from([0.3, 0.5, 0.85]),
    follows_messages=st.booleans(),
)
@examples(50)
def test_no_number_is_enough_that_could_not_take_all_of_it(
    sizes: list[list[int]], target: float, follows_messages: bool
) -> None:
    found = scaled({f"b{number}": own for number, own in enumerate(sizes)}, target, follows_messages=follows_messages)
    total = sum(map(sum, sizes)) / 100
    needed = found.machines[0].needed
    if needed is not None:
        assert total <= target * needed + 1e-6
    if found.verdict in ("right", "over"):
        assert total <= target * len(sizes) + 1e-6
    if found.verdict == "under":
        assert total > target * len(sizes) - 1e-6
