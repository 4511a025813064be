"""Why a bundle, a broker, a namespace or the cluster is balanced or left alone, and what would change that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.configuration.resolved_settings import ResolvedSettings, resolve_settings
from pulsar_advisor.model.errors import DataNotFit, UsageError
from pulsar_advisor.planning.proposals.fitness import fit_part
from pulsar_advisor.planning.questions.explain import SHOWN, Explanation, Link, explain
from pulsar_advisor.planning.questions.subject import Kind
from pulsar_advisor.planning.requests.request import Request
from states import QUARTERS, WHOLE, BrokerRow, BundleRow, cluster_state

MIB = 1024.0 * 1024.0
THRESHOLD = "loadBalancerBrokerThresholdShedderPercentage"
LARGEST, SECOND = "t/hot/0x00000000_0x40000000", "t/hot/0x40000000_0x80000000"


def resolve(what_if: Mapping[str, str]) -> ResolvedSettings:
    return resolve_settings("4.0.8", what_if=what_if)


def why(state: ClusterState, kind: Kind = "cluster", name: str = "", **given: Any) -> Explanation:
    request = Request(**{"shedder": "ThresholdShedder", "placement": "LeastLongTermMessageRate", **given})
    return explain(request, kind, name, state, resolve)


def link(found: Explanation, role: str, subject: str) -> Link:
    return next(one for one in found.chain if (one.role, one.subject) == (role, subject))


@pytest.fixture
def idle_broker() -> ClusterState:
    """Ten brokers at 80 % and one at 0 %: the mean is 72.7 %."""
    names = [f"b{number:02}:8080" for number in range(10)]
    ranges = ("0x00000000_0x80000000", "0x80000000_0xffffffff")
    figures = (1000.0, 1000.0, 200 * MIB, 200 * MIB)
    return cluster_state(
        [*(BrokerRow(name, cpu=(80.0, 100.0), traffic=figures) for name in names), BrokerRow("idle:8080")],
        [
            BundleRow(f"t/{name[:3]}", text, name, (500.0, 500.0, 100 * MIB, 100 * MIB), topics=2)
            for name in names
            for text in ranges
        ],
    )


def test_why_did_pulsar_do_nothing(idle_broker: ClusterState) -> None:
    found = why(idle_broker)
    assert not found.acts
    assert found.sentence.startswith("Nothing is unloaded. ThresholdShedder does not act within 10 cycles: b0")
    assert found.sentence.endswith("smoothed usage 80.00% is below mean plus threshold 82.73%.")
    answers = link(found, "shedder", "broker")
    assert answers.number == 11
    first = answers.answers[0]
    assert (first.code, first.relation, round(first.left or 0, 3), round(first.right or 0, 3)) == (
        "near_mean", "<", 0.8, 0.827,
    )  # fmt: skip


def test_the_smallest_change_makes_it_act_and_a_smaller_one_does_not(idle_broker: ClusterState) -> None:
    found = why(idle_broker)
    smallest = found.flips[0].change
    assert (smallest.key, smallest.before, smallest.after) == (THRESHOLD, "10", "7")
    assert "lowerBoundarySheddingEnabled" in [flip.change.key for flip in found.flips]
    assert why(idle_broker, what_if={THRESHOLD: "7"}).acts
    assert not why(idle_broker, what_if={THRESHOLD: "8"}).acts


def test_why_this_bundle_and_why_this_destination(state: ClusterState) -> None:
    found = why(state, "bundle", LARGEST)
    assert found.sentence == f"{LARGEST} is unloaded from a:8080 and goes to c:8080."
    assert [(one.role, one.subject) for one in found.chain] == [
        ("shedder", "broker"), ("shedder", "bundle"), ("load manager", "bundle"), ("load manager", "broker"),
        ("placement", "broker"), ("splitting", "bundle"),
    ]  # fmt: skip
    filtered, placed = ({answer.object: answer.code for answer in one.answers} for one in found.chain[3:5])
    assert (filtered["b:8080"], filtered["c:8080"]) == ("more_bundles", "candidate")
    assert placed == {"c:8080": "only_one"}


def test_why_not_that_bundle(state: ClusterState) -> None:
    found = why(state, "bundle", SECOND)
    assert not found.acts
    assert found.sentence.startswith(f"{SECOND} stays on a:8080: larger ones already carry 52,428,800 B/s of the ")
    assert found.flips == ()  # only a weight of 1.36 and more would: 0.5 x weight - 0.05 must exceed 50 of 80 MiB/s


def test_every_change_found_holds_when_the_strategy_runs_with_it(
    state: ClusterState, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = (("bundle", LARGEST), ("broker", "a:8080"), ("namespace", "t/hot"))
    answers = {about: why(state, *about) for about in asked}
    monkeypatch.setattr("pulsar_advisor.planning.questions.explain.smallest_changes", lambda *_, **__: ())
    for (kind, name), found in answers.items():
        assert found.flips
        for flip in found.flips:
            again = why(state, kind, name, what_if={flip.change.key: flip.change.after})
            assert again.sentence == flip.sentence != found.sentence


def test_a_broker_is_explained_as_source_and_as_destination(state: ClusterState) -> None:
    assert why(state, "broker", "a:8080").sentence == "ThresholdShedder unloads 1 bundle from a:8080."
    taker = why(state, "broker", "c:8080")
    assert taker.sentence.startswith("c:8080 gives up nothing: smoothed usage 20.00% is below mean plus threshold")
    placed = [one for one in taker.chain if one.about]
    assert {answer.object for one in placed for answer in one.answers} == {"c:8080"}
    assert {one.about for one in placed} == {LARGEST}


def test_of_a_broker_it_is_said_and_flipped_whether_it_gets_anything(
    state: ClusterState, idle_broker: ClusterState
) -> None:
    assert why(state, "broker", "c:8080").sentence.endswith(" It gets 1 bundle.")
    idle = why(idle_broker, "broker", "idle:8080")
    assert idle.sentence.startswith(
        "idle:8080 gives up nothing: smoothed usage 0.00% is below mean plus threshold 82.73%."
    )
    assert " It gets nothing either. ThresholdShedder does not act within 10 cycles: b0" in idle.sentence
    assert idle.flips[0].change.key == THRESHOLD
    assert idle.flips[0].sentence.endswith(" It gets 10 bundles.")
    nearest = idle.sentence.partition("10 cycles: ")[2].partition(": ")[0]
    assert "It gets" not in why(idle_broker, "broker", nearest).sentence


def test_a_broker_is_named_as_in_the_verbs_for_a_goal(state: ClusterState) -> None:
    found = why(state, "broker", "a")
    assert found.name == "a:8080"
    assert found.sentence == why(state, "broker", "a:8080").sentence


def test_a_bundle_without_an_owner_and_one_that_was_just_unloaded(state: ClusterState) -> None:
    assert why(state, "bundle", "t/unowned/0x00000000_0xffffffff").sentence.endswith("there is nothing to unload.")
    state.bundles.last_unloaded_at_ms[:] = state.captured_at_ms - 5 * 60_000
    recent = why(state, "bundle", LARGEST)
    assert recent.sentence.endswith("was unloaded within the grace period, so it stays.")
    assert "loadBalancerSheddingGracePeriodMinutes" in {flip.change.key for flip in recent.flips}


@pytest.mark.parametrize(
    ("topics", "reason"),
    [
        (1, "it is not among the top bundles that its broker reports"),
        (0, "none of its topics is loaded, so nothing would move"),
    ],
)
def test_why_a_bundle_is_not_looked_at_though_its_broker_gives_others(
    state: ClusterState, topics: int, reason: str
) -> None:
    state.bundles.topics[2], state.bundles.reported[2] = topics, topics > 0
    found = why(
        replace(state, load_manager="extensible"),
        "bundle",
        "t/hot/0x80000000_0xc0000000",
        shedder="TransferShedder",
        placement="extensions.LeastResourceUsageWithWeight",
        what_if={
            "loadBalancerMaxNumberOfBundlesInBundleLoadReport": "2",
            "loadBalancerSheddingConditionHitCountThreshold": "0",
        },
    )
    assert found.sentence.endswith(f" stays on a:8080: TransferShedder does not look at it: {reason}.")


def test_why_a_namespace_is_not_looked_at() -> None:
    ring, busy, less = WHOLE, (1000.0, 1000.0, MIB, MIB), (10.0, 10.0, 1000.0, 1000.0)
    brokers = [BrokerRow("a:8080", cpu=(80.0, 100.0), traffic=busy), BrokerRow("b:8080", cpu=(20.0, 100.0))]
    bundles = [
        BundleRow("t/hot", ring, "a:8080", busy, topics=2),
        BundleRow("t/warm", ring, "a:8080", less, topics=2),
        BundleRow("t/idle", ring, "a:8080"),
        BundleRow("t/small", ring, "a:8080", (1.0, 1.0, 1.0, 1.0), topics=1),
        BundleRow("t/unfit", ring, "a:8080", less, topics=1, usable=False),
        BundleRow("t/unowned", ring, None),
    ]
    state = fit_part(cluster_state(brokers, bundles, load_manager="extensible"))
    of: dict[str, Any] = {
        "shedder": "TransferShedder",
        "placement": "extensions.LeastResourceUsageWithWeight",
        "what_if": {
            "loadBalancerMaxNumberOfBundlesInBundleLoadReport": "2",
            "loadBalancerSheddingConditionHitCountThreshold": "0",
        },
    }
    reasons = {
        "t/idle": "none of its topics is loaded, so nothing would move",
        "t/small": "none of its bundles is among the top ones that brokers report",
        "t/unfit": "ExtensibleLoadManagerImpl has no fit figures about it",
        "t/unowned": "no broker owns any of its bundles, so nothing would move",
    }
    for name, reason in reasons.items():
        said = why(state, "namespace", name, **of).sentence
        assert said == f"No bundle of {name} is unloaded: TransferShedder does not look at it: {reason}."
    said = why(replace(state, load_manager="modular"), "namespace", "t/unowned").sentence
    assert said.endswith(f"ThresholdShedder does not look at it: {reasons['t/unowned']}.")


def test_a_bundle_may_be_named_by_a_topic_in_it(state: ClusterState) -> None:
    row = int(np.flatnonzero(state.topics.bundle >= 0)[0])
    bundle = state.bundle_name(int(state.topics.bundle[row]))
    found = why(state, "bundle", str(state.topics.names[row]))
    assert (found.name, found.sentence) == (bundle, why(state, "bundle", bundle).sentence)


def test_what_the_snapshot_does_not_hold_is_refused_with_the_nearest_name(state: ClusterState) -> None:
    with pytest.raises(UsageError, match="no broker 'a:8081'; the nearest is 'a:8080'"):
        why(state, "broker", "a:8081")
    with pytest.raises(UsageError, match="no bundle 't/hot/0x0_0x1'"):
        why(state, "bundle", "t/hot/0x0_0x1")
    with pytest.raises(UsageError, match=r"no namespace 'hot'.*; it has t/hot"):
        why(state, "bundle", "hot/0x00000000_0x40000000")
    for name in ("t/hot", "0x00000000_0x40000000", ""):
        with pytest.raises(UsageError, match=f"'{name}' is not a bundle: give its full name, tenant/namespace/0x"):
            why(state, "bundle", name)


def test_a_topic_that_is_not_in_the_snapshot_may_be_named_by_a_partition(state: ClusterState) -> None:
    with pytest.raises(UsageError, match=r"lists no topic 'persistent://t/hot/parts' with a bundle; .*-partition-0$"):
        why(state, "bundle", "persistent://t/hot/parts")


def test_a_strategy_that_lacks_an_input_explains_nothing(state: ClusterState) -> None:
    with pytest.raises(DataNotFit, match="can't be judged: it reads isolation_policies"):
        why(replace(state, missing={"isolation_policies": "isolation_policies: 500"}))


def test_of_many_brokers_those_nearest_to_acting_are_kept() -> None:
    brokers = [BrokerRow(f"b{number:03}:8080", cpu=(50.0 + number / 100, 100.0)) for number in range(100)]
    found = why(cluster_state(brokers, [BundleRow("t/n", WHOLE, "b000:8080", topics=1)]))
    answers = link(found, "shedder", "broker")
    assert (len(answers.answers), answers.number) == (SHOWN, 100)
    assert answers.answers[0].object == "b099:8080"


def test_of_many_hot_brokers_the_hottest_are_kept() -> None:
    figures = (500.0, 500.0, 100 * MIB, 100 * MIB)
    brokers = [BrokerRow(f"b{number:02}:8080", cpu=(number, 100.0), traffic=figures) for number in range(100)]
    halves = tuple(figure / 2 for figure in figures)
    bundles = [
        BundleRow(f"t/{broker.id[:3]}", text, broker.id, halves, topics=2)
        for broker in brokers
        for text in ("0x00000000_0x80000000", "0x80000000_0xffffffff")
    ]
    found = why(cluster_state(brokers, bundles))
    assert [answer.object for answer in link(found, "shedder", "broker").answers[:2]] == ["b99:8080", "b98:8080"]


def test_a_bundle_that_was_never_a_candidate_is_not_nearest(state: ClusterState) -> None:
    hot = [row for row in range(len(state.bundles)) if state.bundle_name(row).startswith("t/hot/")]
    state.bundles.last_unloaded_at_ms[hot[2]] = state.captured_at_ms - 60_000
    codes = [answer.code for answer in link(why(state, "broker", "a:8080"), "shedder", "bundle").answers]
    assert codes == ["chosen", "quota_filled", "recently_unloaded"]


def test_the_winner_is_compared_with_the_next_one_and_a_tie_is_one_between_brokers() -> None:
    ranges = ("0x00000000_0x80000000", "0x80000000_0xffffffff")
    loads = {"a": 90.0, "b": 30.0, "c": 20.0, "d": 20.0}

    def placed(**rates: float) -> dict[str, tuple[str, bool]]:
        brokers = [
            BrokerRow(f"{name}:8080", cpu=(loads[name], 100.0), traffic=(rates[name], 0.0, 200 * MIB, 0.0))
            for name in rates
        ]
        bundles = [
            BundleRow(f"t/{name}", text, f"{name}:8080", (rates[name] / 2, 0.0, 100 * MIB, 0.0), topics=2)
            for name in rates
            for text in ranges
        ]
        what_if = {"loadBalancerDistributeBundlesEvenlyEnabled": "false"}
        found = why(cluster_state(brokers, bundles), what_if=what_if)
        answers = next(one for one in found.chain if one.role == "placement").answers
        return {answer.object[0]: (answer.sentence, answer.last_digit) for answer in answers}

    assert placed(a=900.0, b=300.0, c=200.0)["c"] == (
        "long-term rate 200.0 msg/s is the lowest, the next one is 300.0 msg/s", False
    )  # fmt: skip
    equal = placed(a=900.0, c=200.0, d=200.0)
    assert equal["c"][1] and equal["d"][1]


def test_a_count_is_not_decided_by_its_last_digit() -> None:
    load = (100.0, 0.0, 200 * MIB, 0.0)
    brokers = [BrokerRow("a:8080", cpu=(90.0, 100.0), traffic=load), BrokerRow("b:8080", cpu=(10.0, 100.0))]
    found = why(cluster_state(brokers, [BundleRow("t/n", WHOLE, "a:8080", load, topics=1)]))
    first = link(found, "shedder", "broker").answers[0]
    assert (first.code, first.left, first.right, first.last_digit) == ("one_bundle", 1.0, 1.0, False)


def test_where_moving_can_gain_nothing_it_says_so() -> None:
    bundle = BundleRow("t/n", WHOLE, "a:8080", topics=1)
    hot = [BrokerRow(f"{name}:8080", cpu=(usage, 100.0)) for name, usage in (("a", 95.0), ("b", 90.0))]
    assert why(cluster_state(hot, [bundle])).capacity == "all 2 brokers are above 85%, the least busy at 90.0%"
    assert why(cluster_state(hot[:1], [bundle])).capacity == "there is one broker, at 95.0%: no bundle can go anywhere"
    assert why(cluster_state([*hot, BrokerRow("c:8080", cpu=(80.0, 100.0))], [bundle])).capacity is None


def test_a_key_that_the_release_does_not_have_is_not_tried(idle_broker: ClusterState) -> None:
    assert "loadBalancerSheddingExcludedNamespaces" not in why(idle_broker).tried


def test_what_transfer_shedder_asks_of_its_destinations_is_changed_too() -> None:
    figures = (1000.0, 1000.0, 10 * MIB, 10 * MIB)
    busy = BrokerRow("a:8080", cpu=(90, 100), traffic=(4000, 4000, 40 * MIB, 40 * MIB), version="4.0.9")
    state = cluster_state(
        [busy, BrokerRow("b:8080", cpu=(1, 100))],
        [BundleRow("t/n", text, "a:8080", figures, topics=2) for text in QUARTERS],
        load_manager="extensible",
    )
    found = why(state, shedder="TransferShedder", placement="extensions.LeastResourceUsageWithWeight")
    assert found.acts
    assert "preferLaterVersions" in {flip.change.key for flip in found.flips}


def test_the_threshold_of_a_second_choice_is_changed_whatever_the_placement_strategy(idle_broker: ClusterState) -> None:
    with_moves = {THRESHOLD: "5"}
    found = why(idle_broker, placement="RoundRobinBrokerSelector", what_if=with_moves)
    assert "loadBalancerBrokerOverloadedThresholdPercentage" in found.tried
