"""Limits: how much one plan may do, what it must not touch, and what comes first."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import isnan
from typing import TYPE_CHECKING, Final

from pulsar_advisor.model.bounds import MAX_MEGABYTES, MAX_PER_SOURCE, MAX_SPLITS, MAX_TOPICS, MAX_UNLOADS
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.model.text.nearest import nearest
from pulsar_advisor.model.text.some_of import count, some_of

if TYPE_CHECKING:
    from pulsar_advisor.model.cluster.cluster_state import ClusterState
    from pulsar_advisor.model.strategy.decision import Split
    from pulsar_advisor.planning.proposals.proposal import Move


_EXCLUDED: Final = "--exclude-broker or --exclude-namespace"


@dataclass(frozen=True)
class Limits:
    """None means no limit. Steps over a limit are left out, Pulsar's lowest-ranked first, unless others come first.

    A namespace is named in full, or by its tenant alone.
    """

    max_unloads: int | None = None
    max_splits: int | None = 10
    max_per_source: int | None = None
    """Unloads from any one broker."""
    max_topics: int | None = None
    """Loaded topics that all unloads together disturb."""
    max_megabytes_per_s: int | None = None
    """Traffic in and out, in millions of bytes per second, of all unloaded bundles together."""
    exclude_brokers: tuple[str, ...] = ()
    """No step touches them: neither as source nor as destination. Ids, once the request is resolved."""
    exclude_namespaces: tuple[str, ...] = ()
    """No step touches their bundles."""
    first_brokers: tuple[str, ...] = ()
    """Their unloads count first against the limits. Ids, once the request is resolved."""
    first_namespaces: tuple[str, ...] = ()
    """So do those of their bundles."""

    def __post_init__(self) -> None:
        """Refuse numbers out of bounds."""
        MAX_UNLOADS.check(self.max_unloads)
        MAX_SPLITS.check(self.max_splits)
        MAX_PER_SOURCE.check(self.max_per_source)
        MAX_TOPICS.check(self.max_topics)
        MAX_MEGABYTES.check(self.max_megabytes_per_s)

    @property
    def are_given(self) -> bool:
        """Whether they may leave out other steps than the limits of a request that names none."""
        return replace(self, first_brokers=(), first_namespaces=()) != Limits()

    def as_mapping(self) -> dict[str, int | float | tuple[str, ...] | None]:
        """The limits by name, as a plan records them: both numbers of steps, and others that are set."""
        chosen = {name: value for name, value in asdict(self).items() if value not in (None, ())}
        return {"max_splits": self.max_splits, "max_unloads": self.max_unloads, **chosen}

    def excludes(self, namespace: str, *brokers: str) -> bool:
        """Whether a step on a bundle of this namespace that touches these brokers (ids) is excluded."""
        return among(namespace, self.exclude_namespaces) or any(broker in self.exclude_brokers for broker in brokers)


def among(namespace: str, names: Collection[str]) -> bool:
    """Whether a namespace, or its tenant, is among these names."""
    return namespace in names or namespace.partition("/")[0] in names


def check_namespaces(names: Collection[str], namespaces: Collection[str]) -> None:
    """Raise `UsageError` for a name that is none of the snapshot's namespaces, nor of their tenants."""
    known = {*namespaces, *(namespace.partition("/")[0] for namespace in namespaces)}
    for name in names:
        if name not in known:
            there = f"the snapshot has {some_of(namespaces) or 'none'}"
            raise UsageError(f"there is no namespace or tenant '{name}'{nearest(name, sorted(known))}; {there}")


def unloads_within(moves: Sequence[Move], state: ClusterState, limits: Limits) -> tuple[list[Move], Counter[str]]:
    """The moves that the limits leave, and how many each of the others (its option) leaves out.

    Moves that can't be carried out anyway count against no limit. To a broker that a limit leaves a bundle on, no later
    one goes: there may be no room for both.
    """
    from pulsar_advisor.planning.proposals.executable import why_move_not  # loads numpy: refusals do without

    left_out = Counter[str]()
    budgets = _budgets(state, limits)
    kept, not_relieved_by = [], dict[int, str]()
    for move in _first_ones_first(moves, state, limits):
        if limits.excludes(_namespace(state, move.bundle), *_ids(state, move.source, move.destination)):
            left_out[_EXCLUDED] += 1
            continue
        if move.obstacle is None and why_move_not(state, move) is None:
            over = (budget.option for budget in budgets if not budget.covers(move))
            option = not_relieved_by.get(move.destination) or next(over, None)
            if option is not None:
                left_out[option] += 1
                not_relieved_by[move.source] = option
                continue
            for budget in budgets:
                budget.spend(move)
        kept.append(move)
    return kept, left_out


