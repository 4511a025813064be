"""A cluster of plain data that misbehaves on request, a clock that only moves when slept on, and small plans."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count, pairwise

from pulsar_advisor.execution.clock import Clock
from pulsar_advisor.execution.cluster.cluster_port import Override, Reply, Split, Unload
from pulsar_advisor.model.cluster.bundle_range import contains, format_range, parse_range, topic_hash
from pulsar_advisor.model.cluster.cluster_state import IsolationPolicy, LoadManagerKind
from pulsar_advisor.model.errors import ClusterUnreachable
from pulsar_advisor.model.plans.plan import (
    BrokerForecast,
    Expectation,
    Forecast,
    Identity,
    Plan,
    PlanDecision,
    PlanInputs,
    Prediction,
    Step,
    StepPrediction,
)

B1, B2, B3 = "10.0.0.1:8080", "10.0.0.2:8080", "10.0.0.3:8080"
NAMESPACE = "shop/orders"
LOWER, UPPER = "0x00000000_0x80000000", "0x80000000_0xffffffff"
LOWER_BUNDLE, UPPER_BUNDLE = f"{NAMESPACE}/{LOWER}", f"{NAMESPACE}/{UPPER}"
BOUNDARIES = ("0x00000000", "0x80000000", "0xffffffff")
SNAPSHOT = "20261121T083000Z"
START_MS = int(datetime(2026, 11, 21, 8, 40, tzinfo=UTC).timestamp() * 1000)


class Killed(BaseException):
    """The process died here."""


class FakeTime:
    """Milliseconds that pass only while somebody sleeps, and a wall clock that somebody may set."""

    def __init__(self) -> None:
        self.ms = START_MS
        self.set_ahead_s = 0.0

    def now_ms(self) -> int:
        return self.ms + int(self.set_ahead_s * 1000)

    def pass_s(self, seconds: float) -> None:
        assert seconds >= 0, f"no sleep takes {seconds} s; to set the clock back, change ms"
        self.ms += max(round(seconds * 1000), seconds > 0)  # some time passes even in the shortest sleep

    @property
    def clock(self) -> Clock:
        return Clock(self.now_ms, lambda: self.ms / 1000, self.pass_s)


@dataclass
class FakeCluster:
    """Three brokers, two bundles. Bundles go where unloads say unless `lands_on` says otherwise."""

    time: FakeTime
    name: str = "live"
    manager: LoadManagerKind = "modular"
    brokers: set[str] = field(default_factory=lambda: {B1, B2, B3})
    bounds: dict[str, list[int]] = field(default_factory=lambda: {NAMESPACE: [0, 0x80000000, 0xFFFFFFFF]})
    owners: dict[str, str] = field(default_factory=lambda: {f"{NAMESPACE}/{LOWER}": B1, f"{NAMESPACE}/{UPPER}": B1})
    all_topics: list[str] = field(
        default_factory=lambda: [f"persistent://{NAMESPACE}/{name}" for name in ("a", "b", "c", "d", "e", "f")]
    )
    policies: tuple[IsolationPolicy, ...] = ()
    releases: dict[str, str] = field(default_factory=dict)
    """Those of brokers that don't run 4.0.8."""
    leads: str | None = None
    """The leader, if there is one."""
    peers: frozenset[str] = frozenset()
    lands_on: Callable[[Unload], str | None] = lambda unload: unload.destination
    """Where an unload brings a bundle; None: back to where it was."""
    clients_reconnect: bool = True
    """Without clients an unloaded bundle stays without an owner until somebody looks it up."""
    effect_after_s: float = 0.0
    """How long a broker is at work on a call before it answers; it goes on if the caller dies meanwhile."""
    answers_first: bool = False
    """Whether a broker answers before the effect, as Modular ones do: the new owner is known a moment later."""
    replies: list[Reply] = field(default_factory=list)
    """Answers to give instead of 204, in order; the call has no effect if `fails` is set too."""
    fails: bool = False
    writes: list[Unload | Split] = field(default_factory=list)
    """Calls that arrived."""
    effects: list[str] = field(default_factory=list)
    """Bundles that really were unloaded or split, in order."""
    lookups: list[str] = field(default_factory=list)
    on_event: Callable[[str], None] = lambda _what: None
    """Called before and after each effect: a place to die."""
    overrides: dict[str, str] = field(default_factory=dict)
    """Dynamic settings."""
    rejects_overrides: bool = False
    own_settings: dict[str, str] = field(default_factory=dict)
    """What the brokers' files say of dynamic settings; "true" if nothing."""
    misses_deletions: set[str] = field(default_factory=set)
    """Brokers that keep the value of a setting in memory when its override is deleted (apache/pulsar#22673)."""
    unreadable: bool = False
    migration: str | None = None
    """The phase of a migration of the metadata store that is under way."""
    usage: dict[str, float] = field(default_factory=dict)
    statistics_lag_s: float = 0.0
    """How long a new owner reports no topics of a bundle."""
    lock: threading.RLock = field(default_factory=threading.RLock)
    """Held while an effect takes place, for whoever reads from another thread."""
    _in_memory: dict[tuple[str, str], str] = field(default_factory=dict)
    """Values that a broker has been told of, by broker and setting."""
    _moved_at_ms: dict[str, int] = field(default_factory=dict)
    _later: list[tuple[int, Callable[[], None]]] = field(default_factory=list)
    _wished: dict[str, str] = field(default_factory=dict)

    def whenever(self, moment: str, happens: Callable[[], object]) -> None:
        """Something happens at this moment of every call."""

        def happen(what: str) -> None:
            if what == moment:
                happens()

        self.on_event = happen

    def once(self, moment: str, happens: Callable[[], object]) -> None:
        """Something happens at this moment of the next call."""

        def happen() -> None:
            self.on_event = lambda _what: None
            happens()

        self.whenever(moment, happen)

    def mistaken_once(self, method: str, answer: Callable[[], object], after: int = 0) -> None:
        """One answer of this method is wrong, after this many right ones."""
        right, calls = getattr(self, method), count()

        def answers(*arguments: object) -> object:
            if next(calls) < after:
                return right(*arguments)
            setattr(self, method, right)
            return answer()

        setattr(self, method, answers)

    def later(self, after_s: float, happens: Callable[[], None]) -> None:
        """Something is seen by whoever reads after this time."""
        with self.lock:
            self._later.append((self.time.ms + int(after_s * 1000), happens))

    def _now(self) -> None:
        if self.unreadable:
            raise ClusterUnreachable("http://10.0.0.1:8080: connection refused")
        with self.lock:
            now_ms = self.time.ms
            due = [effect for at, effect in self._later if at <= now_ms]
            self._later = [(at, effect) for at, effect in self._later if at > now_ms]
            for effect in due:
                effect()

    def cluster_name(self) -> str:
        self._now()
        return self.name

    def load_manager(self) -> LoadManagerKind:
        return self.manager

    def migrating(self) -> str | None:
        return self.migration

    def unloading_timeout_s(self) -> float:
        return 60.0

    def reports_within_s(self) -> float:
        return 75.0

    def active_brokers(self) -> frozenset[str]:
        self._now()
        return frozenset(self.brokers)

    def owned_bundles(self, broker: str) -> frozenset[str]:
        self._now()
        return frozenset(bundle for bundle, owner in self.owners.items() if owner == broker)

    def boundaries(self, namespace: str) -> tuple[str, ...]:
        self._now()
        return tuple(f"0x{bound:08x}" for bound in self.bounds.get(namespace, ()))

    def loaded_topics(self, broker: str, namespace: str, bundle: str) -> tuple[str, ...]:
        name = f"{namespace}/{bundle}"
        reported = self.time.ms >= self._moved_at_ms.get(name, 0) + self.statistics_lag_s * 1000
        return self.topics(namespace, bundle) if self.owners.get(name) == broker and reported else ()

    def reported_bundles(self, broker: str) -> frozenset[str]:
        parts = (name.rpartition("/") for name in self.owned_bundles(broker))
        return frozenset(
            f"{namespace}/{text}" for namespace, _, text in parts if self.loaded_topics(broker, namespace, text)
        )

    def may_have_topics(self, namespace: str, bundle: str) -> bool:
        return bool(self.topics(namespace, bundle))

    def topics(self, namespace: str, bundle: str) -> tuple[str, ...]:
        bounds = parse_range(bundle)
        mine = (topic for topic in self.all_topics if topic.startswith(f"persistent://{namespace}/"))
        return tuple(topic for topic in mine if contains(*bounds, topic_hash(topic)))

    def leader(self) -> str | None:
        return self.leads

    def release(self, broker: str) -> str:
        return self.releases.get(broker, "4.0.8")

    def isolation_policies(self) -> tuple[IsolationPolicy, ...]:
        return self.policies

    def anti_affinity_peers(self, namespace: str) -> frozenset[str]:
        return self.peers

    def usage_ratio(self, broker: str) -> float | None:
        return self.usage.get(broker)

    def override(self, setting: str) -> str | None:
        self._now()
        return self.overrides.get(setting)

    def effective(self, setting: str) -> dict[str, str]:
        self._now()
        return {broker: self._effective(broker, setting) for broker in self.brokers}

    def _effective(self, broker: str, setting: str) -> str:
        value = self.overrides.get(setting)
        if value is None and broker in self.misses_deletions:
            value = self._in_memory.get((broker, setting))
        if value is None:
            value = self.own_settings.get(setting, "true")
        return str(value.lower() == "true").lower()

    def send(self, write: Unload | Split | Override) -> Reply:
        if isinstance(write, Override):
            return self._override(write)
        self.on_event("before the call")
        self.writes.append(write)
        reply = self.replies.pop(0) if self.replies else Reply(204, "")
        if reply.status == 204 or not self.fails:
            effect = (lambda: self._unload(write)) if isinstance(write, Unload) else (lambda: self._split(write))
            self.later(self.effect_after_s, effect)
        self.on_event("the broker is at work")
        if not self.answers_first:
            self.time.pass_s(self.effect_after_s)
        self._now()
        self.on_event("after the call")
        return reply

    def _override(self, write: Override) -> Reply:
        if self.rejects_overrides:
            return Reply(401, "not a super-user")
        self.overrides.pop(write.setting, None)
        if write.value is not None:
            self.overrides[write.setting] = write.value
            self._in_memory |= {(broker, write.setting): write.value for broker in self.brokers}
        return Reply(200, "")

    def look_up(self, topic: str) -> Reply:
        self.lookups.append(topic)
        for bundle, wish in list(self._wished.items()):
            namespace, _, text = bundle.rpartition("/")
            if topic in self.topics(namespace, text):
                self.owners[bundle] = self._wished.pop(bundle, wish)
        return Reply(200, "")

    def _unload(self, unload: Unload) -> None:
        bundle = f"{unload.namespace}/{unload.bundle}"
        lands_on = self.lands_on(unload) or self.owners[bundle]
        self.effects.append(bundle)
        self._moved_at_ms[bundle] = self.time.ms
        if self.clients_reconnect:
            self.owners[bundle] = lands_on
        else:
            del self.owners[bundle]
            self._wished[bundle] = lands_on

    def _split(self, split: Split) -> None:
        bundle = f"{split.namespace}/{split.bundle}"
        lower, upper = parse_range(split.bundle)
        owner = self.owners.pop(bundle)
        self.effects.append(bundle)
        self.bounds[split.namespace] = sorted({*self.bounds[split.namespace], *split.positions})
        cuts = [lower, *sorted(split.positions), upper]
        for pair in pairwise(cuts):
            self.owners[f"{split.namespace}/{format_range(*pair)}"] = owner


