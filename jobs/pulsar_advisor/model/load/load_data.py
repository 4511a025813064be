"""The leader's view of the load (Pulsar's `LoadData`) as columns: the input of Modular shedders and placement.

Rows are those of the cluster state; the order in which Java would iterate its maps is kept separately. Building it
hashes and sorts all names, so it happens once per snapshot, outside the strategies.

Source: `LoadData`, `LocalBrokerData` (2.11.0 to 5.0.1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from pulsar_advisor.model.cluster.cluster_state import (
    AVERAGES_ORIGINS,
    Booleans,
    ClusterState,
    Floats,
    Indices,
    Integers,
    rate_per_s,
    throughput_bytes_per_s,
)
from pulsar_advisor.model.cluster.namespaces import is_never_shed
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.java.maps import Hashes, bundle_name_hashes, concurrent_map_order, hash_map_order, name_hashes
from pulsar_advisor.model.java.stable_order import stable_order
from pulsar_advisor.model.load.recent_unloads import recently_unloaded
from pulsar_advisor.model.load.resource_usage import overload_usage, usage_ratios
from pulsar_advisor.model.strategy.outcomes import Codes, Outcome, no

_REMEMBERED: Final = 4


class Exclusion(Outcome):
    """Why no Modular shedder may choose a bundle that a broker lists."""

    RECENTLY_UNLOADED = no("was unloaded within the grace period, so it stays")
    SERVICE_BUNDLE = no("belongs to a broker's heartbeat or SLA monitor, which is never moved")
    NOT_REPORTED = no("is listed by its broker, but its averages are missing or unfit")


@dataclass(frozen=True, eq=False)
class Memberships:
    """Which bundles each broker lists: those of broker row b are `bundle[offsets[b]:offsets[b + 1]]`."""

    offsets: Integers
    bundle: Indices


@dataclass(frozen=True, eq=False)
class BrokerLoad:
    """What the leader knows of n brokers; rows as in the cluster state."""

    ids: tuple[str, ...]
    hashes: Hashes
    order: Indices
    """Rows of the brokers that reported, in the order Java walks them."""
    weighted_usage: Floats
    """Greatest weighted share (ratio) of a resource, see `model.load.resource_usage`."""
    overload_usage: Floats
    """The usage (ratio) that is compared with the overload threshold."""
    traffic: Floats
    """(n, 4), order of FIGURES: the broker's own totals."""
    published_bundles: Integers
    """How many bundles the broker's report lists, heartbeat bundles and bundles without figures included."""
    long_term_rate_per_s: Floats
    """Messages in and out, long-term averages summed over the bundles of the broker's last statistics."""
    preallocated_rate_per_s: Floats
    """Likewise over bundles that the leader assigned but has not yet seen reported."""
    unstored_rate_per_s: Floats | None = None
    """The part of the long-term rate that is a single sample, because the leader has not stored that average yet."""

    def throughput_bytes_per_s(self) -> Floats:
        """In and out together."""
        return throughput_bytes_per_s(self.traffic)

    def rate_per_s(self) -> Floats:
        """Messages in and out together."""
        return rate_per_s(self.traffic)


@dataclass(frozen=True, eq=False)
class BundleLoad:
    """What the leader knows of m bundles; rows as in the cluster state."""

    name: Callable[[int], str]
    """Full name of a row."""
    short_term: Floats
    """(m, 4), order of FIGURES: averages over at most 10 samples, the ones shedders read."""
    short_term_samples: Integers
    long_term: Floats
    """(m, 4), order of FIGURES: averages over at most 1000 samples."""
    long_term_samples: Integers
    topics: Integers

    def throughput_bytes_per_s(self) -> Floats:
        """Short-term average, in and out together."""
        return throughput_bytes_per_s(self.short_term)

    def rate_per_s(self) -> Floats:
        """Short-term average of messages, in and out together."""
        return rate_per_s(self.short_term)


@dataclass(frozen=True, eq=False)
class LoadData:
    """Pulsar's `LoadData` at one moment."""

    brokers: BrokerLoad
    bundles: BundleLoad
    candidates: Memberships
    """Listed bundles a shedder may choose from, in the iteration order of `bundlesForShedding`."""
    excluded: Memberships
    """Listed bundles it may not choose."""
    exclusion: Codes
    """Why not, parallel to `excluded.bundle`: an `Exclusion`."""


