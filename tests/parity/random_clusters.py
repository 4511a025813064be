"""Makes random test cases in the vector format: the same seed, strategy and number give the same case."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

Case = dict[str, Any]

KINDS = ("plain", "plain", "ties", "zeros", "nan", "large", "denormal", "mixed")
"""What the figures of a case are like; `mixed` draws a kind per figure."""

LARGE = (1e9, 2147483647, 2147483648, 4294967296, 1e12, 1e15, 1e18, 1e150, 1.7976931348623157e308)
DENORMAL = (5e-324, 1e-310, 2.2250738585072014e-308, 1e-300, 1e-7, 0)
TIES = (0, 0.5, 1, 2, 10)
LIMITS = (100, 100, 100, 100, 1000, 0, -1)
RESOURCES = ("cpu", "memory", "directMemory", "bandwidthIn", "bandwidthOut")

BROKER_NAMES = (
    "broker{}:8080",
    "pulsar-broker-{}.example.com:8080",
    "b{}",
    "{}",
    "brökér-{}:8080",
    "\N{COLLISION SYMBOL}{}:8080",
)
EQUAL_HASHES = ("AaAa:1", "AaBB:1", "BBAa:1", "BBBB:1")
"""Different names with one Java hash code, which therefore share a chain of every map."""

NAMESPACES = ("public/default", "public/ns0", "t/ns1", "t/ns10", "tenant-b/n.2", "tenant=c/n-3")
SPECIAL_NAMESPACES = (
    "pulsar/system",
    "pulsar/broker1:8080",
    "pulsar/c1/broker1:8080",
    "sla-monitor/broker1:8080",
    "sla-monitor/c1/broker1:8080",
    "tenant/cluster/ns",
)


def random_case(strategy: str, number: int, seed: int) -> Case:
    """Case `number` of a strategy; raises KeyError for a strategy without generator."""
    random = Random(f"{seed}/{strategy}/{number}")
    figures = Figures(random, random.choice(KINDS))
    body = GENERATORS[strategy](random, figures)
    named = {} if "algorithm or task" in body else {"strategy": strategy}
    return {"id": f"{strategy}-{seed}-{number}", **named, "expected": {}, **body}


class Figures:
    """Draws the figures of one case, all of one kind unless the kind is `mixed`."""

    def __init__(self, random: Random, kind: str) -> None:
        self._random = random
        self.kind = kind

    def number(self, scale: float) -> float | str:
        """A rate, throughput or usage of about this size."""
        random = self._random
        kind = random.choice(KINDS) if self.kind == "mixed" else self.kind
        if kind == "plain":
            return random.choice((random.uniform(0, scale), random.lognormvariate(0, 2) * scale / 10))
        if kind == "ties":
            return random.choice(TIES) * scale / 10
        if kind == "zeros":
            return 0 if random.random() < 0.7 else random.uniform(0, scale)
        if kind == "nan":
            return "NaN" if random.random() < 0.15 else random.uniform(0, scale)
        if kind == "large":
            return random.choice(LARGE) if random.random() < 0.5 else random.uniform(0, scale) * 1e6
        return random.choice(DENORMAL)

    def resources(self) -> Case:
        """Usage and limit of some resources; a missing one is (0, 0)."""
        return {
            name: [self.number(100), self._random.choice(LIMITS)] for name in RESOURCES if self._random.random() < 0.75
        }

    def traffic(self, rate: float = 2000, throughput: float = 5e7) -> Case:
        """Rates and throughputs."""
        return {
            "msgRateIn": self.number(rate),
            "msgRateOut": self.number(rate),
            "msgThroughputIn": self.number(throughput),
            "msgThroughputOut": self.number(throughput),
        }


def _some(random: Random, items: Sequence[Any], share: float) -> list[Any]:
    return [item for item in items if random.random() < share]


def _shuffled(random: Random, items: Sequence[Any]) -> list[Any]:
    return random.sample(list(items), len(items))


def _setting(random: Random, **choices: Sequence[Any]) -> Case:
    """Some of these settings; what isn't set keeps the release's default."""
    return {key: random.choice(values) for key, values in choices.items() if random.random() < 0.4}


def _weights(random: Random) -> Case:
    return _setting(
        random,
        loadBalancerCPUResourceWeight=(0, 0.5, 1, 2),
        loadBalancerMemoryResourceWeight=(0, 1),
        loadBalancerDirectMemoryResourceWeight=(0, 0.3, 1),
        loadBalancerBandwithInResourceWeight=(0, 0.7, 1, 1.5),
        loadBalancerBandwithOutResourceWeight=(0, 0.7, 1, 1.5),
    )


def _broker_names(random: Random) -> list[str]:
    pattern = random.choice(BROKER_NAMES)
    names = [pattern.format(number) for number in range(random.choice((1, 2, 2, 3, 3, 4, 5, 6, 8, 13, 20, 45)))]
    if random.random() < 0.1:
        names += EQUAL_HASHES
    return _shuffled(random, names)


def _bundle_names(random: Random, most: int, least: int = 0) -> list[str]:
    namespaces = list(NAMESPACES) + (list(SPECIAL_NAMESPACES) if random.random() < 0.25 else [])
    names = []
    for number in range(random.randint(least, most)):
        if random.random() < 0.03:
            names.append(f"bundle-{number}")
        else:
            lower = number * 0x00100000
            names.append(f"{random.choice(namespaces)}/0x{lower:08x}_0x{lower + 0x00100000:08x}")
    return names


def _bundle(random: Random, figures: Figures) -> Case:
    record: Case = {"shortTerm": {**figures.traffic(), "numSamples": random.randint(0, 10)}}
    if random.random() < 0.5:
        record["longTerm"] = {**figures.traffic(), "numSamples": random.randint(0, 1000)}
        record["topics"] = random.randint(0, 5)
    return record


def _modular_brokers(random: Random, figures: Figures, brokers: Sequence[str], bundles: Sequence[str]) -> Case:
    """Records of these brokers; every bundle is published by one of them, few by two or by none."""
    owned: dict[str, list[str]] = {broker: [] for broker in brokers}
    favourite = random.choice(brokers) if brokers else None
    for bundle in bundles:
        for _ in range(random.choice((0, 1, 1, 1, 1, 1, 1, 1, 2))):
            if brokers:
                owned[favourite if favourite and random.random() < 0.4 else random.choice(brokers)].append(bundle)
    return {
        broker: {**figures.resources(), **figures.traffic(20000, 5e8), "bundles": sorted(set(owned[broker]))}
        for broker in brokers
    }


def _shedding(random: Random, figures: Figures, config: Callable[[], Case], cycles: Sequence[int]) -> Case:
    brokers = _broker_names(random)
    bundles = _bundle_names(random, 40)
    case: Case = {
        "config": config(),
        "brokers": _modular_brokers(random, figures, brokers, bundles),
        "bundles": {bundle: _bundle(random, figures) for bundle in _some(random, bundles, 0.9)},
        "recentlyUnloaded": dict.fromkeys(_some(random, bundles, 0.1), 1),
    }
    number = random.choice(cycles)
    if number == 1:
        return case
    case["steps"] = [{"expected": {}}, *(_next_cycle(random, figures, brokers, bundles) for _ in range(number - 1))]
    return case


def _next_cycle(random: Random, figures: Figures, brokers: list[str], bundles: list[str]) -> Case:
    """Brokers report anew, leave and join; bundles get other averages; `brokers` becomes who is there then."""
    leaving = _some(random, brokers, 0.08)
    joining = [f"joined-{random.randrange(100)}:8080"] if random.random() < 0.2 else []
    staying = [broker for broker in brokers if broker not in leaving]
    brokers[:] = [*staying, *(name for name in joining if name not in staying)]
    reporting = [*_some(random, staying, 0.6), *(name for name in joining if name not in staying)]
    step: Case = {
        "brokers": {**dict.fromkeys(leaving), **_modular_brokers(random, figures, reporting, bundles)},
        "bundles": {bundle: _bundle(random, figures) for bundle in _some(random, bundles, 0.3)},
        "expected": {},
    }
    if random.random() < 0.3:
        step["activeBrokers"] = list(brokers)
    if random.random() < 0.3:
        step["recentlyUnloaded"] = dict.fromkeys(_some(random, bundles, 0.1), 1)
    return step


def _overload_shedder(random: Random, figures: Figures) -> Case:
    def config() -> Case:
        return _weights(random) | _setting(random, loadBalancerBrokerOverloadedThresholdPercentage=(0, 30, 50, 85, 100))

    return _shedding(random, figures, config, (1,))


def _threshold_shedder(random: Random, figures: Figures) -> Case:
    def config() -> Case:
        return _weights(random) | _setting(
            random,
            loadBalancerBrokerThresholdShedderPercentage=(0, 1, 5, 10, 40),
            loadBalancerHistoryResourcePercentage=(0, 0.1, 0.5, 0.9, 1),
            loadBalancerBundleUnloadMinThroughputThreshold=(0, 0.001, 1, 10),
            lowerBoundarySheddingEnabled=(True, True, False),
        )

    return _shedding(random, figures, config, (1, 2, 3, 5))


def _unload_limits(random: Random) -> Case:
    return _setting(
        random,
        minUnloadMessage=(0, 1, 1000),
        minUnloadMessageThroughput=(0, 1, 1048576),
        maxUnloadPercentage=(0, 0.2, 0.5, 1),
    )


def _uniform_load_shedder(random: Random, figures: Figures) -> Case:
    def config() -> Case:
        return _unload_limits(random) | _setting(
            random,
            loadBalancerMsgRateDifferenceShedderThreshold=(0, 10, 50),
            loadBalancerMsgThroughputMultiplierDifferenceShedderThreshold=(0, 1.5, 4),
            maxUnloadBundleNumPerShedding=(-1, 0, 1, 3),
        )

    return _shedding(random, figures, config, (1,))


def _avg_shedder(random: Random, figures: Figures) -> Case:
    def config() -> Case:
        return (
            _weights(random)
            | _unload_limits(random)
            | _setting(
                random,
                loadBalancerAvgShedderLowThreshold=(0, 5, 15),
                loadBalancerAvgShedderHighThreshold=(10, 40),
            )
            | {
                "loadBalancerAvgShedderHitCountLowThreshold": random.choice((0, 1, 2, 8)),
                "loadBalancerAvgShedderHitCountHighThreshold": random.choice((0, 1, 2)),
            }
        )

    return _shedding(random, figures, config, (1, 2, 3, 5))


def _placement(random: Random, figures: Figures, config: Case, steps: int) -> Case:
    brokers = _broker_names(random)
    bundles = _bundle_names(random, 10)

    def candidates() -> list[str]:
        return _shuffled(random, _some(random, brokers, 0.8) or brokers)

    case = {
        "config": config,
        "brokers": _modular_brokers(random, figures, brokers, bundles),
        "candidates": candidates(),
    }
    for record in case["brokers"].values():
        record["longTermMsgRateIn"] = figures.number(10000)
        record["longTermMsgRateOut"] = figures.number(10000)
        preallocated = _bundle_names(random, 4) if random.random() < 0.3 else []
        record["preallocated"] = {name: {"longTerm": figures.traffic()} for name in preallocated}
    if steps > 1:
        case["steps"] = [
            {"candidates": candidates(), "expected": {}, "brokers": _modular_brokers(random, figures, reporting, [])}
            for reporting in (_some(random, brokers, 0.3) for _ in range(steps))
        ]
    return case


def _least_long_term_message_rate(random: Random, figures: Figures) -> Case:
    config = _weights(random) | _setting(random, loadBalancerBrokerOverloadedThresholdPercentage=(0, 50, 85))
    return _placement(random, figures, config, 1)


def _least_resource_usage(random: Random, figures: Figures) -> Case:
    config = _weights(random) | _setting(
        random,
        loadBalancerAverageResourceUsageDifferenceThresholdPercentage=(0, 1, 10, 30),
        loadBalancerHistoryResourcePercentage=(0, 0.5, 0.9, 1),
    )
    return _placement(random, figures, config, random.choice((1, 2, 4)))


def _round_robin(random: Random, figures: Figures) -> Case:
    brokers = _broker_names(random)
    steps: list[Case] = []
    for _ in range(random.randint(1, 8)):
        again = steps and random.random() < 0.4
        chosen = steps[-1]["candidates"] if again else _some(random, brokers, 0.8)
        steps.append({"candidates": _shuffled(random, chosen), "expected": {}})
    if random.random() < 0.2:
        steps[0]["counter"] = random.choice((2147483646, 2147483647, 5))
    return {"config": {}, "brokers": {}, "steps": steps}


def _sample(random: Random, figures: Figures) -> Case:
    """What one update of an Extensible broker's record carries."""
    sample: Case = {
        **figures.resources(),
        **figures.traffic(20000, 5e8),
        "bundleCount": random.randint(0, 50),
        "topics": random.randint(0, 500),
    }
    if random.random() < 0.1:
        sample["ageMs"] = random.choice((1000, 100_000, 10_000_000, 10_000_000_000))
    if random.random() < 0.15:
        sample["weightedMaxEMA"] = figures.number(1)
    if random.random() < 0.15:
        sample["msgThroughputEMA"] = figures.number(1e8)
    return sample


