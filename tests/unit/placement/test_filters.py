from __future__ import annotations

from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest

from conformance import codes
from pulsar_advisor.model.cluster.cluster_state import ClusterState, IsolationPolicy
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.placement import filters
from pulsar_advisor.placement.anti_affinity import counts_of
from pulsar_advisor.placement.filters import (
    Candidates,
    extensible_candidates,
    fewest_bundles,
    modular_candidates,
    overloaded_retry,
    placement_facts,
    policy_candidates,
    semantic_version,
    simple_candidates,
    unload_obstacle,
)
from states import HALVES, BrokerRow, BundleRow, cluster_state

MODULAR = "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl"
BOTH = pytest.mark.parametrize("candidates_of", [modular_candidates, extensible_candidates])


def settings(release: str = "4.0.8", **what_if: object) -> LoadBalancerSettings:
    return resolve_settings(release, what_if={key: str(value).lower() for key, value in what_if.items()}).values


SPREAD_OFF = {"loadBalancerDistributeBundlesEvenlyEnabled": False}


def state(
    brokers: dict[str, dict[str, object]],
    owners: tuple[str | None, ...] = (None,),
    namespace: str = "t/n",
    **rest: object,
) -> ClusterState:
    return cluster_state(
        [BrokerRow(f"{name}:8080", **row) for name, row in brokers.items()],
        [BundleRow(namespace, text, owner and f"{owner}:8080") for text, owner in zip(HALVES, owners, strict=False)],
        **rest,
    )


def of(candidates_of, among: ClusterState, values: LoadBalancerSettings, **kind: bool) -> Candidates:
    return candidates_of(placement_facts(among, values), 0, **kind)


def answers(found: Candidates) -> list[str]:
    return [*codes(found.outcomes).values()]


@BOTH
def test_every_available_broker_is_a_candidate_when_nothing_speaks_against_it(candidates_of):
    found = of(candidates_of, state({"a": {}, "b": {"available": False}}), settings())
    assert (found.brokers.tolist(), answers(found)) == ([0], ["candidate", "unavailable"])


@BOTH
def test_a_namespace_without_policy_does_not_get_reserved_brokers(candidates_of):
    reserved = IsolationPolicy("p", ("u/.*",), ("a",), (), 1, 100)
    found = of(candidates_of, state({"a": {}, "b": {}}, isolation_policies=(reserved,)), settings())
    assert answers(found) == ["not_shared", "candidate"]


@BOTH
def test_secondaries_are_left_out_while_there_are_primaries_enough(candidates_of):
    policy = IsolationPolicy("p", ("t/n",), ("a",), ("b",), 1, 100)
    found = of(candidates_of, state({"a": {}, "b": {}, "c": {}}, isolation_policies=(policy,)), settings())
    assert answers(found) == ["candidate", "secondary_not_needed", "not_in_policy"]
    assert found.outcomes.explain(1) == "secondary, and 1 primaries reach the policy's 1"


@BOTH
def test_secondaries_come_in_when_a_primary_is_gone(candidates_of):
    policy = IsolationPolicy("p", ("t/n",), ("a",), ("b",), 1, 100)
    found = of(candidates_of, state({"a": {"available": False}, "b": {}}, isolation_policies=(policy,)), settings())
    assert answers(found) == ["unavailable", "candidate"]


@BOTH
def test_kinds_of_topics_count_for_shared_brokers(candidates_of):
    both = state({"a": {}, "b": {}})
    among = replace(
        both,
        brokers=replace(
            both.brokers,
            persistent_topics_enabled=np.array([False, True]),
            non_persistent_topics_enabled=np.array([True, False]),
        ),
    )
    assert answers(of(candidates_of, among, settings())) == ["no_persistent_topics", "candidate"]
    assert answers(of(candidates_of, among, settings(), non_persistent=True)) == [
        "candidate",
        "no_non_persistent_topics",
    ]


@BOTH
def test_an_id_without_a_port_is_not_seen(candidates_of):
    plain = cluster_state([BrokerRow("a"), BrokerRow("b:8080")], [BundleRow("t/n", HALVES[0], None)])
    assert answers(of(candidates_of, plain, settings())) == ["no_port", "candidate"]


def test_modular_keeps_a_broker_at_its_topic_limit_and_extensible_does_not():
    among = state({"a": {"topics": 5}, "b": {"topics": 4}, "c": {"topics": 6}})
    values = settings(loadBalancerBrokerMaxTopics=5)
    assert answers(of(modular_candidates, among, values)) == ["candidate", "candidate", "too_many_topics"]
    assert answers(of(extensible_candidates, among, values)) == ["too_many_topics", "candidate", "too_many_topics"]


