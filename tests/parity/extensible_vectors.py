"""Run vectors of the Extensible manager: broker records, top bundles, TransferShedder, placement."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from parity.modular_vectors import Answer, moments
from pulsar_advisor.model.cluster.cluster_state import MEMORY, throughput_bytes_per_s
from pulsar_advisor.model.cluster.namespaces import bundle_namespace, is_system_service_namespace, require_namespace
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.java.maps import concurrent_map_order, hash_map_order, string_hashes
from pulsar_advisor.model.load.broker_load_data import BrokerLoadData, fresh_records, updated
from pulsar_advisor.model.load.extensible_load import ExtensibleLoad, TopBundle
from pulsar_advisor.model.load.resource_usage import percent
from pulsar_advisor.model.load.top_bundles import NamespaceBundleStats, comparisons, natural_comparison, top_bundles
from pulsar_advisor.placement import registry as placements
from pulsar_advisor.shedding import registry as shedders
from vector_load import Json, figures, resources, settings_of

NOW_MS = 10**13
Records = dict[str, tuple[BrokerLoadData, Json]]
"""Broker -> its record (of one row) and its last sample."""


def _apply(records: Records, samples: Json, settings: LoadBalancerSettings) -> None:
    for broker, sample in samples.items():
        if sample is None:
            records.pop(broker, None)
            continue
        record = records[broker][0] if sample.get("update") and broker in records else fresh_records(1)
        record = updated(record, *resources([sample]), figures([sample]), settings, NOW_MS - sample.get("ageMs", 0))
        if "weightedMaxEMA" in sample:
            record = replace(record, weighted_max_ema=np.array([float(sample["weightedMaxEMA"])]))
        if "msgThroughputEMA" in sample:
            record = replace(record, msg_throughput_ema=np.array([float(sample["msgThroughputEMA"])]))
        records[broker] = record, sample


def _samples(case: Json) -> list[Json]:
    """The samples that arrive at each step; the case's own come before the first."""
    steps = case.get("steps") or [{}]
    return [
        {**case.get("brokers", {}), **steps[0].get("brokers", {})},
        *(step.get("brokers", {}) for step in steps[1:]),
    ]


def broker_load_data(case: Json, release: str) -> list[Answer]:
    """The record of broker `b` after each step."""
    records: Records = {}
    answers = []
    for moment, samples in zip(moments(case), _samples(case), strict=True):
        _apply(records, samples, settings_of(moment["config"], release))
        record, sample = records["b"]
        answers.append(
            {
                "maxResourceUsage": _maximum(sample),
                "weightedMaxEMA": float(record.weighted_max_ema[0]),
                "msgThroughputEMA": float(record.msg_throughput_ema[0]),
            }
        )
    return answers


def _maximum(sample: Json) -> float:
    """What a broker only reports: unlike `LocalBrokerData`, the record divides its binary32 percentage in binary64."""
    shares = np.delete(percent(*resources([sample])), MEMORY, axis=1).astype(np.float64)
    return float(np.fmax.reduce(shares, axis=1, initial=-np.inf)[0] / 100)


def _bundles(moment: Json) -> list[str]:
    """The names of the bundles in a moment, by row."""
    return list(dict.fromkeys(entry["bundle"] for top in moment.get("topBundles", {}).values() for entry in top))


def _load(moment: Json, records: Records, settings: LoadBalancerSettings) -> ExtensibleLoad:
    available = moment.get("availableBrokers", moment.get("candidates", ()))
    ids = tuple(dict.fromkeys((*records, *available)))
    row = {broker: number for number, broker in enumerate(ids)}
    bundles = _bundles(moment)
    present = list(records)

    def column(value: Any) -> Any:
        filled = np.zeros(len(ids))
        for broker, (record, sample) in records.items():
            filled[row[broker]] = value(record, sample)
        return filled

    def transferable(bundle: int, source: int, destination: int) -> bool:
        name = bundles[bundle]
        if "transferableBundles" in moment:
            return name in moment["transferableBundles"]
        return name.rpartition("/")[0] not in moment.get("notTransferableNamespaces", ())

    def top_bundle(entry: Json) -> TopBundle:
        name = entry["bundle"]
        traffic = figures([entry])[0]
        namespace = bundle_namespace(name, settings)
        return TopBundle(
            bundle=bundles.index(name),
            throughput_bytes_per_s=float(throughput_bytes_per_s(traffic)),
            owned="ownedBundles" not in moment or name in moment["ownedBundles"],
            excluded_namespace=namespace in settings.load_balancer_shedding_excluded_namespaces,
            recently_unloaded=name in moment.get("recentlyUnloaded", {}),
        )

    tops = {
        row[broker]: tuple(map(top_bundle, top))
        for broker, top in moment.get("topBundles", {}).items()
        if broker in row
    }
    return ExtensibleLoad(
        now_ms=NOW_MS,
        broker_ids=ids,
        stored=np.array([row[present[i]] for i in hash_map_order(string_hashes(present))], dtype=np.int32),
        available=np.array([broker in available for broker in ids], dtype=bool),
        load=column(lambda record, sample: record.weighted_max_ema[0]),
        throughput_bytes_per_s=column(lambda record, sample: figures([sample])[0, 2:].sum()),
        throughput_ema_bytes_per_s=column(lambda record, sample: record.msg_throughput_ema[0]),
        updated_at_ms=column(lambda record, sample: record.updated_at_ms[0]).astype(np.int64),
        top=lambda broker: tops.get(broker, ()),
        transferable=transferable,
    )


