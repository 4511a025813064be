"""Puts a vector to the real Java classes, and compares what they answer with the vector or with our engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from parity import run_vectors, split_vectors
from parity.java_classes import WITHOUT_EXTENSIBLE_MANAGER, JavaClasses
from pulsar_advisor.model.errors import AdvisorError, UsageError
from pulsar_advisor.model.java.maps import hash_map_order, string_hashes
from pulsar_advisor.model.load.resource_usage import maximum, weighted_maximum
from vector_load import resources, settings_of

Json = Mapping[str, Any]

ALGORITHMS = ("range_equally_divide", "topic_count_equally_divide", "specified_positions_divide")
FLOW = "flow_or_qps_equally_divide"


def replayable(case: Json) -> dict[str, Any] | None:
    """The case in the form the Java side reads; None for one that describes a rule in words or a call over REST."""
    if "strategy" in case:
        return dict(case)
    task = case["algorithm or task"]
    convert = next((form for name, form in HAND_MADE.items() if task == name or task.startswith(f"{name}(")), None)
    return None if convert is None else {"id": case["id"], "config": case["config"], **convert(case)}


def _algorithm(case: Json) -> dict[str, Any]:
    name, _, force = case["algorithm or task"].partition(" ")
    given = case["input"]
    topics = given.get("topics") or []
    stats: Mapping[str, Json] = {}
    if isinstance(topics, str):
        topics, stats = split_vectors._spelled_out(topics, given["rates"])
    elif topics and isinstance(topics[0], dict):
        topics, stats = [record["topic"] for record in topics], {record["topic"]: record for record in topics}
    return {
        "strategy": "split.algorithm",
        "algorithm": name,
        "lower": hex(given.get("lower", 0)),
        "upper": hex(given.get("upper", 0xFFFFFFFF)),
        "topics": topics,
        "topicStats": stats,
        "positions": given.get("positions"),
        "force": bool(force),
    }


def _split_bundles(case: Json) -> dict[str, Any]:
    given = case["input"]
    given_boundaries = given.get("boundaries", [])
    lower, upper = given["bundle"].split("_")
    boundaries = [boundary for boundary in given_boundaries if isinstance(boundary, str)]
    return {
        "strategy": "split.splitBundles",
        "bundle": given["bundle"],
        "boundaries": boundaries or sorted({"0x00000000", lower, upper, "0xffffffff"}),
        "numBundles": given.get("numBundles", 2),
        "positions": given.get("positions") or [edge for edge in given_boundaries if isinstance(edge, int)],
    }


def _hash(case: Json) -> dict[str, Any]:
    return {"strategy": "split.hash", **case["config"], **case["input"]}


def _bundle_splitter_task(case: Json) -> dict[str, Any]:
    broker, bundles = case["input"]["broker"], case["input"]["bundles"]
    return {"strategy": "split.BundleSplitterTask", "brokers": {broker: {"lastStats": bundles}}, "bundles": bundles}


def _split_strategy(case: Json) -> dict[str, Any]:
    given = case["input"]
    bundles = given["bundles_in_iteration_order"]
    record = {key.removesuffix("_each"): value for key, value in given.items() if key.endswith("_each")}
    return {
        "strategy": "split.DefaultNamespaceBundleSplitStrategy",
        "boundary": {name: [int(boundary, 16)] for name, boundary in given["boundary"].items()},
        "notOwnedBundles": [] if given["owner"] else bundles,
        "bundleCounts": {name.rpartition("/")[0]: given.get("namespace_bundle_count", 0) for name in bundles},
        "splittingBundles": [name for name, state in given.get("channel", {}).items() if state == "Splitting"],
        "steps": [{"bundleStats": dict.fromkeys(bundles, record)}] * given.get("cycles", 1),
    }


HAND_MADE: dict[str, Callable[[Json], dict[str, Any]]] = {
    **dict.fromkeys((*ALGORITHMS, "specified_positions_divide (force)", FLOW), _algorithm),
    "splitBundles": _split_bundles,
    "topic name -> crc32 -> bundle": _hash,
    "crc32 of a raw string": _hash,
    "BundleSplitterTask": _bundle_splitter_task,
    "DefaultNamespaceBundleSplitStrategy": _split_strategy,
}


def difference_from_vector(case: Json, java: JavaClasses) -> str | None:
    """How the real classes differ from what the vector says of them; None if they agree."""
    question = replayable(run_vectors.as_recorded(dict(case), java.release))
    assert question is not None
    reply = java.ask(question)
    expected = [_figures(step, question) for step in run_vectors._expected(dict(case), java.release)]
    answers = [_translated(want, answer) for want, answer in zip(expected, reply.get("answers", ()), strict=False)]
    if len(answers) == len(expected) and run_vectors._agree(expected, answers):
        return None
    return f"{case['id']} on {java.release}: expected {expected}, Java says {reply}"


def _figures(expected: Json, question: Json) -> dict[str, Any]:
    """What the vector expects, without what it says in words and the children that follow from boundaries."""
    words = run_vectors.DESCRIPTIONS | split_vectors.DESCRIPTIONS
    derived = {"children"} if question["strategy"] == "split.algorithm" else set()
    return {key: value for key, value in expected.items() if key not in words | derived}


def _translated(expected: Json, answer: dict[str, Any]) -> dict[str, Any]:
    """An answer with what hand-made vectors say in forms of their own: numbers of bundles, hexadecimal digits."""
    if "hash" in answer:
        answer["hash_hex"] = f"0x{answer['hash']:08x}"
    if isinstance(expected.get("selected"), int):
        answer["selected"] = len(answer["selected"])
    if isinstance(expected.get("decisions"), int):
        answer["decisions"] = len(answer["decisions"])
        answer["failure_counter_updates"] = answer["counters"].get("Failure/Unknown", 0)
    return answer


# Comparing with our engine


@dataclass(frozen=True)
class Verdict:
    """How one case ended: `absent` (the release can't run it), or where Java and we differ (None: nowhere)."""

    absent: str | None = None
    difference: str | None = None


def compare(case: Json, java: JavaClasses) -> Verdict:
    """Put a case to the real classes and to our engine, and compare all they answer to the last bit."""
    if java.release == WITHOUT_EXTENSIBLE_MANAGER:
        # Its managers don't pass the active brokers to strategies.
        case = {**case, "steps": [_without_active_brokers(step) for step in case["steps"]]} if "steps" in case else case
    question = replayable(case)
    assert question is not None
    reply = java.ask(question)
    if "absent" in reply:
        return Verdict(absent=reply["absent"])
    try:
        ours: list[Any] | None = our_answers(case, java.release)
        refusal = ""
    except AdvisorError as error:
        ours, refusal = None, str(error)
    theirs = reply.get("answers")
    if theirs and case.get("strategy") == "LocalBrokerData":
        theirs[0].pop("print")
    both_refuse = ours is None and theirs is None
    same = both_refuse or (ours is not None and theirs is not None and _equal(theirs, ours))
    return Verdict() if same else Verdict(difference=f"Java {reply.get('error') or theirs}\nours {refusal or ours}")


def _without_active_brokers(step: Json) -> dict[str, Any]:
    return {key: value for key, value in step.items() if key != "activeBrokers"}


def our_answers(case: Json, release: str) -> list[Any]:
    """Our engine's answers, one per step."""
    strategy = case.get("strategy") or case["algorithm or task"]
    if strategy == "LocalBrokerData":
        return [_broker_maxima(case, release)]
    if run := run_vectors.RUNNERS.get(strategy):
        return run(dict(case), release)
    kind = max((name for name in split_vectors.RUNNERS if strategy.startswith(name)), key=len)
    try:
        answers = split_vectors.RUNNERS[kind](case, release)
    except UsageError:
        answers = {"result": "IllegalArgument"}
    if strategy == "split.BundleSplitterTask":
        answers = _as_a_hash_map(answers, release)
    return answers if isinstance(answers, list) else [answers]


def _broker_maxima(case: Json, release: str) -> dict[str, Any]:
    """Both maxima of a report; how Pulsar prints its percentages in logs is left out."""
    usage, limit = resources([case["brokers"]["b"]])
    settings = settings_of(case["config"], release)
    return {
        "maxResourceUsage": float(maximum(usage, limit)[0]),
        "weighted": float(weighted_maximum(usage, limit, settings)[0]),
    }


def _as_a_hash_map(answer: Any, release: str) -> dict[str, Any]:
    """The task's selection as Java's map keeps it; up to 2.11 it doesn't say on which broker a bundle is."""
    bundles = list(answer["selected"])
    owners = answer["selected"] if release != WITHOUT_EXTENSIBLE_MANAGER else dict.fromkeys(bundles)
    in_order = [bundles[position] for position in hash_map_order(string_hashes(bundles))]
    return {"selected": {bundle: owners[bundle] for bundle in in_order}}


def _equal(theirs: list[Any], ours: list[Any]) -> bool:
    return (
        len(theirs) == len(ours)
        and run_vectors._agree(theirs, ours)
        and all(map(_same_order, theirs, ours))
        and all(("error" in their) == ("error" in our) for their, our in zip(theirs, ours, strict=True))
    )


def _same_order(theirs: Json, ours: Json) -> bool:
    """Source brokers, and bundles to split, in the order in which Pulsar acts on them."""
    return all(
        list(theirs[key]) == list(ours[key]) for key in ("unload", "selected") if isinstance(theirs.get(key), dict)
    )
