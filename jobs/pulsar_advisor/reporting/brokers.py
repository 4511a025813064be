"""The brokers before and after a plan, and which bundles and topics make each of them hot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from pulsar_advisor.model.cluster.cluster_state import (
    NO_ROW,
    RESOURCE_NAMES,
    RESOURCES,
    ClusterState,
    Floats,
    rate_per_s,
    throughput_bytes_per_s,
)
from pulsar_advisor.model.load.resource_usage import busiest_first, percent
from pulsar_advisor.model.plans.plan import BrokerForecast, Forecast, Plan, PlannedSetting
from pulsar_advisor.planning.plans.consent import OVERLOADED_KEY
from pulsar_advisor.planning.usage.forecast import finite

SHARES_SHOWN: Final = 10

_ABOVE_MEAN_KEY: Final = "loadBalancerBrokerThresholdShedderPercentage"


@dataclass(frozen=True)
class BrokerRow:
    """One broker. Usage is the weighted maximum, 0..1; `resource_percent` is each resource unweighted, 0..100."""

    id: str
    before_ratio: float | None
    after_ratio: float | None
    after_range: tuple[float, float] | None
    """The lowest and the highest expected usage; None if the model has no range, or it is a single value."""
    bundles_before: int
    bundles_after: int
    msg_rate_per_s: float | None
    throughput_bytes_per_s: float | None
    resource_percent: Mapping[str, float | None]
    deciding_resource: str | None
    """The resource whose weighted share is the broker's usage; None if that is zero, or a plan doesn't say."""
    leader: bool
    available: bool
    complete: bool

    @property
    def marks(self) -> tuple[str, ...]:
        """What sets the broker apart, in words."""
        marks = {"leader": self.leader, "not registered": not self.available, "figures incomplete": not self.complete}
        return tuple(mark for mark, holds in marks.items() if holds)

    @property
    def counts(self) -> bool:
        """Whether the broker counts in the spread of usage."""
        return self.available and self.complete

    @property
    def touched(self) -> bool:
        """Whether the plan changes this broker."""
        return (self.before_ratio, self.bundles_before) != (self.after_ratio, self.bundles_after)


@dataclass(frozen=True)
class Spread:
    """The spread of usage (ratio) over all brokers; `standard_deviation` is the plan's own figure."""

    minimum: float | None
    median: float | None
    ninetieth_percentile: float | None
    maximum: float | None
    mean: float | None
    standard_deviation: float | None


@dataclass(frozen=True)
class Threshold:
    """A usage (ratio) that triggers an action, and the action."""

    label: str
    ratio: float


@dataclass(frozen=True)
class BrokerTable:
    """The brokers, sorted by usage before; `total` is their number before any cut."""

    rows: tuple[BrokerRow, ...]
    total: int
    before: Spread
    after: Spread
    thresholds: tuple[Threshold, ...]
    model: str
    """Name of the prediction model."""
    predicted: str
    """The moment that the prediction is for, in words."""

    @property
    def charted(self) -> list[BrokerRow]:
        """The rows of which usage is known, before and after."""
        return [row for row in self.rows if row.before_ratio is not None and row.after_ratio is not None]

    @property
    def busiest(self) -> tuple[BrokerRow, ...]:
        """The row of the busiest broker before, and of the busiest after; none if no usage is known."""
        if not (known := self.charted):
            return ()
        return max(known, key=lambda row: row.before_ratio or 0.0), max(known, key=lambda row: row.after_ratio or 0.0)


@dataclass(frozen=True)
class Share:
    """What a bundle or topic contributes to its broker. A figure that is no number is None; so is a share (ratio) of a
    broker that reports nothing."""

    name: str
    bundle: str
    msg_rate_per_s: float | None
    throughput_bytes_per_s: float | None
    msg_rate_share: float | None
    throughput_share: float | None
    step: str | None
    """The step of the plan that moves or splits it."""


_SHOWN_RANGE_RATIO: Final = 0.0005
"""Narrower ranges have the same two ends in tables."""


def ranked_by(deciding: str | None) -> str:
    """What the deciding resource of a broker depends on: for CPU the message rate, for bandwidth the throughput;
    otherwise the larger share of the two counts."""
    follows = {"cpu": "message rate", "bandwidthIn": "throughput", "bandwidthOut": "throughput"}
    return follows.get(deciding or "", "message rate or throughput")


