"""Turn the brokers and bundles of a vector into the leader's view, in the insertion order the vector gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import FIGURES, RESOURCES, Floats, rate_per_s
from pulsar_advisor.model.cluster.namespaces import bundle_namespace, is_never_shed
from pulsar_advisor.model.configuration.defaults import behaviour_of, is_known
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.java.maps import concurrent_map_order, string_hashes
from pulsar_advisor.model.load.load_data import (
    BrokerLoad,
    BundleLoad,
    LoadData,
    assemble,
)
from pulsar_advisor.model.load.resource_usage import overload_usage, weighted_maximum

Json = Mapping[str, Any]


def settings_of(config: Json, release: str) -> LoadBalancerSettings:
    """The settings a broker of this release has with this configuration file."""
    behaviour = behaviour_of(release)  # no broker reports a key that its release lacks
    given = {key: _text(value) for key, value in config.items() if is_known(key, behaviour)}
    return resolve_settings(release, runtime=given).values


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ",".join(value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def resources(records: list[Json]) -> tuple[Floats, Floats]:
    """Usage and limit, one row per record."""
    pairs = np.array([[record.get(name, (0, 0)) for name in RESOURCES] for record in records], dtype=np.float64)
    pairs = pairs.reshape(len(records), len(RESOURCES), 2)
    return pairs[:, :, 0], pairs[:, :, 1]


def figures(records: list[Json]) -> Floats:
    """Rates and throughputs, one row per record."""
    values = [[float(record.get(name, 0)) for name in FIGURES] for record in records]
    return np.array(values, dtype=np.float64).reshape(len(records), len(FIGURES))


def load_of(case: Json, settings: LoadBalancerSettings) -> LoadData:
    """`LoadData` with brokers and bundles in the order of their keys."""
    brokers: dict[str, Json] = case["brokers"]
    known: dict[str, Json] = case.get("bundles", {})
    names = list(dict.fromkeys((*known, *(bundle for data in brokers.values() for bundle in data.get("bundles", ())))))
    row = {name: number for number, name in enumerate(names)}
    records = [known.get(name, {}) for name in names]
    short = [record.get("shortTerm", {}) for record in records]
    long = [record.get("longTerm", {}) for record in records]
    listing = [
        (broker, row[bundle])
        for broker, data in enumerate(brokers.values())
        for bundle in dict.fromkeys(data.get("bundles", ()))
    ]
    pairs = np.array(listing, dtype=np.int32).reshape(-1, 2)
    hashes = string_hashes(list(brokers))
    data = list(brokers.values())
    usage, limit = resources(data)
    long_term = [
        float(record.get("longTermMsgRateIn", 0)) + float(record.get("longTermMsgRateOut", 0)) for record in data
    ]
    return assemble(
        brokers=BrokerLoad(
            ids=tuple(brokers),
            hashes=hashes,
            order=concurrent_map_order(hashes).astype(np.int32),
            weighted_usage=weighted_maximum(usage, limit, settings),
            overload_usage=overload_usage(usage, limit, settings),
            traffic=figures(data),
            published_bundles=np.array([len(set(record.get("bundles", ()))) for record in data], dtype=np.int64),
            long_term_rate_per_s=np.array(long_term, dtype=np.float64),
            preallocated_rate_per_s=np.array([_preallocated(record) for record in data], dtype=np.float64),
        ),
        bundles=BundleLoad(
            name=names.__getitem__,
            short_term=figures(short),
            short_term_samples=np.array([record.get("numSamples", 0) for record in short], dtype=np.int64),
            long_term=figures(long),
            long_term_samples=np.array([record.get("numSamples", 0) for record in long], dtype=np.int64),
            topics=np.array([record.get("topics", 0) for record in records], dtype=np.int64),
        ),
        bundle_hashes=string_hashes(names),
        known=np.array([name in known for name in names], dtype=bool),
        service=np.array([is_never_shed(bundle_namespace(name, settings), settings) for name in names], dtype=bool),
        recently_unloaded=np.array([name in case.get("recentlyUnloaded", {}) for name in names], dtype=bool),
        listing=(pairs[:, 0], pairs[:, 1]),
    )


def _preallocated(record: Json) -> float:
    """Long-term rate of the bundles on their way to a broker, added in the order of Java's concurrent map."""
    bundles = record.get("preallocated", {})
    rates = figures([bundle.get("longTerm", {}) for bundle in bundles.values()])
    in_order = rates[concurrent_map_order(string_hashes(list(bundles)))]
    return float(np.add.accumulate(np.append(0.0, rate_per_s(in_order)))[-1])
