"""The pace of a run: which steps may be in flight together, and when a run slows down. Pure rules on plain data.

A run goes in waves: the steps of a wave are sent one right after another and watched together, and the next wave begins
when all of them have ended. The first wave is the canary, the step that disturbs the fewest topics; waves then grow.

What Pulsar permits: under Modular the leader remembers one destination for each text of a range, whatever the namespace
(`ModularLoadManagerImpl.bundleBrokerAffinityMap`, up to 5.0.1), so bundles of one range are never in flight together.
Extensible hands each bundle over on its own. An unload without a destination may end anywhere, so it goes alone: that
covers the Simple manager, which honours no destination. A split changes the boundaries that every step of its namespace
is checked against, so no other step of that namespace is in flight with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from pulsar_advisor.execution.throttle import ApplyThrottle
from pulsar_advisor.model.plans.plan import Step

LONGEST_STRETCH: Final = 8
"""The longest pause, as a multiple of the approved one."""
_MINUTE_S: Final = 60.0
SLOW: Final = 3
"""An effect that takes this many times as long as the quickest one of the run is slow,"""
SLOW_S: Final = 5.0
"""unless it shows within this time: a bundle without clients is looked up after 3 s."""


@dataclass(frozen=True)
class Pace:
    """How fast a run goes at the moment."""

    width: int = 1
    """Steps in flight."""
    stretch: int = 1
    """How many times the approved pause a run waits between two waves."""
    quickest_s: float | None = None
    """The shortest time from an unload to its new owner so far; None before the first."""


@dataclass
class Signs:
    """What a wave showed: bad answers and failures in words, and the time from each unload to its new owner."""

    troubles: list[str] = field(default_factory=list)
    latencies_s: list[float] = field(default_factory=list)


def prerequisites(steps: Iterable[Step]) -> Mapping[str, frozenset[str]]:
    """For each step, the earlier steps of the plan that must have ended before it is sent.

    These are the ones it names, those that touch the same bundle, and those that take a bundle from its destination:
    the plan counts on that relief. So no order that respects them loads a broker more than the plan's own order.
    """
    touched: dict[str, set[str]] = {}
    relieved: dict[str, set[str]] = {}
    needed: dict[str, frozenset[str]] = {}
    for step in steps:
        bundle = step.bundle_name
        relief = relieved.get(step.destination, set()) if step.destination else set()
        needed[step.id] = frozenset({*step.after, *touched.get(bundle, ()), *relief})
        for name in (bundle, *(f"{step.namespace}/{child}" for child in step.children)):
            touched.setdefault(name, set()).add(step.id)
        if step.action == "unload":
            relieved.setdefault(step.source, set()).add(step.id)
    return needed


def next_wave(
    steps: Iterable[Step],
    needed: Mapping[str, frozenset[str]],
    left: Collection[str],
    throttle: ApplyThrottle,
    width: int,
) -> tuple[Step, ...]:
    """The steps to send together now, in the order of the plan; none if no step is `left` (ids)."""
    wave: list[Step] = []
    for step in steps:
        if len(wave) == width:
            break
        if step.id in left and needed[step.id].isdisjoint(left) and _fits(step, wave, throttle):
            wave.append(step)
    return tuple(wave)


def canary(steps: Iterable[Step], needed: Mapping[str, frozenset[str]], left: Collection[str]) -> tuple[Step, ...]:
    """The step to try first: an unload, which can be undone, of the fewest topics, then of the lowest message rate."""
    ready = [step for step in steps if step.id in left and needed[step.id].isdisjoint(left)]

    def disturbance(step: Step) -> tuple[bool, int, float]:
        return step.action == "split", step.expect.topics, step.expect.msg_rate_per_s or 0.0

    return (min(ready, key=disturbance),) if ready else ()


def waves(steps: Sequence[Step], throttle: ApplyThrottle) -> Iterator[tuple[Step, ...]]:
    """The waves of a run that meets no trouble, in the order in which they are sent: the canary, then wider ones."""
    needed, left, speed = prerequisites(steps), {step.id for step in steps}, Pace()
    wave = canary(steps, needed, left)
    while wave:
        yield wave
        left -= {step.id for step in wave}
        steps = [step for step in steps if step.id in left]
        speed, _ = after_wave(speed, Signs(), throttle.in_flight)
        wave = next_wave(steps, needed, left, throttle, speed.width)


def sent_in_order(steps: Sequence[Step], throttle: ApplyThrottle) -> Iterator[Step]:
    """The steps one by one in that order."""
    return chain.from_iterable(waves(steps, throttle))


def _fits(step: Step, wave: Sequence[Step], throttle: ApplyThrottle) -> bool:
    """Whether a step may be in flight together with the steps of a wave."""
    if not wave:
        return True
    both = [*wave, step]
    splits_of = Counter(one.namespace for one in both if one.action == "split")
    namespaces = Counter(one.namespace for one in both)
    return (
        all(one.destination is not None or one.action == "split" for one in both)
        and len({one.bundle for one in both}) == len(both)
        and all(namespaces[namespace] == 1 for namespace in splits_of)
        and max(namespaces.values()) <= throttle.per_namespace
        and max(Counter(one.source for one in both).values()) <= throttle.per_source
        and max(Counter(one.destination for one in both if one.destination).values(), default=0)
        <= throttle.per_destination
        and (throttle.topics_per_minute is None or disturbed_topics(both) <= throttle.topics_per_minute)
    )


def disturbed_topics(steps: Iterable[Step]) -> int:
    """Topics whose clients have to connect again; a split disturbs none, as its children stay where they are."""
    return sum(step.expect.topics for step in steps if step.action == "unload")


def room_in_s(
    steps: Iterable[Step], unloaded: Iterable[tuple[float, int]], now_s: float, throttle: ApplyThrottle
) -> float:
    """Seconds until these steps may be sent, so that no minute has more unloaded topics than the throttle permits.

    `unloaded`: each unload's time, in seconds as `now_s`, and its topics. One of more topics than the limit lets
    nothing follow for as many minutes as it exceeds the limit times.
    """
    limit, topics = throttle.topics_per_minute, disturbed_topics(steps)
    if limit is None or topics == 0:
        return 0.0
    over = sorted(((at_s + _MINUTE_S * max(1.0, count / limit), count) for at_s, count in unloaded), reverse=True)
    counted = 0
    for over_s, count in over:
        counted += count
        if counted > max(0, limit - topics):
            return max(0.0, over_s - now_s)
    return 0.0


def after_wave(pace: Pace, signs: Signs, in_flight: int) -> tuple[Pace, str | None]:
    """The pace after a wave: half as wide after trouble, else twice, within limits. If it is slower, also why."""
    troubles = list(signs.troubles)
    slowest_s = max(signs.latencies_s, default=0.0)
    if pace.quickest_s is not None and slowest_s > max(SLOW_S, SLOW * pace.quickest_s):
        troubles.append(f"an unload took {slowest_s:.1f} s, and the quickest one {pace.quickest_s:.1f} s")
    known = [] if pace.quickest_s is None else [pace.quickest_s]
    quickest_s = min([*known, *signs.latencies_s], default=None)
    if not troubles:
        return Pace(min(in_flight, 2 * pace.width), max(1, pace.stretch // 2), quickest_s), None
    slower = Pace(max(1, pace.width // 2), min(LONGEST_STRETCH, 2 * pace.stretch), quickest_s)
    is_slower = (slower.width, slower.stretch) != (pace.width, pace.stretch)
    return slower, "; ".join(troubles) if is_slower else None