def transfer(case: Json, release: str) -> list[Answer]:
    """Answers of TransferShedder step by step, on one memory."""
    strategy = shedders.load("TransferShedder")
    memory = strategy.Memory()
    records: Records = {}
    mean = deviation = 0.0
    answers = []
    for number, (moment, samples) in enumerate(zip(moments(case), _samples(case), strict=True)):
        settings = settings_of(moment["config"], release)
        _apply(records, samples, settings)
        step = case["steps"][number] if "steps" in case else case
        unloaded = step.get(
            "recentlyUnloadedBrokersAgeMs", case.get("recentlyUnloadedBrokersAgeMs") if number == 0 else None
        )
        if unloaded is not None:
            times = {broker: NOW_MS - age for broker, age in unloaded.items()}
            memory = replace(memory, recently_unloaded_brokers={**memory.recently_unloaded_brokers, **times})
        load, bundles = _load(moment, records, settings), _bundles(moment)
        decision, memory = strategy.decide(load, settings, memory)
        mean = decision.figures.get("mean_load_ratio", mean)
        deviation = decision.figures.get("deviation", deviation)
        moves = zip(
            decision.source.tolist(),
            decision.bundle.tolist(),
            decision.destination.tolist(),
            decision.figures["reasons"],
            strict=True,
        )
        answers.append(
            {
                "decisions": sorted(
                    (
                        {
                            "source": load.broker_ids[source],
                            "bundle": bundles[bundle],
                            "dest": load.broker_ids[destination] if destination >= 0 else None,
                            "label": "Success",
                            "reason": reason,
                        }
                        for source, bundle, destination, reason in moves
                    ),
                    key=lambda move: (move["source"], move["bundle"]),
                ),
                "loadAvg": mean,
                "loadStd": deviation,
                "stdAfter": decision.figures.get("deviation_after", 0.0),
                "hitCount": memory.hits,
                "counters": dict(memory.counters),
                "recentlyUnloadedBrokersAfter": sorted(memory.recently_unloaded_brokers),
            }
        )
    return answers


def place(case: Json, release: str) -> list[Answer]:
    """Answers of the Extensible manager's LeastResourceUsageWithWeight."""
    strategy = placements.load("extensions.LeastResourceUsageWithWeight")
    records: Records = {}
    answers = []
    for moment, samples in zip(moments(case), _samples(case), strict=True):
        settings = settings_of(moment["config"], release)
        _apply(records, samples, settings)
        load = _load(moment, records, settings)
        row = {broker: number for number, broker in enumerate(load.broker_ids)}
        candidates = np.array([row[broker] for broker in moment["candidates"]], dtype=np.int32)
        decision, _ = strategy.choose(load, candidates, 0, settings, strategy.Memory())
        eligible = sorted(load.broker_ids[broker] for broker in decision.eligible)
        answers.append(
            {
                "ema": {broker: float(record.weighted_max_ema[0]) for broker, (record, _) in records.items()},
                "eligible": eligible,
                "selected": eligible[0] if len(eligible) == 1 else None,
            }
        )
    return answers


def _stats(entry: Json) -> NamespaceBundleStats:
    rate_in, rate_out, throughput_in, throughput_out = figures([entry])[0].tolist()
    return NamespaceBundleStats(
        rate_in,
        rate_out,
        throughput_in,
        throughput_out,
        entry.get("topics", 0),
        entry.get("consumerCount", 0),
        entry.get("producerCount", 0),
        entry.get("cacheSize", 0),
    )


def top_k(case: Json, release: str) -> list[Answer]:
    """The top bundles of a broker."""
    if "algorithm or task" in case:
        in_shape = {"config": {}, "topk": case["config"]["topk"], "bundleStats": case["input"], "expected": None}
        top = top_k(in_shape, release)[0]["top"]
        return [{"published_order": [name.split("/")[1] for name in top]}]
    answers = []
    for moment in moments(case):
        settings = settings_of(moment["config"], release)
        given = list(moment["bundleStats"])
        names = [given[place] for place in concurrent_map_order(string_hashes(given))]
        policies = moment.get("policies", {})
        forbidden = (
            ()
            if settings.load_balancer_shedding_bundles_with_policies_enabled
            else (*policies.get("isolationPolicyNamespaces", ()), *policies.get("antiAffinityNamespaces", ()))
        )
        stats = [_stats(moment["bundleStats"][name]) for name in names]
        # Names are looked at only where the figures let a bundle through, so a bad one may go unnoticed.
        skips_idle = settings.behaviour >= (4, 0, 0)
        shown = [
            not (skips_idle and figures_of.throughput_bytes_per_s() == 0) and _is_shown(name, forbidden, settings)
            for name, figures_of in zip(names, stats, strict=True)
        ]
        top = top_bundles(stats, shown, moment["topk"], settings)
        answers.append({"top": [names[position] for position in top]})
    return answers


def _is_shown(name: str, forbidden: tuple[str, ...], settings: LoadBalancerSettings) -> bool:
    namespace = bundle_namespace(name, settings)
    if is_system_service_namespace(namespace, settings):
        return False
    if not settings.load_balancer_shedding_bundles_with_policies_enabled:
        require_namespace(name.rpartition("/")[0], settings)
    return namespace not in forbidden and namespace not in settings.load_balancer_shedding_excluded_namespaces


def compare_stats(case: Json, release: str) -> list[Answer]:
    """How two bundles compare, by each criterion."""
    settings = settings_of(case["config"], release)
    one, other = _stats(case["a"]), _stats(case["b"])
    criteria = {name: criterion(one, other) for name, criterion in comparisons(settings).items()}
    return [{"compareTo": natural_comparison(settings)(one, other), **criteria}]
