"""A cluster whose brokers and leader act one after the other, one comparison after the other, as Pulsar's do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.load.averages import LONG_TERM_MAX_SAMPLES, SHORT_TERM_MAX_SAMPLES
from pulsar_advisor.simulation.intervals import Intervals
from pulsar_advisor.simulation.reports import Reports
from states import BrokerRow, BundleRow, cluster_state

RESOLVED = resolve_settings("4.0.8")
SETTINGS = RESOLVED.values
INTERVALS = Intervals.of(SETTINGS)
MINUTE_MS = 60_000
COMPARISON_MS = 5_000
LIMIT = 103.0
"""So that no whole number of messages is exactly the ten points at which a broker publishes: Pulsar's are binary32."""


@dataclass
class Average:
    """`TimeAverageMessageData` of one figure."""

    value: float
    samples: int
    most: int

    def add(self, sample: float) -> None:
        self.samples = min(self.samples + 1, self.most)
        self.value = ((self.samples - 1) * self.value + sample) / self.samples


@dataclass
class Broker:
    """A broker as Pulsar runs it: its own measurements, and its last publication."""

    row: int
    sampled_ms: int
    passed_ms: int
    usage: float
    rate: float
    bundles: dict[int, float]
    history: list[tuple[int, float]]
    """(from when on, usage): what its host really did."""
    published: dict[str, float] = field(default_factory=dict)
    published_bundles: dict[int, float] = field(default_factory=dict)
    published_ms: int = 0

    def used(self, since_ms: int, until_ms: int) -> float:
        """Mean usage of its host between two moments."""
        ends = [start for start, _ in self.history[1:]] + [until_ms]
        parts = zip(self.history, ends, strict=True)
        total = sum(level * max(0, min(end, until_ms) - max(start, since_ms)) for (start, level), end in parts)
        return total / (until_ms - since_ms)

    def figures(self) -> dict[str, float]:
        return {"usage": self.usage, "rate": self.rate, "bundles": float(len(self.bundles))}

    def has_changed(self, now_ms: int) -> bool:
        before, now = self.published, self.figures()
        points = 100 * abs(before["usage"] - now["usage"]) / LIMIT
        percent = (
            100 * abs(before[name] - now[name]) / before[name] if before[name] else float("inf")
            for name in ("rate", "bundles")
            if before[name] != now[name]
        )
        return max(points, *percent, 0.0) > 10 or now_ms - self.published_ms > INTERVALS.report_at_latest

    def publish(self, now_ms: int) -> None:
        self.published, self.published_bundles, self.published_ms = self.figures(), dict(self.bundles), now_ms


@dataclass
class BruteCluster:
    """All brokers and their leader. A broker uses a point of CPU for each message a second that it has at first."""

    rates: list[float]
    """Of each bundle, messages/s in as well as bytes/s."""
    needs: list[float]
    """Of each bundle, the points of CPU that it takes along."""
    own: list[float]
    """Of each broker, the points of CPU that no bundle takes along."""
    owner: dict[int, int]
    brokers: list[Broker]
    now_ms: int
    written_ms: int
    short_term: list[Average]
    long_term: list[Average]
    factor: float = 1.0
    claimed_twice: set[int] = field(default_factory=set)
    """Bundles that were in two reports when a sample was taken: each adds one."""

    @classmethod
    def of(cls, state: ClusterState, reports: Reports, base: Sequence[float]) -> BruteCluster:
        """The same cluster, with the moments at which `reports` has its brokers measure.

        Of what a broker uses, the part above its `base` is that of its bundles.
        """
        rates, owner = state.bundles.traffic[:, 0].tolist(), dict(enumerate(state.bundles.owner.tolist()))
        now_ms, brokers, needs, own = state.captured_at_ms, [], list(rates), []
        for row in range(len(state.brokers)):
            served = {bundle: rates[bundle] for bundle, at in owner.items() if at == row}
            total = sum(served.values())
            for bundle, rate in served.items():
                needs[bundle] = rate * (total - min(base[row], total)) / total
            own.append(total - sum(needs[bundle] for bundle in served))
            broker = Broker(
                row,
                int(reports.sampled_at_ms[row]),
                int(reports.passed_at_ms[row]),
                total,
                total,
                served,
                [(now_ms - 10 * MINUTE_MS, total)],
            )
            broker.publish(now_ms)
            brokers.append(broker)
        averages = [
            [Average(rate, 1, most) for rate in rates] for most in (SHORT_TERM_MAX_SAMPLES, LONG_TERM_MAX_SAMPLES)
        ]
        return cls(rates, needs, own, owner, brokers, now_ms, now_ms, *averages)

    def change(self, moves: Mapping[int, int], factor: float = 1.0) -> None:
        """Move bundles to brokers, and let all bundles have their first load times a factor."""
        self.owner |= moves
        self.factor = factor
        for broker in self.brokers:
            used = sum(factor * self.needs[bundle] for bundle in self._served(broker))
            broker.history.append((self.now_ms, self.own[broker.row] + used))

    def advance(self, until_ms: int) -> None:
        """Go on, with everything as it is, until a moment."""
        for now_ms in range(self.now_ms + COMPARISON_MS, until_ms + 1, COMPARISON_MS):
            publishing = []
            for broker in self.brokers:
                if now_ms - broker.sampled_ms >= MINUTE_MS:
                    broker.usage = broker.used(broker.sampled_ms, broker.sampled_ms + MINUTE_MS)
                    broker.sampled_ms += MINUTE_MS
                if now_ms - broker.passed_ms >= MINUTE_MS:
                    broker.passed_ms += MINUTE_MS
                    broker.bundles = self._served(broker)
                    broker.rate = sum(broker.bundles.values())
                if broker.has_changed(now_ms):
                    publishing.append(broker)
            for broker in publishing:
                broker.publish(now_ms)
            writes = now_ms - self.written_ms >= INTERVALS.bundle_data
            self.written_ms = now_ms if writes else self.written_ms
            for _ in range(len(publishing) + writes):
                self._take_samples()
        self.now_ms = until_ms

    def _served(self, broker: Broker) -> dict[int, float]:
        return {bundle: self.factor * self.rates[bundle] for bundle, row in self.owner.items() if row == broker.row}

    def _take_samples(self) -> None:
        claims = Counter(bundle for broker in self.brokers for bundle in broker.published_bundles)
        self.claimed_twice |= {bundle for bundle, number in claims.items() if number > 1}
        for broker in self.brokers:
            for bundle, rate in broker.published_bundles.items():
                self.short_term[bundle].add(rate)
                self.long_term[bundle].add(rate)


def own_namespaces(number: int, rates: list[int], owners: list[int]) -> ClusterState:
    """A cluster of brokers a, b, … whose bundles, each of a namespace of its own, have these rates and owners."""
    ids = [f"{'abcd'[row]}:8080" for row in range(number)]
    totals = [float(sum(r for r, o in zip(rates, owners, strict=True) if o == row)) for row in range(number)]
    return cluster_state(
        [
            BrokerRow(name, cpu=(total, LIMIT), traffic=(total, 0.0, total, 0.0), topics=owners.count(row))
            for row, (name, total) in enumerate(zip(ids, totals, strict=True))
        ],
        [
            BundleRow(f"t/n{bundle}", "0x00000000_0xffffffff", ids[owner], (float(rate), 0.0, float(rate), 0.0), 1)
            for bundle, (rate, owner) in enumerate(zip(rates, owners, strict=True))
        ],
    )