def _samples(random: Random, figures: Figures, brokers: Sequence[str]) -> Case:
    return {broker: _sample(random, figures) | {"update": random.random() < 0.7} for broker in brokers}


def _record_config(random: Random) -> Case:
    return _weights(random) | _setting(random, loadBalancerHistoryResourcePercentage=(0, 0.5, 0.9, 1))


def _broker_load_data(random: Random, figures: Figures) -> Case:
    steps = [{"brokers": {"b": _sample(random, figures) | {"update": True}}, "expected": {}} for _ in range(4)]
    return {"config": _record_config(random), "brokers": {}, "steps": steps}


def _extensible_placement(random: Random, figures: Figures) -> Case:
    brokers = _broker_names(random)
    config = _record_config(random) | _setting(
        random, loadBalancerAverageResourceUsageDifferenceThresholdPercentage=(0, 1, 10, 30)
    )
    return {
        "config": config,
        "brokers": _samples(random, figures, _some(random, brokers, 0.9)),
        "candidates": _shuffled(random, _some(random, brokers, 0.8) or brokers),
    }


def _top_lists(random: Random, figures: Figures, brokers: Sequence[str], bundles: Sequence[str]) -> Case:
    lists: dict[str, list[Case]] = {broker: [] for broker in _some(random, brokers, 0.95)}
    for bundle in bundles:
        if lists:
            entry = {"bundle": bundle, **figures.traffic(2000, random.choice((1e6, 1e8)))}
            lists[random.choice(list(lists))].append(entry)
    if random.random() < 0.7:
        for entries in lists.values():
            entries.sort(key=lambda entry: float(entry["msgThroughputIn"]))
    return dict(lists)


