"""Which snapshots and folded days may be removed, by retention rules and by plans' references."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final

import msgspec

from pulsar_advisor.model.bounds import KEEP_COUNT, KEEP_DAYS, Bounds, duration, seconds
from pulsar_advisor.model.cluster.snapshot_id import day_of, snapshot_id, snapshot_moment
from pulsar_advisor.model.errors import UsageError

_LONGEST_S: Final = 36_500 * 86_400


@dataclass(frozen=True)
class Retention:
    """What is kept: whatever either rule keeps, and always the newest snapshot."""

    keep_days: int | None = None
    keep_count: int | None = None

    def __post_init__(self) -> None:
        """Refuse a rule that keeps nothing, and the absence of rules."""
        if self.keep_days is None and self.keep_count is None:
            raise UsageError("give --keep-days N, --keep-count N, or both; or ages such as --tables 14d")
        KEEP_DAYS.check(self.keep_days)
        KEEP_COUNT.check(self.keep_count)

    def outdated(self, snapshots: Collection[str], now: datetime) -> list[str]:
        """The snapshots (ids) that no rule keeps, oldest first."""
        newest_first = sorted(snapshots, reverse=True)
        kept = set(newest_first[: self.keep_count or 1])
        if self.keep_days is not None:
            oldest_kept = snapshot_id(now - timedelta(days=self.keep_days))
            kept |= {snapshot for snapshot in snapshots if snapshot >= oldest_kept}
        return [snapshot for snapshot in sorted(snapshots) if snapshot not in kept]


@dataclass(frozen=True)
class Tier:
    """One snapshot of each interval of `every_s` seconds is kept, until it is `until_s` seconds old."""

    every_s: int
    until_s: int


@dataclass(frozen=True)
class Lifetimes:
    """How long each kind of data is kept, in seconds; None: for ever. Each is kept at least as long as the one before.

    They are for a cluster whose snapshots are folded into days: nothing goes before its day holds it.
    """

    raw_s: int | None = None
    """What a snapshot was normalized from."""
    tables_s: int | None = None
    """Every snapshot."""
    thin: tuple[Tier, ...] = ()
    """Which older snapshots are kept: the first tier that covers an age counts."""
    history_s: int | None = None
    """The folded days."""

    def __post_init__(self) -> None:
        """Refuse data kept for a shorter time than the kind before it, and tiers for tables that are removed anyway."""
        given = [
            ("--raw", self.raw_s),
            ("--tables", self.tables_s),
            *((f"--thin {duration(tier.every_s)}", tier.until_s) for tier in self.thin),
            ("--history", self.history_s),
        ]
        lasts = [(name, age_s) for name, age_s in given if age_s is not None]
        for name, age_s in lasts:
            Bounds(name, 0, _LONGEST_S, is_duration=True).check(age_s)
        for (name, age_s), (after, later_s) in pairwise(lasts):
            if later_s < age_s:
                raise UsageError(f"{after} of {duration(later_s)} is less than {name} of {duration(age_s)}")
        if self.thin and self.tables_s is None:
            raise UsageError("--thin is for snapshots older than --tables: give that too")

    def outdated(self, snapshots: Collection[str], fit: Collection[str], now: datetime) -> list[str]:
        """The snapshots (ids) to remove, oldest first; never the newest. Of an interval, the first `fit` snapshot
        stays, or else the first."""
        if self.tables_s is None:
            return []
        oldest_first = sorted(snapshots)
        aged = [snapshot for snapshot in oldest_first[:-1] if snapshot < _before(now, self.tables_s)]
        kept: dict[tuple[int, int], str] = {}
        for snapshot in sorted(aged, key=lambda one: (one not in fit, one)):
            if (interval := self._interval(snapshot, now)) is not None:
                kept.setdefault(interval, snapshot)
        staying = set(kept.values())
        return [snapshot for snapshot in aged if snapshot not in staying]

    def _interval(self, snapshot: str, now: datetime) -> tuple[int, int] | None:
        """Interval of the tier that covers a snapshot of this age; None if no tier does."""
        began = snapshot_moment(snapshot)
        age_s = (now - began).total_seconds()
        tier = next((tier for tier in self.thin if age_s <= tier.until_s), None)
        return None if tier is None else (tier.every_s, int(began.timestamp()) // tier.every_s)

    def outdated_raw(self, snapshots: Iterable[str], now: datetime) -> list[str]:
        """The snapshots (ids) whose raw files are to be removed, if they are there, oldest first."""
        if self.raw_s is None:
            return []
        return sorted(snapshot for snapshot in snapshots if snapshot < _before(now, self.raw_s))

    def outdated_days(self, days: Iterable[str], now: datetime) -> list[str]:
        """The days to remove, oldest first."""
        if self.history_s is None:
            return []
        return sorted(day for day in days if day < day_of(_before(now, self.history_s)))


def lifetimes(
    raw: str | None = None, tables: str | None = None, thin: str | None = None, history: str | None = None
) -> Lifetimes:
    """Lifetimes as people write them, `3d` or None each, and `thin` as `1h:30d,1d:1y`. Raises `UsageError`."""
    raw_s, tables_s, history_s = (None if age is None else seconds(age) for age in (raw, tables, history))
    return Lifetimes(raw_s, tables_s, () if thin is None else _tiers(thin), history_s)


def lifetimes_of(options: str) -> Lifetimes:
    """Lifetimes as on the command line: `--raw 3d --tables 14d`. Raises `UsageError`."""
    words = options.split()
    given = {name.removeprefix("--"): age for name, age in zip(words[::2], words[1::2], strict=False)}
    if 2 * len(given) != len(words) or given.keys() - {"raw", "tables", "thin", "history"}:
        raise UsageError(
            f"'{options}' is not a list of ages: give any of --raw, --tables, --thin, --history, "
            "each with an age, for example --tables 30d"
        )
    return lifetimes(**given)


def _tiers(text: str) -> tuple[Tier, ...]:
    found = []
    for part in text.split(","):
        every, colon, until = part.partition(":")
        if not colon:
            raise UsageError(f"--thin '{part}' has no age: give for example 1h:30d, one an hour up to 30 days")
        found.append(Tier(seconds(every), seconds(until)))
    if not all(tier.every_s for tier in found):
        raise UsageError(f"--thin {text}: an interval must be at least a second")
    return tuple(found)


def _before(now: datetime, age_s: int) -> str:
    return snapshot_id(now - timedelta(seconds=age_s))


def referred_to(document: str | bytes, *, only_to_carry_out: bool) -> tuple[str, ...]:
    """The snapshots that a plan of any version was made from and that its strategies learnt from.

    None for a plan without executable steps, if only executable plans count. Raises `ValueError` if it isn't a plan.
    """
    try:
        read = msgspec.json.decode(document, type=_Plan)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(f"not a plan: {error}") from error
    if only_to_carry_out and not any(step.executable for step in read.steps):
        return ()
    return (read.snapshot, *read.memory.snapshots)


class _Step(msgspec.Struct):
    executable: bool


class _Memory(msgspec.Struct):
    snapshots: list[str] = []


class _Plan(msgspec.Struct):
    """The part of a plan, of any version, that refers to snapshots."""

    snapshot: str
    memory: _Memory
    steps: list[_Step]
