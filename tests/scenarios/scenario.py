"""The scenarios of `clusters/`: each a small cluster as data, with what an expert would accept of the advice about it.

A file describes machines, bundles and settings in the words and units of an operator; `state` makes of it what the
advisor would have read from the brokers.

A file has a `title`, `brokers` (`Machine`), `bundles` (`Load`), and where they matter `settings`, `isolation`,
`anti_affinity` and `earlier` hours. Each entry of `expect` has a command (`ask: relieve a --to 60`), the reason, and
clauses that must (`accept`) or must not (`never`) hold, such as `moves at most 3` or `words say polic` (`facts.py`
lists them). Every verb is asked about the cluster anyway: `properties.py` must hold, and `brute_force.py` finds by
trying everything what is possible. What isn't met yet goes into `expected_failures.yaml`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count, pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
import yaml

from pulsar_advisor.model.cluster.bundle_range import FULL_UPPER_BOUND, contains, format_range, topic_hash
from pulsar_advisor.model.cluster.cluster_state import ClusterState, IsolationPolicy, LoadManagerKind
from pulsar_advisor.model.configuration.class_names import LOAD_MANAGERS
from pulsar_advisor.model.configuration.resolved_settings import ResolvedSettings, resolve_settings
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from states import BrokerRow, BundleRow, cluster_state

FOLDER = Path(__file__).parent / "clusters"
PORT = ":8080"
KBIT = 1000 / 8
"""Bytes."""
MEMORY_MIB = 4096.0
HOUR_MS = 3_600_000


@dataclass(frozen=True)
class Machine:
    """A broker as it was found. CPU and memory are in percent of what it has, network usage follows its bundles."""

    cores: float = 4
    cpu: float = 0.0
    heap: float = 20.0
    direct: float = 10.0
    nic_gbps: float = 10.0
    base: float | None = None
    """The part of its CPU usage that its history shows not to move with messages; None: nothing shows it."""
    fit: bool = True
    """Whether validation accepted its figures."""
    active: bool = True

    @property
    def limit(self) -> float:
        """Percent points of one core."""
        return self.cores * 100

    @property
    def work(self) -> float:
        """Its CPU usage in percent points of one core; a broker without a limit reports them as they are."""
        return self.cpu * self.cores if self.cores > 0 else self.cpu


@dataclass(frozen=True)
class Load:
    """One bundle, or `count` alike. Rates are messages per second, in and out each."""

    broker: str | None = None
    """Its broker; None if nobody owns it."""
    rate: float = 0.0
    count: int = 1
    namespace: str = ""
    """By default each bundle has a namespace of its own."""
    message_bytes: float = 1000.0
    fan_out: float = 1.0
    """Messages out for each one in."""
    producers: int = 1
    consumers: int = 1
    topics: int | tuple[float, ...] = 1
    """How many loaded topics share the load alike, or the share of each."""
    domain: str = "persistent"
    fit: bool = True

    @property
    def shares(self) -> tuple[float, ...]:
        """The share of the load of each topic, 0..1."""
        if isinstance(self.topics, int):
            return (1 / self.topics,) * self.topics if self.topics else ()
        return tuple(share / sum(self.topics) for share in self.topics)

    @property
    def traffic(self) -> tuple[float, float, float, float]:
        """In the order of FIGURES."""
        figures = (self.rate, self.rate * self.fan_out)
        return (*figures, *(figure * self.message_bytes for figure in figures))  # type: ignore[return-value]


@dataclass(frozen=True)
class Bundle:
    """One bundle of the cluster."""

    namespace: str
    lower: int
    upper: int
    load: Load
    topics: tuple[str, ...]
    """Complete names of its topics, which its range contains."""

    @property
    def name(self) -> str:
        """`tenant/namespace/0x..._0x...`."""
        return f"{self.namespace}/{format_range(self.lower, self.upper)}"


@dataclass(frozen=True)
class Earlier:
    """An hour before the next one, or before the snapshot: the load as a share of today's, and CPU in percent."""

    load: float
    cpu: Mapping[str, float]


@dataclass(frozen=True)
class Expectation:
    """What an expert would accept of the answer to one question, and what never; clauses are those of `facts`."""

    ask: str
    why: str
    accept: tuple[str, ...] = ()
    never: tuple[str, ...] = ()


@dataclass(frozen=True)
class Policy:
    """A namespace isolation policy; texts are regular expressions, brokers by host."""

    namespaces: str
    primary: str
    secondary: str = ""
    min_limit: int = 1