def _transfer_shedder(random: Random, figures: Figures) -> Case:
    brokers = _broker_names(random)
    bundles = [name for name in _bundle_names(random, 40) if name.count("/") == 2]
    policies = random.random() < 0.3
    case: Case = {
        "config": _record_config(random)
        | _setting(
            random,
            loadBalancerBrokerLoadTargetStd=(0, 0.05, 0.25, 1),
            loadBalancerTransferEnabled=(True, False),
            loadBalancerDebugModeEnabled=(True, False),
            loadBalancerMaxNumberOfBrokerSheddingPerCycle=(0, 1, 3, 10),
            loadBalancerBrokerOverloadedThresholdPercentage=(10, 50, 85),
            loadBalanceSheddingDelayInSeconds=(0, 180),
            loadBalancerSheddingExcludedNamespaces=(["public/ns0"], ["public/default", "t/ns1"]),
        )
        | {"loadBalancerSheddingConditionHitCountThreshold": random.choice((0, 0, 0, 1, 3))},
        "brokers": _samples(random, figures, brokers),
        "topBundles": _top_lists(random, figures, brokers, bundles),
        "availableBrokers": brokers if random.random() < 0.9 else [*_some(random, brokers, 0.9), "unknown:8080"],
        "recentlyUnloaded": dict.fromkeys(_some(random, bundles, 0.1), 1),
    }
    if policies:
        case["notTransferableNamespaces"] = random.sample(NAMESPACES, 2)
        case["ownedBundles"] = _some(random, bundles, 0.9)
    if random.random() < 0.15:
        ages = (500, 100_500, 400_500, 10_000_500)
        case["recentlyUnloadedBrokersAgeMs"] = {name: random.choice(ages) for name in _some(random, brokers, 0.3)}
    cycles = random.choice((1, 1, 2, 4))
    if cycles > 1:
        case["steps"] = [{"expected": {}}]
        for _ in range(cycles - 1):
            step: Case = {"brokers": _samples(random, figures, _some(random, brokers, 0.5)), "expected": {}}
            leaving = _some(random, brokers, 0.05) if not policies else []
            brokers = [broker for broker in brokers if broker not in leaving]
            step["brokers"] |= dict.fromkeys(leaving)
            step["availableBrokers"] = brokers
            if random.random() < 0.3:
                step["topBundles"] = _top_lists(random, figures, brokers, bundles)
            case["steps"].append(step)
    return case


