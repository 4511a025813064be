from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.placement.anti_affinity import (
    NO_GROUP,
    anti_affinity_of,
    counts_of,
    domains,
    least_occupied,
    may_unload,
)
from states import HALVES, BrokerRow, BundleRow, cluster_state


def state(load_manager="modular", **groups):
    return cluster_state(
        [BrokerRow("a:8080"), BrokerRow("b:8080")],
        [
            BundleRow("t/m", HALVES[0], "b:8080"),
            BundleRow("t/n", HALVES[0], "a:8080"),
            BundleRow("t/n", HALVES[1], "a:8080"),
            BundleRow("t/o", HALVES[0], None),
        ],
        load_manager=load_manager,
        anti_affinity_groups={f"t/{name}": group for name, group in groups.items()},
    )


def test_groups_compare_without_regard_to_case():
    found = anti_affinity_of(state(m="Group", n="gROUP"), failure_domains_enabled=False)
    assert found.group_of_namespace.tolist() == [0, 0, NO_GROUP]


def test_groups_that_differ_by_a_space_are_two():
    found = anti_affinity_of(state(m="group", n="group "), failure_domains_enabled=False)
    assert found.group_of_namespace.tolist() == [0, 1, NO_GROUP]


def test_a_blank_group_is_none():
    blank = state(m=" ", n="")
    assert anti_affinity_of(blank, failure_domains_enabled=False).group_of_namespace.tolist() == [NO_GROUP] * 3
    assert not blank.namespaces.in_groups.any()


def counted(state):
    """Per broker, what it counts of the only group."""
    (bundles,) = anti_affinity_of(state, failure_domains_enabled=False).bundles
    return counts_of(state, bundles).tolist()


def test_the_modular_manager_counts_namespaces():
    assert counted(state(m="g", n="g", o="g")) == [1, 1]


def test_the_extensible_manager_counts_bundles():
    assert counted(state("extensible", m="g", n="g", o="g")) == [2, 1]


def test_domains_count_only_when_enabled_and_set():
    with_domain = replace(state(m="g"), failure_domains=("east", None))
    assert anti_affinity_of(with_domain, failure_domains_enabled=False).domain is None
    assert anti_affinity_of(state(m="g"), failure_domains_enabled=True).domain is None
    found = anti_affinity_of(with_domain, failure_domains_enabled=True).domain
    assert found is not None
    assert found[0] != found[1]


def test_brokers_in_no_domain_share_the_one_named_default():
    found = domains(("default", None, "east", None))
    assert found is not None
    assert found[0] == found[1] == found[3] != found[2]


def kept(candidates, counts, by_domain=None):
    domain = None if by_domain is None else domains(by_domain)
    return least_occupied(np.array(candidates), np.array(counts), domain).kept.tolist()


def test_the_emptiest_brokers_stay():
    assert kept([True, True, True], [2, 1, 1]) == [False, True, True]


def test_a_broker_that_is_no_candidate_does_not_set_the_measure():
    assert kept([True, True, False], [2, 1, 0]) == [False, True, False]


def test_the_emptiest_domain_comes_before_the_emptiest_broker():
    assert kept([True] * 4, [3, 0, 1, 1], ["east", "east", "west", "west"]) == [False, False, True, True]


def test_without_candidates_none_is_left():
    assert kept([False, False], [1, 0], ["east", None]) == [False, False]


@pytest.mark.parametrize(
    ("candidates", "counts", "current", "expected"),
    [
        ([True, True], [1, 0], 0, True),
        ([True, True], [2, 1], 0, True),
        ([True, True], [1, 1], 0, False),
        ([True, True], [1, 2], 0, True),
        ([False, True], [1, 1], 0, False),
        ([False, False], [1, 1], 0, False),
        ([True, True], [0, 0], 0, True),
    ],
)
def test_a_bundle_is_unloaded_unless_that_spreads_the_group_no_better(candidates, counts, current, expected):
    assert may_unload(np.array(candidates), np.array(counts), current) is expected


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5), st.sampled_from(["east", "west", None])), min_size=1))
def test_some_candidate_always_stays_and_only_candidates_do(brokers):
    candidates = [candidate for candidate, _, _ in brokers]
    left = kept(candidates, [count for _, count, _ in brokers], [domain for _, _, domain in brokers])
    assert any(left) == any(candidates)
    assert all(candidate or not stays for candidate, stays in zip(candidates, left, strict=True))
