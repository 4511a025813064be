"""The fault server's brokers answer as real ones were recorded to, and act as real ones were seen to."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from faults.cluster import MANAGERS, RECONNECT_S, Answer, Call, Cluster, Manager
from unit.admin.mutated import recorded

NAMESPACE = "shop/orders"
LOWER, UPPER = "0x00000000_0x80000000", "0x80000000_0xffffffff"
BUNDLE = f"{NAMESPACE}/{LOWER}"
A, B, C = "127.0.0.1:1", "127.0.0.2:2", "127.0.0.3:3"


class Time:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def cluster(time: Time) -> Cluster:
    return three_brokers(time, "modular")


def three_brokers(time: Time, manager: Manager) -> Cluster:
    """The leader is A, and B owns both bundles."""
    return Cluster(
        (A, B, C),
        time,
        Random(3),
        manager=manager,
        boundaries={NAMESPACE: [0, 0x80000000, 0xFFFFFFFF]},
        owners={BUNDLE: B, f"{NAMESPACE}/{UPPER}": B},
        topics={NAMESPACE: [f"persistent://{NAMESPACE}/{name}" for name in "abcdef"]},
    )


def settled(cluster: Cluster, time: Time) -> str | None:
    """The owner of the bundle once clients have come back."""
    time.now_s += RECONNECT_S
    cluster.catch_up()
    return cluster.owners.get(BUNDLE)


def unload(cluster: Cluster, broker: str, **query: str) -> Answer:
    return cluster.answer(Call(broker, "PUT", f"/admin/v2/namespaces/{BUNDLE}/unload", query))


def split(cluster: Cluster, broker: str, *positions: int) -> Answer:
    return cluster.answer(Call(broker, "PUT", f"/admin/v2/namespaces/{BUNDLE}/split", {}, list(positions)))


def followed(cluster: Cluster, broker: str, **query: str) -> tuple[int, list[str]]:
    """The status after all redirects, and which brokers were asked."""
    asked, answer = [broker], unload(cluster, broker, **query)
    while answer.to is not None:
        asked.append(answer.to)
        answer = unload(cluster, answer.to, **answer.query)
    return answer.status, asked


def body(answers: list[dict[str, Any]], ending: str) -> str:
    return next(str(answer["body"]) for answer in answers if answer["path"].endswith(ending))


def rebuilt(load_manager: Manager) -> tuple[Cluster, list[dict[str, Any]]]:
    """The recorded cluster, made of some of its answers, and all of them."""
    document = recorded(load_manager)
    answers: list[dict[str, Any]] = document["answers"]
    brokers = tuple(document["brokers"])
    cluster = Cluster(
        brokers,
        Time(),
        Random(0),
        name=json.loads(body(answers, "configuration/runtime"))["clusterName"],
        manager=load_manager,
        release=body(answers, "/version"),
        isolation_policies=json.loads(body(answers, "namespaceIsolationPolicies")),
        leader=json.loads(body(answers, "/leaderBroker"))["brokerId"],
    )
    for namespace in ("public/default", "pulsar/system", "shy/data"):
        policies = json.loads(body(answers, f"/admin/v2/namespaces/{namespace}"))
        cluster.boundaries[namespace] = [int(bound, 16) for bound in policies["bundles"]["boundaries"]]
        cluster.topics[namespace] = json.loads(body(answers, f"/admin/v2/persistent/{namespace}"))
    for broker in brokers:
        cluster.owners |= dict.fromkeys(json.loads(body(answers, f"{broker}/ownedNamespaces")), broker)
    return cluster, answers


def promised(path: str, document: Any) -> Any:
    """What the double promises of an answer: all of it, or the part that `apply` reads."""
    if path.endswith(("shy/data", "public/default")) and isinstance(document, dict):
        return document["bundles"]
    if path.endswith("/runtime"):
        kept = ("clusterName", "loadManagerClassName", "namespaceBundleUnloadingTimeoutMs")
        return {key: document[key] for key in kept}
    if path.endswith("/broker-stats/topics"):
        return sorted(document.get("shy/data", {}))  # the bundles; the double loads every topic, and live brokers some
    if path.endswith("/brokers/live"):
        return sorted(document)
    return {name: set(status) for name, status in document.items()} if path.endswith("/ownedNamespaces") else document


@pytest.mark.parametrize("load_manager", ["modular", "extensible"])
@pytest.mark.parametrize(
    "ending",
    [
        *("/brokers/live", "/leaderBroker", "/ownedNamespaces", "/version", "/namespaceIsolationPolicies"),
        *("/antiAffinity", "/namespaces/shy/data", "/namespaces/public/default", "/persistent/shy/data"),
        *("/persistent/public/default", "/configuration/runtime", "/broker-stats/topics"),
    ],
)
def test_a_broker_answers_as_a_live_one_did(load_manager: Manager, ending: str) -> None:
    cluster, answers = rebuilt(load_manager)
    found = [answer for answer in answers if answer["path"].endswith(ending)]
    assert found
    for answer in found:
        path = answer["path"]
        of_itself = (broker for broker in cluster.brokers if f"/{broker}/" in path)
        given = cluster.answer(Call(next(of_itself, answer["broker"] or cluster.leader), "GET", path))
        assert given.status == answer["status"]
        if answer["status"] == 200:
            text = answer["body"]
            document = json.loads(text) if text.startswith(("{", "[")) else text
            assert promised(path, given.document) == promised(path, document)


def test_an_unload_with_a_destination_goes_to_the_leader_and_then_to_the_owner(cluster: Cluster, time: Time) -> None:
    assert followed(cluster, C, destinationBroker=C) == (204, [C, A, B])
    assert BUNDLE not in cluster.owners
    assert settled(cluster, time) == C


def test_about_one_in_ten_unloads_misses_its_destination(cluster: Cluster, time: Time) -> None:
    arrived = 0
    for _ in range(200):
        destination = C if cluster.owners[BUNDLE] == B else B
        followed(cluster, A, destinationBroker=destination)
        arrived += settled(cluster, time) == destination
    assert 170 < arrived < 200


def test_an_unload_to_a_broker_that_is_not_active_is_refused_before_anything_happens(cluster: Cluster) -> None:
    cluster.die(C)
    before = dict(cluster.owners)
    answer = unload(cluster, B, destinationBroker=C)
    assert answer.status == 409
    assert answer.document == {"reason": "Not allowed unload namespace bundle to inactive destination broker"}
    assert (cluster.owners, cluster.wishes) == (before, {})


def test_a_destination_for_what_nobody_owns_strikes_the_same_range_of_another_namespace(
    cluster: Cluster, time: Time
) -> None:
    cluster.boundaries["shop/other"] = cluster.boundaries[NAMESPACE]
    cluster.owners[f"shop/other/{LOWER}"] = A
    del cluster.owners[BUNDLE]
    assert unload(cluster, A, destinationBroker=C).status == 204
    cluster.answer(Call(A, "PUT", f"/admin/v2/namespaces/shop/other/{LOWER}/unload"))
    settled(cluster, time)
    assert cluster.owners[f"shop/other/{LOWER}"] == C


def test_an_unload_of_what_nobody_owns_is_answered_as_if_it_had_been_done(cluster: Cluster) -> None:
    del cluster.owners[BUNDLE]
    assert unload(cluster, A).status == 204
    assert cluster.history == []


def test_the_owner_of_an_extensible_cluster_transfers_a_bundle_at_once(time: Time) -> None:
    cluster = three_brokers(time, "extensible")
    assert followed(cluster, C, destinationBroker=A) == (204, [C, B])
    assert cluster.owners[BUNDLE] == A
    assert "cannot be transfer to same broker" in unload(cluster, A, destinationBroker=A).document["reason"]


def test_a_split_is_done_by_the_owner_and_its_children_stay_there(cluster: Cluster) -> None:
    assert split(cluster, A, 0x40000000).to == B
    assert split(cluster, B, 0x40000000).status == 204
    assert cluster.boundaries[NAMESPACE] == [0, 0x40000000, 0x80000000, 0xFFFFFFFF]
    assert [cluster.owners[bundle] for bundle in cluster.bundles(NAMESPACE)] == [B, B, B]


def test_an_extensible_cluster_splits_in_two_only(time: Time) -> None:
    cluster = three_brokers(time, "extensible")
    assert split(cluster, B, 0x20000000, 0x40000000).status == 412
    assert split(cluster, B, 0x40000000).status == 204


def test_a_split_without_a_position_inside_is_answered_as_if_it_had_been_done(cluster: Cluster) -> None:
    assert split(cluster, B, 0x90000000).status == 204
    assert cluster.boundaries[NAMESPACE] == [0, 0x80000000, 0xFFFFFFFF]


@pytest.mark.parametrize(("text", "status"), [("0x00000000_0x40000000", 412), ("garbage", 500)])
def test_a_range_that_is_no_bundle_is_refused(cluster: Cluster, text: str, status: int) -> None:
    assert cluster.answer(Call(A, "PUT", f"/admin/v2/namespaces/{NAMESPACE}/{text}/unload")).status == status


def test_a_lookup_assigns_what_nobody_owns(cluster: Cluster) -> None:
    cluster.owners.clear()
    assert cluster.answer(Call(A, "GET", f"/lookup/v2/topic/persistent/{NAMESPACE}/a")).status == 200
    assert len(cluster.owners) == 1


def test_what_a_broker_owned_is_brought_to_others_when_it_dies(cluster: Cluster, time: Time) -> None:
    cluster.die(B)
    assert settled(cluster, time) in {A, C}


def test_both_load_managers_of_the_double_are_pulsars() -> None:
    assert {name.rpartition(".")[2] for name in MANAGERS.values()} == {
        "ModularLoadManagerImpl",
        "ExtensibleLoadManagerImpl",
    }
