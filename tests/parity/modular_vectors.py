"""Run vectors of the Modular manager's shedders and placement strategies against ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.load.load_data import LoadData
from pulsar_advisor.model.strategy.decision import SheddingDecision
from pulsar_advisor.placement import registry as placements
from pulsar_advisor.shedding import registry as shedders
from vector_load import Json, load_of, settings_of

Answer = Mapping[str, Any]


def moments(case: Json) -> Iterator[dict[str, Any]]:
    """The case at each step: a step's entries replace those they name, null removes one."""
    state = dict(case)
    for step in case.get("steps") or [{"expected": case["expected"]}]:
        for key, value in step.items():
            if isinstance(value, Mapping) and isinstance(state.get(key), Mapping) and key != "expected":
                merged = {**state[key], **value}
                state[key] = {name: entry for name, entry in merged.items() if entry is not None}
            else:
                state[key] = value
        yield dict(state)
        for only_once in ("counter", "activeBrokers", "emptyLoadData"):
            state.pop(only_once, None)


def shed(case: Json, release: str) -> list[Answer]:
    """Answers of a shedder step by step, on one memory."""
    strategy = shedders.load(case["strategy"])
    memory = strategy.Memory()
    answers = []
    for moment in moments(case):
        settings = settings_of(moment["config"], release)
        if moment.get("emptyLoadData"):
            moment = {**moment, "brokers": {}, "bundles": {}}
        if "activeBrokers" in moment:
            memory = memory.forget_departed(moment["activeBrokers"])
        load = load_of(moment, settings)
        decision, memory = strategy.decide(load, settings, memory)
        answers.append({"unload": unloads(load, decision), **STATE[case["strategy"]](load, decision, memory, settings)})
    return answers


def unloads(load: LoadData, decision: SheddingDecision) -> dict[str, list[str]]:
    """Source broker to bundles in order."""
    result: dict[str, list[str]] = {}
    for source, bundle in zip(decision.source.tolist(), decision.bundle.tolist(), strict=True):
        result.setdefault(load.brokers.ids[source], []).append(load.bundles.name(bundle))
    return result


def _nothing(load: LoadData, decision: SheddingDecision, memory: Any, settings: LoadBalancerSettings) -> Answer:
    return {}


def _history(load: LoadData, decision: SheddingDecision, memory: Any, settings: LoadBalancerSettings) -> Answer:
    return {"history": dict(memory.history)}


def _hits(load: LoadData, decision: SheddingDecision, memory: Any, settings: LoadBalancerSettings) -> Answer:
    everyone = load.brokers.order
    placement = placements.load("AvgShedder")
    destinations = {}
    for bundle in decision.bundle.tolist():
        choice, _ = placement.choose(load, everyone, bundle, settings, memory)
        eligible = sorted(load.brokers.ids[broker] for broker in choice.eligible)
        destinations[load.bundles.name(bundle)] = eligible[0] if len(eligible) == 1 else eligible
    return {
        "scores": decision.figures["scores"],
        "hitHigh": dict(memory.hits_high),
        "hitLow": dict(memory.hits_low),
        "destinations": destinations,
    }


STATE: dict[str, Callable[[LoadData, SheddingDecision, Any, LoadBalancerSettings], Answer]] = {
    "OverloadShedder": _nothing,
    "ThresholdShedder": _history,
    "UniformLoadShedder": _nothing,
    "AvgShedder": _hits,
}


PLACEMENTS = ("LeastLongTermMessageRate", "LeastResourceUsageWithWeight", "RoundRobinBrokerSelector")


def place(case: Json, release: str) -> list[Answer]:
    """Answers of a placement strategy step by step, on one memory."""
    strategy = placements.load(case["strategy"])
    memory = strategy.Memory()
    answers = []
    for moment in moments(case):
        settings = settings_of(moment["config"], release)
        if "counter" in moment:
            memory = replace(memory, counter=moment["counter"])
        unknown = {broker: {} for broker in moment["candidates"] if broker not in moment.get("brokers", {})}
        load = load_of({**moment, "brokers": {**moment.get("brokers", {}), **unknown}}, settings)
        row = {broker: number for number, broker in enumerate(load.brokers.ids)}
        candidates = np.array([row[broker] for broker in moment["candidates"]], dtype=np.int32)
        decision, memory = strategy.choose(load, candidates, 0, settings, memory)
        eligible = [load.brokers.ids[broker] for broker in decision.eligible]
        answer: dict[str, Any] = {"eligible": sorted(eligible)}
        if hasattr(memory, "history"):
            answer["history"] = dict(memory.history)
        if hasattr(memory, "counter"):
            answer["counter"] = memory.counter
        answer["selected"] = eligible[0] if len(eligible) == 1 else None
        answers.append(answer)
    return answers
