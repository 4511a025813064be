"""The objects that each strategy chose or left alone, grouped by outcome, with the examples that matter most."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from pulsar_advisor.documents.recommendation import Combination
from pulsar_advisor.planning.proposals.proposal import Role

BROKER_EXAMPLES_SHOWN: Final = 12
BUNDLE_EXAMPLES_SHOWN: Final = 5
NEAR_TIES_SHOWN: Final = 10

_ROLES: Final[tuple[Role, ...]] = ("shedder", "load manager", "placement", "splitting")


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


def group_answers(
    outcomes: pa.Table,
    load_of: Mapping[str, float],
    decisive: Sequence[str],
    combinations: Sequence[Combination],
    refused: Collection[str] = (),
) -> Answers:
    """Group rows of the outcomes table. `load_of` ranks examples, by name; equal ones are ranked by name.

    `decisive`: shedder and placement strategy of the verdict. Answers that depend on the placement strategy are shown
    only for that combination. Reasons to do nothing that repeat a sentence of `refused` are left out, as the refusals
    list them.
    """
    shown = _with_loads(_of_verdict(outcomes, decisive), load_of)

    def is_decisive(role: Role, strategy: str) -> bool:
        return role != "shedder" or strategy in decisive[:1]

    def order(key: tuple[Role, str]) -> tuple[bool, int, str]:
        role, strategy = key
        return not is_decisive(*key), _ROLES.index(role), strategy

    found = shown.group_by(["role", "strategy"]).aggregate([]).to_pylist()
    ordered = sorted(((row["role"], row["strategy"]) for row in found), key=order)
    return Answers(
        silences=_silences(combinations, refused),
        strategies=tuple(
            _strategy_answers(_where(shown, role=role, strategy=strategy), role, strategy, is_decisive(role, strategy))
            for role, strategy in ordered
        ),
        strategies_total=len(ordered),
    )


def _of_verdict(outcomes: pa.Table, decisive: Sequence[str]) -> pa.Table:
    wanted = pc.field("placement").is_null()
    if decisive:
        shedder, placement = decisive
        wanted |= (pc.field("shedder") == shedder) & (pc.field("placement") == placement)
    return outcomes.filter(wanted)


def _with_loads(outcomes: pa.Table, load_of: Mapping[str, float]) -> pa.Table:
    names = pc.dictionary_encode(outcomes["object"]).combine_chunks()
    loads = pa.array([load_of.get(name, 0.0) for name in names.dictionary.to_pylist()], pa.float64())
    return outcomes.append_column("load", loads.take(names.indices))


def _where(rows: pa.Table, **values: str) -> pa.Table:
    return rows.filter(reduce(and_, (pc.field(column) == value for column, value in values.items())))


def _strategy_answers(rows: pa.Table, role: Role, strategy: str, decisive: bool) -> StrategyAnswers:
    near_ties = rows.filter(pc.field("near_tie"))
    return StrategyAnswers(
        strategy=strategy,
        role=role,
        decisive=decisive,
        brokers=_groups(_where(rows, subject="broker"), BROKER_EXAMPLES_SHOWN),
        bundles=_groups(_where(rows, subject="bundle"), BUNDLE_EXAMPLES_SHOWN),
        near_ties=_heaviest(near_ties, NEAR_TIES_SHOWN),
        near_ties_total=len(near_ties),
    )


def _groups(rows: pa.Table, examples_shown: int) -> tuple[AnswerGroup, ...]:
    groups = [
        AnswerGroup(
            code=code,
            chosen=pc.any(group["chosen"]).as_py(),
            number=len(group),
            near_ties=pc.sum(group["near_tie"]).as_py(),
            examples=_heaviest(group, examples_shown),
        )
        for code in rows["code"].unique().to_pylist()
        for group in (_where(rows, code=code),)
    ]
    return tuple(sorted(groups, key=lambda group: (not group.chosen, -group.number, group.code)))


def _heaviest(rows: pa.Table, number: int) -> tuple[Example, ...]:
    """Ties are broken by what is shown, so the order of the rows doesn't matter."""
    if not len(rows):
        return ()  # pyarrow 25 can't select from an empty table
    keys = [("load", "descending"), ("object", "ascending"), ("about", "ascending"), ("sentence", "ascending")]
    heaviest = rows.take(pc.select_k_unstable(rows, number, keys))
    return tuple(Example(**row) for row in heaviest.select(list(Example.__match_args__)).to_pylist())


def _silences(combinations: Sequence[Combination], refused: Collection[str]) -> tuple[Silence, ...]:
    placements: dict[tuple[str, str], list[str]] = {}
    for row in combinations:
        why = f"Could not be judged: {row.error}" if row.error else row.why_nothing
        if why and not row.steps and why not in refused:
            placements.setdefault((row.shedder, why), []).append(row.placement)
    return tuple(Silence(shedder, tuple(names), why) for (shedder, why), names in placements.items())