@dataclass(frozen=True)
class Scenario:
    """A cluster, and what is expected of the advice about it."""

    name: str
    title: str
    brokers: Mapping[str, Machine]
    loads: tuple[Load, ...]
    expect: tuple[Expectation, ...] = ()
    pulsar: str = "4.0.8"
    load_manager: LoadManagerKind = "modular"
    settings: Mapping[str, str] = field(default_factory=dict)
    isolation: tuple[Policy, ...] = ()
    anti_affinity: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Group -> its namespaces."""
    earlier: tuple[Earlier, ...] = ()
    ask: tuple[str, ...] = ()
    """Questions besides those that every cluster is asked."""

    @classmethod
    def read(cls, path: Path) -> Self:
        """The scenario in a file. Raises `TypeError` for a word that is unknown."""
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        return cls(
            name=path.stem,
            brokers={name: Machine(**machine) for name, machine in document.pop("brokers").items()},
            loads=tuple(Load(**_frozen(load)) for load in document.pop("bundles", [])),
            expect=tuple(Expectation(**_frozen(one)) for one in document.pop("expect", [])),
            settings={key: _text(value) for key, value in document.pop("settings", {}).items()},
            isolation=tuple(Policy(**one) for one in document.pop("isolation", [])),
            earlier=tuple(Earlier(**one) for one in document.pop("earlier", [])),
            **_frozen(document),
        )

    @cached_property
    def bundles(self) -> tuple[Bundle, ...]:
        """Its bundles; those of one namespace divide the ring evenly, in the order of the file."""
        return tuple(self._bundles())

    def _bundles(self) -> Iterator[Bundle]:
        numbers = Counter[str]()
        members: dict[str, list[Load]] = {}
        for load in self.loads:
            for _ in range(load.count):
                numbers[str(load.broker)] += not load.namespace
                namespace = load.namespace or f"t/{load.broker or 'unowned'}-{numbers[str(load.broker)]:02}"
                members.setdefault(namespace, []).append(load)
        for namespace, loads in members.items():
            bounds = [*(number * 2**32 // len(loads) for number in range(len(loads))), FULL_UPPER_BOUND]
            for (lower, upper), load in zip(pairwise(bounds), loads, strict=True):
                names = (f"{load.domain}://{namespace}/topic-{number}" for number in count())
                inside = (name for name in names if contains(lower, upper, topic_hash(name)))
                yield Bundle(namespace, lower, upper, load, tuple(next(inside) for _ in load.shares))

    @cached_property
    def resolved(self) -> ResolvedSettings:
        """The settings of its brokers."""
        return resolve_settings(self.pulsar, self.runtime)

    @property
    def runtime(self) -> dict[str, str]:
        """What each broker's runtime configuration says."""
        manager = f"org.apache.pulsar.broker.loadbalance.impl.{LOAD_MANAGERS[self.load_manager]}"
        if self.load_manager == "extensible":
            manager = "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl"
        return {"loadManagerClassName": manager, **self.settings}

    @property
    def values(self) -> LoadBalancerSettings:
        """Likewise, typed."""
        return self.resolved.values

    @cached_property
    def state(self) -> ClusterState:
        """What the advisor read of it."""
        rows = [self._broker_row(name, machine) for name, machine in self.brokers.items()]
        groups = {namespace: group for group, members in self.anti_affinity.items() for namespace in members}
        state = cluster_state(
            rows,
            [_bundle_row(bundle) for bundle in self.bundles],
            topics=[topic for bundle in self.bundles for topic in bundle.topics],
            load_manager=self.load_manager,
            pulsar_version=self.pulsar,
            isolation_policies=tuple(
                IsolationPolicy(
                    f"policy-{number}", (one.namespaces,), (one.primary,), (one.secondary,), one.min_limit, 80
                )
                for number, one in enumerate(self.isolation, start=1)
            ),
            anti_affinity_groups=groups,
        )
        traffic = {
            topic: share * np.array(bundle.load.traffic)
            for bundle in self.bundles
            for topic, share in zip(bundle.topics, bundle.load.shares, strict=True)
        }
        figures = np.array([traffic[name] for name in state.topics.names]).reshape(-1, 4)
        managers = (self.runtime["loadManagerClassName"],) * len(self.brokers)
        return replace(
            state,
            brokers=replace(state.brokers, load_manager_class_names=managers),
            topics=replace(state.topics, traffic=figures),
        )

    @cached_property
    def history(self) -> tuple[ClusterState, ...]:
        """Its earlier states, oldest first."""
        moments = []
        for number, earlier in enumerate(self.earlier):
            past = replace(
                self,
                brokers={name: replace(one, cpu=earlier.cpu[name]) for name, one in self.brokers.items()},
                loads=tuple(replace(load, rate=load.rate * earlier.load) for load in self.loads),
            ).state
            ago_ms = (len(self.earlier) - number) * HOUR_MS
            reported = replace(past.brokers, report_updated_at_ms=past.brokers.report_updated_at_ms - ago_ms)
            snapshot = f"20261121T{8 - len(self.earlier) + number:02}3000Z"
            moments.append(
                replace(past, captured_at_ms=past.captured_at_ms - ago_ms, snapshot=snapshot, brokers=reported)
            )
        return tuple(moments)

    def _broker_row(self, name: str, machine: Machine) -> BrokerRow:
        own = [bundle.load for bundle in self.bundles if bundle.load.broker == name]
        total = np.array([load.traffic for load in own]).reshape(-1, 4).sum(axis=0)
        network = machine.nic_gbps * 1e6
        return BrokerRow(
            f"{name}{PORT}",
            cpu=(machine.work, machine.limit),
            memory=(machine.heap / 100 * MEMORY_MIB, MEMORY_MIB),
            direct_memory=(machine.direct / 100 * MEMORY_MIB, MEMORY_MIB),
            bandwidth_in=(total[2] / KBIT, network),
            bandwidth_out=(total[3] / KBIT, network),
            traffic=tuple(total.tolist()),
            topics=sum(len(load.shares) for load in own),
            complete=machine.fit,
            available=machine.active,
            version=self.pulsar,
        )


def _bundle_row(bundle: Bundle) -> BundleRow:
    load = bundle.load
    return BundleRow(
        bundle.namespace,
        format_range(bundle.lower, bundle.upper),
        None if load.broker is None else f"{load.broker}{PORT}",
        load.traffic,
        topics=len(load.shares),
        producers=load.producers,
        consumers=load.consumers,
        usable=load.fit,
    )


def _text(value: object) -> str:
    """A setting's value as a broker's configuration spells it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _frozen(document: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in document.items()}


def all_scenarios() -> list[Scenario]:
    """Every scenario, by name."""
    return [Scenario.read(path) for path in sorted(FOLDER.glob("*.yaml"))]
