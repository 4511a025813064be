"""Waves keep the limits and the order that the plan counts on; trouble slows a run down."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.execution.run.pace import (
    Pace,
    Signs,
    after_wave,
    canary,
    next_wave,
    prerequisites,
    room_in_s,
    waves,
)
from pulsar_advisor.execution.throttle import ApplyThrottle
from pulsar_advisor.model.plans.plan import Step
from unit.execution.doubles import B1, B2, B3, BASKETS, LOWER, NAMESPACE, UPPER, split_step, unload_step, wide_plan

OPEN = ApplyThrottle(in_flight=100, per_source=100, per_destination=100, per_namespace=100)
BROKERS = (B1, B2, B3, "10.0.0.4:8080")
RANGES = [f"0x{number:08x}_0x{number + 1:08x}" for number in range(6)]


def wave(steps: Sequence[Step], throttle: ApplyThrottle = OPEN, width: int = 100) -> list[str]:
    """Numbers of the steps of the first wave after the canary."""
    chosen = next_wave(steps, prerequisites(steps), {step.id for step in steps}, throttle, width)
    return [step.id.removeprefix("step-00") for step in chosen]


def of_topics(step: Step, topics: int, msg_rate_per_s: float | None = 100.0) -> Step:
    expect = step.expect.model_copy(update={"topics": topics, "msg_rate_per_s": msg_rate_per_s})
    return step.model_copy(update={"expect": expect})


FIRST = unload_step(1, RANGES[0], B1, B2)


@pytest.mark.parametrize(
    ("second", "together"),
    [
        (unload_step(2, RANGES[1], B3, B2), True),
        (unload_step(2, RANGES[0], B3, B2, namespace=BASKETS), False),
        (unload_step(2, RANGES[1], B3, None), False),
        (unload_step(2, RANGES[0], B2, B3), False),
        (unload_step(2, RANGES[1], B3, B1), False),
        (unload_step(2, RANGES[1], B3, B2, after=("step-001",)), False),
        (split_step(2), False),
        (split_step(2, namespace=BASKETS), True),
    ],
    ids=[
        "other range",
        "same range of another namespace",
        "no destination",
        "same bundle",
        "goes where the first makes room",
        "named after it",
        "split of the same namespace",
        "split of another namespace",
    ],
)
def test_what_may_be_in_flight_together(second: Step, together: bool) -> None:
    assert wave([FIRST, second]) == (["1", "2"] if together else ["1"])


def test_the_children_of_a_split_wait_for_it() -> None:
    split = split_step(1)
    children = [unload_step(number, child, B1, B2) for number, child in enumerate(split.children, 2)]
    assert wave([split, *children]) == ["1"]


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        ({}, ["1", "2", "3"]),
        ({"per_source": 2}, ["1", "2"]),
        ({"per_destination": 1}, ["1", "3"]),
        ({"per_namespace": 2}, ["1", "2"]),
        ({"topics_per_minute": 6}, ["1", "2"]),
        ({"topics_per_minute": 1}, ["1"]),
    ],
)
def test_each_limit_holds(limit: dict[str, int], expected: list[str]) -> None:
    steps = [unload_step(1, RANGES[0], B1, B2), unload_step(2, RANGES[1], B1, B2), unload_step(3, RANGES[2], B1, B3)]
    throttle = ApplyThrottle(**{"in_flight": 100, "per_source": 3, "per_destination": 3, "per_namespace": 3, **limit})
    assert wave(steps, throttle) == expected


def test_the_canary_is_the_smallest_unload() -> None:
    steps = wide_plan().steps
    assert [step.id for step in canary(steps, prerequisites(steps), {step.id for step in steps})] == ["step-003"]
    alike = [
        of_topics(unload_step(1, RANGES[0]), 5),
        of_topics(unload_step(2, RANGES[1]), 5, 1.0),
        of_topics(split_step(3), 1),
    ]
    assert [step.id for step in canary(alike, prerequisites(alike), {step.id for step in alike})] == ["step-002"]


def test_a_rate_that_is_not_known_counts_as_none() -> None:
    known = of_topics(unload_step(1, RANGES[0]), 5, 0.5)
    unknown = of_topics(unload_step(2, RANGES[1]), 5, None)
    steps = [known, unknown]
    assert canary(steps, prerequisites(steps), {step.id for step in steps}) == (unknown,)


def test_a_small_step_is_no_canary_before_its_turn() -> None:
    steps = [of_topics(unload_step(1, RANGES[0], B2, B3), 9), of_topics(unload_step(2, RANGES[1], B1, B2), 1)]
    assert [step.id for step in canary(steps, prerequisites(steps), {"step-001", "step-002"})] == ["step-001"]
    assert [step.id for step in canary(steps, prerequisites(steps), {"step-002"})] == ["step-002"]


@st.composite
def plans(draw: st.DrawFn) -> list[Step]:
    """Moves of bundles that know where they are, as plans have them, and a split now and then."""
    owners = {
        (namespace, text): draw(st.sampled_from(BROKERS)) for namespace in (NAMESPACE, BASKETS) for text in RANGES
    }
    steps: list[Step] = []
    bundles = draw(st.lists(st.sampled_from(sorted(owners)), min_size=8, max_size=14))
    for number, (namespace, text) in enumerate(bundles, 1):
        source = owners[namespace, text]
        others = [broker for broker in BROKERS if broker != source]
        destination = draw(st.sampled_from(others)) if draw(st.integers(0, 9)) else None
        step = of_topics(unload_step(number, text, source, destination, namespace=namespace), draw(st.integers(1, 9)))
        if draw(st.integers(0, 9)) == 0:
            step = step.model_copy(update={"action": "split", "destination": None, "children": (f"{text}-1",)})
        elif destination is not None:
            owners[namespace, text] = destination
        steps.append(step)
    return steps


limits = st.builds(
    ApplyThrottle,
    in_flight=st.integers(2, 6),
    per_source=st.integers(1, 3),
    per_destination=st.integers(1, 3),
    per_namespace=st.integers(1, 4),
    topics_per_minute=st.none() | st.integers(10, 60),
)


@given(plans(), limits)
def test_every_step_has_one_wave_within_the_limits(steps: list[Step], throttle: ApplyThrottle) -> None:
    sent = list(waves(steps, throttle))
    assert Counter(step.id for each in sent for step in each) == Counter(step.id for step in steps)
    for each in sent:
        assert len(each) <= throttle.in_flight
        assert len({step.bundle for step in each}) == len(each)
        assert max(Counter(step.source for step in each).values()) <= max(1, throttle.per_source)
        assert max(Counter(step.namespace for step in each).values()) <= max(1, throttle.per_namespace)
        assert max(Counter(step.destination for step in each if step.destination).values(), default=0) <= max(
            1, throttle.per_destination
        )
        assert len(each) == 1 or all(step.destination or step.action == "split" for step in each)


@given(plans(), limits)
def test_no_broker_has_more_than_the_plans_own_order_gives_it(steps: list[Step], throttle: ApplyThrottle) -> None:
    steps = [step for step in steps if step.action == "unload" and step.destination]
    planned = peaks([[step] for step in steps])
    # Within a wave the arrivals may come first.
    arrivals_first = [[step] for each in waves(steps, throttle) for step in each]
    assert all(peak <= planned.get(broker, 0) for broker, peak in peaks(arrivals_first).items())


def peaks(order: list[list[Step]]) -> dict[str, int]:
    """The most topics that came to each broker, above what it began with."""
    usage: Counter[str] = Counter()
    highest: dict[str, int] = {}
    for each in order:
        for step in each:
            assert step.destination is not None
            usage[step.source] -= step.expect.topics
            usage[step.destination] += step.expect.topics
            highest[step.destination] = max(highest.get(step.destination, 0), usage[step.destination])
    return {broker: max(0, peak) for broker, peak in highest.items()}


@given(plans())
def test_with_one_step_in_flight_the_plan_keeps_its_order_after_the_canary(steps: list[Step]) -> None:
    order = [step for each in waves(steps, ApplyThrottle()) for step in each]
    assert order[1:] == [step for step in steps if step != order[0]] if steps else order == []


def test_waves_grow_to_the_limit_while_nothing_is_wrong() -> None:
    pace, widths = Pace(), []
    for _ in range(4):
        pace, why = after_wave(pace, Signs(latencies_s=[0.5]), 6)
        widths.append(pace.width)
        assert why is None
    assert widths == [2, 4, 6, 6]


@pytest.mark.parametrize(
    ("signs", "why"),
    [
        (
            Signs(troubles=["step-002 failed", "step-003 was answered 503"]),
            "step-002 failed; step-003 was answered 503",
        ),
        (Signs(latencies_s=[0.6, 9.0]), "an unload took 9.0 s, and the quickest one 0.5 s"),
    ],
)
def test_errors_and_latency_slow_a_run_down(signs: Signs, why: str) -> None:
    assert after_wave(Pace(4, 1, 0.5), signs, 4) == (Pace(2, 2, 0.5), why)
    assert after_wave(Pace(1, 8, 0.5), signs, 4) == (Pace(1, 8, 0.5), None)  # as slow as it gets


@pytest.mark.parametrize("seconds", [[0.5, 4.9], [2.9, 8.0], []])
def test_what_is_quick_enough_does_not(seconds: list[float]) -> None:
    assert after_wave(Pace(4, 1, 2.9), Signs(latencies_s=seconds), 4)[1] is None


def test_a_run_recovers_wave_by_wave() -> None:
    pace, _ = after_wave(Pace(1, 4, 0.5), Signs(latencies_s=[0.5]), 4)
    assert pace == Pace(2, 2, 0.5)
    assert after_wave(Pace(1, 3, 0.5), Signs(latencies_s=[0.5]), 4)[0] == Pace(2, 1, 0.5)


@pytest.mark.parametrize(
    ("unloaded", "now_s", "left_s"),
    [
        ([], 0, 0),
        ([(0, 30)], 5, 0),
        ([(0, 31)], 5, 55),
        ([(0, 31)], 60, 0),
        ([(0, 30), (10, 30)], 10, 50),
        ([(0, 30), (10, 30), (20, 30)], 20, 50),
        ([(0, 120)], 5, 115),
        ([(90, 60)], 0, 150),
    ],
    ids=["none", "room for both", "too many", "a minute ago", "one must go", "two must go", "large", "due later"],
)
def test_topics_unloaded_before_are_waited_for(unloaded: list[tuple[float, int]], now_s: float, left_s: float) -> None:
    steps = [of_topics(unload_step(1), 30), split_step(2)]
    assert room_in_s(steps, unloaded, now_s, ApplyThrottle(topics_per_minute=60)) == left_s


def test_topics_do_not_matter_without_a_limit_or_to_a_split() -> None:
    assert room_in_s([unload_step(1)], [(0, 10_000)], 0, ApplyThrottle()) == 0
    assert room_in_s([split_step(1)], [(0, 10_000)], 0, ApplyThrottle(topics_per_minute=60)) == 0


def test_ranges_and_namespaces_of_the_tests_plan_are_as_its_name_says() -> None:
    steps = wide_plan().steps
    assert wave(steps, ApplyThrottle(in_flight=4)) == ["1", "2"]
    assert {step.bundle for step in steps} == {LOWER, UPPER}
