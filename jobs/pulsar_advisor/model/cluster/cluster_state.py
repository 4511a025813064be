"""One moment of one cluster, immutable and columnar: the input of every strategy.

All columns are numpy arrays (or tuples of names) of equal length within a record type; rows are sorted by name, and
bundles refer to brokers and namespaces by row index. Nothing here knows the origin of the figures (see `tables`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from pulsar_advisor.model.cluster.bundle_range import format_range
from pulsar_advisor.model.cluster.inputs import Input
from pulsar_advisor.model.configuration.kinds import LoadManagerKind as LoadManagerKind
from pulsar_advisor.model.configuration.kinds import View as View
from pulsar_advisor.model.configuration.kinds import WantedView as WantedView

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Indices = npt.NDArray[np.int32]
Booleans = npt.NDArray[np.bool_]

RESOURCES: Final = ("cpu", "memory", "directMemory", "bandwidthIn", "bandwidthOut")
"""Column order of `Brokers.usage` and `Brokers.limit`; Pulsar's names. cpu: percent points of one core; memory and
directMemory: MiB; bandwidth: kbit/s."""

RESOURCE_NAMES: Final = ("CPU", "heap", "direct memory", "inbound bandwidth", "outbound bandwidth")
"""The same in a sentence."""

CPU, MEMORY, DIRECT_MEMORY, BANDWIDTH_IN, BANDWIDTH_OUT = range(len(RESOURCES))

FIGURES: Final = ("msgRateIn", "msgRateOut", "msgThroughputIn", "msgThroughputOut")
"""Column order of every four-column traffic array: messages/s in and out, bytes/s in and out."""
RATE_IN, RATE_OUT, THROUGHPUT_IN, THROUGHPUT_OUT = range(len(FIGURES))


@np.errstate(over="ignore", invalid="ignore")
def rate_per_s(traffic: Floats) -> Floats:
    """Messages in and out together, of one traffic row or of each row; a broken report makes it infinite or NaN."""
    return traffic[..., RATE_IN] + traffic[..., RATE_OUT]


@np.errstate(over="ignore", invalid="ignore")
def throughput_bytes_per_s(traffic: Floats) -> Floats:
    """Bytes in and out together, likewise."""
    return traffic[..., THROUGHPUT_IN] + traffic[..., THROUGHPUT_OUT]


HIGHEST_FIGURE: Final = 1e15
"""No machine reaches such a usage, or such a rate of messages or bytes; the checks of figures use the same limit."""
LEAST_CPU: Final = 1e-3
"""Points of one core. A broker's first sample shows less: all it used so far, divided by the time since 1970
(`LinuxBrokerHostUsageImpl.lastCollection`)."""


def possible(figures: Floats, lowest: Floats | float = 0.0) -> Booleans:
    """Per row, whether every figure is possible: a number, at least `lowest` (for all, or for each column), and no more
    than any machine reaches."""
    return np.asarray(((figures >= lowest) & (figures <= HIGHEST_FIGURE)).all(axis=1))


NO_ROW: Final = -1
"""The index that means "none": the owner of an unowned bundle, the bundle of a topic whose hash is in no range."""

AVERAGES_ORIGINS: Final = ("bundle_data", "folded", "one_sample", "default")
"""Origin of a bundle's short-term and long-term averages: the leader's stored node, earlier snapshots, this snapshot as
the only sample, or Pulsar's defaults for a bundle that no broker reported (50 msg/s, 50 kB/s each way)."""


@dataclass(frozen=True, eq=False)
class Brokers:
    """n brokers, sorted by id (`host:port`)."""

    ids: tuple[str, ...]
    usage: Floats
    """(n, 5), order of RESOURCES, in the unit of that resource."""
    limit: Floats
    """(n, 5); where zero, negative or unknown, the resource counts as idle, as in Pulsar."""
    traffic: Floats
    """(n, 4), order of FIGURES: the broker's own totals."""
    topics: Integers
    bundles: Integers
    """Number of bundles the broker's report lists, heartbeat bundles included."""
    producers: Integers
    consumers: Integers
    report_updated_at_ms: Integers
    """When the broker last wrote its report, epoch milliseconds; 0 if it reported nothing."""
    started_at_ms: Integers
    """When the broker started, epoch milliseconds; 0 if it doesn't say, as before 3.0 and under Simple."""
    complete: Booleans
    """False if the broker didn't report, or validation set it aside: nothing is computed with it, no step touches it.
    """
    doubtful: Booleans
    """Whether validation doubts what the broker reported: it counts as Pulsar counts it, but no plan of our own puts
    load onto it."""
    available: Booleans
    """Registered as an active broker."""
    persistent_topics_enabled: Booleans
    non_persistent_topics_enabled: Booleans
    versions: tuple[str, ...]
    load_manager_class_names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def reporting(self) -> Booleans:
        """Those that are active and have reported."""
        return self.available & (self.report_updated_at_ms > 0)

    @property
    def fit(self) -> Booleans:
        """Those whose figures can be used: active, with a report, and not set aside."""
        return self.reporting & self.complete


