"""The objects that each strategy chose or left alone, grouped by outcome, with the examples that matter most."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from pulsar_advisor.model.outcomes import Subject
from pulsar_advisor.planning.proposal import Role

BROKER_EXAMPLES_SHOWN: Final = 12
BUNDLE_EXAMPLES_SHOWN: Final = 5
NEAR_TIES_SHOWN: Final = 10

_ROLES: Final[tuple[Role, ...]] = ("shedder", "load manager", "placement", "splitting")


@dataclass(frozen=True, slots=True)
class OutcomeRow:
    """One answer about one broker or bundle, as a row of the outcomes table."""

    strategy: str
    role: Role
    shedder: str | None
    """The shedder of the combination; None if the answer does not depend on it."""
    placement: str | None
    """The placement strategy of the combination; None if the answer does not depend on it."""
    subject: Subject
    object: str
    """Broker id or full bundle name."""
    code: str
    chosen: bool
    left: float | None
    right: float | None
    relation: str
    sentence: str
    near_tie: bool
    about: str = ""
    """For a placement strategy: the bundle the broker was a candidate for."""


def read_outcomes(table: pa.Table) -> Iterator[OutcomeRow]:
    """The rows of an outcomes table, one batch in memory at a time; columns that `OutcomeRow` lacks are ignored."""
    columns = [name for name in OutcomeRow.__slots__ if name in table.column_names]
    for batch in table.select(columns).to_batches(max_chunksize=10_000):
        for values in zip(*(batch[name].to_pylist() for name in columns), strict=True):
            yield OutcomeRow(**dict(zip(columns, values, strict=True)))


@dataclass(frozen=True)
class Example:
    """One broker or bundle, and the reason for the strategy's decision about it."""

    object: str
    about: str
    sentence: str
    near_tie: bool


@dataclass(frozen=True)
class AnswerGroup:
    """All objects with the same outcome; examples are those with the highest load."""

    code: str
    chosen: bool
    number: int
    near_ties: int
    examples: tuple[Example, ...]


@dataclass(frozen=True)
class StrategyAnswers:
    """The answers of one strategy: first what it chose, then what it left alone, most common reason first."""

    strategy: str
    role: Role
    decisive: bool
    """Whether the verdict is based on this strategy."""
    brokers: tuple[AnswerGroup, ...]
    bundles: tuple[AnswerGroup, ...]
    near_ties: tuple[Example, ...]
    """Decisions that depended on the last digits: on another machine they may differ."""
    near_ties_total: int


@dataclass(frozen=True)
class Silence:
    """Why a shedder would do nothing with any of these placement strategies."""

    shedder: str
    placements: tuple[str, ...]
    why: str


@dataclass(frozen=True)
class Answers:
    """All strategies, the decisive ones first; `strategies_total` is their number before any cut."""

    silences: tuple[Silence, ...]
    strategies: tuple[StrategyAnswers, ...]
    strategies_total: int


_Ranked = tuple[float, str, str, str, bool]


def _example(ranked: _Ranked) -> Example:
    _, name, about, sentence, near_tie = ranked
    return Example(name, about, sentence, near_tie)


@dataclass
class _Best:
    """The rows with the highest load; ties are broken by name, so that input order doesn't matter."""

    capacity: int
    rows: list[_Ranked] = field(default_factory=list)
    seen: int = 0

    def add(self, row: _Ranked) -> None:
        self.seen += 1
        self.rows.append(row)
        if len(self.rows) > 8 * self.capacity:
            self._cut()

    def _cut(self) -> None:
        self.rows.sort(key=lambda row: (-row[0], row[1:]))
        del self.rows[self.capacity :]

    def examples(self) -> tuple[Example, ...]:
        self._cut()
        return tuple(_example(row) for row in self.rows)


@dataclass
class _Group:
    chosen: bool
    best: _Best
    near_ties: int = 0


@dataclass
class _Strategy:
    groups: dict[tuple[Subject, str], _Group] = field(default_factory=dict)
    near_ties: _Best = field(default_factory=lambda: _Best(NEAR_TIES_SHOWN))

    def add(self, row: OutcomeRow, load: float) -> None:
        shown = BROKER_EXAMPLES_SHOWN if row.subject == "broker" else BUNDLE_EXAMPLES_SHOWN
        group = self.groups.setdefault((row.subject, row.code), _Group(row.chosen, _Best(shown)))
        ranked = (load, row.object, row.about, row.sentence, row.near_tie)
        group.best.add(ranked)
        if row.near_tie:
            group.near_ties += 1
            self.near_ties.add(ranked)

    def answers(self, subject: Subject) -> tuple[AnswerGroup, ...]:
        groups = [
            AnswerGroup(code, group.chosen, group.best.seen, group.near_ties, group.best.examples())
            for (about, code), group in self.groups.items()
            if about == subject
        ]
        return tuple(sorted(groups, key=lambda group: (not group.chosen, -group.number, group.code)))


def group_answers(
    outcomes: Iterable[OutcomeRow],
    load_of: Mapping[str, float],
    decisive: Sequence[str],
    combinations: Sequence[Mapping[str, Any]],
    refused: Collection[str] = (),
) -> Answers:
    """Group outcomes in one pass. `load_of` ranks examples, by name; `decisive`: shedder and placement of the verdict.

    Answers that depend on the placement strategy are shown only for the verdict's combination. Reasons to do nothing
    that repeat a sentence of `refused` are left out, as the refusals list them.
    """
    strategies: dict[tuple[Role, str], _Strategy] = {}
    for row in outcomes:
        if row.placement is None or (row.shedder, row.placement) == tuple(decisive):
            strategies.setdefault((row.role, row.strategy), _Strategy()).add(row, load_of.get(row.object, 0.0))

    def is_decisive(role: Role, strategy: str) -> bool:
        return role != "shedder" or strategy in decisive[:1]

    def order(key: tuple[Role, str]) -> tuple[bool, int, str]:
        role, strategy = key
        return not is_decisive(*key), _ROLES.index(role), strategy

    ordered = sorted(strategies, key=order)
    return Answers(
        silences=_silences(combinations, refused),
        strategies=tuple(
            StrategyAnswers(
                strategy=strategy,
                role=role,
                decisive=is_decisive(role, strategy),
                brokers=found.answers("broker"),
                bundles=found.answers("bundle"),
                near_ties=found.near_ties.examples(),
                near_ties_total=found.near_ties.seen,
            )
            for role, strategy in ordered
            for found in (strategies[role, strategy],)
        ),
        strategies_total=len(ordered),
    )


def _silences(combinations: Sequence[Mapping[str, Any]], refused: Collection[str]) -> tuple[Silence, ...]:
    placements: dict[tuple[str, str], list[str]] = {}
    for row in combinations:
        why = f"Could not be judged: {row['error']}" if row["error"] else row["why_nothing"]
        if why and not row["steps"] and why not in refused:
            placements.setdefault((row["shedder"], why), []).append(row["placement"])
    return tuple(Silence(shedder, tuple(names), why) for (shedder, why), names in placements.items())