@np.errstate(all="ignore")
def load_data(state: ClusterState, settings: LoadBalancerSettings, now_ms: int) -> LoadData:
    """The leader's view of a cluster state at `now_ms` (epoch milliseconds), rows taken as insertion order.

    A bundle counts as known to the leader if a broker reports it, and as recently unloaded if its last unload is within
    the grace period.
    """
    brokers, bundles = state.brokers, state.bundles
    namespace_hashes = name_hashes(state.namespaces.names)[bundles.namespace]
    service_namespace = np.array([is_never_shed(name, settings) for name in state.namespaces.names], dtype=bool)
    listed = np.flatnonzero(bundles.listed & (bundles.owner >= 0)).astype(np.int32)
    reported = np.flatnonzero(bundles.reported & (bundles.owner >= 0))
    unstored = reported[bundles.averages_origin[reported] == AVERAGES_ORIGINS.index("one_sample")]
    return assemble(
        brokers=BrokerLoad(
            ids=brokers.ids,
            hashes=(broker_hashes := name_hashes(brokers.ids)),
            order=_concurrent_rows(broker_hashes, brokers.reporting),
            weighted_usage=usage_ratios(brokers, settings),
            overload_usage=overload_usage(brokers.usage, brokers.limit, settings),
            traffic=brokers.traffic,
            published_bundles=brokers.bundles,
            long_term_rate_per_s=np.bincount(
                bundles.owner[reported], weights=rate_per_s(bundles.long_term[reported]), minlength=len(brokers)
            ).astype(np.float64),
            preallocated_rate_per_s=np.zeros(len(brokers)),
            unstored_rate_per_s=np.bincount(
                bundles.owner[unstored], weights=rate_per_s(bundles.long_term[unstored]), minlength=len(brokers)
            ).astype(np.float64),
        ),
        bundles=BundleLoad(
            name=state.bundle_name,
            short_term=bundles.short_term,
            short_term_samples=bundles.short_term_samples,
            long_term=bundles.long_term,
            long_term_samples=bundles.long_term_samples,
            topics=bundles.topics,
        ),
        bundle_hashes=bundle_name_hashes(namespace_hashes, bundles.lower, bundles.upper),
        known=bundles.reported,
        service=service_namespace[bundles.namespace],
        recently_unloaded=recently_unloaded(state, settings, now_ms),
        listing=(bundles.owner[listed], listed),
    )


def assemble(
    *,
    brokers: BrokerLoad,
    bundles: BundleLoad,
    bundle_hashes: Hashes,
    known: Booleans,
    service: Booleans,
    recently_unloaded: Booleans,
    listing: tuple[Indices, Indices],
) -> LoadData:
    """Assemble a leader's view: order the bundles as Java would iterate them and group them by broker.

    `bundle_hashes`, `known` (the leader has averages), `service` and `recently_unloaded` are per bundle row; `listing`
    holds broker row and bundle row of each entry of the brokers' published bundle sets.
    """
    rank = _ranks(bundle_hashes.tobytes(), known.tobytes(), service.tobytes())
    of_known = np.where(service, Exclusion.SERVICE_BUNDLE.value, Exclusion.RECENTLY_UNLOADED.value)
    reason = np.where(known, of_known, Exclusion.NOT_REPORTED.value).astype(np.uint8)
    eligible = known & ~service & ~recently_unloaded

    broker, bundle = listing
    by_broker_and_rank = stable_order(broker, rank[bundle])
    broker, bundle = broker[by_broker_and_rank], bundle[by_broker_and_rank]
    candidate = eligible[bundle]
    excluded = _memberships(broker[~candidate], bundle[~candidate], len(brokers.ids))
    return LoadData(
        brokers=brokers,
        bundles=bundles,
        candidates=_memberships(broker[candidate], bundle[candidate], len(brokers.ids)),
        excluded=excluded,
        exclusion=reason[excluded.bundle],
    )


@lru_cache(maxsize=_REMEMBERED)
def _ranks(hashes: bytes, known: bytes, service: bytes) -> Integers:
    """Each bundle's place in the iteration order of `bundlesForShedding`, the last for those not in it.

    Cached, because a simulation asks for the same ones in most of its cycles; read-only.
    """
    bundle_hashes = np.frombuffer(hashes, dtype=np.uint32)
    for_shedding = _concurrent_rows(bundle_hashes, np.frombuffer(known, dtype=np.bool_))
    for_shedding = for_shedding[~np.frombuffer(service, dtype=np.bool_)[for_shedding]]
    for_shedding = for_shedding[hash_map_order(bundle_hashes[for_shedding])]
    rank = np.full(len(bundle_hashes), len(bundle_hashes), dtype=np.int64)
    rank[for_shedding] = np.arange(len(for_shedding))
    rank.flags.writeable = False
    return rank


def _concurrent_rows(hashes: Hashes, present: Booleans) -> Indices:
    """Rows of a concurrent map that contains the rows marked `present`, in iteration order."""
    rows = np.flatnonzero(present)
    return rows[concurrent_map_order(hashes[rows])].astype(np.int32)


def _memberships(broker: npt.NDArray[np.signedinteger], bundle: Indices, brokers: int) -> Memberships:
    """`broker` must be ascending."""
    return Memberships(np.searchsorted(broker, np.arange(brokers + 1)).astype(np.int64), bundle)
