"""What a what-if may set: every key that is accepted can change an answer, and the others are refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest

from pulsar_advisor.model.cluster.cluster_state import RESOURCES, ClusterState, LoadManagerKind, PublishedLoad
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.errors import AdvisorError, DataNotFit, UsageError
from pulsar_advisor.placement import filters
from pulsar_advisor.placement.registry import PLACEMENTS
from pulsar_advisor.planning.plans.own_balancer import would_pulsar_act
from pulsar_advisor.planning.plans.propose import propose, propose_splits
from pulsar_advisor.planning.proposals.configured import configured_strategies
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.planning.requests.what_if import (
    NIC_SPEED,
    assumptions,
    check_what_if,
    keys_that_count,
    with_what_if,
)
from pulsar_advisor.planning.situation import Situation
from pulsar_advisor.shedding.registry import SHEDDERS
from pulsar_advisor.splitting.registry import SPLIT_ALGORITHMS, SPLIT_DECIDERS
from unit.planning.any_state import EAGER, any_state, changed, plain

RELEASES = ("4.0.8", "2.11.0")
MANAGERS: tuple[LoadManagerKind, ...] = ("modular", "extensible", "simple")
SEEDS = (0, 1, 297)
"""With the last one TransferShedder swaps bundles and goes on."""
VALUES: Mapping[type, tuple[str, ...]] = {
    bool: ("true", "false"),
    int: ("0", "1", "2", "50", "100", "100000", "-1"),
    float: ("1000", "0", "0.01", "0.5", "1", "2", "1e9"),
    str: (
        "leastMsgPerSecond",
        "org.apache.pulsar.broker.loadbalance.impl.AvgShedder",
        "org.apache.pulsar.broker.loadbalance.impl.LeastResourceUsageWithWeight",
        *(algorithm.name for algorithm in SPLIT_ALGORITHMS),
    ),
    tuple: ("t/n0,t/n1,t/n2,t/n3",),
}
ALIASES = {str(field.alias): field for field in LoadBalancerSettings.model_fields.values()}
ALONGSIDE = {
    "flowOrQpsDifferenceThresholdPercentage": {
        "defaultNamespaceBundleSplitAlgorithm": "flow_or_qps_equally_divide",
        "loadBalancerNamespaceBundleMaxMsgRate": "800",
    }
}
"""What else must be set for a key to count."""


def values_of(key: str) -> tuple[str, ...]:
    kind = ALIASES[key].annotation
    if kind in VALUES:
        return VALUES[kind]
    return VALUES[float] if "float" in str(kind) else VALUES[tuple]


def restless(state: ClusterState, seed: int) -> ClusterState:
    """Every resource counts; there are groups, domains, clients, unloads, and reports of some age."""
    inputs = frozenset({"broker_usage", "bundle_counts", "anti_affinity", "failure_domains", "recent_unloads"})
    state = changed(state, inputs, seed)
    brokers = replace(
        state.brokers,
        limit=np.full_like(state.brokers.limit, 200.0),
        report_updated_at_ms=state.captured_at_ms - 100_000 * np.arange(5),
    )
    return replace(state, brokers=brokers)


def with_idle_broker(state: ClusterState) -> ClusterState:
    """All others are equally busy; the idle one has no bundle."""
    usage = state.brokers.usage.copy()
    usage[:, RESOURCES.index("cpu")] = (30.0, 50.0, 50.0, 50.0, 50.0)
    bundles = replace(state.bundles, owner=np.maximum(state.bundles.owner, 1))
    return replace(state, brokers=replace(state.brokers, usage=usage), bundles=bundles)


@cache
def clusters() -> Sequence[ClusterState]:
    """Restless, with an idle broker, and as they are; of every load manager."""
    return tuple(_clusters())


def _clusters() -> Iterator[ClusterState]:
    for seed, load_manager in product(SEEDS, MANAGERS):
        state = any_state(seed, load_manager)
        versions = ("4.0.8", "4.0.7", "4.0.8", "4.0.7", "4.0.8")
        state = replace(state, brokers=replace(state.brokers, versions=versions))
        yield from (restless(state, seed), with_idle_broker(state), state)


def before(state: ClusterState, number: int) -> ClusterState:
    """The snapshot of so many five minutes before: another load, reports of the same age."""
    ago_ms = number * 300_000
    brokers = replace(
        state.brokers,
        usage=state.brokers.usage[::-1] / number,
        report_updated_at_ms=state.brokers.report_updated_at_ms - ago_ms,
    )
    return replace(state, captured_at_ms=state.captured_at_ms - ago_ms, brokers=brokers)


def answers(key: str, state: ClusterState, release: str, texts: Mapping[str, str]) -> Iterator[str]:
    """What the strategies that read the key say, those of the cluster if none does; and what Pulsar would do."""
    alongside = {**EAGER, **ALONGSIDE.get(key, {})}
    own, settings = (resolve_settings(release, what_if={**alongside, **more}) for more in ({}, texts))
    state = with_what_if(state, own.values, settings.values, texts)
    history = [before(state, 2), before(state, 1)]
    asked, placed = (
        [entry.name for entry in entries if key in entry.setting_keys]
        or [entry.name for entry in entries if state.load_manager in entry.load_managers][:1]
        for entries in (SHEDDERS, PLACEMENTS)
    )
    for shedder, placement in product(asked, placed):
        for _, proposal in propose(Request(shedder, placement), Situation.of_fit(state, settings, history)):
            yield str(proposal) if isinstance(proposal, AdvisorError) else plain(proposal)
        yield would_pulsar_act(settings, state.load_manager, shedder, True, True)
    splits = propose_splits(Request(), Situation.of_fit(state, settings))
    yield "" if splits is None else plain(splits)
    values = settings.values
    yield str(
        configured_strategies(
            state.load_manager,
            values.load_balancer_load_shedding_strategy,
            values.load_balancer_load_placement_strategy,
            values.behaviour,
        )
    )


def usable_values(key: str) -> Iterator[str]:
    for text in values_of(key):
        with suppress(UsageError):
            check_what_if(key, text)
            yield text


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("key", sorted(keys_that_count()))
def test_every_key_that_is_accepted_can_change_an_answer(key: str) -> None:
    assert any(
        answer != present
        for state, release in product(clusters(), RELEASES)
        for present in [list(answers(key, state, release, {}))]
        for answer in (list(answers(key, state, release, {key: text})) for text in usable_values(key))
    )


def test_what_strategies_and_filters_read_is_accepted_but_for_what_only_a_leader_knows() -> None:
    registered = (*SHEDDERS, *PLACEMENTS, *SPLIT_DECIDERS, *SPLIT_ALGORITHMS)
    read = {key for entry in registered for key in entry.setting_keys} | set(filters.SETTING_KEYS)
    assert read - keys_that_count() == {"loadManagerClassName", "loadBalanceSheddingDelayInSeconds"}


@pytest.mark.parametrize(
    "key",
    [
        "defaultNumberOfNamespaceBundles",
        "loadBalanceSheddingDelayInSeconds",
        "loadBalancerAutoUnloadSplitBundlesEnabled",
        "loadBalancerHostUsageCheckIntervalMinutes",
        "loadBalancerReportUpdateMaxIntervalMinutes",
        "loadBalancerReportUpdateMinIntervalMillis",
        "loadBalancerReportUpdateThresholdPercentage",
        "loadBalancerResourceQuotaUpdateIntervalMinutes",
        "loadBalancerSplitIntervalMinutes",
        "maxNumPartitionsPerPartitionedTopic",
        "metadataStoreOperationTimeoutSeconds",
        "namespaceBundleUnloadingTimeoutMs",
        "statsUpdateFrequencyInSecs",
        "statsUpdateInitialDelayInSecs",
    ],
)
def test_a_key_without_effect_is_refused_with_those_that_count(key: str) -> None:
    text = "true" if ALIASES[key].annotation is bool else "5"
    with pytest.raises(UsageError, match=f"{key} changes no answer here.*loadBalancerBrokerMaxTopics"):
        check_what_if(key, text)


def test_another_load_manager_is_asked_for_by_its_strategies() -> None:
    with pytest.raises(
        UsageError, match=r"loadManagerClassName is the snapshot's.*`recommend --shedder TransferShedder`$"
    ):
        check_what_if(
            "loadManagerClassName", "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl"
        )


def test_the_cards_whose_traffic_counts_can_not_be_chosen_afterwards() -> None:
    with pytest.raises(UsageError, match="changes no answer"):
        check_what_if("loadBalancerOverrideBrokerNics", "eth0")


def test_no_speed_is_no_what_if() -> None:
    with pytest.raises(UsageError, match=f"{NIC_SPEED} needs a value"):
        check_what_if(NIC_SPEED, "")


BANDWIDTH = [RESOURCES.index("bandwidthIn"), RESOURCES.index("bandwidthOut")]


def with_cards(usage: float, limit: float, own: Mapping[str, str], speed: str, **of: object) -> ClusterState:
    """A cluster whose brokers report this bandwidth in both directions, asked about another speed."""
    state = any_state(0, "modular")
    figures = {"usage": state.brokers.usage.copy(), "limit": state.brokers.limit.copy()}
    figures["usage"][:, BANDWIDTH], figures["limit"][:, BANDWIDTH] = usage, limit
    state = replace(state, brokers=replace(state.brokers, **figures), **of)
    before, after = (resolve_settings("4.2.4", own, what_if=texts).values for texts in ({}, {NIC_SPEED: speed}))
    return with_what_if(state, before, after, {NIC_SPEED: speed})


@pytest.mark.parametrize(
    ("limit", "own", "cards"),
    [
        (0.0, {}, 1),
        (25e6, {}, 1),
        (20e6, {NIC_SPEED: "10"}, 2),
        (float("nan"), {NIC_SPEED: "10"}, 1),
        (float("inf"), {NIC_SPEED: "10"}, 1),
        (20e6, {"loadBalancerOverrideBrokerNics": "eth0,eth1,eth2"}, 3),
    ],
)
def test_another_speed_of_the_cards_gives_another_limit_and_leaves_the_usage(
    limit: float, own: Mapping[str, str], cards: int
) -> None:
    brokers = with_cards(3e6, limit, own, "40").brokers
    assert (brokers.usage[:, BANDWIDTH] == 3e6).all()
    assert (brokers.limit[:, BANDWIDTH] == cards * 40e6).all()


def test_a_usage_in_percent_is_converted_where_the_speed_was_set() -> None:
    brokers = with_cards(30.0, 100.0, {NIC_SPEED: "10"}, "40").brokers
    assert (brokers.usage[:, BANDWIDTH] == 7.5).all()
    assert (brokers.limit[:, BANDWIDTH] == 100.0).all()


def test_a_usage_in_percent_of_an_unknown_speed_can_not_be_converted() -> None:
    with pytest.raises(DataNotFit, match="percent of a speed that no setting names"):
        with_cards(30.0, 100.0, {}, "40")


def test_brokers_that_did_not_report_stay_as_they_are() -> None:
    state = any_state(0, "modular")
    silent = replace(state.brokers, report_updated_at_ms=np.zeros(len(state.brokers), dtype=np.int64))
    settings = resolve_settings("4.0.8", what_if={NIC_SPEED: "40"}).values
    after = with_what_if(replace(state, brokers=silent), settings, settings, {NIC_SPEED})
    assert (after.brokers.limit == state.brokers.limit).all()


def test_what_brokers_publish_to_their_leader_is_worked_out_again_from_one_sample() -> None:
    published = PublishedLoad(np.full(5, 0.5), np.full(5, 1e6), np.full(40, -1))
    after = with_cards(3e6, 10e6, {}, "40", published_load=published).published_load
    assert after is not None
    assert np.isnan(after.weighted_max_ema).all()
    assert (after.msg_throughput_ema == 1e6).all()


def test_published_averages_are_worked_out_again_if_another_weight_of_the_past_is_asked_about() -> None:
    published = PublishedLoad(np.full(5, 0.5), np.full(5, 1e6), np.full(40, -1))
    state = replace(any_state(0, "extensible"), published_load=published)
    own = resolve_settings("4.0.8").values
    unchanged, after = (
        with_what_if(state, own, own, {key}).published_load
        for key in ("loadBalancerSheddingEnabled", "loadBalancerHistoryResourcePercentage")
    )
    assert unchanged is published
    assert after is not None
    assert np.isnan([*after.weighted_max_ema, *after.msg_throughput_ema]).all()


def test_a_number_of_cards_that_is_not_known_is_said_to_be_assumed() -> None:
    own, known = (resolve_settings("4.0.8", texts).values for texts in ({}, {NIC_SPEED: "10"}))
    assert "one card each" in assumptions(own, {NIC_SPEED})[0]
    assert assumptions(known, {NIC_SPEED}) == assumptions(own, {"minUnloadMessage"}) == ()
