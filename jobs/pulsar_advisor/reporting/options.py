"""The section "Options": what could be done, ranked, and every plan by disruption and effect."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count as count_from
from itertools import product
from string import ascii_lowercase
from typing import Final

from pulsar_advisor.documents.recommendation import Combination, Recommendation
from pulsar_advisor.model.plans.names import short
from pulsar_advisor.model.plans.plan import Confidence
from pulsar_advisor.model.strategy.entry import combination
from pulsar_advisor.model.text.some_of import points
from pulsar_advisor.planning.advice.compare import on_front
from pulsar_advisor.planning.advice.options import Option
from pulsar_advisor.planning.proposals.configured import Configured
from pulsar_advisor.planning.usage.merit import Cost
from pulsar_advisor.planning.usage.model_errors import ModelErrors
from pulsar_advisor.planning.usage.noise import NoiseFloor
from pulsar_advisor.reporting.figures import change, count, percent, throughput

NOTHING: Final = "do nothing"
_LEAST_GAP: Final = 0.05
"""Percentage points; less reads as zero."""


@dataclass(frozen=True)
class OptionRow:
    """One option in words."""

    kind: str
    sentence: str
    effect: str
    cost: str
    confidence: Confidence | None
    condition: str
    plan: str
    """The first digits of its plan's digest; empty without a plan."""
    digest: str
    """The full digest, as `sha256:…`."""
    advised: bool
    strategies: tuple[str, ...]
    """Every `shedder with placement` that leads to the same steps."""


@dataclass(frozen=True)
class Tradeoff:
    """One different plan, or doing nothing, by disruption and balance."""

    label: str
    """The number of its option, or a letter for a plan that isn't listed as an option."""
    name: str
    disturbed: int
    """Topics closed, and producers and consumers that have to connect again."""
    unloads: int
    maximum_ratio: float
    """The busiest broker's usage afterwards."""
    on_front: bool
    """Whether no other plan disturbs less and balances better."""
    advised: bool


@dataclass(frozen=True)
class Options:
    """What could be done, best first."""

    rows: tuple[OptionRow, ...]
    notes: tuple[str, ...]
    """How much figures vary, the bound for moves of whole bundles, and the error of predictions."""
    tradeoffs: tuple[Tradeoff, ...]
    """The least disruption first."""
    lowest_maximum_ratio: float | None
    """Moving whole bundles can't bring the busiest broker below this."""


def option_rows(recommendation: Recommendation) -> tuple[OptionRow, ...]:
    """What could be done, best first; empty if an earlier release wrote the recommendation."""
    lowest, advised = recommendation.lowest_maximum_ratio, recommendation.advice.digest
    if recommendation.options is None:
        return ()
    floor_ratio = recommendation.noise_floor.ratio
    return tuple(_row(option, lowest, advised, floor_ratio) for option in recommendation.options)


def options_of(recommendation: Recommendation, configured: Configured) -> Options | None:
    """The section; None if an earlier release wrote the recommendation. `configured`: the cluster's own strategies."""
    if recommendation.options is None:
        return None
    lowest, rows = recommendation.lowest_maximum_ratio, option_rows(recommendation)
    return Options(
        rows=rows,
        notes=tuple(_notes(recommendation.noise_floor, lowest, recommendation.model_errors)),
        tradeoffs=_tradeoffs(recommendation.combinations, configured, recommendation.advice.digest, rows),
        lowest_maximum_ratio=lowest,
    )


def _notes(floor: NoiseFloor, lowest: float | None, errors: ModelErrors | None) -> Iterable[str]:
    origin = {
        "history": "as measured between the last snapshots",
        "default": "a default from live brokers: there are too few earlier snapshots to measure it",
    }[floor.origin]
    yield (
        f"Usage varies by {points(floor.ratio)} from one snapshot to the next even if nothing moves ({origin}): a "
        "smaller gain counts as no gain, and plans that differ by less are ranked by how little they disturb."
    )
    if lowest is not None:
        yield (
            "The bound: at the likely base load, no number of moves of whole bundles brings the busiest broker below "
            f"{percent(lowest)}, whatever the policies; splits may. Moves that reach it may not exist."
        )
    if errors is not None:
        yield (
            f"A broker's CPU, predicted from its other reports, was off by {points(errors.base_load_ratio)} on "
            f"average over {count(errors.reports, 'report')} (base_load, which plans use; proportional: "
            f"{points(errors.proportional_ratio)}; with a price for each message and byte: "
            f"{points(errors.calibrated_ratio)})."
        )


