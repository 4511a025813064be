"""Room for bundles: the brokers that each may go to, and what their usage would be, as moves add up.

Destinations pass Pulsar's own filters (`placement.filters.destinations`) and what `apply` checks before a step. Usage
is predicted by the `base_load` model, with the arithmetic of the plan's forecast, and every broker's own limits: the
likely usage, and the most that it may be, if what arrives brings most and what leaves takes least along. There is room
only where even the most is within the ceiling.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from pulsar_advisor.model.cluster.cluster_state import (
    CPU,
    DIRECT_MEMORY,
    MEMORY,
    NO_ROW,
    RESOURCES,
    Booleans,
    ClusterState,
    Floats,
    Integers,
)
from pulsar_advisor.model.cluster.inputs import Input
from pulsar_advisor.model.cluster.isolation_policies import NO_POLICY
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.load.base_load import BaseLoad, usage_that_moves
from pulsar_advisor.model.load.resource_usage import (
    ROUNDING_RATIO,
    WEIGHT_KEYS,
    mean_by_cpu_limit,
    usage_ratios,
    weighted_maximum,
)
from pulsar_advisor.placement.anti_affinity import NO_GROUP, namespaces_at
from pulsar_advisor.placement.filters import (
    Candidates,
    PlacementFacts,
    destinations,
    placement_facts,
    policy_candidates,
)
from pulsar_advisor.planning.kinds.arrivals import may_have_arrived
from pulsar_advisor.planning.proposals.fitness import EVERY_UNLOAD_READS
from pulsar_advisor.planning.proposals.limits import Limits, among
from pulsar_advisor.planning.situation import Situation
from pulsar_advisor.planning.usage.forecast import loads_of
from pulsar_advisor.splitting.division import Division

Rows = npt.NDArray[np.signedinteger]

ROOM_READS: Final[frozenset[Input]] = EVERY_UNLOAD_READS | {"bundle_counts"}
"""Inputs that determine the room."""
ROOM_KEYS: Final = ("loadBalancerBrokerOverloadedThresholdPercentage", "loadBalancerBrokerMaxTopics", *WEIGHT_KEYS)
"""Setting keys that determine the room, besides those of the filters."""


@dataclass(frozen=True)
class Place:
    """The broker for one bundle (a row), NO_ROW if there is none, and the most (ratio) that it may use with the bundle.

    Without a broker, that of the allowed broker that would use least; NaN if none is allowed.
    """

    broker: int
    usage_ratio: float


NOWHERE: Final = Place(NO_ROW, float("nan"))


class _FilterKey(NamedTuple):
    """What the candidates for a bundle depend on."""

    policy: int
    """The isolation policy of its namespace (a row), or NO_POLICY."""
    group: int
    """The anti-affinity group of its namespace, or NO_GROUP: the only filter whose answer depends on the moves so far.
    """
    persistent: bool
    """Whether the bundle is known to hold persistent topics; likewise the next one."""
    non_persistent: bool


class _Peers(NamedTuple):
    """Per broker, the other namespaces of a bundle's anti-affinity group that have a bundle there."""

    on_broker: Integers
    in_domain: Integers
    """In its failure domain; 0 if domains don't count."""


