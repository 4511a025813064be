"""The room that brokers have after moves is the same whatever was asked in between."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.model.cluster.cluster_state import IsolationPolicy
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.placement.filters import destinations
from pulsar_advisor.planning.kinds import room
from pulsar_advisor.planning.kinds.room import Room
from pulsar_advisor.planning.situation import Situation
from unit.planning.kinds.clusters import SETTINGS, cluster

GROUPED = cluster(
    {"a": (5, 4, 3), "b": (5, 4), "c": (2,)},
    namespaces={"a": ("t/m", "t/n", "t/o"), "b": ("t/m", "t/n"), "c": ("t/p",)},
    groups={"t/m": "g", "t/n": "g", "t/p": "g"},
)


def test_a_move_changes_the_candidates_of_its_anti_affinity_group_alone() -> None:
    sizes = {"a": (5, 4, 3), "b": (), "c": ()}
    of_a = ("t/m", "t/n", "t/o")
    state = cluster(sizes, namespaces={"a": of_a}, groups={"t/m": "g", "t/n": "g"})
    asked, (m, n, o), (a, b, c) = Room.of(Situation.of_fit(state, SETTINGS)), range(3), range(3)
    assert [asked.candidates(bundle).brokers.tolist() for bundle in (m, o)] == [[b, c], [a, b, c]]
    asked.move(n, b)
    assert [asked.candidates(bundle).brokers.tolist() for bundle in (m, o)] == [[c], [a, b, c]]


def test_the_filters_are_asked_once_for_all_namespaces_with_the_same_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    of_one = IsolationPolicy("of one", ("t/a-0",), ("a",), ("b",), 1, 100)
    asked = Room.of(Situation.of_fit(cluster({"a": (5, 4, 3), "b": (2,)}, policies=(of_one,)), SETTINGS))
    counted = Mock(wraps=destinations)
    monkeypatch.setattr(room, "destinations", counted)
    assert [asked.candidates(bundle).brokers.tolist() for bundle in range(4)] == [[0], [1], [1], [1]]
    assert counted.call_count == 2


def test_a_group_is_not_brought_together_in_a_failure_domain_unless_the_bundle_has_to_leave() -> None:
    sizes, names = {"a": (5,), "b": (), "c": (4,), "d": ()}, {"a": ("t/m",), "b": (), "c": ("t/n",), "d": ()}
    state = cluster(sizes, namespaces=names, groups={"t/m": "g", "t/n": "g"})
    state = replace(state, failure_domains=("east", "east", "west", "west"))
    room = Room.of(Situation.of_fit(state, resolve_settings("4.0.8", {"failureDomainsEnabled": "true"})))
    m, (a, b, d) = 0, (0, 1, 3)
    assert room.allowed(m).tolist() == [b]
    assert room.emptying([a, b]).allowed(m).tolist() == [d]
    assert Room.of(Situation.of_fit(state, SETTINGS)).allowed(m).tolist() == [b, d]


def test_a_broker_whose_messages_have_just_doubled_starts_from_the_usage_that_they_will_show() -> None:
    before = cluster({"a": (30,), "b": (30,)})
    now = replace(before.brokers, traffic=before.brokers.traffic * [[2.0], [1.0]])
    now = replace(now, report_updated_at_ms=now.report_updated_at_ms + 60_000)
    situation = Situation.of_fit(replace(before, brokers=now), SETTINGS, [before])
    a, b = Room.of(situation).usage_at_first
    assert a > b
    assert situation.as_is is not None
    assert situation.as_is.maximum_ratio == a


def test_a_cluster_of_whose_brokers_no_usage_is_known_has_nothing_to_start_from() -> None:
    unknown = cluster({"a": (30,)})
    unknown = replace(unknown, brokers=replace(unknown.brokers, available=np.array([False])))
    assert Situation.of_fit(unknown, SETTINGS).as_is is None


def test_a_broker_that_takes_a_bundle_serves_every_kind_of_its_topics() -> None:
    # Pulsar looks at one kind of topics, and under an isolation policy at none.
    of_all = IsolationPolicy("of all", ("t/.*",), (".*",), (), 1, 100)
    for policies in (), (of_all,):
        topics = ["persistent://t/a-0/one", "non-persistent://t/a-0/two"]
        state = cluster({"a": (5,), "b": (), "c": (), "d": ()}, topics=topics, policies=policies)
        enabled = np.array([[True, True, False, True], [True, False, True, True]])
        brokers = replace(state.brokers, persistent_topics_enabled=enabled[0], non_persistent_topics_enabled=enabled[1])
        loaded = np.array([True, True])
        state = replace(state, brokers=brokers, topics=replace(state.topics, loaded=loaded))
        assert Room.of(Situation.of_fit(state, SETTINGS)).allowed(0).tolist() == [3]


bundles = st.integers(0, len(GROUPED.bundles) - 1)
brokers = st.integers(0, len(GROUPED.brokers) - 1)


def answers(asked: Room) -> list[tuple[list[int], list[int]]]:
    rows = range(len(asked.state.bundles))
    return [(asked.allowed(row).tolist(), asked.with_fewer_peers(row).tolist()) for row in rows]


@given(st.lists(st.tuples(bundles, brokers, st.booleans()), max_size=6))
def test_every_move_counts_for_the_anti_affinity_groups(moves: list[tuple[int, int, bool]]) -> None:
    asked = Room.of(Situation.of_fit(GROUPED, SETTINGS))
    for number, (bundle, broker, in_a_copy) in enumerate(moves, start=1):
        left, before = asked, answers(asked)
        asked = asked.copy() if in_a_copy else asked
        asked.move(bundle, broker)
        unasked = Room.of(Situation.of_fit(GROUPED, SETTINGS))
        for moved, to, _ in moves[:number]:
            unasked.move(moved, to)
        assert answers(asked) == answers(unasked)
        if in_a_copy:
            assert answers(left) == before