@dataclass(frozen=True, eq=False)
class Namespaces:
    """Namespaces sorted by name (`tenant/namespace`)."""

    names: tuple[str, ...]
    anti_affinity_groups: tuple[str | None, ...]

    def __len__(self) -> int:
        return len(self.names)

    def among(self, names: Collection[str]) -> Booleans:
        """Per namespace, whether it is one of these."""
        wanted = frozenset(names)
        return np.array([name in wanted for name in self.names], dtype=np.bool_)

    @property
    def in_groups(self) -> Booleans:
        """Per namespace, whether it is in an anti-affinity group; a blank name doesn't count."""
        return np.array([bool(group and group.strip()) for group in self.anti_affinity_groups], dtype=np.bool_)


@dataclass(frozen=True, eq=False)
class Bundles:
    """m bundles, sorted by namespace name, then lower bound."""

    namespace: Indices
    lower: Integers
    upper: Integers
    owner: Indices
    """Index into Brokers, NO_ROW if unowned (which is normal)."""
    in_boundaries: Booleans
    """False for a bundle that brokers report but that is no longer (or not yet) among the namespace's boundaries."""
    reported: Booleans
    """Whether a broker's report has figures for this bundle (its owner loaded at least one topic)."""
    listed: Booleans
    """Whether the owner's report lists the bundle among its `bundles`."""
    usable: Booleans
    """False if validation set the bundle or its namespace aside: no step may touch it."""
    traffic: Floats
    """(m, 4), order of FIGURES: figures of the last statistics pass."""
    topics: Integers
    """Loaded topics, as reported."""
    producers: Integers
    consumers: Integers
    cache_size_bytes: Integers
    short_term: Floats
    """(m, 4), order of FIGURES: averages over at most 10 samples."""
    short_term_samples: Integers
    long_term: Floats
    """(m, 4), order of FIGURES: averages over at most 1000 samples."""
    long_term_samples: Integers
    averages_origin: npt.NDArray[np.uint8]
    """Index into AVERAGES_ORIGINS."""
    folded_samples: Integers
    """Samples folded into the averages since the leader wrote them, without `unknown_samples`."""
    unknown_samples: Integers
    """Further samples, from load reports that no snapshot shows: folded with assumed figures."""
    last_unloaded_at_ms: Integers
    """Epoch milliseconds of the last known unload; 0 if none is known."""

    def __len__(self) -> int:
        return len(self.owner)


@dataclass(frozen=True, eq=False)
class Segments:
    """The topics that are segments of scalable topics, loaded or not."""

    row: Integers
    """Of each, its row in Topics; ascending."""
    scalable_topic: Indices
    """Of each, an index into `names`."""
    names: tuple[str, ...]
    """Complete names of the scalable topics, `topic://…`."""
    id: Integers
    """Of each, its number within its topic; -1 if it is unknown."""
    is_active: Booleans
    """Whether messages are still written to it."""
    is_listed: Booleans
    """Whether Pulsar's lists of topics have it: only if it was an ordinary topic before."""
    controller_traffic: Floats
    """(s, 4), order of FIGURES, as the topic's controller knows it; NaN where that is unknown."""

    def __len__(self) -> int:
        return len(self.row)


NO_SEGMENTS: Final = Segments(
    row=np.empty(0, np.int64),
    scalable_topic=np.empty(0, np.int32),
    names=(),
    id=np.empty(0, np.int64),
    is_active=np.empty(0, np.bool_),
    is_listed=np.empty(0, np.bool_),
    controller_traffic=np.empty((0, len(FIGURES))),
)


@dataclass(frozen=True, eq=False)
class Topics:
    """All topics of all namespaces, loaded or not, system topics and every partition included.

    Sorted by namespace, then name.
    """

    names: npt.NDArray[np.str_] | npt.NDArray[np.object_]
    namespace: Indices
    bundle: Indices
    """Index into Bundles by hash; NO_ROW where no range contains the hash."""
    hash: Integers
    loaded: Booleans
    traffic: Floats
    """(t, 4), order of FIGURES; zero where not loaded."""
    segments: Segments = NO_SEGMENTS

    def __len__(self) -> int:
        return len(self.hash)

    @cached_property
    def is_listed(self) -> Booleans:
        """Whether Pulsar's own lists have the topic: segments aren't in them, and its split algorithms don't see them.

        Source: `NamespaceService.getOwnedTopicListForNamespaceBundle` (5.0.0-M1 and 5.0.1).
        """
        listed: Booleans = np.ones(len(self), dtype=np.bool_)
        listed[self.segments.row] = self.segments.is_listed
        return listed

    @cached_property
    def is_non_persistent(self) -> Booleans:
        """Whether no bookie keeps its messages. Source: Pulsar `TopicDomain`."""
        return np.array([str(name).startswith("non-persistent://") for name in self.names.tolist()], dtype=np.bool_)