def unload_step(
    number: int = 1, bundle: str = LOWER, source: str = B1, destination: str | None = B2, **changes: object
) -> Step:
    return Step(
        id=f"step-{number:03d}",
        after=(),
        action="unload",
        namespace=NAMESPACE,
        bundle=bundle,
        source=source,
        destination=destination,
        algorithm=None,
        boundaries=(),
        children=(),
        reason="made by hand",
        executable=True,
        not_executable_because=None,
        confidence="high",
        expect=Expectation(
            owner=source, boundaries=BOUNDARIES, topics=3, msg_rate_per_s=100.0, throughput_bytes_per_s=1e5
        ),
        predicted=StepPrediction(brokers={B1: 0.5, B2: 0.5}),
    ).model_copy(update=changes)


def split_step(number: int = 2, *, at: tuple[str, ...] = ("0xbfffffff",), **changes: object) -> Step:
    cuts = [0x80000000, *(int(position, 16) for position in at), 0xFFFFFFFF]
    step = unload_step(number, UPPER, destination=None).model_copy(
        update={
            "action": "split",
            "algorithm": "range_equally_divide",
            "boundaries": at,
            "children": tuple(format_range(*pair) for pair in pairwise(cuts)),
        }
    )
    return step.model_copy(update=changes)


BASKETS = "shop/baskets"
MOVE, CUT = unload_step(1), split_step(2)


