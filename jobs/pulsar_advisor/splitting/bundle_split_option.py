"""The input of a split algorithm: the bundle's range, its topics, the requested positions, the quotas.

Source: Pulsar `BundleSplitOption` and `FlowOrQpsEquallyDivideBundleSplitOption` (2.11, 3.0).
"""

from __future__ import annotations

from dataclasses import dataclass

from pulsar_advisor.model.cluster.bundle_range import format_range
from pulsar_advisor.model.cluster.cluster_state import Booleans, Floats, Integers
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.errors import DataNotFit


@dataclass(frozen=True, eq=False)
class BundleTopics:
    """All topics of one bundle by name, loaded or not, in listing order."""

    hash: Integers
    loaded: Booleans
    """Whether the owner has statistics of the topic."""
    traffic: Floats
    """(t, 4), order of `FIGURES`; not read if the topic is not loaded."""

    def __len__(self) -> int:
        return len(self.hash)


@dataclass(frozen=True)
class Quotas:
    """The limits up to which `flow_or_qps_equally_divide` fills a child."""

    max_msg_rate: int
    """Messages/s, in and out together (`loadBalancerNamespaceBundleMaxMsgRate`)."""
    max_bandwidth_mbytes: int
    """MiB/s, in and out together (`loadBalancerNamespaceBundleMaxBandwidthMbytes`)."""
    difference_threshold_percent: int
    """How far above a quota the bundle must be (`flowOrQpsDifferenceThresholdPercentage`)."""

    @classmethod
    def from_settings(cls, settings: LoadBalancerSettings) -> Quotas:
        """The quotas in force."""
        return cls(
            max_msg_rate=settings.load_balancer_namespace_bundle_max_msg_rate,
            max_bandwidth_mbytes=settings.load_balancer_namespace_bundle_max_bandwidth_mbytes,
            difference_threshold_percent=settings.flow_or_qps_difference_threshold_percentage,
        )


@dataclass(frozen=True, eq=False)
class BundleSplitOption:
    """A bundle [lower, upper) and what the algorithms need to know about it; None if unknown."""

    lower: int
    upper: int
    topics: BundleTopics | None = None
    """None if the topic names of the namespace are not completely known."""
    positions: tuple[int, ...] = ()
    """Where the caller wants the bundle cut; read only by `specified_positions_divide`."""
    quotas: Quotas | None = None
    """None if the broker doesn't pass them: before 5.0.1, unless `flow_or_qps_equally_divide` is its default."""

    def known_topics(self) -> BundleTopics:
        """The topics; raises `DataNotFit` if the listing is incomplete."""
        if self.topics is None:
            raise DataNotFit(
                f"the topics of bundle {format_range(self.lower, self.upper)} are not completely known; "
                "capture the topic lists of its namespace (with system topics and partition counts), "
                "or use range_equally_divide"
            )
        return self.topics