def _counts(random: Random) -> Case:
    return {
        "topics": random.choice((0, 1, 2, 5, 100, 499, 1000, 1001, 5000)),
        "consumerCount": random.choice((0, 1, 10, 499, 500, 1000)),
        "producerCount": random.choice((0, 1, 10, 500, 501)),
        "cacheSize": random.choice((0, 99_999, 100_000, 1_000_000)),
    }


def _top_bundles(random: Random, figures: Figures) -> Case:
    throughput = random.choice((2e5, 1e6, 1e8))
    number = random.choice((random.randint(0, 10), random.randint(10, 200)))
    names = _shuffled(random, [name for name in _bundle_names(random, number, number) if "/" in name])
    return {
        "config": _setting(random, loadBalancerSheddingExcludedNamespaces=(["public/ns0"], ["public/default"])),
        "bundleStats": {name: figures.traffic(200, throughput) | _counts(random) for name in names},
        "topk": random.choice((1, 1, 2, 3, 5, 10, 100)),
    }


def _compare_stats(random: Random, figures: Figures) -> Case:
    def stats() -> Case:
        return figures.traffic(300, 3e5) | _counts(random)

    return {"config": {}, "a": stats(), "b": stats()}


def _local_broker_data(random: Random, figures: Figures) -> Case:
    return {"config": _weights(random), "brokers": {"b": figures.resources()}}


