"""What is possible in a small cluster, found by trying everything: an opinion that owes nothing to the planner.

Its arithmetic is its own. A broker's CPU usage is work: cores times usage. At one end of the model all of it follows
messages and moves with a bundle by its share of them; at the other end none does. History narrows both ends to the base
that it shows. Network usage moves with bytes, memory not at all. A broker is as busy as its busiest weighted resource.

Nothing here imports `pulsar_advisor.planning`, which it judges.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, combinations_with_replacement
from math import comb
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from scenarios.scenario import KBIT, Bundle, Machine, Scenario

Floats = npt.NDArray[np.float64]
Placed = npt.NDArray[np.int8]
"""(k, m): k ways to place m bundles, as rows of brokers."""

MOST_TRIED: Final = 300_000
"""Ways to place bundles up to which all of them are tried."""
MOST_CHOICES: Final = 5_000
"""Sets of bundles of which all are tried."""
_ROUNDING: Final = 1e-6


class Ends(NamedTuple):
    """A usage (ratio) at both ends of the model, in order."""

    lowest: float
    highest: float


class Relief(NamedTuple):
    """The cheapest way to bring a broker within a usage."""

    clients: int
    """The fewest producers and consumers, and with them the fewest bundles, that have to move."""
    bundles: int
    others: float
    """The usage of the busiest other broker after the best of the cheapest ways, if CPU follows messages."""


@dataclass(frozen=True)
class BruteForce:
    """A cluster in which everything may be tried. Rows of brokers are `hosts`, those of bundles `movable`."""

    scenario: Scenario

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        """Brokers that may give and take."""
        return tuple(name for name, one in self.scenario.brokers.items() if one.fit and one.active)

    @cached_property
    def movable(self) -> tuple[Bundle, ...]:
        """Bundles that clients use, on these brokers; none of Pulsar's own, which are never moved."""
        return tuple(
            bundle
            for bundle in self.scenario.bundles
            if bundle.load.broker in self.hosts
            and bundle.load.shares
            and bundle.load.fit
            and not bundle.namespace.startswith("pulsar/")
        )

    @cached_property
    def owner(self) -> npt.NDArray[np.intp]:
        """Row of the broker of each movable bundle."""
        return np.array([self.hosts.index(str(bundle.load.broker)) for bundle in self.movable], dtype=np.intp)

    @cached_property
    def _machines(self) -> list[Machine]:
        return [self.scenario.brokers[host] for host in self.hosts]

    @cached_property
    def _totals(self) -> Floats:
        """(n, 4): traffic of each broker, of bundles that don't move too."""
        return np.array(
            [
                np.sum([b.load.traffic for b in self.scenario.bundles if b.load.broker == host] or [(0.0,) * 4], axis=0)
                for host in self.hosts
            ]
        )

    @cached_property
    def _capacity(self) -> Floats:
        """(n, 5): of CPU, network in and out, direct memory and heap, as far as they count; infinite if unknown."""
        weights = self.scenario.values
        heap = 1.0 if self.scenario.pulsar.startswith("2.") else 0.0
        rows = []
        for machine in self._machines:
            net = machine.nic_gbps * 1e6 * KBIT
            factor = (
                weights.load_balancer_cpu_resource_weight,
                weights.load_balancer_bandwidth_in_resource_weight,
                weights.load_balancer_bandwidth_out_resource_weight,
                weights.load_balancer_direct_memory_resource_weight,
                weights.load_balancer_memory_resource_weight * heap,
            )
            rows.append(
                [
                    has / part if has * part > 0 else np.inf
                    for has, part in zip((machine.limit, net, net, 100.0, 100.0), factor, strict=True)
                ]
            )
        return np.array(rows).reshape(-1, 5)

    @cached_property
    def _used(self) -> Floats:
        return np.array(
            [
                (machine.work, total[2], total[3], machine.direct, machine.heap)
                for machine, total in zip(self._machines, self._totals, strict=True)
            ]
        ).reshape(-1, 5)

    def _carried(self, *, follows_messages: bool, bases: Mapping[str, float] | None = None) -> Floats:
        """(m, 5): what each movable bundle takes along, at one end of the model, or with these bases (percent)."""
        rows = []
        for bundle, owner in zip(self.movable, self.owner.tolist(), strict=True):
            machine, total, traffic = self._machines[owner], self._totals[owner], bundle.load.traffic
            stays = machine.base if machine.base is not None else (0.0 if follows_messages else machine.cpu)
            stays = (bases or {}).get(self.hosts[owner], stays)
            work = machine.work * (1 - stays / machine.cpu) if machine.cpu > 0 else 0.0
            messages = total[0] + total[1]
            share = (traffic[0] + traffic[1]) / messages if messages > 0 else 0.0
            rows.append((work * share, traffic[2], traffic[3], 0.0, 0.0))
        return np.array(rows).reshape(-1, 5)

    @cached_property
    def _at_both_ends(self) -> tuple[Floats, Floats]:
        return self._carried(follows_messages=False), self._carried(follows_messages=True)

    def now(self) -> dict[str, float]:
        """Usage of each broker as it was found."""
        return dict(zip(self.hosts, (self._used / self._capacity).max(axis=1).tolist(), strict=True))

    def after_if_cpu_follows_messages(self, moves: Mapping[str, str]) -> dict[str, float]:
        """Usage of each broker once these bundles (name -> host) have moved, at that end of the model."""
        going = [self.hosts.index(moves.get(b.name, str(b.load.broker))) for b in self.movable]
        usage = self._usage(np.array([going], dtype=np.int8), np.arange(len(self.movable)), self._at_both_ends[1])
        return dict(zip(self.hosts, usage[0].tolist(), strict=True))

    def after(self, moves: Mapping[str, str]) -> dict[str, Ends]:
        """Usage of each broker once these bundles (name -> host) have moved."""
        going = [self.hosts.index(moves.get(b.name, str(b.load.broker))) for b in self.movable]
        low, high = (
            self._usage(np.array([going], dtype=np.int8), np.arange(len(self.movable)), carried)[0]
            for carried in self._at_both_ends
        )
        return {
            host: Ends(min(one, two), max(one, two))
            for host, one, two in zip(self.hosts, low.tolist(), high.tolist(), strict=True)
        }

    def _usage(self, placed: Placed, bundles: npt.NDArray[np.intp], carried: Floats) -> Floats:
        """(k, n): usage of each broker for k ways to place these bundles, (k, len(bundles)) rows of brokers."""
        highest = np.full((len(placed), len(self.hosts)), -np.inf)
        is_on = placed[:, :, None] == np.arange(len(self.hosts))[None, None, :]
        was_on = self.owner[bundles][:, None] == np.arange(len(self.hosts))[None, :]
        change = is_on.astype(np.float32) - was_on[None, :, :].astype(np.float32)
        for resource in range(5):
            moved = np.einsum("kbn,b->kn", change, carried[bundles, resource])
            highest = np.maximum(highest, (self._used[:, resource] + moved) / self._capacity[:, resource])
        return highest

    def _may_take(self, bundle: Bundle) -> list[int]:
        """Rows of the brokers to which the policies let a bundle go."""
        scenario = self.scenario

        def matching(pattern: str) -> list[str]:
            return [host for host in self.hosts if re.fullmatch(pattern, host)]

        own = [policy for policy in scenario.isolation if re.fullmatch(policy.namespaces, bundle.namespace)]
        if own:
            hosts = matching(own[0].primary)
            if len(hosts) < own[0].min_limit:
                hosts += matching(own[0].secondary)
        else:
            reserved = {host for policy in scenario.isolation for host in matching(policy.primary)}
            hosts = [host for host in self.hosts if host not in reserved]
        hosts = [host for host in hosts if scenario.brokers[host].cores > 0]  # nobody knows the room of the others
        most = scenario.values.load_balancer_broker_max_topics
        topics = {host: sum(len(b.topics) for b in scenario.bundles if b.load.broker == host) for host in hosts}
        return [self.hosts.index(host) for host in hosts if topics[host] + len(bundle.topics) <= most]

    def _ways(self, bundles: Sequence[int], *, may_stay: bool) -> Placed | None:
        """Every way to place these bundles; None if there are too many, or groups would have to be looked at."""
        if self.scenario.anti_affinity:
            return None
        alike: dict[tuple[object, ...], list[int]] = {}
        for place, row in enumerate(bundles):
            alike.setdefault((self.owner[row], self.movable[row].load), []).append(place)
        of_group, places, number = [], [], 1
        for (own, _), members in alike.items():
            others = [host for host in self._may_take(self.movable[bundles[members[0]]]) if host != own]
            choices = [int(own), *others] if may_stay else others
            # Bundles that are alike are interchangeable: which of them goes where makes no difference.
            number *= comb(len(choices) + len(members) - 1, len(members)) if choices else 0
            if number > MOST_TRIED:
                return None
            ways = list(combinations_with_replacement(choices, len(members)))
            of_group.append(np.array(ways, dtype=np.int8).reshape(-1, len(members)))
            places += members
        if not number:
            return np.empty((0, len(bundles)), dtype=np.int8)
        axes = np.meshgrid(*(np.arange(len(group)) for group in of_group), indexing="ij")
        parts = [group[axis.ravel()] for group, axis in zip(of_group, axes, strict=True)]
        placed = np.empty((number, len(bundles)), dtype=np.int8)
        placed[:, places] = np.concatenate(parts, axis=1) if parts else placed
        return placed[self._within_topics(placed, bundles)]

    def _within_topics(self, placed: Placed, bundles: Sequence[int]) -> npt.NDArray[np.bool_]:
        """Per way to place these bundles, whether no broker that takes one has more topics than it may."""
        topics = np.array([len(self.movable[row].topics) for row in bundles], dtype=np.int64)
        fits = np.ones(len(placed), dtype=np.bool_)
        for row, host in enumerate(self.hosts):
            own = sum(len(b.topics) for b in self.scenario.bundles if b.load.broker == host)
            leaves = topics[self.owner[list(bundles)] == row].sum()
            arrives = ((placed == row) * topics).sum(axis=1)
            fits &= (arrives == 0) | (own - leaves + arrives <= self.scenario.values.load_balancer_broker_max_topics)
        return fits

    def _tried(self, placed: Placed, bundles: Sequence[int], bases: Mapping[str, float] | None = None) -> Floats:
        """`_usage` if everything follows messages: what a destination gets then is the most that it may.

        Brokers in `bases` (percent) keep that much of their CPU usage.
        """
        rows = np.array(bundles, dtype=np.intp)
        parts = np.array_split(placed, max(len(placed) // 50_000, 1))
        usage = np.concatenate([self._usage(part, rows, self._at_both_ends[1]) for part in parts])
        if bases:
            kept = self._carried(follows_messages=True, bases=bases)
            keeps = [self.hosts.index(host) for host in bases if host in self.hosts]
            usage[:, keeps] = np.concatenate([self._usage(part, rows, kept) for part in parts])[:, keeps]
        return usage

    def best_maximum(self, bases: Mapping[str, float] | None = None) -> float | None:
        """The lowest highest usage that moves can reach, if CPU beyond the bases (percent) follows messages.

        None if not tried.
        """
        every = range(len(self.movable))
        placed = self._ways(every, may_stay=True)
        return None if placed is None else float(self._tried(placed, every, bases).max(axis=1).min())

    def relief(self, host: str, target: float, ceiling: float, base: float | None = None) -> Relief | bool | None:
        """The cheapest moves off a broker that bring it within the target if CPU follows messages beyond its base.

        The base (percent) is what history shows, unless it is given.

        No destination ends above the lower of target and ceiling. False if nothing does, None if not tried.
        """
        row = self.hosts.index(host)
        bundles = np.flatnonzero(self.owner == row).tolist()
        placed = self._ways(bundles, may_stay=True)
        if placed is None:
            return None
        usage = self._tried(placed, bundles, None if base is None else {host: base})
        within = min(target, ceiling) + _ROUNDING
        taken = (placed[:, :, None] == np.arange(len(self.hosts))).any(axis=1)
        taken[:, row] = True
        fits = ((usage <= within) | ~taken).all(axis=1)
        if not fits.any():
            return False
        clients = np.array([self.movable[b].load.producers + self.movable[b].load.consumers for b in bundles])
        going = placed != row
        cost = (going * (clients * (len(bundles) + 1) + 1)).sum(axis=1)
        cheapest = fits & (cost == cost[fits].min())
        first = going[np.flatnonzero(cheapest)[0]]
        others = np.delete(usage[cheapest], row, axis=1).max(axis=1, initial=0.0)
        return Relief(int(clients[first].sum()), int(first.sum()), float(others.min()))

    def drain_fits(self, host: str, ceiling: float) -> bool | None:
        """Whether a broker's bundles all find room elsewhere if CPU follows messages; None if not tried."""
        row = self.hosts.index(host)
        bundles = np.flatnonzero(self.owner == row).tolist()
        placed = self._ways(bundles, may_stay=False)
        if placed is None or not bundles:
            return None if placed is None else True
        usage = self._tried(placed, bundles) if len(placed) else np.empty((0, len(self.hosts)))
        taken = (placed[:, :, None] == np.arange(len(self.hosts))).any(axis=1)
        return bool(((usage <= ceiling + _ROUNDING) | ~taken).all(axis=1).any())

    def fewest_moves_within(
        self, target: float, bases: Mapping[str, float] | None = None, most: int = 4
    ) -> int | bool | None:
        """The fewest moves of bundles of brokers above the target after which none is above it, at most `most`.

        Those brokers keep their bases (percent), by default none.

        False if no moves at all do; None if not tried, or more are needed.
        """
        now = np.array([self.now()[host] for host in self.hosts])
        above = np.flatnonzero(now[self.owner] > target).tolist() if len(self.owner) else []
        kept = {host: base for host, base in (bases or {}).items() if self.now().get(host, 0.0) > target}
        if comb(len(above), most) > MOST_CHOICES:
            return None
        for number in range(most + 1):
            # Bundles that are alike are interchangeable.
            different = {
                tuple((int(self.owner[row]), self.movable[row].load) for row in chosen): chosen
                for chosen in combinations(above, number)
            }
            for chosen in different.values():
                placed = self._ways(chosen, may_stay=False)
                if placed is None:
                    return None
                if len(placed) and (self._tried(placed, chosen, kept).max(axis=1) <= target + _ROUNDING).any():
                    return number
        best = self.best_maximum() if not kept else None
        return False if best is not None and best > target + _ROUNDING else None

    @property
    def is_informed(self) -> bool:
        """Whether history shows what is base, or four machines that are alike may show it."""
        alike = Counter(machine.cores for machine in self._machines)
        return max(alike.values(), default=0) >= 4 or any(machine.base is not None for machine in self._machines)

    def most_that_may_stay(self) -> float:
        """The usage of the busiest broker without what surely moves: its CPU, if none of it does, and its memory."""
        stays = self._used.copy()
        stays[:, 1:3] = 0.0
        return float((stays / self._capacity).max(initial=0.0))

    def even_usage(self, more: Mapping[float, int] | None = None) -> float | None:
        """The usage of every broker if CPU follows messages and is divided at will; None if a limit is unknown.

        With `more` (or fewer) machines by their cores; None if none is left.
        """
        capacity = self._capacity[:, :3]
        for cores, number in (more or {}).items():
            like = next(row for row, machine in enumerate(self._machines) if machine.cores == cores)
            capacity = np.concatenate((capacity, number * self._capacity[[like], :3])) if number else capacity
        of_all, used = capacity.sum(axis=0), self._used[:, :3].sum(axis=0)
        used[0] -= sum((machine.base or 0.0) * machine.cores for machine in self._machines)  # goes with a machine
        if not np.isfinite(of_all).all() or not (of_all > 0).all():
            return None
        memory = (self._used[:, 3:] / self._capacity[:, 3:]).max(initial=0.0)
        return float(max((used / of_all).max(), memory))

    def even_without(self, host: str) -> float | None:
        """The usage of the other brokers without this one if its work were divided among them at will.

        None where the model leaves that open, a machine has no limit, or no other broker remains.
        """
        others = [row for row, name in enumerate(self.hosts) if name != host]
        if not others or not np.isfinite(self._capacity[:, :3]).all() or not self._machines[0].base:
            return None
        carried = self._at_both_ends[0][self.owner == self.hosts.index(host)].sum(axis=0)
        used = self._used[others].sum(axis=0) + carried
        return float((used[:3] / self._capacity[others].sum(axis=0)[:3]).max())
