"""The throttle of a run: approved together with the plan, and afterwards only ever made stricter."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal, NamedTuple, TypedDict

from pulsar_advisor.model.bounds import (
    CANARY_HOLD,
    ERROR_BUDGET,
    IN_FLIGHT,
    MAX_AGE,
    PAUSE_BETWEEN,
    PER_DESTINATION,
    PER_NAMESPACE,
    PER_SOURCE,
    TOPICS_PER_MINUTE,
    Bounds,
    duration,
)
from pulsar_advisor.model.errors import Refused, StorageError, UsageError
from pulsar_advisor.model.text.reader import reader
from pulsar_advisor.model.text.some_of import count

Drift = Literal["stop", "skip"]


class ThrottleChanges(TypedDict, total=False):
    """Some of the limits of a throttle."""

    max_age_s: int
    on_drift: Drift
    pause_s: float
    canary_hold_s: float
    error_budget: int
    in_flight: int
    per_source: int
    per_destination: int
    per_namespace: int
    topics_per_minute: int | None
    guard: bool


@dataclass(frozen=True)
class ApplyThrottle:
    """The limits of a run. Times are in seconds. Raises `UsageError` if one is out of bounds."""

    max_age_s: int = 6 * 3600
    """Maximum age of the plan's snapshot."""
    on_drift: Drift = "stop"
    """What to do if the cluster no longer matches a step: end the run, or skip the step."""
    pause_s: float = 10.0
    """Pause between two waves; with one step in flight, between two calls."""
    canary_hold_s: float = 60.0
    """How long the result of a run's first step must last before the second one is sent."""
    error_budget: int = 1
    """Failed steps after which a run may still continue. The first step of a run may not fail."""
    in_flight: int = 1
    """Maximum number of steps in flight."""
    per_source: int = 2
    """How many of them may take a bundle from the same broker."""
    per_destination: int = 2
    """How many of them may bring a bundle to the same broker."""
    per_namespace: int = 2
    """How many of them may belong to the same namespace."""
    topics_per_minute: int | None = None
    """How many topics may be unloaded in a minute; a bundle that has more goes alone. None: no limit."""
    guard: bool = False
    """Whether to keep the cluster's own balancer off during the run."""

    def __post_init__(self) -> None:
        """Refuse numbers out of bounds."""
        for name, limit in _LIMITS.items():
            if limit.bounds is not None:
                limit.bounds.check(getattr(self, name))

    def with_changes(self, changes: ThrottleChanges) -> ApplyThrottle:
        """This throttle with some limits replaced. Raises `Refused` if one of them becomes looser."""
        changed = replace(self, **changes)
        if looser := "; ".join(_looser(changed, self)):
            raise Refused(f"the approval is stricter: {looser}. Keep to it, or have the plan approved again")
        return changed

    def takes_s(self, calls: int) -> float:
        """About how long a run takes that sends its calls one at a time; a call itself takes less than a second."""
        return self.canary_hold_s + (calls - 1) * self.pause_s if calls else 0.0

    def sentences(self) -> Iterator[str]:
        """Each limit as a sentence, for a person to read before approving."""
        yield f"nothing is sent once the snapshot is more than {duration(self.max_age_s)} old"
        yield f"{self.pause_s:g} s between two {'calls' if self.in_flight == 1 else 'waves of calls'}"
        yield f"the first step holds for {self.canary_hold_s:g} s before the second is sent"
        verb = "is" if self.error_budget == 1 else "are"
        yield f"{count(self.error_budget, 'failed step')} after the first {verb} tolerated"
        yield "a step that the cluster no longer matches " + (
            "ends the run" if self.on_drift == "stop" else "is left out"
        )
        verb = "is" if self.in_flight == 1 else "are"
        yield f"at most {count(self.in_flight, 'step')} {verb} in flight"
        yield f"at most {_of_them(self.per_source, 'leaves', 'leave')} the same broker"
        yield f"at most {_of_them(self.per_destination, 'goes', 'go')} to the same broker"
        yield f"at most {_of_them(self.per_namespace, 'is', 'are')} of the same namespace"
        yield (
            "no limit on topics per minute"
            if self.topics_per_minute is None
            else f"at most {count(self.topics_per_minute, 'topic')} per minute "
            f"{'is' if self.topics_per_minute == 1 else 'are'} unloaded"
        )
        yield "the cluster's own balancer is " + ("switched off during the run" if self.guard else "left as it is")

    def as_json(self) -> str:
        """The limits by name, as stored in the ledger."""
        return json.dumps(asdict(self), sort_keys=True)


def _of_them(number: int, one_does: str, several_do: str) -> str:
    return f"{number} of them {one_does if number == 1 else several_do}"


class _Limit(NamedTuple):
    """What is known of a limit, whatever its value."""

    strictness: Callable[[Any], float]
    """Of two values, the one that maps to the greater number is stricter."""
    bounds: Bounds | None = None
    """Those of a number; they name its option."""


def _fewer(limit: float | None) -> float:
    """How strict a limit is that is stricter the smaller it is; None: there is none."""
    return -math.inf if limit is None else -limit


_LIMITS: Final[Mapping[str, _Limit]] = {
    "max_age_s": _Limit(_fewer, MAX_AGE),
    "on_drift": _Limit(("skip", "stop").index),
    "pause_s": _Limit(float, PAUSE_BETWEEN),
    "canary_hold_s": _Limit(float, CANARY_HOLD),
    "error_budget": _Limit(_fewer, ERROR_BUDGET),
    "in_flight": _Limit(_fewer, IN_FLIGHT),
    "per_source": _Limit(_fewer, PER_SOURCE),
    "per_destination": _Limit(_fewer, PER_DESTINATION),
    "per_namespace": _Limit(_fewer, PER_NAMESPACE),
    "topics_per_minute": _Limit(_fewer, TOPICS_PER_MINUTE),
    "guard": _Limit(int),
}


DEFAULT_THROTTLE: Final = ApplyThrottle()


def throttle_from_json(text: str | None) -> ApplyThrottle:
    """Parse the output of `as_json`; the defaults for an approval from a release that recorded none.

    Raises `StorageError` for anything else.
    """
    try:
        return ApplyThrottle(**json.loads(text or "{}"))
    except (ValueError, TypeError, UsageError) as error:
        raise StorageError(
            f"the limits of an approval in the ledger can't be read: {error}: {reader().audit}"
        ) from error


def _looser(throttle: ApplyThrottle, approved: ApplyThrottle) -> Iterator[str]:
    before = asdict(approved)
    for name, value in asdict(throttle).items():
        strictness, bounds = _LIMITS[name]
        if strictness(value) < strictness(before[name]):
            option = bounds.option if bounds else f"--{name.replace('_', '-')}"
            asked, allowed = (bounds.text(one) if bounds and one is not None else one for one in (value, before[name]))
            yield f"{option} {asked} was requested, but {allowed} was approved"