def test_when_every_broker_has_too_many_topics_modular_keeps_all_and_extensible_none():
    among, values = state({"a": {"topics": 9}, "b": {"topics": 8}}), settings(loadBalancerBrokerMaxTopics=5)
    assert of(modular_candidates, among, values).brokers.tolist() == [0, 1]
    assert of(extensible_candidates, among, values).brokers.tolist() == []


@BOTH
def test_a_group_goes_where_least_of_it_is(candidates_of):
    among = state({"a": {}, "b": {}}, owners=("a",), anti_affinity_groups={"t/n": "g"})
    found = of(candidates_of, among, settings(**SPREAD_OFF))
    assert answers(found) == ["group_fuller", "candidate"]
    assert found.outcomes.explain(0) == "counts 1 of the anti-affinity group, another broker 0"


@BOTH
def test_a_group_leaves_the_fuller_failure_domain(candidates_of):
    among = state({"a": {}, "b": {}, "c": {}}, owners=("a",), anti_affinity_groups={"t/n": "g"})
    among = replace(among, failure_domains=("east", "east", "west"))
    found = of(candidates_of, among, settings(failureDomainsEnabled=True, **SPREAD_OFF))
    assert answers(found) == ["domain_fuller", "domain_fuller", "candidate"]


def test_modular_spreads_the_bundles_of_a_namespace():
    among = state({"a": {}, "b": {}}, owners=("a", "a"))
    found = of(modular_candidates, among, settings())
    assert answers(found) == ["more_bundles", "candidate"]
    assert found.outcomes.explain(0) == "has 2 of the namespace's bundles, another broker 0"
    assert of(modular_candidates, among, settings(**SPREAD_OFF)).brokers.tolist() == [0, 1]


def test_simple_always_does_and_looks_at_nothing_else_but_policies():
    among = state({"a": {}, "b": {"topics": 10**6, "version": "3.0.0"}}, owners=("a", "a"))
    values = settings(preferLaterVersions=True, **SPREAD_OFF)
    assert answers(of(simple_candidates, among, values)) == ["more_bundles", "candidate"]


def test_extensible_does_not():
    assert of(extensible_candidates, state({"a": {}, "b": {}}, owners=("a", "a")), settings()).brokers.tolist() == [
        0,
        1,
    ]


@pytest.mark.parametrize(("release", "expected"), [("2.11.0", [0, 1]), ("3.0.7", [1])])
def test_bundles_of_the_system_namespace_are_always_spread_from_3_0_6_on(release, expected):
    among = state({"a": {}, "b": {}}, owners=("a",), namespace="pulsar/system")
    assert of(modular_candidates, among, settings(release, **SPREAD_OFF)).brokers.tolist() == expected


def with_classes(among: ClusterState, *names: str) -> ClusterState:
    return replace(among, brokers=replace(among.brokers, load_manager_class_names=names))


@BOTH
def test_a_broker_that_runs_another_load_manager_is_left_out(candidates_of):
    among = with_classes(state({"a": {}, "b": {}}), MODULAR, "other")
    assert answers(of(candidates_of, among, settings())) == ["candidate", "other_load_manager"]


def test_the_class_is_not_looked_at_before_3_0():
    among = with_classes(state({"a": {}, "b": {}}), MODULAR, "other")
    assert of(modular_candidates, among, settings("2.11.0")).brokers.tolist() == [0, 1]


@BOTH
def test_a_class_that_is_not_known_speaks_against_nobody(candidates_of):
    assert of(candidates_of, with_classes(state({"a": {}, "b": {}}), "", ""), settings()).brokers.tolist() == [0, 1]


def test_when_the_filters_leave_no_broker_modular_brings_back_those_the_policies_allow():
    policy = IsolationPolicy("p", ("t/n",), ("a",), (), 1, 100)
    among = with_classes(state({"a": {}, "b": {}}, isolation_policies=(policy,)), "other", "other")
    assert answers(of(modular_candidates, among, settings())) == ["brought_back", "not_in_policy"]
    assert answers(of(extensible_candidates, among, settings())) == ["other_load_manager", "other_load_manager"]


@BOTH
def test_later_versions_are_preferred_only_if_asked_for(candidates_of):
    among = state({"a": {"version": "4.0.9"}, "b": {"version": "4.0.10"}})
    assert of(candidates_of, among, settings()).brokers.tolist() == [0, 1]
    assert answers(of(candidates_of, among, settings(preferLaterVersions=True))) == ["older_version", "candidate"]


