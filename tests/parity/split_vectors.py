"""Run test vectors of bundle splitting and of the filters in front of placement: `run_case(case, release)`."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pulsar_advisor.model.cluster.bundle_range import FULL_UPPER_BOUND, contains, format_range, topic_hash
from pulsar_advisor.model.cluster.cluster_state import IsolationPolicy, rate_per_s, throughput_bytes_per_s
from pulsar_advisor.model.cluster.isolation_policies import needs_secondaries
from pulsar_advisor.model.cluster.namespaces import bundle_namespace
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.model.java.maps import concurrent_map_order, string_hashes
from pulsar_advisor.model.load.extensible_load import extensible_load
from pulsar_advisor.placement.anti_affinity import domains, least_occupied, may_unload
from pulsar_advisor.placement.filters import fewest_bundles
from pulsar_advisor.splitting.auto_scale_policy_evaluator import splits_by_itself
from pulsar_advisor.splitting.boundaries import can_split, split_bundles
from pulsar_advisor.splitting.bundle_split_option import BundleSplitOption, BundleTopics, Quotas
from pulsar_advisor.splitting.bundle_splitter_task import select as select_modular
from pulsar_advisor.splitting.default_namespace_bundle_split_strategy import HitRules, Surroundings, run_cycle
from pulsar_advisor.splitting.limits import BundleFigures, SplitLimits, sessions_of
from pulsar_advisor.splitting.registry import SPLIT_ALGORITHMS, split_algorithm
from pulsar_advisor.splitting.simple_load_manager_impl import select as select_simple
from pulsar_advisor.splitting.specified_positions_divide import forced_split_boundary
from pulsar_advisor.splitting.verdicts import SplitOutcome
from states import WHOLE, BrokerRow, BundleRow, cluster_state
from vector_load import figures, settings_of

Json = Mapping[str, Any]
ISOLATION = IsolationPolicy("p", ("t/n",), ("a",), (), 1, 100)
Outcome = tuple[bool | None, object, object, str]
"""Passed (None: not applicable), expected, actual, note."""

FAILURES = (
    SplitOutcome.NARROW_RANGE,
    SplitOutcome.BUNDLE_COUNT_UNKNOWN,
    SplitOutcome.ALGORITHM_FAILS,
    SplitOutcome.NO_SINGLE_BOUNDARY,
)
"""What increments the counter Failure/Unknown."""

DESCRIPTIONS = frozenset({"note", "test_asserts", "asserted", "why"})
"""Keys of an expectation that describe a result in words."""


def run_case(case: Json, release: str) -> Outcome:
    """One case with the settings and the behaviour of one release."""
    kind = case.get("strategy") or case["algorithm or task"]
    # Cases of one kind carry what is special about them behind the kind's name.
    known = max((name for name in RUNNERS if kind.startswith(name)), key=len, default=None)
    if known is None:
        return None, case["expected"], None, f"'{kind}' is no matter of splitting or filtering"
    expected = (case.get("expectedIn") or {}).get(release)
    if expected is None:
        expected = [step["expected"] for step in case["steps"]] if "steps" in case else case["expected"]
    try:
        actual = RUNNERS[known](case, release)
    except UsageError as refusal:
        actual = {"result": "IllegalArgument", "error": str(refusal)}
    return _agrees(expected, actual), expected, actual, ""


def _agrees(expected: Any, actual: Any) -> bool:
    """Whether the parts of an answer that a vector speaks of are as it says; each part is compared whole."""
    if isinstance(expected, list) and isinstance(actual, list) and any(isinstance(item, dict) for item in expected):
        return len(expected) == len(actual) and all(map(_agrees, expected, actual))
    if not (isinstance(expected, dict) and isinstance(actual, dict)):
        return bool(expected == actual)
    return all(
        ("error" in actual) if key == "error" else key in actual and _same(wanted, actual[key])
        for key, wanted in expected.items()
        if key not in DESCRIPTIONS
    )


def _same(expected: Any, actual: Any) -> bool:
    if isinstance(expected, dict) and isinstance(actual, dict):
        spoken = {key: value for key, value in expected.items() if key not in DESCRIPTIONS}
        # The vectors' keys are sorted; the order of an answer is held by the comparison with the real classes.
        return spoken.keys() == actual.keys() and all(_same(value, actual[key]) for key, value in spoken.items())
    return bool(expected == actual)


# The set arithmetic


def _bounds(text: str) -> tuple[int, int]:
    lower, upper = text.rpartition("/")[2].split("_")
    return int(lower, 16), int(upper, 16)


def _hex(boundaries: Sequence[int]) -> list[str]:
    return [f"0x{boundary:08x}" for boundary in boundaries]


def _split(case: Json, release: str) -> object:
    given = case["input"]
    lower, upper = _bounds(given["bundle"])
    boundaries = given.get("boundaries", ())
    cuts = given.get("positions") or [position for position in boundaries if isinstance(position, int)]
    if not cuts:
        count = given.get("numBundles", 2)
        cuts = [lower + index * ((upper - lower) // count) for index in range(1, count)]
    existing = [int(boundary, 16) for boundary in boundaries if isinstance(boundary, str)]
    existing = existing or sorted({0, lower, upper, FULL_UPPER_BOUND})
    boundaries = split_bundles(existing, lower, upper, cuts)
    children = [bundle for bundle in itertools.pairwise(boundaries) if lower <= bundle[0] and bundle[1] <= upper]
    return {"boundaries": _hex(boundaries), "children": [format_range(*child) for child in children]}


def _can_split(case: Json, release: str) -> object:
    lower, upper = _bounds(case["input"]["bundle"])
    refusal = {"result": "error", "http_status": 412, "reason": f"range width is {upper - lower} (not larger than 1)"}
    return {"result": "ok"} if can_split(lower, upper) else refusal


def _halve_repeatedly(case: Json, release: str) -> object:
    boundaries = tuple(int(boundary, 16) for boundary in case["input"]["boundaries"])
    rounds = {}
    for number in range(1, case["input"]["rounds"] + 1):
        for lower, upper in itertools.pairwise(boundaries):
            cuts = split_algorithm("range_equally_divide").split_boundary(BundleSplitOption(lower, upper)) or ()
            boundaries = split_bundles(boundaries, lower, upper, cuts)
        rounds[f"after_round_{number}"] = _hex(boundaries)
    return rounds


def _equal_bundles(count: int) -> tuple[int, ...]:
    segment = (FULL_UPPER_BOUND + 1) // count
    return (*(index * segment for index in range(count)), FULL_UPPER_BOUND)


def _initial(case: Json, release: str) -> object:
    return {"boundaries": _hex(_equal_bundles(case["config"]["numBundles"]))}


def _look_up(case: Json, release: str) -> object:
    config, given = case["config"], case["input"]
    if "boundaries" in config:
        boundaries = tuple(int(boundary, 16) for boundary in config["boundaries"])
    else:
        boundaries = _equal_bundles(config["numBundles"])
    position = int(given["hash"], 16) if "hash" in given else topic_hash(given["topic"])
    ranges = list(itertools.pairwise(boundaries))
    member = next(format_range(*bounds) for bounds in ranges if contains(*bounds, position))
    found = position < FULL_UPPER_BOUND
    return {
        "hash": position,
        "hash_hex": f"0x{position:08x}",
        "bundle": member if found else None,
        "lookup": "ok" if found else "index out of bounds error in Pulsar's lookup",
        "range_membership": member,
    }


def _crc32(case: Json, release: str) -> object:
    position = topic_hash(case["input"]["string"])
    return {"hash": position, "hash_hex": f"0x{position:08x}"}


# The algorithms


def _topics(given: Json, stats: Json) -> BundleTopics:
    """Topics as names (with their statistics beside them), as objects that carry theirs, or as bare hashes."""
    topics = given.get("topics") or []
    if isinstance(topics, str):
        names, stats = _spelled_out(topics, given["rates"])
        topics = names
    if not topics and "hashes" in given:
        hashes = given["hashes"]
        return BundleTopics(np.array(hashes, dtype=np.int64), np.zeros(len(hashes), bool), np.zeros((len(hashes), 4)))
    records = [topic if isinstance(topic, dict) else {"topic": topic, **stats.get(topic, {})} for topic in topics]
    return BundleTopics(
        hash=np.array([topic_hash(record["topic"]) for record in records], dtype=np.int64),
        loaded=np.array([len(record) > 1 or record["topic"] in stats for record in records], dtype=np.bool_),
        traffic=figures(records).reshape(len(records), 4),
    )


def _spelled_out(topics: str, rates: str) -> tuple[list[str], dict[str, Json]]:
    """Names and rates of a case that describes them: `x{1..12}-y{0..19} plus .../z`, `i=1..5: in 1 out 2; z: ...`."""
    pattern, _, single = topics.partition(" plus .../")
    prefix = pattern.rpartition("/")[0]
    groups = [range(int(low), int(high) + 1) for low, high in re.findall(r"\{(\d+)\.\.(\d+)\}", pattern)]
    literals = re.split(r"\{\d+\.\.\d+\}", pattern)
    rules = re.findall(r"(?:i=(\d+)\.\.(\d+)|(\w+)): in ([\d.]+) out ([\d.]+)", rates)
    throughput = float(re.findall(r"every throughput in=out=(\d+)", rates)[0])

    def record(rate_in: str, rate_out: str) -> Json:
        return {
            "msgRateIn": float(rate_in),
            "msgRateOut": float(rate_out),
            "msgThroughputIn": throughput,
            "msgThroughputOut": throughput,
        }

    stats = {}
    for numbers in itertools.product(*groups):
        name = "".join(itertools.chain(*zip(literals, map(str, numbers), strict=False))) + literals[-1]
        low_high = next(rule for rule in rules if rule[0] and int(rule[0]) <= numbers[0] <= int(rule[1]))
        stats[name] = record(*low_high[3:])
    named = next(rule for rule in rules if rule[2])
    stats[f"{prefix}/{single}"] = record(*named[3:])
    return list(stats), stats


def _run_algorithm(
    name: str, given: Json, stats: Json, settings: LoadBalancerSettings, *, force: bool
) -> list[int] | None:
    option = BundleSplitOption(
        lower=_position(given.get("lower", 0)),
        upper=_position(given.get("upper", FULL_UPPER_BOUND)),
        topics=_topics(given, stats),
        positions=tuple(given.get("positions") or given.get("splitBoundaries") or ()),
        quotas=Quotas.from_settings(settings),
    )
    boundaries = forced_split_boundary(option) if force else split_algorithm(name).split_boundary(option)
    return None if boundaries is None else list(boundaries)


def _position(value: int | str) -> int:
    return value if isinstance(value, int) else int(value, 16)


def _algorithm(case: Json, release: str) -> object:
    """A case of the hand-made file: `<algorithm>` or `specified_positions_divide (force)`."""
    name, _, force = case["algorithm or task"].partition(" ")
    boundaries = _run_algorithm(name, case["input"], {}, settings_of(case["config"], release), force=bool(force))
    lower, upper = case["input"].get("lower", 0), case["input"].get("upper", FULL_UPPER_BOUND)
    edges = (lower, *(boundaries or ()), upper)
    children = [format_range(*child) for child in itertools.pairwise(edges)]
    topics = _topics(case["input"], {}).hash.tolist()
    return {"boundaries": boundaries, "children": children, "hashes": topics}


def _generated_algorithm(case: Json, release: str) -> object:
    settings = settings_of(case["config"], release)
    stats = case.get("topicStats") or {}
    return {"boundaries": _run_algorithm(case["algorithm"], case, stats, settings, force=bool(case.get("force")))}


def _through_rest(case: Json, release: str) -> object:
    """A split through the admin API: the effect on the namespace's boundaries."""
    given, name = case["input"], case["algorithm or task"].partition(" ")[0]
    if "bundle_lower" in given:
        return _symbolic_split(given, release)
    lower, upper = _bounds(given["bundle"])
    existing = [int(boundary, 16) for boundary in given.get("boundaries", ("0x0", "0xffffffff"))]
    # The vector of positions on the upper bound names no topics; its bundle must have two for positions to matter.
    topics = given.get("topics") or ["persistent://t/n/a", "persistent://t/n/b"]
    boundaries = _run_algorithm(
        name,
        {**given, "topics": topics, "lower": lower, "upper": upper},
        {},
        settings_of(case["config"], release),
        force=False,
    )
    after = split_bundles(existing, lower, upper, boundaries) if boundaries else tuple(existing)
    if name == "topic_count_equally_divide":
        return {"boundaries": boundaries}
    return {
        "numBundles": len(after) - 1,
        "boundaries": _hex(after),
        "bundles": [format_range(*bundle) for bundle in itertools.pairwise(after)],
        "http_status": 204,
    }


