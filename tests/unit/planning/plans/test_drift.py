from dataclasses import replace

from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.planning.plans.drift import NAMES_SHOWN, drift
from states import HALVES, WHOLE, BrokerRow, BundleRow, cluster_state


def cluster(brokers: list[BrokerRow], namespaces: dict[str, tuple[str, ...]]) -> ClusterState:
    bundles = [BundleRow(name, range_, None) for name, ranges in namespaces.items() for range_ in ranges]
    return cluster_state(brokers, bundles)


BEFORE = cluster([BrokerRow("a:8080"), BrokerRow("b:8080")], {"shop/orders": (WHOLE,), "shop/old": (WHOLE,)})


def test_nothing_changed() -> None:
    assert drift(BEFORE, BEFORE, {"key": "1"}, {"key": "1"}) == ()


def test_brokers_that_came_and_went() -> None:
    now = cluster([BrokerRow("a:8080"), BrokerRow("c:8080")], {"shop/orders": (WHOLE,), "shop/old": (WHOLE,)})
    assert drift(BEFORE, now, {}, {}) == ("Broker c:8080 was added.", "Broker b:8080 was lost.")


def test_a_broker_that_is_no_longer_active_is_lost() -> None:
    now = cluster(
        [BrokerRow("a:8080"), BrokerRow("b:8080", available=False)], {"shop/orders": (WHOLE,), "shop/old": (WHOLE,)}
    )
    assert drift(BEFORE, now, {}, {}) == ("Broker b:8080 was lost.",)


def test_an_upgraded_broker() -> None:
    now = cluster(
        [BrokerRow("a:8080"), BrokerRow("b:8080", version="4.2.4")], {"shop/orders": (WHOLE,), "shop/old": (WHOLE,)}
    )
    assert drift(BEFORE, now, {}, {}) == ("Broker b:8080 changed from version 4.0.8 to 4.2.4.",)


def test_a_new_leader() -> None:
    first, second = replace(BEFORE, leader=0), replace(BEFORE, leader=1)
    assert drift(first, second, {}, {}) == (
        "The leader was a:8080, it is b:8080: its memory of usage and unloads is lost.",
    )


def test_another_load_manager() -> None:
    assert drift(BEFORE, replace(BEFORE, load_manager="extensible"), {}, {}) == (
        "The load manager changed from modular to extensible.",
    )


def test_settings_that_changed_appeared_or_went() -> None:
    assert drift(BEFORE, BEFORE, {"a": "1", "b": "2"}, {"a": "3", "c": "4"}) == (
        "a changed from '1' to '3'.",
        "b changed from '2' to 'not set'.",
        "c changed from 'not set' to '4'.",
    )


def test_settings_that_were_not_read_did_not_change() -> None:
    settings = {"a": "1", "b": "2"}
    unread = f"Snapshot {BEFORE.snapshot} has no broker settings: changes can't be detected."
    assert drift(BEFORE, BEFORE, settings, None) == drift(BEFORE, BEFORE, None, settings) == (unread,)


def test_namespaces_that_came_and_went_and_a_split() -> None:
    brokers = [BrokerRow("a:8080"), BrokerRow("b:8080")]
    now = cluster(brokers, {"shop/orders": HALVES, "shop/new": (WHOLE,), "pulsar/b:8080": (WHOLE,)})
    assert drift(BEFORE, now, {}, {}) == (
        "Namespace shop/new was created.",
        "Namespace shop/old was deleted.",
        "The boundaries of shop/orders changed: 1 bundle before, 2 now.",
    )


def test_many_changes_of_a_kind_are_counted() -> None:
    sentences = drift(BEFORE, BEFORE, {}, {f"key{number:02d}": "1" for number in range(NAMES_SHOWN + 3)})
    assert len(sentences) == NAMES_SHOWN + 1
    assert sentences[-1] == "And 3 more changes like the last one."
