"""Limits: how much one plan may do, what it must not touch, and what comes first."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from math import isnan
from typing import TYPE_CHECKING, Final

from pulsar_advisor.model.bounds import MAX_MEGABYTES, MAX_PER_SOURCE, MAX_SPLITS, MAX_TOPICS, MAX_UNLOADS
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.model.text.some_of import count, nearest, some_of

if TYPE_CHECKING:
    from pulsar_advisor.model.cluster.cluster_state import ClusterState
    from pulsar_advisor.model.strategy.decision import Split
    from pulsar_advisor.planning.proposals.proposal import Move


LEAVE_OUT: Final = "the limits leave out"
EXCLUDED: Final = "--exclude-broker or --exclude-namespace"


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
    """Unloads of their bundles count first, too."""

    def __post_init__(self) -> None:
        """Refuse numbers out of bounds."""
        MAX_UNLOADS.check(self.max_unloads)
        MAX_SPLITS.check(self.max_splits)
        MAX_PER_SOURCE.check(self.max_per_source)
        MAX_TOPICS.check(self.max_topics)
        MAX_MEGABYTES.check(self.max_megabytes_per_s)

    @property
    def are_given(self) -> bool:
        """Whether they may leave out steps that the default limits wouldn't."""
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


class Budgets:
    """What the unloads of a plan may still cost, of whole bundles and of a split's children together."""

    def __init__(self, limits: Limits) -> None:
        """Nothing is spent yet."""
        self.limits = limits
        self._spent = defaultdict[tuple[str, int | None], float](float)
        """By option and source (row); None for all sources together."""

    def over(self, move: Move, state: ClusterState) -> str | None:
        """The first limit (its option) that doesn't cover an unload; None if all do."""
        costs = self._costs(move, state)
        over = (f"{option} {limit}" for option, limit, of, cost in costs if self._spent[option, of] + cost > limit)
        return next(over, None)

    def spend(self, move: Move, state: ClusterState) -> None:
        """Count an unload against every limit."""
        for option, _, of, cost in self._costs(move, state):
            self._spent[option, of] += cost

    def _costs(self, move: Move, state: ClusterState) -> Iterator[tuple[str, int, int | None, float]]:
        """For each limit that is set: its option, its value, the source it applies to (None: all), and the cost."""
        # It loads numpy: refusals do without.
        from pulsar_advisor.model.cluster.cluster_state import throughput_bytes_per_s

        limits, topics = self.limits, float(state.bundles.topics[move.bundle])
        bytes_per_s = float(throughput_bytes_per_s(state.bundles.traffic[move.bundle]))
        megabytes_per_s = 0.0 if isnan(bytes_per_s) else bytes_per_s / 1e6
        costs = (
            ("--max-unloads", limits.max_unloads, None, 1.0),
            ("--max-per-source", limits.max_per_source, move.source, 1.0),
            ("--max-topics", limits.max_topics, None, topics),
            ("--max-megabytes-per-s", limits.max_megabytes_per_s, None, megabytes_per_s),
        )
        return ((option, limit, of, cost) for option, limit, of, cost in costs if limit is not None)


def unloads_within(moves: Sequence[Move], state: ClusterState, budgets: Budgets) -> tuple[list[Move], Counter[str]]:
    """The moves that the limits leave, and how many each of the others (its option) leaves out.

    Moves that can't be carried out anyway count against no limit. Once a limit leaves a bundle on a broker, no later
    move goes to that broker: there may be no room for both bundles.
    """
    from pulsar_advisor.planning.proposals.executable import why_move_not  # loads numpy: refusals do without

    left_out = Counter[str]()
    kept, not_relieved_by = [], dict[int, str]()
    limits = budgets.limits
    for move in _first_before_others(moves, state, limits):
        if excluded_by(move, state, limits):
            left_out[EXCLUDED] += 1
            continue
        if move.obstacle is None and why_move_not(state, move) is None:
            option = not_relieved_by.get(move.destination) or budgets.over(move, state)
            if option is not None:
                left_out[option] += 1
                not_relieved_by[move.source] = option
                continue
            budgets.spend(move, state)
        kept.append(move)
    return kept, left_out


def _first_before_others(moves: Sequence[Move], state: ClusterState, limits: Limits) -> list[Move]:
    """The moves of bundles that come first before the others; with each the moves before it that relieve its
    destination, without which there may be no room, and those of its anti-affinity group, which may allow only that
    order."""
    to_relieve, groups = set[int](), set[str]()
    first: list[Move] = []
    others: list[Move] = []
    for move in reversed(moves):
        group = state.namespaces.anti_affinity_groups[state.bundles.namespace[move.bundle]]
        depended_on = move.source in to_relieve or group in groups
        if depended_on or _is_first(state, move.bundle, _ids(state, move.source), limits):
            to_relieve.add(move.destination)
            groups |= {group} if group else set()
            first.append(move)
        else:
            others.append(move)
    return [*reversed(first), *reversed(others)]


def excluded_by(move: Move, state: ClusterState, limits: Limits) -> bool:
    """Whether an unload is excluded."""
    return limits.excludes(state.namespace_of(move.bundle), *_ids(state, move.source, move.destination))


def splits_within(splits: Sequence[Split], state: ClusterState, limits: Limits) -> tuple[list[Split], Counter[str]]:
    """The splits that the limits leave, those of bundles that come first before the others, and how many each of the
    others (its option) leaves out."""

    def touches(split: Split) -> tuple[str, ...]:
        return _ids(state, int(state.bundles.owner[split.bundle]))

    allowed = [one for one in splits if not limits.excludes(state.namespace_of(one.bundle), *touches(one))]
    ranked = sorted(allowed, key=lambda one: not _is_first(state, one.bundle, touches(one), limits))
    kept = ranked[: limits.max_splits]
    left_out = {EXCLUDED: len(splits) - len(allowed), f"--max-splits {limits.max_splits}": len(allowed) - len(kept)}
    return kept, +Counter(left_out)


def _is_first(state: ClusterState, bundle: int, brokers: Sequence[str], limits: Limits) -> bool:
    by_broker = any(broker in limits.first_brokers for broker in brokers)
    return by_broker or among(state.namespace_of(bundle), limits.first_namespaces)


def _ids(state: ClusterState, *rows: int) -> tuple[str, ...]:
    """The ids of brokers (rows); rows of none are below 0."""
    return tuple(state.brokers.ids[row] for row in rows if row >= 0)


def left_out_clause(left_out: Counter[str], proposed: int, noun: str, whose: str) -> str:
    """`the limits leave out 3 of 4 unloads: 3 by --max-unloads 1`; `whose` goes before the number of all proposed."""
    some = left_out.total() < proposed
    which = f"{left_out.total()} of {whose}{count(proposed, noun)}" if some else _all_of(proposed, noun)
    reasons = ", ".join(f"{number} by {option}" for option, number in sorted(left_out.items()))
    return f"{LEAVE_OUT} {which}: {reasons}"


def _all_of(proposed: int, noun: str) -> str:
    return f"the only {noun}" if proposed == 1 else f"all {count(proposed, noun)}"