class Room:
    """The brokers of a cluster while bundles move, none above its ceiling (a ratio). Rows are those of the state."""

    def __init__(
        self,
        state: ClusterState,
        settings: LoadBalancerSettings,
        base: BaseLoad,
        ceiling_ratio: float,
        most_usage: Floats | None = None,
    ) -> None:
        """`most_usage`, (n, 5), is the most that brokers may use as found; None: what the state says they use."""
        brokers, bundles = state.brokers, state.bundles
        self.state, self.settings, self.base = state, settings, base
        self.ceiling = np.full(len(brokers), ceiling_ratio)
        self.leaving = np.zeros(len(brokers), dtype=np.bool_)
        self.fit = brokers.fit
        # To Pulsar a broker without a CPU limit is idle; how much room it has isn't known.
        self.open = self.receives = self.fit & ~brokers.doubtful & (brokers.limit[:, CPU] > 0)
        self.excluded = np.zeros(len(bundles), dtype=np.bool_)
        self.may_have_arrived = np.zeros(len(bundles), dtype=np.bool_)
        self.usage_at_first = usage_ratios(brokers, settings)
        self.usage, self.owner, self.topics = brokers.usage.copy(), bundles.owner.copy(), brokers.topics.copy()
        self.most_at_first = brokers.usage if most_usage is None else most_usage
        self.most = self.most_at_first.copy()
        self.moved = _moved(state, base.likely)
        self.moved_at_least, self.arriving = _moved(state, base.greatest), _moved(state, base.least)
        each = np.arange(len(brokers))
        # (n, n): the factor by which an arriving bundle may cost a broker (the column) more CPU than its source.
        self.dearer = np.maximum(loads_of(state, base.least).relative_cost(each[:, None], each), 1.0)
        self._facts = placement_facts(state, settings)
        self._without_group: dict[_FilterKey, Candidates] = {}
        self._by_policy: dict[tuple[int, bool], Booleans] = {}
        self._forget_groups()

    def _forget_groups(self) -> None:
        """Forget what holds only until a bundle of an anti-affinity group moves."""
        self._facts_now: PlacementFacts | None = None
        self._by_group: dict[_FilterKey, Candidates] = {}
        self._peers_by_namespace: dict[int, _Peers] = {}

    @classmethod
    def of(cls, situation: Situation, ceiling_ratio: float | None = None) -> Self:
        """The room of the fit part; the ceiling is by default the overload threshold."""
        settings, settled = situation.settings.values, situation.settled
        ceiling = settings.overloaded_ratio if ceiling_ratio is None else ceiling_ratio
        most = np.fmax(situation.fit.brokers.usage, settled.brokers.usage)
        room = cls(settled, settings, situation.base, ceiling, most)
        room.may_have_arrived = may_have_arrived(situation.fit, situation.earlier)
        return room

    def copy(self) -> Self:
        """The same room, to try other moves in."""
        twin = copy.copy(self)
        twin.usage, twin.most = self.usage.copy(), self.most.copy()
        twin.owner, twin.topics = self.owner.copy(), self.topics.copy()
        return twin

    def emptying(self, brokers: Sequence[int]) -> Self:
        """The room that is left while these brokers (rows), and no others, are emptied."""
        twin = self.copy()
        twin.leaving = np.isin(np.arange(len(self.fit)), brokers)
        twin._without_group, twin._by_group = {}, {}
        return twin

    def onto(self, brokers: Sequence[int]) -> Self:
        """The room that these brokers (rows) have; no other one takes anything."""
        twin = self.copy()
        twin.receives = self.open & np.isin(np.arange(len(self.fit)), brokers)
        return twin

    def within(self, limits: Limits) -> Self:
        """The room without the brokers and bundles that the limits exclude."""
        twin, state = self.copy(), self.state
        barred = np.array([broker in limits.exclude_brokers for broker in state.brokers.ids], dtype=np.bool_)
        named = np.array([among(name, limits.exclude_namespaces) for name in state.namespaces.names], dtype=np.bool_)
        owner = state.bundles.owner
        twin.open, twin.receives = self.open & ~barred, self.receives & ~barred
        twin.excluded = named[state.bundles.namespace] | ((owner != NO_ROW) & barred[owner])
        return twin

    def divided(self, division: Division) -> Self:
        """The room as found once bundles have been split; their children are where they were."""
        twin = type(self)(division.state, self.settings, self.base, 0.0, self.most_at_first)
        twin.ceiling, twin.leaving = self.ceiling, self.leaving
        twin.open, twin.receives, twin.excluded = self.open, self.receives, self.excluded[division.parent]
        return twin

    def up_to(self, ceiling_ratio: float) -> Self:
        """The room that there is under another ceiling."""
        twin = self.copy()
        twin.ceiling = np.full(len(self.ceiling), ceiling_ratio)
        return twin

    def rows_of(self, brokers: Sequence[str]) -> list[int]:
        """The rows of brokers by id."""
        return [self.state.brokers.ids.index(broker) for broker in brokers]

    def bundles_of(self, brokers: Sequence[int]) -> list[int]:
        """The bundles that these brokers own, the largest first: by the share of its broker that moves with it."""
        rows = np.flatnonzero(np.isin(self.owner, brokers))
        return [int(row) for row in rows[np.lexsort((rows, -self._shares(rows)))]]

    def share(self, bundle: int) -> float:
        """The part (ratio) of its broker's resources that moves with a bundle (a row)."""
        return float(self._shares(np.array([bundle]))[0])

    def share_at_most(self, bundle: int) -> float:
        """The most (ratio) that a bundle (a row) may need of a broker like its own."""
        return float(self.ratios(self.arriving[[bundle]], [int(self.owner[bundle])])[0])

    def _shares(self, bundles: Rows) -> Floats:
        return self.ratios(self.moved[bundles], self.owner[bundles])

    def usage_of(self, brokers: Sequence[int] | Rows) -> Floats:
        """The likely usage (ratio) of brokers (rows) now."""
        return self.ratios(self.usage[brokers], brokers)

    def most_of(self, brokers: Sequence[int] | Rows) -> Floats:
        """The most (ratio) that brokers (rows) may use now."""
        return self.ratios(self.most[brokers], brokers)

    def ratios(self, usage: Floats, brokers: Sequence[int] | Rows) -> Floats:
        """Usage by resource, at these brokers (rows), as one ratio each."""
        return weighted_maximum(usage, self.state.brokers.limit[brokers], self.settings)

    def highest_ratio(self) -> float:
        """The likely usage (ratio) of the busiest fit broker now; 0 without one."""
        return float(self.usage_of(np.flatnonzero(self.fit)).max(initial=0.0))

    def most_ratio(self) -> float:
        """The most (ratio) that the busiest fit broker may use now; 0 without one."""
        return float(self.most_of(np.flatnonzero(self.fit)).max(initial=0.0))

    def mean_ratio(self) -> float:
        """The mean usage (ratio) of the fit brokers, as found."""
        return mean_by_cpu_limit(self.usage_at_first, self.state.brokers.limit, self.fit)

    def staying(self, brokers: Rows, base_cpu: Floats) -> tuple[Floats, Floats]:
        """(k, 5) each: the usage of brokers (rows), unknown parts as zero, and the part that no bundle takes along.

        `base_cpu` is the base of all brokers.
        """
        usage = np.where(np.isfinite(self.usage[brokers]), self.usage[brokers], 0.0)
        stays = np.zeros_like(usage)
        stays[:, CPU] = base_cpu[brokers]
        stays[:, [MEMORY, DIRECT_MEMORY]] = usage[:, [MEMORY, DIRECT_MEMORY]]
        return usage, stays

    def candidates(self, bundle: int) -> Candidates:
        """The brokers that Pulsar's filters leave for a bundle (a row), and the answer about each broker."""
        key = self._filter_key(bundle)
        in_group = key.group != NO_GROUP
        found = self._by_group if in_group else self._without_group
        if key not in found:
            facts = self._facts_after_moves() if in_group else self._facts
            namespace = int(self.state.bundles.namespace[bundle])
            found[key] = destinations(
                facts, namespace, self.leaving, persistent=key.persistent, non_persistent=key.non_persistent
            )
        return found[key]

    def _facts_after_moves(self) -> PlacementFacts:
        if self._facts_now is None:
            # Rooms that were copied from this one share the facts, and are not to see its further moves.
            moved = replace(self.state, bundles=replace(self.state.bundles, owner=self.owner.copy()))
            self._facts_now = self._facts.after_moves(moved)
        return self._facts_now

    def allowed(self, bundle: int) -> Rows:
        """The brokers (rows) that a bundle (a row) may move to, whatever their usage."""
        rows, source = self.candidates(bundle).brokers, int(self.owner[bundle])
        topics = self.topics[rows] + self.state.bundles.topics[bundle]
        may = self.receives[rows] & (rows != source) & (topics <= self.settings.load_balancer_broker_max_topics)
        peers = self._peers(int(self.state.bundles.namespace[bundle]))
        if peers is not None:
            may &= peers.on_broker[rows] <= peers.on_broker[source]
            if not self.leaving[source] and self.policies_allow(bundle):
                may &= peers.in_domain[rows] <= peers.in_domain[source]
        found: Rows = rows[may].astype(np.intp)
        return found

    def policy_names_brokers(self, bundle: int) -> bool:
        """Whether an isolation policy names the brokers that a bundle (a row) may go to."""
        return self._filter_key(bundle).policy != NO_POLICY

    def policies_allow(self, bundle: int) -> bool:
        """Whether the isolation policies allow a bundle (a row) where it is."""
        policy, _, _, non_persistent = self._filter_key(bundle)
        if (policy, non_persistent) not in self._by_policy:
            namespace = int(self.state.bundles.namespace[bundle])
            allowed = policy_candidates(self._facts, namespace, non_persistent=non_persistent)
            self._by_policy[policy, non_persistent] = allowed
        return bool(self._by_policy[policy, non_persistent][self.owner[bundle]])

    def with_fewer_peers(self, bundle: int) -> Rows:
        """The brokers (rows) that a bundle (a row) may move to and that have less of its anti-affinity group."""
        peers = self._peers(int(self.state.bundles.namespace[bundle]))
        if peers is None:
            return np.empty(0, dtype=np.intp)
        rows = self.allowed(bundle)
        thinner: Rows = rows[peers.on_broker[rows] < peers.on_broker[self.owner[bundle]]]
        return thinner

    def place(self, bundle: int, among: Rows | None = None, *, fullest: bool = False) -> Place:
        """The broker that would be used least with a bundle (a row), or the `fullest` one, surely within its ceiling.

        `among`: the brokers (rows) to choose from; by default all that are allowed.
        """
        rows = self.allowed(bundle) if among is None else among
        if not len(rows):
            return NOWHERE
        usage = self.ratios(self.most[rows] + self._at_most(bundle, rows), rows)
        fits = np.flatnonzero(usage <= self.ceiling[rows] + ROUNDING_RATIO)
        if not len(fits):
            return Place(NO_ROW, float(usage.min()))
        best = fits[np.argmax(usage[fits]) if fullest else np.argmin(usage[fits])]
        return Place(int(rows[best]), float(usage[best]))

    def wave_numbers(self, moves: Sequence[tuple[int, int]]) -> list[int]:
        """The wave of each move of a bundle (rows) from where it was found to a broker; in a wave, a broker gets at
        most one bundle.

        No move comes before one that it depends on: an earlier move that takes a bundle off its destination, or one of
        its anti-affinity group.
        """
        full = dict[int, int]()
        relieved = dict[int, int]()
        of_group = dict[int, int]()
        numbers = []
        for bundle, broker in moves:
            group = self._group(int(self.state.bundles.namespace[bundle]))
            wave = max(full.get(broker, -1) + 1, relieved.get(broker, 0), of_group.get(group, 0))
            source = int(self.state.bundles.owner[bundle])
            full[broker], relieved[source] = wave, max(wave, relieved.get(source, 0))
            if group != NO_GROUP:
                of_group[group] = wave
            numbers.append(wave)
        return numbers

    @np.errstate(over="ignore", invalid="ignore")
    def move(self, bundle: int, broker: int) -> None:
        """Move a bundle to a broker (rows)."""
        source = int(self.owner[bundle])
        self.usage[source] -= self.moved[bundle]
        self.usage[broker] += self.moved[bundle]
        self.most[source] -= self._at_most(bundle, np.array([source]))[0]
        self.most[broker] += self._at_most(bundle, np.array([broker]))[0]
        self.topics[source] -= self.state.bundles.topics[bundle]
        self.topics[broker] += self.state.bundles.topics[bundle]
        self.owner[bundle] = broker
        if self._group(int(self.state.bundles.namespace[bundle])) != NO_GROUP:
            self._forget_groups()

    def _at_most(self, bundle: int, brokers: Rows) -> Floats:
        """(k, 5): what a bundle adds to the most that brokers may use: where it was found, only what surely leaves."""
        source = self.state.bundles.owner[bundle]
        brings = self.arriving[[bundle]].repeat(len(brokers), axis=0)
        brings[:, CPU] *= self.dearer[source, brokers]
        brings[brokers == source] = self.moved_at_least[bundle]
        return brings

    def _filter_key(self, bundle: int) -> _FilterKey:
        state = self.state
        namespace = int(state.bundles.namespace[bundle])
        return _FilterKey(
            int(self._facts.isolation.policy_of_namespace[namespace]),
            self._group(namespace),
            bool(state.holds_persistent[bundle]),
            bool(state.holds_non_persistent[bundle]),
        )

    def _group(self, namespace: int) -> int:
        return int(self._facts.anti_affinity.group_of_namespace[namespace])

    def _peers(self, namespace: int) -> _Peers | None:
        """The peers of a namespace (a row); None without a group.

        `apply` sends no bundle to a broker that has more of them than its source.
        """
        group = self._group(namespace)
        if group == NO_GROUP:
            return None
        if namespace not in self._peers_by_namespace:
            of_bundle, domain = self.state.bundles.namespace, self._facts.anti_affinity.domain
            rows = self._facts.anti_affinity.bundles[group]
            rows = rows[(of_bundle[rows] != namespace) & (self.owner[rows] != NO_ROW)]
            number, owner = len(self.state.brokers), self.owner[rows]
            self._peers_by_namespace[namespace] = _Peers(
                on_broker=namespaces_at(owner, of_bundle[rows], number),
                in_domain=np.zeros(number, dtype=np.int64)
                if domain is None
                else namespaces_at(domain[owner], of_bundle[rows], number)[domain],
            )
        return self._peers_by_namespace[namespace]


def _moved(state: ClusterState, base_cpu: Floats) -> Floats:
    """(m, 5): what moves with each bundle, as the plan's forecast has it; nothing with a bundle that has no owner."""
    bundles = state.bundles
    moved, owned = np.zeros((len(bundles), len(RESOURCES))), np.flatnonzero(bundles.owner != NO_ROW)
    moved[owned] = usage_that_moves(state, base_cpu, bundles.traffic[owned], bundles.owner[owned])
    return moved
