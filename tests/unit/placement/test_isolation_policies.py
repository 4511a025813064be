from __future__ import annotations

import re

import pytest

from pulsar_advisor.model.cluster_state import IsolationPolicy
from pulsar_advisor.placement.isolation_policies import (
    NO_POLICY,
    broker_host,
    compile_java_expression,
    isolation_of,
    may_shed_with_policies,
    needs_secondaries,
)
from states import BrokerRow, BundleRow, cluster_state


def state(*policies: IsolationPolicy, brokers=("east-1:8080", "east-2:8080", "west-1:8080"), namespaces=("t/n",)):
    return cluster_state(
        [BrokerRow(broker) for broker in brokers],
        [BundleRow(namespace, "0x00000000_0xffffffff", None) for namespace in namespaces],
        isolation_policies=policies,
    )


def policy(name="p", namespaces=("t/.*",), primary=("east-.*",), secondary=(), min_limit=1):
    return IsolationPolicy(name, namespaces, primary, secondary, min_limit, usage_threshold=100)


def test_the_first_policy_that_matches_the_whole_name_applies():
    rules = isolation_of(
        state(policy("a", ("t/n",)), policy("b", ("t/.*",)), namespaces=("t/n", "t/nn", "u/n")),
    )
    assert rules.policy_of_namespace.tolist() == [0, 1, NO_POLICY]


def test_brokers_are_matched_by_their_whole_host_without_the_port():
    rules = isolation_of(state(policy(primary=("east-1", "west-1:8080", "east"))))
    assert rules.primary.tolist() == [[True, False, False]]


def test_a_primary_broker_is_no_secondary():
    rules = isolation_of(state(policy(primary=("east-1",), secondary=("east-.*",))))
    assert rules.secondary.tolist() == [[False, True, False]]


def test_a_broker_is_shared_while_no_policy_has_it_as_primary():
    rules = isolation_of(state(policy(primary=("east-1",), secondary=("west-1",)), policy("q", ("u/.*",), ("east-2",))))
    assert rules.shared.tolist() == [False, False, True]


def test_an_id_without_a_port_has_no_host():
    assert isolation_of(state(brokers=("east-1", "east-2:8080"))).has_host.tolist() == [False, True]


@pytest.mark.parametrize(("broker", "host"), [("a.b:8080", "a.b"), ("::1:8080", "::1"), ("plain", None)])
def test_the_host_ends_at_the_last_colon(broker, host):
    assert broker_host(broker) == host


def test_an_expression_that_does_not_compile_matches_nothing_and_is_reported():
    rules = isolation_of(state(policy(primary=("*", "east-2"))))
    assert rules.primary.tolist() == [[False, True, False]]
    (finding,) = rules.unusable
    assert (finding.policy, finding.expression, finding.why) == ("p", "*", "nothing to repeat at position 0")


@pytest.mark.parametrize("expression", [r"\p{Alpha}+", "[a-z&&[^b]]+", "[a-z[0-9]]", r"\h", r"a\z", "{", "a{,2}"])
def test_syntax_that_java_reads_in_another_way_is_reported(expression):
    assert isinstance(compile_java_expression(expression), str)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (r"\Qa.b\E\d", "a.b1"),
        (r"\Qa.b", "a.b"),
        (r"(?<host>a)b", "ab"),
        (r"a++b", "aab"),
        (r"(?i)EAST", "east"),
        (r"a\\p", "a\\p"),
        (r"(?<=a)b|ab", "ab"),
    ],
)
def test_syntax_that_both_languages_mean_alike_is_translated(expression, text):
    pattern = compile_java_expression(expression)
    assert isinstance(pattern, re.Pattern)
    assert pattern.fullmatch(text)


def test_digits_and_letters_are_ascii_as_in_java():
    pattern = compile_java_expression(r"\w+-\d")
    assert isinstance(pattern, re.Pattern)
    assert not pattern.fullmatch("é-1")
    assert not pattern.fullmatch("a-٣")


@pytest.mark.parametrize(("primaries", "expected"), [(2, True), (3, False), (15, False)])
def test_secondaries_come_in_while_primaries_are_fewer_than_the_minimum(primaries, expected):
    assert needs_secondaries(primaries, min_limit=3) is expected


@pytest.mark.parametrize("isolation", [True, False])
@pytest.mark.parametrize("group", [True, False])
def test_bundles_with_policies_are_shed_only_if_enabled(isolation, group):
    assert may_shed_with_policies(isolation, group, enabled=True)
    assert may_shed_with_policies(isolation, group, enabled=False) is not (isolation or group)