@dataclass(frozen=True)
class HotBroker:
    """A broker with its largest bundles and loaded topics, ranked by their share of what its usage depends on."""

    broker: BrokerRow
    bundles: tuple[Share, ...]
    bundles_total: int
    topics: tuple[Share, ...]
    topics_total: int

    @property
    def decided_by(self) -> str:
        """The resource that decides its usage, in words; empty if unknown."""
        resource = self.broker.deciding_resource
        return RESOURCE_NAMES[RESOURCES.index(resource)] if resource in RESOURCES else ""

    @property
    def ranked_by(self) -> str:
        """What the shares are of."""
        return ranked_by(self.broker.deciding_resource)


def thresholds_of(plan: Plan, settings: Mapping[str, PlannedSetting]) -> tuple[Threshold, ...]:
    """The limits a broker must not exceed: overload, and for ThresholdShedder the mean usage plus its threshold."""
    lines = []
    overload = percentage_setting(settings, OVERLOADED_KEY)
    if overload is not None:
        lines.append(Threshold("overloaded", overload / 100))
    above_mean = percentage_setting(settings, _ABOVE_MEAN_KEY)
    mean = plan.predicted.before.mean_ratio
    if plan.shedder == "ThresholdShedder" and above_mean is not None and mean is not None:
        lines.append(Threshold(f"mean + {above_mean:g}%", mean + above_mean / 100))
    return tuple(lines)


def percentage_setting(settings: Mapping[str, PlannedSetting], key: str) -> float | None:
    """A setting's number (0..100), None if it is missing or isn't a number."""
    try:
        return float(settings[key].value)
    except (KeyError, ValueError):
        return None


def broker_rows(state: ClusterState, plan: Plan | None) -> tuple[BrokerRow, ...]:
    """All brokers, hottest first; without a plan usage is unknown, and they are sorted by message rate."""
    percents = percent(state.brokers.usage, state.brokers.limit).astype(np.float64)
    rate, flow = rate_per_s(state.brokers.traffic), throughput_bytes_per_s(state.brokers.traffic)
    rows = []
    for i, broker in enumerate(state.brokers.ids):
        before = plan.predicted.before.brokers.get(broker) if plan else None
        after = plan.predicted.after.brokers.get(broker) if plan else None
        usage = before.usage_ratio if before else None
        rows.append(
            BrokerRow(
                id=broker,
                before_ratio=usage,
                after_ratio=after.usage_ratio if after else None,
                after_range=_range(after),
                bundles_before=before.bundles if before else int(state.brokers.bundles[i]),
                bundles_after=after.bundles if after else int(state.brokers.bundles[i]),
                msg_rate_per_s=finite(rate[i]),
                throughput_bytes_per_s=finite(flow[i]),
                resource_percent={name: finite(percents[i, j]) for j, name in enumerate(RESOURCES)},
                deciding_resource=before.resource if before and usage else None,
                leader=i == state.leader,
                available=bool(state.brokers.available[i]),
                complete=bool(state.brokers.complete[i]),
            )
        )
    ratios = np.array([row.before_ratio or 0.0 for row in rows])
    return tuple(rows[i] for i in busiest_first(ratios, rate))


def _range(forecast: BrokerForecast | None) -> tuple[float, float] | None:
    if forecast is None or forecast.lowest_usage_ratio is None or forecast.highest_usage_ratio is None:
        return None
    found = forecast.lowest_usage_ratio, forecast.highest_usage_ratio
    return found if found[1] - found[0] >= _SHOWN_RANGE_RATIO else None


def broker_table(
    rows: tuple[BrokerRow, ...], plan: Plan | None, thresholds: tuple[Threshold, ...], *, is_advised: bool
) -> BrokerTable:
    """The table of the page; as in a plan's own figures, the spread ignores brokers that were set aside."""
    counted = [row for row in rows if row.counts]
    return BrokerTable(
        rows=rows,
        total=len(rows),
        before=_spread(plan.predicted.before if plan else None, [row.before_ratio for row in counted]),
        after=_spread(plan.predicted.after if plan else None, [row.after_ratio for row in counted]),
        thresholds=thresholds,
        model=plan.predicted.model if plan else "",
        predicted=_predicted(plan, is_advised=is_advised),
    )


