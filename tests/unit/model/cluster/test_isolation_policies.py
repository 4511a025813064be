from __future__ import annotations

from dataclasses import replace

import pytest

from pulsar_advisor.model.cluster import isolation_policies
from pulsar_advisor.model.cluster.cluster_state import IsolationPolicy
from pulsar_advisor.model.cluster.isolation_policies import (
    NO_POLICY,
    broker_host,
    isolation_of,
    matched_brokers,
    needs_secondaries,
)
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.java import expressions
from pulsar_advisor.model.java.expressions import matched
from states import WHOLE, BrokerRow, BundleRow, cluster_state


def state(*policies: IsolationPolicy, brokers=("east-1:8080", "east-2:8080", "west-1:8080"), namespaces=("t/n",)):
    return cluster_state(
        [BrokerRow(broker) for broker in brokers],
        [BundleRow(namespace, WHOLE, None) for namespace in namespaces],
        isolation_policies=policies,
    )


def policy(name="p", namespaces=("t/.*",), primary=("east-.*",), secondary=(), min_limit=1):
    return IsolationPolicy(name, namespaces, primary, secondary, min_limit, usage_threshold=100)


def rules_of(cluster, release="4.0.8"):
    return isolation_of(cluster, resolve_settings(release).values)


def test_the_first_policy_that_matches_the_whole_name_applies():
    rules = rules_of(
        state(policy("a", ("t/n",)), policy("b", ("t/.*",)), namespaces=("t/n", "t/nn", "u/n")),
    )
    assert rules.policy_of_namespace.tolist() == [0, 1, NO_POLICY]


def test_brokers_are_matched_by_their_whole_host_without_the_port():
    rules = rules_of(state(policy(primary=("east-1", "west-1:8080", "east"))))
    assert rules.primary.tolist() == [[True, False, False]]


def test_from_5_0_1_on_an_expression_with_a_port_is_matched_by_the_whole_id():
    cluster = state(policy(primary=("west-1:8080", "east-1:80", "east-2.8080"), secondary=("east-2(:8080)?",)))
    rules = rules_of(cluster, "5.0.1")
    assert rules.primary.tolist() == [[False, False, True]]
    assert rules.secondary.tolist() == [[False, True, False]]
    assert rules.shared.tolist() == [True, True, False]


def test_an_expression_that_takes_too_long_by_the_whole_id_is_unusable(monkeypatch):
    monkeypatch.setattr(expressions, "TIME_LIMIT_S", 0.05)
    slow = "[^:]*:(?:8|88)*9?x|b:8"
    found = matched_brokers([slow], [f"east-1:{'8' * 40}"], (5, 0, 1))
    assert (found.matches.tolist(), list(found.unusable)) == ([False], [slow])


def test_a_primary_broker_is_no_secondary():
    rules = rules_of(state(policy(primary=("east-1",), secondary=("east-.*",))))
    assert rules.secondary.tolist() == [[False, True, False]]


def test_a_broker_is_shared_while_no_policy_has_it_as_primary():
    rules = rules_of(state(policy(primary=("east-1",), secondary=("west-1",)), policy("q", ("u/.*",), ("east-2",))))
    assert rules.shared.tolist() == [False, False, True]


def test_an_id_without_a_port_has_no_host_and_no_policy_matches_it():
    rules = rules_of(state(policy(primary=(".*",)), brokers=("east-1", "east-2:8080")))
    assert rules.has_host.tolist() == [False, True]
    assert rules.primary.tolist() == [[False, True]]


@pytest.mark.parametrize(("broker", "host"), [("a.b:8080", "a.b"), ("::1:8080", "::1"), ("plain", None)])
def test_the_host_ends_at_the_last_colon(broker, host):
    assert broker_host(broker) == host


def test_policies_are_matched_once_for_the_states_of_a_cluster(monkeypatch):
    lists = []
    monkeypatch.setattr(isolation_policies, "matched", lambda *given: lists.append(given) or matched(*given))
    now = state(policy("matched once"))
    assert rules_of(now) is rules_of(replace(now, leader=1))
    assert len(lists) == 3


def test_an_expression_that_does_not_compile_matches_nothing():
    rules = rules_of(state(policy(primary=("*", "east-2"))))
    assert rules.primary.tolist() == [[False, True, False]]


@pytest.mark.parametrize(("primaries", "expected"), [(2, True), (3, False), (15, False)])
def test_secondaries_come_in_while_primaries_are_fewer_than_the_minimum(primaries, expected):
    assert needs_secondaries(primaries, min_limit=3) is expected
