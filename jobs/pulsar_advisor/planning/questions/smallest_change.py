"""The smallest change of one setting that makes a strategy decide otherwise, found by asking it again.

No formula is inverted: each candidate value is tried. A number is tried at growing distances below and above its value;
between the last distance without effect and the first with one, the limit is found by bisection. If the answer changes
back and forth in between, the limit found is one of several.

Only values that an operator would set are tried: `sensible_range`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import Final

from pulsar_advisor.model.configuration.settings import LoadBalancerSettings, range_of
from pulsar_advisor.model.load.resource_usage import WEIGHT_KEYS
from pulsar_advisor.model.strategy.memory import MOST_CYCLES

Differs = Callable[[str, str], bool]
"""(key, text): whether the answer differs with this value of the setting."""

FIRST_DISTANCE: Final = 0.01
"""Relative to the value: the first distance that is tried."""
GROWTH: Final = 4
FINEST: Final = 0.001
"""Relative to the value: how closely the limit of a fraction is found. That of a whole number is exact."""
FINEST_FRACTION: Final = 0.01
"""The distance that is tried first where a fraction is near zero."""


_PERCENT: Final = (1, 100)
_WEIGHT: Final = (0.0, 1.0)
_AT_LEAST_ONE: Final = (1, math.inf)
_SENSIBLE: Final[Mapping[str, tuple[float, float]]] = {
    # A weight scales a share of a limit: above 1 a broker counts as full before it is.
    **dict.fromkeys(WEIGHT_KEYS, _WEIGHT),
    # The use of memory says little about the load (PIP-358): its weight may only go down.
    "loadBalancerMemoryResourceWeight": (0.0, 0.0),
    "loadBalancerDirectMemoryResourceWeight": (0.0, 0.0),
    # At 0 every broker that isn't exactly at the mean, or serves anything, is too busy.
    "loadBalancerBrokerThresholdShedderPercentage": _PERCENT,
    "loadBalancerBrokerOverloadedThresholdPercentage": _PERCENT,
    "loadBalancerBrokerUnderloadedThresholdPercentage": _PERCENT,
    "loadBalancerBrokerComfortLoadLevelPercentage": _PERCENT,
    "loadBalancerBrokerLoadTargetStd": (0.01, 0.5),
    # At 1 the first sample counts for ever.
    "loadBalancerHistoryResourcePercentage": (0.0, 0.99),
    # A ratio of two brokers, the greater one above: at 1 no two are alike. What is moved is a part of their
    # difference: beyond half of it they change places.
    "loadBalancerMsgThroughputMultiplierDifferenceShedderThreshold": (1.1, math.inf),
    "maxUnloadPercentage": (0.01, 0.5),
    # 0 means none, and -1 is no number.
    "maxUnloadBundleNumPerShedding": _AT_LEAST_ONE,
    "loadBalancerMaxNumberOfBrokerSheddingPerCycle": _AT_LEAST_ONE,
    "loadBalancerMaxNumberOfBundlesInBundleLoadReport": _AT_LEAST_ONE,
    "loadBalancerBrokerMaxTopics": _AT_LEAST_ONE,
    # With more it would still act, but after more cycles than are looked at here.
    "loadBalancerAvgShedderHitCountHighThreshold": (1, MOST_CYCLES),
    "loadBalancerAvgShedderHitCountLowThreshold": (1, MOST_CYCLES),
    "loadBalancerSheddingConditionHitCountThreshold": (0, MOST_CYCLES - 1),
}


def sensible_range(key: str, settings: LoadBalancerSettings) -> tuple[float, float]:
    """The lowest and the highest number worth setting for a key, given the other settings as they are.

    Not all that Pulsar accepts: `lint` would call the rest a mistake. The cluster's own value may lie outside.
    """
    low, high = _SENSIBLE.get(key, (-math.inf, math.inf))
    lowest, highest = range_of(key)
    above, below = _beside(settings).get(key, (-math.inf, math.inf))
    return max(low, lowest, above), min(high, highest, below)


def _beside(settings: LoadBalancerSettings) -> Mapping[str, tuple[float, float]]:
    """What the other settings leave of a key's values."""
    return {
        # A moved bundle is left alone for longer than one cycle.
        "loadBalancerSheddingGracePeriodMinutes": (settings.load_balancer_shedding_interval_minutes + 1, math.inf),
        "loadBalancerBrokerLoadDataTTLInSeconds": (
            60 * settings.load_balancer_report_update_max_interval_minutes,
            math.inf,
        ),
        # AvgShedder acts sooner on a large difference than on a small one.
        "loadBalancerAvgShedderLowThreshold": (1, settings.load_balancer_avg_shedder_high_threshold - 1),
        "loadBalancerAvgShedderHighThreshold": (settings.load_balancer_avg_shedder_low_threshold + 1, math.inf),
        "loadBalancerAvgShedderHitCountHighThreshold": (
            1,
            settings.load_balancer_avg_shedder_hit_count_low_threshold - 1,
        ),
        "loadBalancerAvgShedderHitCountLowThreshold": (
            settings.load_balancer_avg_shedder_hit_count_high_threshold + 1,
            math.inf,
        ),
    }