def _predicted(plan: Plan | None, *, is_advised: bool) -> str:
    if plan is None or not plan.executable_steps:
        return "if nothing is done"
    return "after the plan" if is_advised else f"after the plan of {plan.title}, which is not advised"


def hot_brokers(state: ClusterState, rows: tuple[BrokerRow, ...], plan: Plan | None) -> tuple[HotBroker, ...]:
    """The load that makes each broker hot, in row order."""
    index_of = {broker: i for i, broker in enumerate(state.brokers.ids)}
    steps = {step.bundle_name: step.id for step in reversed(plan.executable_steps)} if plan else {}
    owner_of_topic = np.append(state.bundles.owner, NO_ROW)[state.topics.bundle]  # NO_ROW, -1, indexes the appended row
    hot = []
    bundles_of = _rows_by_owner(state.bundles.owner, len(state.brokers))
    topics_of = _rows_by_owner(np.where(state.topics.loaded, owner_of_topic, NO_ROW), len(state.brokers))
    for row in rows:
        broker = index_of[row.id]
        whole = state.brokers.traffic[broker]
        bundles, topics = bundles_of[broker], topics_of[broker]
        largest_bundles = _largest(bundles, state.bundles.traffic, whole, row.deciding_resource)
        largest_topics = _largest(topics, state.topics.traffic, whole, row.deciding_resource)
        hot.append(
            HotBroker(
                broker=row,
                bundles=tuple(
                    _share(name := state.bundle_name(i), name, state.bundles.traffic[i], whole, steps)
                    for i in largest_bundles
                ),
                bundles_total=len(bundles),
                topics=tuple(
                    _share(
                        str(state.topics.names[i]),
                        state.bundle_name(int(state.topics.bundle[i])),
                        state.topics.traffic[i],
                        whole,
                        steps,
                    )
                    for i in largest_topics
                ),
                topics_total=len(topics),
            )
        )
    return tuple(hot)


def _rows_by_owner(owner: npt.NDArray[np.integer], brokers: int) -> list[npt.NDArray[np.intp]]:
    """The rows that each broker owns, ascending; in one pass, as there may be millions of topics."""
    order = np.argsort(owner, kind="stable")
    return np.split(order, np.searchsorted(owner[order], np.arange(brokers + 1)))[1:-1]


def _spread(forecast: Forecast | None, usage: Iterable[float | None]) -> Spread:
    ratios = [ratio for ratio in usage if ratio is not None]
    if forecast is None or not ratios:
        return Spread(None, None, None, None, None, None)
    low, middle, high = (float(value) for value in np.percentile(ratios, (0, 50, 90)))
    return Spread(low, middle, high, forecast.maximum_ratio, forecast.mean_ratio, forecast.standard_deviation_ratio)


def _largest(rows: npt.NDArray[np.intp], traffic: Floats, whole: Floats, deciding: str | None) -> list[int]:
    """The rows with the largest share of what the deciding resource depends on, largest first, without idle ones."""
    traffic = np.nan_to_num(traffic[rows], posinf=0.0)  # NaN makes nothing hot
    rate, flow = rate_per_s(traffic), throughput_bytes_per_s(traffic)
    whole_rate, whole_flow = float(rate_per_s(whole)), float(throughput_bytes_per_s(whole))
    rates, flows = rate / whole_rate if whole_rate > 0 else rate, flow / whole_flow if whole_flow > 0 else flow
    share = {"message rate": rates, "throughput": flows}.get(ranked_by(deciding), np.maximum(rates, flows))
    order = np.argsort(-share, kind="stable")[:SHARES_SHOWN]
    return [int(rows[i]) for i in order if share[i] > 0]


def _share(name: str, bundle: str, figures: Floats, whole: Floats, steps: Mapping[str, str]) -> Share:
    rate, flow = float(rate_per_s(figures)), float(throughput_bytes_per_s(figures))
    whole_rate, whole_flow = float(rate_per_s(whole)), float(throughput_bytes_per_s(whole))
    return Share(
        name=name,
        bundle=bundle,
        msg_rate_per_s=finite(rate),
        throughput_bytes_per_s=finite(flow),
        msg_rate_share=finite(rate / whole_rate) if whole_rate > 0 else None,
        throughput_share=finite(flow / whole_flow) if whole_flow > 0 else None,
        step=steps.get(bundle),
    )
