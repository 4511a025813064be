"""Run vectors of the load records, of Java's map order and sort, and of the wrapper around the Modular shedders."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np

from parity.modular_vectors import Answer, moments
from parity.vector_load import Json, figures, load_of, resources, settings_of
from pulsar_advisor.model.averages import add_sample, broker_averages, needs_publishing
from pulsar_advisor.model.cluster_state import RESOURCES
from pulsar_advisor.model.java_maps import concurrent_map_order, hash_map_order, string_hashes
from pulsar_advisor.model.java_sort import java_sort
from pulsar_advisor.model.load_data import RATE_IN, RATE_OUT, THROUGHPUT_IN, THROUGHPUT_OUT, with_recently_unloaded
from pulsar_advisor.model.resource_usage import maximum, percent, weighted_maximum
from pulsar_advisor.shedding import overload_shedder


def local_broker_data(case: Json, release: str) -> list[Answer]:
    """Maxima and percentages of one broker's report."""
    usage, limit = resources([case["brokers"]["b"]])
    shares = zip(RESOURCES, percent(usage, limit)[0].tolist(), strict=True)
    return [
        {
            "maxResourceUsage": float(maximum(usage, limit)[0]),
            "weighted": float(weighted_maximum(usage, limit, settings_of(case["config"], release))[0]),
            "print": ", ".join(f"{name}: {_two_decimals(share)}%" for name, share in shares),
        }
    ]


def _two_decimals(value: float) -> str:
    return str(Decimal(repr(value)).quantize(Decimal("0.01"), ROUND_HALF_UP))


def time_average_message_data(case: Json, release: str) -> list[Answer]:
    """Averages after each sample; the columns are throughput in and out, rate in and out, number of samples."""
    averages, samples = np.zeros((1, 4)), np.zeros(1, dtype=np.int64)
    rows = []
    for throughput_in, throughput_out, rate_in, rate_out in case["samples"]:
        sample = figures(
            [
                {
                    "msgThroughputIn": throughput_in,
                    "msgThroughputOut": throughput_out,
                    "msgRateIn": rate_in,
                    "msgRateOut": rate_out,
                }
            ]
        )
        averages, samples = add_sample(averages, samples, sample, case["maxSamples"])
        columns = [THROUGHPUT_IN, THROUGHPUT_OUT, RATE_IN, RATE_OUT]
        rows.append([*averages[0, columns].tolist(), int(samples[0])])
    return [{"averages": rows}]


def time_average_broker_data(case: Json, release: str) -> list[Answer]:
    """Sums over a broker's bundles, default figures standing for those the leader has no averages of."""
    owned = case["ownedBundles"]
    known = np.array([bundle in case["bundleData"] for bundle in owned], dtype=bool)
    default = figures([case["defaultStats"] or {}])[0]
    answer = {}
    for term in ("shortTerm", "longTerm"):
        rows = figures([case["bundleData"].get(bundle, {}).get(term, {}) for bundle in owned])
        total = broker_averages(rows, known, default)
        answer[f"{term}MsgThroughputIn"] = float(total[THROUGHPUT_IN])
        answer[f"{term}MsgThroughputOut"] = float(total[THROUGHPUT_OUT])
        answer[f"{term}MsgRateIn"] = float(total[RATE_IN])
        answer[f"{term}MsgRateOut"] = float(total[RATE_OUT])
    return [answer]


def need_broker_data_update(case: Json, release: str) -> list[bool]:
    """Whether a broker publishes again, just after it did."""
    answers = []
    for moment, step in zip(moments(case), case["steps"], strict=True):
        settings = settings_of(moment["config"], release)
        records = [step["last"], step["current"]]
        rates = figures(records)
        usage = weighted_maximum(*resources(records), settings).tolist()
        old, new = (
            (
                float(rates[row, RATE_IN] + rates[row, RATE_OUT]),
                float(rates[row, THROUGHPUT_IN] + rates[row, THROUGHPUT_OUT]),
                records[row].get("numBundles", 0),
                usage[row],
            )
            for row in (0, 1)
        )
        answers.append(needs_publishing(old, new, 0, settings))
    return answers


def map_order(case: Json, release: str) -> list[Answer]:
    """Iteration order of a ConcurrentHashMap, and of a HashMap that is filled from it."""
    concurrent = [case["keys"][position] for position in concurrent_map_order(string_hashes(case["keys"]))]
    plain = [concurrent[position] for position in hash_map_order(string_hashes(concurrent))]
    return [{"chm": concurrent, "hm": plain}]


def sort(case: Json, release: str) -> list[Answer]:
    """Positions of figures that count as equal up to a distance, and how often two were compared."""
    figures_of, tolerance = case["figures"], case["tolerance"]
    compared = 0

    def compare(one: int, other: int) -> int:
        nonlocal compared
        compared += 1
        apart: int = figures_of[one] - figures_of[other]
        return 0 if abs(apart) <= tolerance else apart

    return [{"sorted": java_sort(range(len(figures_of)), compare), "comparisons": compared}]


def do_load_shedding(case: Json, release: str) -> list[Answer]:
    """OverloadShedder cycle after cycle, every chosen bundle unloaded and then left alone."""
    settings = settings_of(case["config"], release)
    bundles = {"bundle1": {"shortTerm": {"msgRateIn": 100}}, "bundle2": {"shortTerm": {"msgRateIn": 200}}}
    unloaded: set[str] = set()
    answers: list[Answer] = []
    for moment in moments(case):
        if moment.get("clearRecentlyUnloaded"):
            unloaded.clear()
        brokers: dict[str, Any] = {"P": {**moment["P"], "bundles": list(bundles)}, "S": {"bundles": []}}
        load = load_of({"brokers": brokers, "bundles": bundles}, settings)
        left_alone = np.array([name in unloaded for name in bundles], dtype=bool)
        decision, _ = overload_shedder.decide(
            with_recently_unloaded(load, left_alone), settings, overload_shedder.Memory()
        )
        chosen = [load.bundles.name(bundle) for bundle in decision.bundle.tolist()]
        unloaded.update(chosen)
        answers.append({"unloaded": chosen, "unloadedCount": len(chosen)})
    return answers