@dataclass(frozen=True)
class Change:
    """One setting with another value."""

    key: str
    before: str
    after: str
    size: float
    """The difference relative to the greater of both numbers, 0..1; 1 for a flag and for a list of names."""


def smallest_changes(
    settings: LoadBalancerSettings, keys: Iterable[str], namespaces: Iterable[str], differs: Differs
) -> tuple[Change, ...]:
    """For each of Pulsar's keys with which the answer can be changed, its smallest change; the smallest first.

    Weights of resources come after all others: they change what usage means for every broker and every strategy.
    Numbers, flags and lists of namespaces are tried; in such a list, `namespaces` are added or left out.
    """
    own = tuple(namespaces)
    found = (_smallest(settings, key, own, differs) for key in keys)
    changes = (change for change in found if change is not None)
    return tuple(sorted(changes, key=lambda one: (one.key in WEIGHT_KEYS, one.size, one.key)))


def _smallest(settings: LoadBalancerSettings, key: str, namespaces: tuple[str, ...], differs: Differs) -> Change | None:
    value = settings.value(key)
    if isinstance(value, bool):
        text = str(not value).lower()
        return Change(key, str(value).lower(), text, 1.0) if differs(key, text) else None
    if isinstance(value, int | float):
        allowed = sensible_range(key, settings)

        def has_effect(key: str, text: str) -> bool:
            return allowed[0] <= float(text) <= allowed[1] and differs(key, text)

        limits = [_limit(key, value, bound, has_effect) for bound in allowed]
        sizes = [_change(key, value, limit) for limit in limits if limit is not None]
        return min(sizes, key=lambda one: (one.size, one.after), default=None)
    if isinstance(value, tuple) and namespaces:
        text = ",".join(_toggled(value, namespaces))
        return Change(key, ",".join(value), text, 1.0) if text and differs(key, text) else None
    return None


def _change(key: str, before: float, after: float) -> Change:
    size = min(abs(after - before) / max(abs(after), abs(before)), 1.0)
    return Change(key, f"{before:.15g}", f"{after:.15g}", size)


def _toggled(names: tuple[str, ...], others: tuple[str, ...]) -> list[str]:
    """The names without the others if all of these are among them, else with them."""
    if set(others) <= set(names):
        return [name for name in names if name not in others]
    return list(dict.fromkeys((*names, *others)))


def _limit(key: str, value: float, bound: float, differs: Differs) -> float | None:
    """The value nearest to this one, in the direction of `bound`, with which the answer differs; None without one."""
    whole = isinstance(value, int)

    def is_different(candidate: float) -> bool:
        return differs(key, f"{candidate:.15g}")

    unchanged = value
    for candidate in _candidates(value, bound, whole):
        if is_different(candidate):
            return _between(unchanged, candidate, whole, is_different)
        unchanged = candidate
    return None


def _candidates(value: float, bound: float, whole: bool) -> Iterator[float]:
    """Values at growing distances from this one, the bound last."""
    distance = max(abs(value) * FIRST_DISTANCE, 1 if whole else FINEST_FRACTION)
    direction = 1 if bound > value else -1
    while (bound - value) * direction > distance:
        candidate = value + direction * distance
        yield int(candidate) if whole else candidate
        distance *= GROWTH
    if bound != value:
        yield int(bound) if whole else bound


def _between(unchanged: float, changed: float, whole: bool, is_different: Callable[[float], bool]) -> float:
    """The limit between a value without effect and one with an effect: the latter, as near to the former as it gets."""
    finest = 1 if whole else max(abs(unchanged), abs(changed)) * FINEST
    while abs(changed - unchanged) > finest:
        middle = (unchanged + changed) / 2
        middle = int(middle) if whole else middle
        if is_different(middle):
            changed = middle
        else:
            unchanged = middle
    return changed if whole else _rounded(unchanged, changed, is_different)


def _rounded(unchanged: float, changed: float, is_different: Callable[[float], bool]) -> float:
    """The number with the fewest digits that is as good as `changed`: it lies between there and one step further."""
    shorter = _shorter(changed, ROUND_CEILING if changed > unchanged else ROUND_FLOOR)
    return next((one for one in shorter if one != unchanged and is_different(one)), changed)


def at_most(limit: float) -> float:
    """The number with the fewest digits that is a step below a limit at most, as the smallest change would name it."""
    return next(_shorter(limit, ROUND_FLOOR))


def _shorter(number: float, rounding: str) -> Iterator[float]:
    """A number rounded to one, two, three digits and so on, where that is a step away at most."""
    for digits in range(1, 18):
        candidate = float(Context(prec=digits, rounding=rounding).create_decimal_from_float(number))
        if abs(candidate - number) <= abs(number) * FINEST * 10:
            yield candidate