def _symbolic_split(given: Json, release: str) -> object:
    lower, upper = 0x40000000, 0x80000000
    values = {"L": lower, "U": upper, "L+(U-L)/2+100": lower + (upper - lower) // 2 + 100}
    positions = [values[position] for position in given["splitBoundaries"]]
    boundaries = _run_algorithm(
        "specified_positions_divide",
        {
            "lower": lower,
            "upper": upper,
            "positions": positions,
            "topics": ["persistent://t/n/a", "persistent://t/n/b"],
        },
        {},
        settings_of({}, release),
        force=False,
    )
    names = {position: name for name, position in values.items()}
    return {"new_boundary": names[(boundaries or [0])[0]], "numBundles_delta": len(boundaries or [])}


def _algorithm_names(case: Json, release: str) -> object:
    known = {strategy.name for strategy in SPLIT_ALGORITHMS}
    return {
        "resolved": [
            name.removesuffix("_divide").removesuffix("_equally") if name in known else None
            for name in case["input"]["names"]
        ]
    }


def _unsupported_algorithm(case: Json, release: str) -> object:
    try:
        split_algorithm(case["input"]["splitAlgorithmName"])
    except UsageError:
        return {"http_status": 412}
    return {"http_status": 204}


# Who decides


def _figures(stats: Mapping[str, Json], traffic: Mapping[str, Json]) -> tuple[BundleFigures, list[str]]:
    """Figures in this order of bundles, and the names of the namespaces they refer to."""
    namespaces = sorted({name.rpartition("/")[0] for name in stats})
    bounds = [_bounds(name) for name in stats]

    def whole(key: str) -> np.ndarray:
        return np.array([record.get(key, 0) for record in stats.values()], dtype=np.int64)

    columns = figures([traffic.get(name, {}) for name in stats]).reshape(len(stats), 4)
    rows = BundleFigures(
        index=np.arange(len(stats), dtype=np.int32),
        namespace=np.array([namespaces.index(name.rpartition("/")[0]) for name in stats], dtype=np.int32),
        lower=np.array([lower for lower, _ in bounds], dtype=np.int64),
        upper=np.array([upper for _, upper in bounds], dtype=np.int64),
        topics=whole("topics"),
        sessions=sessions_of(whole("producerCount"), whole("consumerCount")),
        msg_rate=rate_per_s(columns),
        msg_throughput=throughput_bytes_per_s(columns),
    )
    return rows, namespaces


def _counts(namespaces: Sequence[str], counts: Json, settings: LoadBalancerSettings) -> np.ndarray:
    return np.array(
        [counts.get(name, 0) if bundle_namespace(f"{name}/", settings) == name else -1 for name in namespaces],
        dtype=np.int64,
    )


def _bundle_splitter_task(case: Json, release: str) -> object:
    settings = settings_of(case["config"], release)
    if "input" in case:
        broker, bundles = case["input"]["broker"], case["input"]["bundles"]
        brokers: Mapping[str, Json] = {broker: {"lastStats": bundles}}
        counts: Json = {}
    else:
        brokers, bundles, counts = case["brokers"], case["bundles"], case.get("bundleCounts") or {}
    visits = []
    for broker in _in_map_order(list(brokers)):
        stats = brokers[broker].get("lastStats") or {}
        visits += [(broker, bundle, stats[bundle]) for bundle in _in_map_order(list(stats))]
    rows, namespaces = _figures(
        {bundle: record for _, bundle, record in visits},
        {bundle: record.get("longTerm") or {} for bundle, record in bundles.items()},
    )
    limits = SplitLimits.from_settings(settings, bandwidth_bits=32)
    verdicts = select_modular(rows, limits, _counts(namespaces, counts, settings))
    selected = {visits[row][1]: visits[row][0] for row in verdicts.chosen().tolist()}
    return {"selected": len(selected) if "input" in case else selected}


def _in_map_order(names: Sequence[str]) -> Iterator[str]:
    return (names[position] for position in concurrent_map_order(string_hashes(names)))


def _simple_load_manager(case: Json, release: str) -> object:
    given = case["input"]
    settings = settings_of(case["config"], release)
    rows, _ = _figures({given["bundle"]: given}, {given["bundle"]: given})
    count = np.array([given["namespace_bundle_count"]], dtype=np.int64)
    limits = SplitLimits.from_settings(settings, bandwidth_bits=64)
    verdicts = select_simple(rows, limits, count, np.zeros(1, dtype=np.int32))
    return {"split": bool(len(verdicts.chosen()))}


def _extensible_cycles(
    steps: Sequence[Mapping[str, Json]], case: Json, settings: LoadBalancerSettings
) -> list[dict[str, Any]]:
    hits: dict[str, int] = {}
    failures = 0
    answers = []
    for stats in steps:
        names = list(stats)
        rows, namespaces = _figures(stats, stats)

        def boundaries(row: int, names: list[str] = names, rows: BundleFigures = rows) -> tuple[int, ...] | None:
            lower, upper = int(rows.lower[row]), int(rows.upper[row])
            given = case["boundary"].get(names[row], [lower + (upper - lower) // 2])
            if given == "error":
                raise UsageError("the look-up of the boundary fails")
            return None if given is None else tuple(given) if isinstance(given, list) else (given,)

        cycle = run_cycle(
            rows,
            np.array([hits.get(name, 0) for name in names], dtype=np.int64),
            SplitLimits.from_settings(settings, bandwidth_bits=32),
            HitRules.from_settings(settings),
            Surroundings(
                name=names.__getitem__,
                owned=np.array([name not in case["notOwnedBundles"] for name in names], dtype=np.bool_),
                bundle_count=_counts(namespaces, case["bundleCounts"], settings),
                splitting=tuple(case["splittingBundles"]),
                boundaries=boundaries,
            ),
        )
        failures += int(np.isin(cycle.verdicts.code, FAILURES).sum())
        hits = {name: int(count) for name, count in zip(names, cycle.hits, strict=True) if count}
        decisions = [
            {
                "bundle": names[row],
                "source": "self:8080",
                "children": [
                    format_range(int(rows.lower[row]), cut),
                    format_range(cut, int(rows.upper[row])),
                ],
                "label": "Success",
                "reason": reason,
            }
            for row, cut, reason in cycle.splits
        ]
        answers.append(
            {
                "decisions": sorted(decisions, key=lambda decision: str(decision["bundle"])),
                "hits": hits,
                "counters": {"Failure/Unknown": failures} if failures else {},
                **({"error": "the cycle ends with an error"} if cycle.aborted else {}),
            }
        )
    return answers


def _generated_split_strategy(case: Json, release: str) -> object:
    complete = {"boundary": {}, "notOwnedBundles": [], "bundleCounts": {}, "splittingBundles": [], **case}
    return _extensible_cycles(
        [step["bundleStats"] for step in case["steps"]], complete, settings_of(case["config"], release)
    )


def _split_strategy(case: Json, release: str) -> object:
    given, expected = case["input"], case["expected"]
    bundles = given["bundles_in_iteration_order"]
    keys = {"topics_each": "topics", "msgRateIn_each": "msgRateIn", "msgRateOut_each": "msgRateOut"}
    keys |= {"msgThroughputIn_each": "msgThroughputIn", "msgThroughputOut_each": "msgThroughputOut"}
    keys |= {"producerCount_each": "producerCount", "consumerCount_each": "consumerCount"}
    record = {ours: given[theirs] for theirs, ours in keys.items() if theirs in given}
    surroundings = {
        "boundary": {name: [int(boundary, 16)] for name, boundary in given["boundary"].items()},
        "notOwnedBundles": [] if given["owner"] else bundles,
        "bundleCounts": {name.rpartition("/")[0]: given.get("namespace_bundle_count", 0) for name in bundles},
        "splittingBundles": [name for name, state in given.get("channel", {}).items() if state == "Splitting"],
    }
    steps = [dict.fromkeys(bundles, record)] * given.get("cycles", 1)
    answers = _extensible_cycles(steps, surroundings, settings_of(case["config"], release))
    if "cycle_0" in expected:
        return {
            f"cycle_{number}": [
                {"parent": decision["bundle"], "children": decision["children"], "reason": decision["reason"]}
                for decision in answer["decisions"]
            ]
            for number, answer in enumerate(answers)
        }
    return {
        "decisions": len(answers[0]["decisions"]),
        "failure_counter_updates": answers[0]["counters"].get("Failure/Unknown", 0),
    }


# The filters in front of placement


def _steps(case: Json) -> Iterator[Json]:
    for step in case["steps"]:
        yield {**case, **step}


def _flags(names: Sequence[str], among: Sequence[str]) -> np.ndarray:
    return np.array([name in among for name in names], dtype=np.bool_)


def _numbers(names: Sequence[str], counts: Mapping[str, int]) -> np.ndarray:
    return np.array([counts.get(name, 0) for name in names], dtype=np.int64)


def _remove_most_servicing(case: Json, release: str) -> object:
    answers = []
    for step in _steps(case):
        names = list(step["candidates"])
        kept, _ = fewest_bundles(_flags(names, names), _numbers(names, step["ownedRanges"]))
        answers.append([name for name, keep in zip(names, kept, strict=True) if keep])
    return answers


def _filter_anti_affinity(case: Json, release: str) -> object:
    answers = []
    for step in _steps(case):
        names = list(step["candidates"])
        by_domain = settings_of(step["config"], release).failure_domains_enabled
        domain = domains([step.get("brokerToDomain", {}).get(name) for name in names]) if by_domain else None
        spread = least_occupied(_flags(names, names), _numbers(names, step["counts"] or {}), domain)
        answers.append([name for name, keep in zip(names, spread.kept, strict=True) if keep])
    return answers


def _may_unload(case: Json, release: str) -> object:
    answers = []
    for step in _steps(case):
        current = step["currentBroker"]
        names = list(dict.fromkeys([*step["candidates"], current, *(step["counts"] or {})]))
        candidates = _flags(names, step["candidates"])
        answers.append(may_unload(candidates, _numbers(names, step["counts"] or {}), names.index(current)))
    return answers


def _needs_secondaries(case: Json, release: str) -> object:
    return [needs_secondaries(step["primaryCandidates"], step["minLimit"]) for step in _steps(case)]


def _may_shed(case: Json, release: str) -> object:
    """Whether the bundle of a namespace with such policies is among its broker's top bundles."""
    flag = "loadBalancerSheddingBundlesWithPoliciesEnabled"

    def is_in_top_bundles(step: Json) -> bool:
        state = cluster_state(
            [BrokerRow("a:8080")],
            [BundleRow("t/n", "0x00000000_0xffffffff", "a:8080", (1, 1, 1, 1), topics=1)],
            isolation_policies=(ISOLATION,) if step["hasIsolationPolicy"] else (),
            anti_affinity_groups={"t/n": "group"} if step["hasAntiAffinityGroup"] else None,
        )
        settings = settings_of({flag: step[flag]}, release)
        return len(extensible_load(state, settings, state.captured_at_ms).top(0)) > 0

    return [is_in_top_bundles(step) for step in _steps(case)]


def _segments_that_split(case: Json, release: str) -> object:
    given = case["segments"]
    names = [f"segment://t/n/topic/{one['start']:04x}-{one['end']:04x}-{one['id']}" for one in given]
    state = cluster_state([BrokerRow("a:8080")], [BundleRow("t/n", WHOLE, "a:8080")], topics=names)
    in_order = [given[names.index(name)] for name in state.topics.names.tolist()]
    segments = replace(state.topics.segments, is_active=np.array([one["active"] for one in in_order]))
    state = replace(state, topics=replace(state.topics, segments=segments, traffic=figures(in_order)))
    due = splits_by_itself(state, settings_of(case["config"], release))
    return {"split": sorted(one["id"] for one, splits in zip(in_order, due, strict=True) if splits)}


RUNNERS: dict[str, Callable[[Json, str], object]] = {
    "range_equally_divide": _algorithm,
    "topic_count_equally_divide": _algorithm,
    "specified_positions_divide": _algorithm,
    "flow_or_qps_equally_divide": _algorithm,
    "split.algorithm": _generated_algorithm,
    "range_equally_divide via REST": _through_rest,
    "topic_count_equally_divide via REST": _through_rest,
    "specified_positions_divide via REST": _through_rest,
    "flow_or_qps_equally_divide via REST": _through_rest,
    "algorithm name lookup": _algorithm_names,
    "REST split with unsupported algorithm": _unsupported_algorithm,
    "canSplitBundle": _can_split,
    "splitBundles": _split,
    "range_equally_divide applied to every bundle": _halve_repeatedly,
    "initial equal division": _initial,
    "topic name -> crc32": _look_up,
    "topic hash": _look_up,
    "crc32 of a raw string": _crc32,
    "BundleSplitterTask": _bundle_splitter_task,
    "split.BundleSplitterTask": _bundle_splitter_task,
    "split.AutoScalePolicyEvaluator": _segments_that_split,
    "SimpleLoadManager.doNamespaceBundleSplit": _simple_load_manager,
    "DefaultNamespaceBundleSplitStrategy": _split_strategy,
    "split.DefaultNamespaceBundleSplitStrategy": _generated_split_strategy,
    "removeMostServicingBrokersForNamespace": _remove_most_servicing,
    "filterAntiAffinityGroupOwnedBrokers": _filter_anti_affinity,
    "shouldAntiAffinityNamespaceUnload": _may_unload,
    "MinAvailablePolicy.shouldFailoverToSecondary": _needs_secondaries,
    "isLoadBalancerSheddingBundlesWithPoliciesEnabled": _may_shed,
}
"""What runs a case, by the beginning of its strategy or task; the longest one counts."""
