"""Limits: how much one plan may do, what it must not touch, and what comes first."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from math import isnan
from typing import TYPE_CHECKING, NamedTuple

from pulsar_advisor.model.bounds import MAX_MEGABYTES, MAX_PER_SOURCE, MAX_SPLITS, MAX_TOPICS, MAX_UNLOADS

if TYPE_CHECKING:
    from pulsar_advisor.model.cluster_state import ClusterState
    from pulsar_advisor.model.decision import Split
    from pulsar_advisor.planning.proposal import Move


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


def unloads_within(moves: Sequence[Move], state: ClusterState, limits: Limits) -> tuple[list[Move], Counter[str]]:
    """The moves that the limits leave, and how many each of the others (its option) leaves out.

    Moves that can't be carried out anyway count against no limit.
    """
    left_out = Counter[str]()
    spent = defaultdict[tuple[str, int], float](float)
    kept = []
    for move in _first_ones_first(moves, state, limits):
        if limits.excludes(_namespace(state, move.bundle), *_ids(state, move.source, move.destination)):
            left_out["--exclude-broker or --exclude-namespace"] += 1
            continue
        if move.obstacle is None:
            costs = _costs(move, state, limits)
            over = [cost.option for cost in costs if spent[cost.option, cost.account] + cost.amount > cost.limit]
            if over:
                left_out[over[0]] += 1
                continue
            for cost in costs:
                spent[cost.option, cost.account] += cost.amount
        kept.append(move)
    return kept, left_out


class _Cost(NamedTuple):
    """What an unload takes of a limit: of its only account, or of that of its source."""

    option: str
    limit: int
    amount: float
    account: int = 0


def _costs(move: Move, state: ClusterState, limits: Limits) -> list[_Cost]:
    from pulsar_advisor.model.cluster_state import throughput_bytes_per_s  # loads numpy: refusals do without

    bundles, row = state.bundles, move.bundle
    bytes_per_s = float(throughput_bytes_per_s(bundles.traffic[row]))
    amounts = (
        ("--max-unloads", limits.max_unloads, 1, 0),
        ("--max-per-source", limits.max_per_source, 1, move.source),
        ("--max-topics", limits.max_topics, int(bundles.topics[row]), 0),
        ("--max-megabytes-per-s", limits.max_megabytes_per_s, 0.0 if isnan(bytes_per_s) else bytes_per_s / 1e6, 0),
    )
    return [
        _Cost(f"{option} {limit}", limit, amount, account)
        for option, limit, amount, account in amounts
        if limit is not None
    ]


def splits_within(splits: Sequence[Split], state: ClusterState, limits: Limits) -> list[Split]:
    """The splits that the limits leave, those of bundles that come first before the others."""

    def touches(split: Split) -> tuple[str, ...]:
        return _ids(state, int(state.bundles.owner[split.bundle]))

    allowed = [one for one in splits if not limits.excludes(_namespace(state, one.bundle), *touches(one))]
    ranked = sorted(allowed, key=lambda one: not _is_first(state, one.bundle, touches(one), limits))
    return ranked[: limits.max_splits]


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


def left_out_sentence(left_out: Counter[str], proposed: int) -> Iterator[str]:
    """What the limits keep from a goal, if anything."""
    if left_out:
        reasons = ", ".join(f"{number} by {option}" for option, number in sorted(left_out.items()))
        yield f"The limits leave out {left_out.total()} of {proposed} unloads: {reasons}."