def _map_order(random: Random, figures: Figures) -> Case:
    names = _broker_names(random) + _bundle_names(random, 200)
    return {"config": {}, "keys": _shuffled(random, list(dict.fromkeys(names)))}


def _sort(random: Random, figures: Figures) -> Case:
    number, span = random.choice((1, 31, 32, 33, 64, 100, 300)), random.choice((3, 20, 100, 1000, 10**6))
    drawn = [random.randrange(span) for _ in range(number)]
    run = random.choice((1, 7, 37, number))
    parts = (drawn[start : start + run] for start in range(0, number, run))
    in_runs = [figure for part in parts for figure in sorted(part, reverse=random.random() < 0.5)]
    return {"config": {}, "figures": in_runs, "tolerance": random.choice((0, 1, 2, 5, span // 10, span // 3))}


SIMPLE_LIMITS = {
    "cpu": (100, 400, 800),
    "memory": (1000, 4000, 64000),
    "directMemory": (1000, 4000),
    "bandwidthIn": (1e4, 1e5, 1e7),
    "bandwidthOut": (1e4, 1e5, 1e7),
}
"""Percent points of one core, MiB, kbit/s: the Simple manager adds quotas in these units to the usage."""
LARGEST_SUMMAND = 1e300


def _simple_brokers(random: Random, figures: Figures, brokers: Sequence[str], bundles: Sequence[str]) -> Case:
    """Load reports of these brokers; each bundle is in one of them or in none."""
    owned: dict[str, list[str]] = {broker: [] for broker in brokers}
    favourite, share = random.choice(brokers), random.choice((0, 0.3, 0.9))
    for bundle in sorted(bundles, key=lambda name: name.rpartition("/")):
        if random.random() < 0.95:
            owned[favourite if random.random() < share else random.choice(brokers)].append(bundle)
    rate, throughput = random.choice((10, 200, 2000)), random.choice((2e4, 1e6, 5e7))
    reports: Case = {}
    for broker in sorted(brokers):
        report: Case = {
            "lastStats": {
                bundle: _summable(figures.traffic(rate, throughput)) | _counts(random) for bundle in owned[broker]
            }
        }
        for resource, limits in SIMPLE_LIMITS.items():
            limit = random.choice((*limits, *limits, *limits, 0, -1))
            report[resource] = [figures.number(max(limit, 100)), limit]
        reports[broker] = report
    return reports


def _summable(traffic: Case) -> Case:
    """Figures whose sums stay finite: infinite quotas turn into NaN as they are smoothed."""
    return {name: figure if figure == "NaN" else min(figure, LARGEST_SUMMAND) for name, figure in traffic.items()}


def _simple_broker_names(random: Random) -> list[str]:
    """With ports: policies and placement ignore a broker without one."""
    return [name if ":" in name else f"{name}:8080" for name in _broker_names(random)]


def _simple_bundles(random: Random) -> list[str]:
    number = random.choice((5, 12, 13, 40, 200))
    return [name for name in _bundle_names(random, number) if name.count("/") == 2]


def _simple_ranking(random: Random, figures: Figures) -> Case:
    return {
        "config": _setting(
            random,
            loadBalancerPlacementStrategy=(
                "leastLoadedServer",
                "leastMsgPerSecond",
                "weightedRandomSelection",
                "other",
            ),
        ),
        "brokers": _simple_brokers(random, figures, _simple_broker_names(random), _simple_bundles(random)),
    }


def _simple_placement(random: Random, figures: Figures) -> Case:
    case = _simple_ranking(random, figures)
    case["config"] |= _setting(
        random,
        loadBalancerBrokerUnderloadedThresholdPercentage=(0, 1, 20, 50, 100),
        loadBalancerBrokerOverloadedThresholdPercentage=(0, 30, 85, 100),
    )
    reported = [bundle for report in case["brokers"].values() for bundle in report["lastStats"]]
    elsewhere = f"{random.choice(NAMESPACES)}/0xf0000000_0xf0000001"
    case["bundle"] = random.choice(reported) if reported and random.random() < 0.6 else elsewhere
    case["cursor"] = random.choice((0, 1, 7, 999_999))
    return case


def _simple_shedding(random: Random, figures: Figures) -> Case:
    brokers, bundles = _simple_broker_names(random), _simple_bundles(random)
    case: Case = {
        "config": _setting(
            random,
            loadBalancerBrokerOverloadedThresholdPercentage=(0, 10, 30, 50, 85, 100),
            loadBalancerBrokerComfortLoadLevelPercentage=(0, 10, 50, 65, 100),
        ),
        "brokers": _simple_brokers(random, figures, brokers, bundles),
        "recentlyUnloaded": dict.fromkeys(_some(random, bundles, 0.1), 1),
    }
    cycles = random.choice((1, 1, 2, 4))
    if cycles > 1:
        again = ({"expected": {}}, {"brokers": _simple_brokers(random, figures, brokers, bundles), "expected": {}})
        case["steps"] = [{"expected": {}}, *random.choices(again, k=cycles - 1)]
    return case


def _simple_splits(random: Random, figures: Figures) -> Case:
    bundles = _split_names(random, 25)
    return {
        "config": _split_limits(random),
        "brokers": _simple_brokers(random, figures, _simple_broker_names(random), bundles),
        "bundleCounts": {name: random.choice((1, 3, 4, 127, 128, 128, -1)) for name in SPLIT_NAMESPACES},
    }


def _range(random: Random) -> tuple[int, int]:
    width = random.choice((1, 2, 3, 2**20, 2**30))
    lower = random.randrange(0, 0xFFFFFFFF - width)
    return random.choice(((0, 0xFFFFFFFF), (lower, lower + width), (0x80000000, 0xFFFFFFFF)))


def _topic(random: Random, number: int) -> str:
    """A partition, or a segment of a scalable topic."""
    if random.random() < 0.3:
        start = random.randrange(0x10000)
        return f"segment://tenant/ns/clicks/{start:04x}-{random.randrange(start, 0x10000):04x}-{number}"
    return f"persistent://tenant/ns/{random.choice(('orders', 'événement', 'x'))}-partition-{number}"


def _split_algorithm(random: Random, figures: Figures) -> Case:
    lower, upper = _range(random)
    topics = [_topic(random, number) for number in range(random.choice((0, 1, 2, 3, 4, 10, 60)))]
    positions = [random.choice((lower, upper, random.randint(0, 0xFFFFFFFF), (lower + upper) // 2)) for _ in range(3)]
    algorithm = random.choice(
        (
            "range_equally_divide",
            "topic_count_equally_divide",
            "specified_positions_divide",
            *itertools.repeat("flow_or_qps_equally_divide", 3),
        )
    )
    return {
        "config": _setting(
            random,
            loadBalancerNamespaceBundleMaxMsgRate=(0, 100, 1010, 30000),
            loadBalancerNamespaceBundleMaxBandwidthMbytes=(0, 1, 100),
            flowOrQpsDifferenceThresholdPercentage=(0, 10, 50),
        ),
        "algorithm": algorithm,
        "namespace": "tenant/ns",
        "lower": f"0x{lower:08x}",
        "upper": f"0x{upper:08x}",
        "topics": _shuffled(random, topics),
        "topicStats": {topic: figures.traffic(random.choice((50, 5000)), 1e7) for topic in _some(random, topics, 0.9)},
        "positions": random.choice((None, [], positions, positions[:1], positions[:2])),
        "force": algorithm == "specified_positions_divide" and random.random() < 0.3,
    }


def _split_bundles(random: Random, figures: Figures) -> Case:
    inner = {random.randrange(1, 0xFFFFFFFF) for _ in range(random.randint(0, 6))}
    if random.random() < 0.3:
        inner |= {min(value + 1, 0xFFFFFFFE) for value in inner}
    boundaries = [f"0x{value:08x}" for value in sorted({0, 0xFFFFFFFF, *inner})]
    lower, upper = random.choice(list(itertools.pairwise(boundaries)))
    given: Case = {"bundle": f"{lower}_{upper}", "boundaries": boundaries, "numBundles": random.randint(2, 5)}
    if random.random() < 0.5:
        given["positions"] = [
            random.choice((random.randint(int(lower, 16), int(upper, 16)), int(lower, 16), int(upper, 16)))
            for _ in range(random.randint(1, 3))
        ]
    return {"algorithm or task": "splitBundles(random)", "config": {}, "input": given}


def _split_limits(random: Random) -> Case:
    return _setting(
        random,
        loadBalancerNamespaceMaximumBundles=(1, 4, 5, 128),
        loadBalancerNamespaceBundleMaxTopics=(1, 100, 1000),
        loadBalancerNamespaceBundleMaxSessions=(-1, 0, 1000),
        loadBalancerNamespaceBundleMaxMsgRate=(0, 1000, 30000),
        loadBalancerNamespaceBundleMaxBandwidthMbytes=(0, 1, 100, 2047, 2048, 5000),
    )


SPLIT_NAMESPACES = ("t/ns1", "t/ns10", "t/ns2", "t/ns3")


def _split_names(random: Random, most: int) -> list[str]:
    edges = range(0, 0xFFFFFFFF, 0x04000000)
    ranges = [(lower, lower + 0x04000000) for lower in edges[:-1]] + [(0xFC000000, 0xFFFFFFFF), (7, 8), (0, 1)]
    names = {
        f"{random.choice(SPLIT_NAMESPACES)}/0x{lower:08x}_0x{upper:08x}"
        for lower, upper in random.sample(ranges, random.randint(0, most))
    }
    return _shuffled(random, sorted(names))


def _bundle_splitter_task(random: Random, figures: Figures) -> Case:
    brokers = _broker_names(random)
    bundles = _split_names(random, 25)
    stats: dict[str, Case] = {broker: {} for broker in brokers}
    for bundle in bundles:
        stats[random.choice(brokers)][bundle] = figures.traffic(30000, 6e7) | _counts(random)
    return {
        "config": _split_limits(random),
        "brokers": {broker: {"lastStats": record} for broker, record in stats.items()},
        "bundles": {name: {"longTerm": figures.traffic(30000, 6e7)} for name in _some(random, bundles, 0.8)},
        "bundleCounts": {name: random.choice((1, 3, 4, 127, 128, -1)) for name in SPLIT_NAMESPACES},
    }


def _split_strategy(random: Random, figures: Figures) -> Case:
    names = _split_names(random, 12)
    odd = {}
    for name in _some(random, names, 0.15):
        lower, upper = (int(edge, 16) for edge in name.rpartition("/")[2].split("_"))
        inside = random.randint(lower + 1, max(upper - 1, lower + 1))
        odd[name] = random.choice((None, [], [inside], [inside, inside + 1], "error"))
    return {
        "config": _split_limits(random)
        | _setting(random, loadBalancerMaxNumberOfBundlesToSplitPerCycle=(0, 1, 3, 10))
        | {"loadBalancerNamespaceBundleSplitConditionHitCountThreshold": random.choice((0, 0, 1, 3))},
        "bundleCounts": {name: random.choice((1, 3, 4, 127, 128, -1)) for name in SPLIT_NAMESPACES},
        "notOwnedBundles": _some(random, names, 0.1),
        "splittingBundles": _some(random, names, 0.05),
        "boundary": odd,
        "steps": [
            {
                "bundleStats": {
                    name: figures.traffic(30000, 6e7) | _counts(random)
                    for name in _shuffled(random, _some(random, names, 0.9))
                },
                "expected": {},
            }
            for _ in range(random.randint(1, 5))
        ],
    }


def _scalable_topic(random: Random, figures: Figures) -> Case:
    """One of up to eight segments, some with a single key hash; no two hot ones are equal, as Pulsar takes either."""
    starts = sorted({0, *random.choices((1, 2, 0x0FFF, 0x7FFF, 0x8000, 0xFFFE, 0xFFFF), k=random.randint(0, 8))})
    limits = {"msgRateIn": 2000.0, "msgThroughputIn": 6e6, "msgRateOut": 6000.0, "msgThroughputOut": 3e7}
    keys = ("MsgRateIn", "BytesRateIn", "MsgRateOut", "BytesRateOut")
    return {
        "config": {f"scalableTopicSplit{key}Threshold": limit for key, limit in zip(keys, limits.values(), strict=True)}
        | _setting(random, scalableTopicMaxSegments=(1, 2, 4, 6), scalableTopicAutoScaleEnabled=(True, True, False)),
        "segments": [
            {"id": number, "start": start, "end": next_ - 1, "active": random.random() < 0.9}
            | {key: limit * random.choice((0, 0.5, 1, random.uniform(0.9, 3))) for key, limit in limits.items()}
            for number, (start, next_) in enumerate(itertools.pairwise([*starts, 0x10000]))
        ],
    }


GENERATORS: dict[str, Callable[[Random, Figures], Case]] = {
    "OverloadShedder": _overload_shedder,
    "ThresholdShedder": _threshold_shedder,
    "UniformLoadShedder": _uniform_load_shedder,
    "AvgShedder": _avg_shedder,
    "LeastLongTermMessageRate": _least_long_term_message_rate,
    "LeastResourceUsageWithWeight": _least_resource_usage,
    "RoundRobinBrokerSelector": _round_robin,
    "ext.TransferShedder": _transfer_shedder,
    "ext.LeastResourceUsageWithWeight": _extensible_placement,
    "ext.BrokerLoadData": _broker_load_data,
    "TopKBundles": _top_bundles,
    "NamespaceBundleStats.compare": _compare_stats,
    "LocalBrokerData": _local_broker_data,
    "order": _map_order,
    "sort": _sort,
    "SimpleLoadManagerImpl.doLoadRanking": _simple_ranking,
    "SimpleLoadManagerImpl.getLeastLoaded": _simple_placement,
    "SimpleLoadManagerImpl.doLoadShedding": _simple_shedding,
    "SimpleLoadManagerImpl.doNamespaceBundleSplit": _simple_splits,
    "split.algorithm": _split_algorithm,
    "splitBundles": _split_bundles,
    "split.BundleSplitterTask": _bundle_splitter_task,
    "split.DefaultNamespaceBundleSplitStrategy": _split_strategy,
    "split.AutoScalePolicyEvaluator": _scalable_topic,
}
"""What makes a strategy's cases: records, shedders, placement, splitting, the Simple manager."""