@dataclass(frozen=True, eq=False)
class PublishedLoad:
    """What Extensible brokers published for their leader besides their usage: the leader decides on these figures."""

    weighted_max_ema: Floats
    """Per broker, ratio; NaN where none was published."""
    msg_throughput_ema: Floats
    """Per broker, bytes/s in and out; NaN where none was published."""
    top_position: Integers
    """Per bundle, its position among the top bundles of its owner, 0 the lightest; -1 if it isn't one of them."""
    publishes_every_ms: Integers | None = None
    """Per broker, milliseconds between its messages; 0 where that is unknown, None if the topic was not read."""


@dataclass(frozen=True)
class IsolationPolicy:
    """A namespace isolation policy; regular expressions match whole names, brokers by host without port."""

    name: str
    namespaces: tuple[str, ...]
    primary: tuple[str, ...]
    secondary: tuple[str, ...]
    min_limit: int
    usage_threshold: int


@dataclass(frozen=True, eq=False)
class ClusterState:
    """All that a strategy may read; `view` is its point of view: REST (`fresh`) or the leader (`published`)."""

    cluster: str
    """The advisor's name of the cluster (the one in paths)."""
    cluster_name: str
    """Pulsar's own `clusterName`."""
    snapshot: str
    captured_at_ms: int
    view: View
    pulsar_version: str | None
    """The oldest release among the brokers; None if no broker says which it runs."""
    load_manager: LoadManagerKind
    leader: int
    """Index into Brokers; NO_ROW if no leader was found."""
    brokers: Brokers
    namespaces: Namespaces
    bundles: Bundles
    topics: Topics
    missing: Mapping[Input, str]
    """Inputs that the snapshot lacks, wholly or in a part without which the rest is useless, each with the reason."""
    isolation_policies: tuple[IsolationPolicy, ...]
    failure_domains: tuple[str | None, ...]
    """Failure domain of each broker, None where it has none."""
    published_load: PublishedLoad | None = None
    """In the published view of an Extensible cluster; otherwise that manager's figures are derived by its rules."""
    leader_unloads: int | None = None
    """How many bundles a Modular leader has unloaded since it started, None if unknown."""
    users_unloads_at_ms: Mapping[str, int] = field(default_factory=dict)
    """Bundle of a user's namespace -> when anyone last unloaded it, or it was first assigned, epoch milliseconds; the
    column of Bundles may have only those that the leader remembers."""
    averages_stored_at_ms: int = 0
    """When a Modular leader last stored its averages; 0 if it stored none."""
    unlisted_namespaces: frozenset[str] = frozenset()
    """Namespaces with incomplete lists of topic names, even though the input `topic_names` is not missing."""

    @property
    def deciding_release(self) -> str | None:
        """The leader's release, which decides during a rolling upgrade; the oldest one if it is unknown."""
        leaders = "" if self.leader == NO_ROW else self.brokers.versions[self.leader]
        return leaders or self.pulsar_version

    @cached_property
    def may_have_topics(self) -> Booleans:
        """Per bundle, whether some of its topics are known by name, or the list of its namespace is incomplete."""
        of: Integers = self.topics.bundle[self.topics.bundle != NO_ROW]
        listed = np.array([self.lists_topics(row) for row in range(len(self.namespaces))], dtype=np.bool_)
        return (np.bincount(of, minlength=len(self.bundles)) > 0) | ~listed[self.bundles.namespace]

    def lists_topics(self, namespace: int) -> bool:
        """Whether all topic names of a namespace (row) are known."""
        return "topic_names" not in self.missing and self.namespaces.names[namespace] not in self.unlisted_namespaces

    @cached_property
    def bundle_counts(self) -> Integers:
        """Bundles of each namespace by its boundaries; 0 where none were read."""
        return np.bincount(self.bundles.namespace[self.bundles.in_boundaries], minlength=len(self.namespaces))

    @cached_property
    def holds_persistent(self) -> Booleans:
        """Per bundle, whether one of its topics, loaded or not, is known to be persistent."""
        return self._holds(~self.topics.is_non_persistent)

    @cached_property
    def holds_non_persistent(self) -> Booleans:
        """Per bundle, whether one of its loaded topics is known to be non-persistent."""
        return self._holds(self.topics.loaded & self.topics.is_non_persistent)

    def _holds(self, topics: Booleans) -> Booleans:
        """Per bundle, whether one of these topics (a flag each) is in it."""
        with_some = np.zeros(len(self.bundles), dtype=np.bool_)
        with_some[self.topics.bundle[topics & (self.topics.bundle != NO_ROW)]] = True
        return with_some

    def namespace_of(self, bundle: int) -> str:
        """`tenant/namespace` of a bundle row."""
        return self.namespaces.names[int(self.bundles.namespace[bundle])]

    def name_of(self, subject: Literal["broker", "bundle"], row: int) -> str:
        """The id of a broker, or the name of a bundle."""
        return self.brokers.ids[row] if subject == "broker" else self.bundle_name(row)

    def bundle_name(self, bundle: int) -> str:
        """`tenant/namespace/0x..._0x...` of a bundle row."""
        return f"{self.namespace_of(bundle)}/{self.bundle_range(bundle)}"

    def bundle_range(self, bundle: int) -> str:
        """`0x..._0x...` of a bundle row."""
        return format_range(int(self.bundles.lower[bundle]), int(self.bundles.upper[bundle]))