@dataclass
class _Budget:
    """A limit on what unloads cost together: all of them, or those of each source."""

    option: str
    limit: int
    cost: Callable[[Move], float]
    per_source: bool = False
    spent: defaultdict[int | None, float] = field(default_factory=lambda: defaultdict(float))
    """By source (row), or all under None."""

    def covers(self, move: Move) -> bool:
        return self.spent[self._account(move)] + self.cost(move) <= self.limit

    def spend(self, move: Move) -> None:
        self.spent[self._account(move)] += self.cost(move)

    def _account(self, move: Move) -> int | None:
        return move.source if self.per_source else None


def _budgets(state: ClusterState, limits: Limits) -> list[_Budget]:
    """The limits that are set; the first one that doesn't cover an unload is named."""
    from pulsar_advisor.model.cluster.cluster_state import throughput_bytes_per_s  # loads numpy: refusals do without

    bundles = state.bundles

    def unloads(_: Move) -> float:
        return 1

    def topics(move: Move) -> float:
        return float(bundles.topics[move.bundle])

    def megabytes_per_s(move: Move) -> float:
        bytes_per_s = float(throughput_bytes_per_s(bundles.traffic[move.bundle]))
        return 0.0 if isnan(bytes_per_s) else bytes_per_s / 1e6

    chosen = (
        ("--max-unloads", limits.max_unloads, unloads, False),
        ("--max-per-source", limits.max_per_source, unloads, True),
        ("--max-topics", limits.max_topics, topics, False),
        ("--max-megabytes-per-s", limits.max_megabytes_per_s, megabytes_per_s, False),
    )
    return [
        _Budget(f"{option} {limit}", limit, cost, per_source)
        for option, limit, cost, per_source in chosen
        if limit is not None
    ]


def splits_within(splits: Sequence[Split], state: ClusterState, limits: Limits) -> tuple[list[Split], Counter[str]]:
    """The splits that the limits leave, those of bundles that come first before the others, and how many each of the
    others (its option) leaves out."""

    def touches(split: Split) -> tuple[str, ...]:
        return _ids(state, int(state.bundles.owner[split.bundle]))

    allowed = [one for one in splits if not limits.excludes(_namespace(state, one.bundle), *touches(one))]
    ranked = sorted(allowed, key=lambda one: not _is_first(state, one.bundle, touches(one), limits))
    kept = ranked[: limits.max_splits]
    left_out = {_EXCLUDED: len(splits) - len(allowed), f"--max-splits {limits.max_splits}": len(allowed) - len(kept)}
    return kept, +Counter(left_out)


def _first_ones_first(moves: Sequence[Move], state: ClusterState, limits: Limits) -> list[Move]:
    return sorted(moves, key=lambda move: not _is_first(state, move.bundle, _ids(state, move.source), limits))


def _is_first(state: ClusterState, bundle: int, brokers: Sequence[str], limits: Limits) -> bool:
    by_broker = any(broker in limits.first_brokers for broker in brokers)
    return by_broker or among(_namespace(state, bundle), limits.first_namespaces)


def _namespace(state: ClusterState, bundle: int) -> str:
    return state.namespaces.names[int(state.bundles.namespace[bundle])]


def _ids(state: ClusterState, *rows: int) -> tuple[str, ...]:
    """The ids of brokers (rows); rows of none are below 0."""
    return tuple(state.brokers.ids[row] for row in rows if row >= 0)


def left_out_clause(left_out: Counter[str], proposed: int, noun: str, whose: str = "") -> str:
    """`the limits leave out 3 of 4 unloads: 3 by --max-unloads 1`; `whose` goes before the number of all proposed."""
    some = left_out.total() < proposed
    which = f"{left_out.total()} of {whose}{count(proposed, noun)}" if some else _all_of(proposed, noun)
    reasons = ", ".join(f"{number} by {option}" for option, number in sorted(left_out.items()))
    return f"the limits leave out {which}: {reasons}"


def _all_of(proposed: int, noun: str) -> str:
    return f"the only {noun}" if proposed == 1 else f"all {count(proposed, noun)}"
