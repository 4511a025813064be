"""Run vectors of the load records, of Java's map order and sort, and of the wrapper around the Modular shedders."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from parity.modular_vectors import Answer, moments
from pulsar_advisor.model.cluster.cluster_state import RESOURCES
from pulsar_advisor.model.java.maps import concurrent_map_order, hash_map_order, string_hashes
from pulsar_advisor.model.java.sort import java_sort
from pulsar_advisor.model.load.resource_usage import maximum, percent, weighted_maximum
from pulsar_advisor.shedding import overload_shedder
from vector_load import Json, load_of, resources, settings_of


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
        load = load_of({"brokers": brokers, "bundles": bundles, "recentlyUnloaded": dict.fromkeys(unloaded)}, settings)
        decision, _ = overload_shedder.decide(load, settings, overload_shedder.Memory())
        chosen = [load.bundles.name(bundle) for bundle in decision.bundle.tolist()]
        unloaded.update(chosen)
        answers.append({"unloaded": chosen, "unloadedCount": len(chosen)})
    return answers