def test_a_version_that_can_not_be_read_brings_back_everyone_under_modular():
    among = state({"a": {}, "b": {"version": "4.0.9.1"}}, owners=("a",))
    found = of(modular_candidates, among, settings(preferLaterVersions=True))
    assert answers(found) == ["brought_back", "candidate"]


def test_a_version_that_can_not_be_read_is_passed_over_under_extensible():
    among = state({"a": {"version": "4.0.9.1"}, "b": {}})
    assert of(extensible_candidates, among, settings(preferLaterVersions=True)).brokers.tolist() == [0, 1]


def test_versions_order_as_semantic_versioning_says():
    texts = [
        "4.0.8-M1",
        "4.0.8-M1.2",
        "4.0.8-M1.10",
        f"4.0.8-M1.{'9' * 5000}",
        "4.0.8-M1.x",
        "4.0.8",
        "4.0.10",
        "5.0.0",
    ]
    versions = [semantic_version(text) for text in texts]
    assert versions == sorted(versions)
    assert len(set(versions)) == len(versions)


def test_build_metadata_does_not_make_a_version_later():
    assert semantic_version("4.0.8+a") == semantic_version("4.0.8+b")


@pytest.mark.parametrize("text", ["", "4.0", "4.0.8.1", "04.0.8", "4.0.8-", "4.0.8-01", "v4.0.8", f"{'9' * 5000}.0.8"])
def test_other_texts_are_no_versions(text):
    assert semantic_version(text) is None


def test_an_overloaded_choice_brings_back_the_brokers_the_policies_allow():
    policy = IsolationPolicy("p", ("t/n",), ("a", "b"), (), 1, 100)
    among = state({"a": {}, "b": {}, "c": {}}, owners=("a",), isolation_policies=(policy,))
    facts = placement_facts(among, settings())
    first = modular_candidates(facts, 0)
    again = overloaded_retry(first, policy_candidates(facts, 0))
    assert (first.brokers.tolist(), again.brokers.tolist()) == ([1], [0, 1])
    assert answers(again) == ["brought_back", "candidate", "not_in_policy"]


@pytest.mark.parametrize(
    ("primaries", "owners", "expected"),
    [(("a",), ("a",), "isolation"), (("a", "b"), ("a", "b"), "anti_affinity"), (("a", "b"), ("a",), None)],
)
def test_why_a_chosen_bundle_stays_where_it_is(primaries, owners, expected):
    policy = IsolationPolicy("p", ("t/.*",), primaries, (), 1, 100)
    rows = [BundleRow(f"t/{owner}", HALVES[0], f"{owner}:8080") for owner in owners]
    among = cluster_state(
        [BrokerRow("a:8080"), BrokerRow("b:8080")],
        rows,
        isolation_policies=(policy,),
        anti_affinity_groups={row.namespace: "g" for row in rows},
    )
    facts = placement_facts(among, settings())
    assert unload_obstacle(facts, policy_candidates(facts, 0), 0, 0) == expected


def test_of_no_candidates_none_has_the_fewest_bundles():
    kept, fewest = fewest_bundles(np.zeros(2, dtype=np.bool_), np.array([1, 2]))
    assert (kept.any(), fewest) == (False, 0)


@BOTH
def test_the_facts_after_moves_are_those_of_the_state_that_they_lead_to(candidates_of):
    brokers = {"a": {}, "b": {}, "c": {}}
    grouped = {"anti_affinity_groups": {"t/n": "group"}}
    before, after = (state(brokers, owners, **grouped) for owners in (("a", "b"), ("c", "b")))
    facts = placement_facts(before, settings()).after_moves(after)
    found = candidates_of(facts, 0)
    assert answers(found) == answers(of(candidates_of, after, settings()))
    assert answers(found) != answers(of(candidates_of, before, settings()))


@BOTH
def test_after_a_move_only_the_group_that_is_asked_about_is_counted_again(candidates_of, monkeypatch):
    grouped = state({"a": {}, "b": {}}, ("a", "b"), anti_affinity_groups={"t/n": "group", "t/other": "other"})
    counted = Mock(wraps=counts_of)
    monkeypatch.setattr(filters, "counts_of", counted)
    facts = placement_facts(grouped, settings()).after_moves(grouped)
    assert answers(candidates_of(facts, 0)) == answers(candidates_of(facts, 0))
    assert counted.call_count == 1