def wide_plan() -> Plan:
    """Three unloads and a split in two namespaces with bundles of the same ranges; the smallest unload is third."""
    orders = unload_step(1), unload_step(2, UPPER, B1, B3)
    fewer = orders[0].expect.model_copy(update={"owner": B2, "topics": 1})
    basket = unload_step(3, LOWER, B2, B3, namespace=BASKETS, expect=fewer)
    return make_plan((*orders, basket, split_step(4, namespace=BASKETS)))


def widen(cluster: FakeCluster) -> FakeCluster:
    """The cluster with what `wide_plan` is about."""
    cluster.bounds[BASKETS] = list(cluster.bounds[NAMESPACE])
    cluster.owners |= {f"{BASKETS}/{LOWER}": B2, f"{BASKETS}/{UPPER}": B1}
    cluster.all_topics += [topic.replace(NAMESPACE, BASKETS) for topic in cluster.all_topics]
    return cluster


def forecast(usage: dict[str, float | None]) -> Forecast:
    known = [value for value in usage.values() if value is not None]
    return Forecast(
        brokers={
            broker: BrokerForecast(usage_ratio=ratio, msg_rate_per_s=0.0, throughput_bytes_per_s=0.0, bundles=1)
            for broker, ratio in usage.items()
        },
        maximum_ratio=max(known) if known else None,
        mean_ratio=None,
        standard_deviation_ratio=None,
    )


def make_plan(steps: Iterable[Step], **changes: object) -> Plan:
    return Plan(
        schema_name=Plan.SCHEMA,
        cluster="demo",
        identity=Identity(cluster_name="live", broker_ids=(B1, B2, B3)),
        snapshot=SNAPSHOT,
        inputs=PlanInputs(manifest_sha256="00", validation_sha256="00"),
        pulsar_version="4.0.8",
        load_manager="modular",
        view="fresh",
        shedder="ThresholdShedder",
        placement="LeastLongTermMessageRate",
        settings={},
        limits={},
        seed=0,
        memory={},
        steps=tuple(steps),
        predicted=Prediction(
            model="proportional",
            before=forecast({B1: 0.8, B2: 0.2, B3: 0.3}),
            after=forecast({B1: 0.5, B2: 0.5, B3: 0.3}),
        ),
        decision=PlanDecision(acts_in_cycle=1, why_nothing=None, would_pulsar_act="would act"),
    ).model_copy(update=changes)
