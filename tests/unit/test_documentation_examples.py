"""The worked examples of Pulsar's own documentation: what the page says, and where released code differs from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pulsar_advisor.model.load.resource_usage import overridden_bandwidth_limit_kbit_per_s
from pulsar_advisor.shedding import overload_shedder, threshold_shedder
from pulsar_advisor.splitting.bundle_split_option import BundleSplitOption, BundleTopics, Quotas
from pulsar_advisor.splitting.registry import split_algorithm
from unit.shedding.leader import broker, broker_codes, bundle, settings, view

FILE = Path(__file__).parents[1] / "data" / "vectors" / "documentation_examples.json"
EXAMPLES: dict[str, dict[str, Any]] = {entry["id"]: entry for entry in json.loads(FILE.read_text(encoding="utf-8"))}
SPLITS = [name for name, entry in EXAMPLES.items() if "algorithm" in entry]
MEGABYTE = 1024 * 1024


def _hex(texts: list[str]) -> list[int]:
    return [int(text, 16) for text in texts]


def _topics(entry: dict[str, Any]) -> BundleTopics | None:
    if "topicHashes" in entry:
        hashes = _hex(list(entry["topicHashes"].values()))
        return BundleTopics(np.array(hashes), np.zeros(len(hashes), dtype=bool), np.zeros((len(hashes), 4)))
    if "topics" in entry:
        topics = entry["topics"].values()
        traffic = [[topic["msgRate_per_s"], 0, topic["throughput_megabytes_per_s"] * MEGABYTE, 0] for topic in topics]
        hashes = _hex([topic["hash"] for topic in topics])
        return BundleTopics(np.array(hashes), np.ones(len(hashes), dtype=bool), np.array(traffic, dtype=np.float64))
    return None


def _boundaries(entry: dict[str, Any]) -> list[int]:
    lower, upper = _hex(entry["bundle"].split("_"))
    quotas = None
    if "loadBalancerNamespaceBundleMaxMsgRate" in entry:
        quotas = Quotas(
            entry["loadBalancerNamespaceBundleMaxMsgRate"], entry["loadBalancerNamespaceBundleMaxBandwidthMbytes"], 10
        )
    option = BundleSplitOption(lower, upper, _topics(entry), tuple(_hex(entry.get("positions", []))), quotas)
    return list(split_algorithm(entry["algorithm"]).split_boundary(option) or ())


@pytest.mark.parametrize("name", SPLITS)
def test_released_code_cuts_where_the_examples_say(name: str) -> None:
    entry = EXAMPLES[name]
    assert _boundaries(entry) == _hex(entry.get("released", entry["documented"])["boundaries"])


@pytest.mark.parametrize("name", [name for name in SPLITS if "between" in EXAMPLES[name]["documented"]])
def test_the_cuts_fall_between_the_topics_the_page_names(name: str) -> None:
    entry = EXAMPLES[name]
    order = sorted(entry["topics"], key=lambda topic: int(entry["topics"][topic]["hash"], 16))
    hashes = _hex([entry["topics"][topic]["hash"] for topic in order])
    cuts = [int(np.searchsorted(hashes, boundary)) for boundary in _boundaries(entry)]
    assert [f"{order[cut - 1]}|{order[cut]}" for cut in cuts] == entry["documented"]["between"]


def test_overload_shedder_moves_the_share_the_page_says() -> None:
    entry = EXAMPLES["doc-overload"]
    hot = broker(entry["usage_percent"], ["one", "two"], mib_per_s=100)
    of = settings(loadBalancerBrokerOverloadedThresholdPercentage=entry["threshold_percent"])
    load = view({"hot": hot}, {"one": bundle(mib_per_s=90), "two": bundle(mib_per_s=10)}, of=of)
    decision, _ = overload_shedder.decide(load, of, overload_shedder.Memory())
    planned_percent = 100 * decision.bundles.right[0] / (100 * MEGABYTE)
    assert planned_percent == pytest.approx(entry["documented"]["unload_share_percent"])


def test_threshold_shedder_sheds_the_brokers_the_page_says() -> None:
    entry = EXAMPLES["doc-threshold"]
    of = settings(loadBalancerBrokerThresholdShedderPercentage=entry["loadBalancerBrokerThresholdShedderPercentage"])
    brokers = {
        name: broker(percent, ["one", "two"] if percent > 20 else [], mib_per_s=400)
        for name, percent in entry["usage_percent"].items()
    }
    load = view(brokers, {"one": bundle(mib_per_s=200), "two": bundle(mib_per_s=200)}, of=of)
    decision, _ = threshold_shedder.decide(load, of, threshold_shedder.Memory())
    shedding = [name for name, code in broker_codes(load, decision).items() if code == "above_mean"]
    assert shedding == entry["documented"]["shedding_brokers"]
    assert decision.figures["mean_usage_ratio"] == pytest.approx(entry["documented"]["average_percent"] / 100)


@pytest.mark.parametrize(("speed_gbps", "limit_kbit_per_s"), [(10, 20_000_000.0), (None, None)])
def test_an_overridden_nic_speed_sets_the_bandwidth_limits(
    speed_gbps: float | None, limit_kbit_per_s: float | None
) -> None:
    setting = EXAMPLES["doc-nic"]["setting"]
    of = settings(**({setting: speed_gbps} if speed_gbps else {}))
    assert overridden_bandwidth_limit_kbit_per_s(of, detected_nics=2) == limit_kbit_per_s


def test_every_example_is_held() -> None:
    assert set(EXAMPLES) == {*SPLITS, "doc-overload", "doc-threshold", "doc-nic"}
