"""Java's `List.sort`, step by step, for comparisons that don't define an order.

Where "equal" means "about equal", a can equal b and b equal c while a is less than c. The result then depends on which
pairs the sort compares, so only the same steps give the same answer. Source:
`java.util.TimSort` (JDK 17): runs of at least 16 to 32 entries by binary insertion, merged two by two, galloping.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Generic, TypeVar

from pulsar_advisor.model.errors import DataNotFit

Item = TypeVar("Item")
Comparison = Callable[[Item, Item], int]
"""Negative, zero or positive, as `Comparator.compare`."""

_LEAST_TO_MERGE: Final = 32
"""Shorter lists are a single run."""
_LEAST_TO_GALLOP: Final = 7
"""How often in a row one run must win before the merge gallops."""


def java_sort(items: Iterable[Item], compare: Comparison[Item]) -> list[Item]:
    """The items as Java sorts them by `compare`.

    Raises `DataNotFit` where Java detects that the comparison contradicts itself and throws.
    """
    rest = list(items)
    least_run = _least_run(len(rest))
    merging = _Merging(compare)
    while rest:
        ordered = _leading_run(rest, compare)
        length = max(ordered, min(least_run, len(rest)))
        run = rest[:ordered]
        for item in rest[ordered:length]:
            _insert(run, item, compare)
        merging.add(run)
        rest = rest[length:]
    return merging.finished()


def _least_run(length: int) -> int:
    """The five most significant binary digits, plus one if any other digit is set; short lengths are unchanged."""
    any_other = 0
    while length >= _LEAST_TO_MERGE:
        any_other |= length & 1
        length >>= 1
    return length + any_other


def _leading_run(items: list[Item], compare: Comparison[Item]) -> int:
    """Length of the ascending or strictly descending run at the start of the list; a descending one is reversed."""
    if len(items) == 1:
        return 1
    descends = compare(items[1], items[0]) < 0
    end = 2
    while end < len(items) and (compare(items[end], items[end - 1]) < 0) == descends:
        end += 1
    if descends:
        items[:end] = items[:end][::-1]
    return end


def _insert(run: list[Item], item: Item, compare: Comparison[Item]) -> None:
    """Insert an item after those it is not less than, by binary search."""
    low, high = 0, len(run)
    while low < high:
        middle = (low + high) // 2
        if compare(item, run[middle]) < 0:
            high = middle
        else:
            low = middle + 1
    run.insert(low, item)


def _gallop(goes: Callable[[Item], bool], run: list[Item], start: int, backward: bool) -> int:
    """How many items from `start` on satisfy `goes`: probed at distances 0, 1, 3, 7 and so on, then by binary search.

    `backward`: the run is reversed, so the middle of an even stretch is the later one of two.
    """
    number = len(run) - start
    if not number or not goes(run[start]):
        return 0
    low, high = 1, 1
    while high < number and goes(run[start + high]):
        low, high = high + 1, 2 * high + 1
    high = min(high, number)
    while low < high:
        half = (high - low) // 2
        middle = high - 1 - half if backward else low + half
        if goes(run[start + middle]):
            low = middle + 1
        else:
            high = middle
    return low


class _Merging(Generic[Item]):
    """Runs waiting to be merged, each longer than the next, and how soon the next merge gallops."""

    def __init__(self, compare: Comparison[Item]) -> None:
        self.compare = compare
        self.runs: list[list[Item]] = []
        self.gallop_after = _LEAST_TO_GALLOP

    def add(self, run: list[Item]) -> None:
        """Push a run, and merge until the lengths decrease fast enough again."""
        self.runs.append(run)
        while len(self.runs) > 1:
            place = len(self.runs) - 2
            length = [len(waiting) for waiting in self.runs]
            if (place > 0 and length[place - 1] <= length[place] + length[place + 1]) or (
                place > 1 and length[place - 2] <= length[place - 1] + length[place]
            ):
                self._merge_at(place - (length[place - 1] < length[place + 1]))
            elif length[place] <= length[place + 1]:
                self._merge_at(place)
            else:
                return

    def finished(self) -> list[Item]:
        """All runs merged into one."""
        while len(self.runs) > 1:
            place = len(self.runs) - 2
            shorter_before = place > 0 and len(self.runs[place - 1]) < len(self.runs[place + 1])
            self._merge_at(place - shorter_before)
        return self.runs[0] if self.runs else []

    def _merge_at(self, place: int) -> None:
        one, two = self.runs[place : place + 2]
        stays = _gallop(lambda item: self.compare(two[0], item) >= 0, one, 0, backward=False)
        before, one = one[:stays], one[stays:]
        behind: list[Item] = []
        if one:
            stays = _gallop(lambda item: self.compare(one[-1], item) <= 0, two[::-1], 0, backward=True)
            two, behind = two[: len(two) - stays], two[len(two) - stays :]
        if one and two:
            backward = len(one) > len(two)
            both = self._merged(one[::-1], two[::-1], backward) if backward else self._merged(one, two, backward)
            one, two = both[::-1] if backward else both, []
        self.runs[place : place + 2] = [before + one + two + behind]

    def _merged(self, one: list[Item], two: list[Item], backward: bool) -> list[Item]:
        """Two runs as one; `backward` if both are reversed, so that the shorter one can be merged from its end.

        Once the longer run is used up, or the shorter except for one item, the rest needs no comparison.
        """
        runs, taken = (one, two), [0, 0]
        short, long = (1, 0) if backward else (0, 1)
        merged: list[Item] = []

        def take(side: int, number: int = 1) -> bool:
            """Move items of a run to the result; returns whether the merge is finished."""
            merged.extend(runs[side][taken[side] : taken[side] + number])
            taken[side] += number
            return taken[long] == len(runs[long]) or taken[short] >= len(runs[short]) - 1

        self._interleave(runs, taken, take, long, backward)
        self.gallop_after = max(self.gallop_after, 1)
        last = runs[short][taken[short] :]
        if not last:
            raise DataNotFit(
                "Java refuses to sort these figures: 'Comparison method violates its general contract!'. Brokers of "
                "this release count figures that are close as equal; take another snapshot"
            )
        return merged + runs[long][taken[long] :] + last

    def _interleave(
        self,
        runs: tuple[list[Item], list[Item]],
        taken: list[int],
        take: Callable[..., bool],
        long: int,
        backward: bool,
    ) -> None:
        """Take from both runs in turn until the merge is finished: one by one, or galloping while one run wins."""
        one, two = runs
        compare = self.compare

        def one_goes(item: Item) -> bool:
            return (compare(two[taken[1]], item) < 0) == backward

        def two_goes(item: Item) -> bool:
            return (compare(one[taken[0]], item) > 0) != backward

        if take(long):
            return
        while True:
            in_a_row = [0, 0]
            while max(in_a_row) < self.gallop_after:
                side = 0 if one_goes(one[taken[0]]) else 1
                if take(side):
                    return
                in_a_row[side], in_a_row[1 - side] = in_a_row[side] + 1, 0
            leaps = [_LEAST_TO_GALLOP]
            while max(leaps) >= _LEAST_TO_GALLOP:
                ones = _gallop(one_goes, one, taken[0], backward)
                if take(0, ones) or take(1):
                    return
                twos = _gallop(two_goes, two, taken[1], backward)
                if take(1, twos) or take(0):
                    return
                leaps = [ones, twos]
                self.gallop_after -= 1
            self.gallop_after = max(self.gallop_after, 0) + 2
