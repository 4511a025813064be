"""What a rule looks at, and what it reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial, wraps
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from pulsar_advisor.model.cluster.cluster_state import (
    Booleans,
    ClusterState,
    Floats,
    Indices,
    LoadManagerKind,
    rate_per_s,
    throughput_bytes_per_s,
)
from pulsar_advisor.model.configuration.kinds import EVERY_MANAGER
from pulsar_advisor.model.configuration.resolved_settings import ResolvedSettings, setting_value
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings, text_of
from pulsar_advisor.model.load.resource_usage import percent, weighted_maximum, weighted_maximum_with_heap
from pulsar_advisor.model.text.some_of import count, some_of
from pulsar_advisor.planning.proposals.configured import Configured, configured_of

MIB: Final = 1 << 20


Severity = Literal["warning", "info"]
"""`warning` if balance suffers or will; `info` if a setting is merely without effect."""


@dataclass(frozen=True, eq=False)
class Case:
    """One cluster and its settings. Figures and lists of brokers are about available ones with figures."""

    state: ClusterState
    resolved: ResolvedSettings
    runtime: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Broker -> its runtime configuration; without brokers that could not be read."""
    dynamic: Mapping[str, str] = field(default_factory=dict)
    """The dynamic values in the metadata store."""

    @property
    def settings(self) -> LoadBalancerSettings:
        """The settings in force."""
        return self.resolved.values

    @cached_property
    def own(self) -> Configured:
        """The cluster's own strategies."""
        return configured_of(self.state.load_manager, self.settings)

    @cached_property
    def rows(self) -> Indices:
        """Rows of the available brokers that reported numbers: lint works before a validation excludes the others."""
        brokers = self.state.brokers
        with np.errstate(over="ignore", invalid="ignore"):
            figures = (self._every_usage, rate_per_s(brokers.traffic), throughput_bytes_per_s(brokers.traffic))
        return np.flatnonzero(brokers.reporting & np.isfinite(figures).all(axis=0)).astype(np.int32)

    @cached_property
    def usage(self) -> Floats:
        """Usage of each of `rows`, ratio: the one figure that the manager's strategies compare."""
        return self._every_usage[self.rows]

    @cached_property
    def _every_usage(self) -> Floats:
        """Likewise of every broker."""
        weighted = weighted_maximum_with_heap if self.state.load_manager == "extensible" else weighted_maximum
        return weighted(self.state.brokers.usage, self.state.brokers.limit, self.settings)

    @cached_property
    def percent(self) -> npt.NDArray[np.float32]:
        """(rows, 5), order of RESOURCES: the share of its limit that each of `rows` uses."""
        brokers = self.state.brokers
        return percent(brokers.usage[self.rows], brokers.limit[self.rows])

    @cached_property
    def rate(self) -> Floats:
        """Messages/s in and out of each of `rows`."""
        return rate_per_s(self.state.brokers.traffic[self.rows])

    @cached_property
    def throughput(self) -> Floats:
        """Bytes/s in and out of each of `rows`."""
        return throughput_bytes_per_s(self.state.brokers.traffic[self.rows])

    @cached_property
    def bundle_throughput(self) -> Floats:
        """Bytes/s of each bundle; 0 where unknown."""
        total = throughput_bytes_per_s(self.state.bundles.traffic)
        return np.where(self.state.bundles.reported & np.isfinite(total), total, 0.0)

    def share_of(self, bundles: Booleans) -> float:
        """Share of the cluster's throughput in these bundles, 0..1."""
        total = float(self.bundle_throughput.sum())
        return float(self.bundle_throughput[bundles].sum()) / total if total > 0 else 0.0

    def broker(self, position: int) -> str:
        """Id of the broker at a position in `rows`."""
        return self.state.brokers.ids[int(self.rows[position])]

    def share_of_brokers(self, positions: npt.NDArray[np.integer]) -> str:
        """`1 of 3 brokers (broker-1:8080)`: those at these positions in `rows`."""
        named = some_of([self.broker(position) for position in positions.tolist()])
        return f"{len(positions)} of {count(len(self.rows), 'broker')} ({named})"

    def bundles_of(self, position: int) -> Indices:
        """Rows of the bundles that the broker at a position in `rows` owns and reports."""
        bundles = self.state.bundles
        return np.flatnonzero((bundles.owner == self.rows[position]) & bundles.reported).astype(np.int32)

    def is_set(self, key: str) -> bool:
        """Whether an operator set a key: dynamically, or to another value than the release's default.

        A broker's runtime configuration holds every value, set or not.
        """
        value, default = self.settings.value(key), setting_value(key, self.resolved.release)
        return self.resolved.origins[key] == "dynamic" or text_of(value) != text_of(default)


@dataclass(frozen=True)
class Violation:
    """How a cluster violates a rule."""

    sentence: str
    """With the figures that decide."""
    change: Mapping[str, str] = field(default_factory=dict)
    """Settings that would end it, as for `--set`; empty if no setting does."""


Find = Callable[[Case], Violation | None]


@dataclass(frozen=True, eq=False)
class Rule:
    """One rule."""

    name: str
    title: str
    """What holds in a cluster that keeps it."""
    why: str
    severity: Severity
    source: str
    """Where Pulsar's behaviour, or the advice, comes from."""
    remedy: str
    load_managers: tuple[LoadManagerKind, ...]
    find: Find


def _rule(
    *,
    severity: Severity,
    source: str,
    remedy: str,
    load_managers: tuple[LoadManagerKind, ...] = EVERY_MANAGER,
    shedder: str | None = None,
    brokers: int = 0,
) -> Callable[[Find], Rule]:
    """Makes a function into a rule of its name; the docstring gives the title (first line) and why it matters.

    The rule applies to clusters with at least this many `brokers` in `Case.rows`; one about a `shedder` of the Modular
    manager, only to those that shed with it.
    """

    def made(find: Find) -> Rule:
        @wraps(find)
        def asked(case: Case) -> Violation | None:
            is_about = shedder in (None, case.own.shedder) and len(case.rows) >= brokers
            return find(case) if is_about else None

        title, _, why = (find.__doc__ or "").partition("\n")
        return Rule(
            name=find.__name__,
            title=title.strip().removesuffix("."),
            why=" ".join(why.split()),
            severity=severity,
            source=source,
            remedy=remedy,
            load_managers=load_managers if shedder is None else ("modular",),
            find=asked,
        )

    return made


warning: Final = partial(_rule, severity="warning")
info: Final = partial(_rule, severity="info")
"""What rules are decorated with, by their severity."""