def _row(option: Option, lowest: float | None, advised: str | None, floor_ratio: float) -> OptionRow:
    return OptionRow(
        kind=option.kind,
        sentence=option.sentence,
        effect=_effect(option, lowest, floor_ratio),
        cost=cost_text(option.cost),
        confidence=option.confidence,
        condition=option.condition,
        plan=short(option.digest) if option.digest else "",
        digest=option.digest or "",
        advised=advised is not None and option.digest == advised,
        strategies=option.strategies,
    )


def _effect(option: Option, lowest: float | None, floor_ratio: float) -> str:
    """The change of the busiest broker, with the worse end of its range if that differs by more than noise."""
    after, gain = option.maximum_ratio, option.gain_ratio
    if after is None or gain is None:
        return "can't be predicted"
    effect = f"highest usage {change(after + gain, after)}"
    worst = option.highest_maximum_ratio
    if worst is not None and 100 * (worst - after - floor_ratio) >= _LEAST_GAP:
        effect += f" (at worst {percent(worst)})"
    if lowest is not None and option.kind == "move":
        gap = after - lowest
        above = f"{points(gap)} above the bound" if 100 * gap >= _LEAST_GAP else "at the bound"
        effect += f", {above} for moves of whole bundles"
    return effect


def cost_text(cost: Cost) -> str:
    """What is disturbed: `2 unloads: 12 topics, 40 clients, 3.1 MB/s moved`."""
    if not cost.unloads and not cost.splits:
        return "nothing is disturbed"
    parts = []
    if cost.unloads:
        clients = cost.producers + cost.consumers
        parts.append(
            f"{count(cost.unloads, 'unload')}: {count(cost.topics, 'topic')}, {count(clients, 'client')}, "
            f"{throughput(cost.moved_throughput_bytes_per_s)} moved"
        )
    if cost.splits:
        parts.append(count(cost.splits, "split") + ", which can't be undone")
    return "; ".join(parts)


def _tradeoffs(
    combinations: Sequence[Combination], configured: Configured, advised: str | None, options: Sequence[OptionRow]
) -> tuple[Tradeoff, ...]:
    """One plan of each group with the same steps, named as in the table of combinations; of those that unload."""
    groups: dict[str | None, list[Combination]] = {}
    for row in combinations:
        if row.merit is not None and row.maximum_before is not None:
            groups.setdefault(row.steps_sha256, []).append(row)
    if not groups:
        return ()

    def foreign(row: Combination) -> tuple[bool, bool, str, str]:
        strategies = row.shedder, row.placement
        return (row.digest != advised, strategies != configured, *strategies)

    rows = [min(group, key=foreign) for group in groups.values()]
    now = rows[0].maximum_before or 0.0
    figures = [(row.cost.disturbed, row.maximum_after or 0.0) for row in rows]
    front = on_front([(0, now), *figures])
    found = [
        Tradeoff("", NOTHING, 0, 0, now, front[0], advised=advised is None),
        *(
            Tradeoff(
                "",
                combination(row.shedder, row.placement),
                disturbed,
                row.unloads,
                maximum,
                is_on_front,
                advised is not None and row.digest == advised,
            )
            for row, (disturbed, maximum), is_on_front in zip(rows, figures, front[1:], strict=True)
        ),
    ]
    return _labelled(sorted(found, key=lambda one: (one.disturbed, one.maximum_ratio, one.name)), options)


def _labelled(found: Iterable[Tradeoff], options: Sequence[OptionRow]) -> tuple[Tradeoff, ...]:
    """Each with its option's number, so that a number means the same everywhere on a page, or else with a letter."""
    numbers = {
        name: str(number)
        for number, option in enumerate(options, 1)
        for name in ((NOTHING,) if option.kind == "nothing" else option.strategies)
    }
    letters = ("".join(word) for size in count_from(1) for word in product(ascii_lowercase, repeat=size))
    return tuple(replace(one, label=numbers.get(one.name) or next(letters)) for one in found)
