"""Listening comes first and ends in time; what another process heard counts; what comes late is in the snapshot too."""

from __future__ import annotations

import threading
from base64 import b64encode
from collections.abc import Callable, Collection
from typing import Any

import pytest
import zstandard

from captures import Silence, capture, lines_of, manifest_of
from pulsar_advisor.capture import publications
from pulsar_advisor.capture.publications import Heard, Listener, Message, Received, Unreadable, Wait
from pulsar_advisor.capture.system_topics import BrokerLoadData
from pulsar_advisor.model.errors import ClusterUnreachable, StorageError
from pulsar_advisor.stages.capture import run
from pulsar_advisor.storage.root import Root
from unit.capture.fake_cluster import FakeCluster
from unit.capture.fake_topics import LOAD, TOP, Client, listening_to

A, B = "a:8080", "b:8080"
TO_IDENTIFY = 3
"""Requests: a configuration, the brokers, the leader."""


class Steps(Silence):
    """Calls a function when a step begins."""

    def __init__(self, at: str, act: Callable[[], None]) -> None:
        self._at, self._act = at, act
        self.begun: list[tuple[str, int]] = []

    def begin(self, step: str, total: int) -> None:
        self.begun.append((step, total))
        if step.startswith(self._at):
            self._act()


def from_both(cluster: FakeCluster) -> dict[str, list[tuple[str, Any]]]:
    ids = (cluster.first.id, cluster.second.id)
    return {LOAD: [(broker, {"topics": 1}) for broker in ids], TOP: [(broker, {}) for broker in ids]}


def test_all_else_is_read_once_every_broker_was_heard(
    extensible: FakeCluster, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = from_both(extensible)
    last = messages[TOP].pop()
    client = Client(messages)
    requests: list[int] = []

    def publish() -> None:
        requests.append(len(extensible.first.requests) + len(extensible.second.requests))
        client.publish(TOP, *last)

    def soon() -> None:
        timer = threading.Timer(0.2, publish)
        timer.start()

    steps = Steps("what brokers publish", soon)
    options = listening_to(client, extensible, monkeypatch).model_copy(update={"listen_s": 900})
    manifest = manifest_of(capture(options, root, steps))
    assert requests == [TO_IDENTIFY]
    assert steps.begun[0] == ("what brokers publish, for at most 15m", 2)
    assert [entry["surface"] for entry in manifest["missing"] if entry["surface"] in ("top_bundles", LOAD)] == []
    heard = [read for read in manifest["reads"] if read["target"] == "service_url" and read["surface"] == "top_bundles"]
    assert [(read["requests"], read["started_at_ms"] < manifest["started_at_ms"]) for read in heard] == [(2, True)]


def test_what_is_published_while_all_else_is_read_is_in_the_snapshot(
    extensible: FakeCluster, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client(from_both(extensible))
    first = extensible.first.id
    steps = Steps("topic names", lambda: client.publish(LOAD, first, {"topics": 2}))
    snapshot = capture(listening_to(client, extensible, monkeypatch), root, steps)
    of_first = [line for line in lines_of(snapshot, "broker_load_data") if line["broker"] == first]
    assert [line["document"]["topics"] for line in of_first] == [1, 2]


def test_nobody_is_listened_to_if_nobody_wants_to(
    extensible: FakeCluster, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client(from_both(extensible))
    options = listening_to(client, extensible, monkeypatch).model_copy(update={"listen_s": 0})
    manifest = manifest_of(capture(options, root))
    assert client.opened.keys().isdisjoint({LOAD, TOP})
    reasons = {entry["surface"]: entry["reason"] for entry in manifest["missing"]}
    assert reasons["broker_load_data"] == reasons["top_bundles"] == "not available without listening (--listen 0s)"
    assert "service_unit_states" not in reasons


def test_a_cluster_is_what_it_is_after_the_wait(
    extensible: FakeCluster, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client(from_both(extensible))
    first, second = extensible.first, extensible.second

    def second_leaves() -> None:
        for broker in (first, second):
            broker.answers("/brokers/fake", [first.id])
            broker.answers("/brokers/leaderBroker", {"brokerId": first.id})

    steps = Steps("what brokers publish", second_leaves)
    manifest = manifest_of(capture(listening_to(client, extensible, monkeypatch), root, steps))
    assert (manifest["identity"]["broker_ids"], manifest["leader"]) == ([first.id], first.id)


def packed(content: bytes) -> str:
    return b64encode(zstandard.compress(content)).decode()


@pytest.mark.parametrize("text", ["", "{}", "None", packed(b"{}"), packed(b'{"since_ms":"5","until_ms":9}')])
def test_what_nobody_has_heard_is_named(text: str) -> None:
    with pytest.raises(StorageError, match="what was heard before can't be read"):
        Heard.unpacked(text)


def test_what_was_heard_is_unpacked_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publications, "LARGEST_HEARD_BYTES", 100)
    with pytest.raises(StorageError, match="truncated"):
        Heard.unpacked(packed(b'{"since_ms":5,' + b" " * 100 + b'"until_ms":9}'))


def test_what_another_process_heard_is_not_waited_for_again(
    extensible: FakeCluster, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = extensible.first.id
    document = BrokerLoadData(topics=7)
    earlier = Heard(
        since_ms=5,
        until_ms=9,
        broker_load_data=(Message(first, 6, 6, document),),
        received={"broker_load_data": Received(1, 30)},
        unreadable=(Unreadable("top_bundles", "no JSON", 3, "0" * 64),),
    )
    assert Heard.unpacked(earlier.packed()) == earlier
    steps = Steps("what brokers publish", lambda: pytest.fail("a second wait"))
    options = listening_to(Client({LOAD: [(first, {"topics": 8})]}), extensible, monkeypatch)
    snapshot = run(options, root, steps, Heard.unpacked(earlier.packed()))
    assert [line["document"]["topics"] for line in lines_of(snapshot, "broker_load_data")] == [7, 8]
    manifest = manifest_of(snapshot)
    (read,) = [read for read in manifest["reads"] if read["surface"] == "broker_load_data"]
    assert (read["started_at_ms"], read["requests"]) == (5, 2)
    assert [failure["surface"] for failure in manifest["failures"]] == ["top_bundles"]
    assert manifest["started_at_ms"] > 9


class Time:
    """A monotonic clock that a test moves."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Time:
    clock = Time()
    monkeypatch.setattr(publications, "time", clock)
    return clock


class FromNobody:
    """A listener that hears nothing."""

    refused: str | None = None

    def silent(self, brokers: Collection[str]) -> list[str]:
        return sorted(brokers)


def test_a_broker_that_has_left_is_not_waited_for(clock: Time) -> None:
    active = {A}
    wait = Wait(as_listener(FromNobody()), {A, B}, lambda: active, 900)
    assert wait.silent() == [A, B]
    clock.now_s += publications.LOOK_AGAIN_S
    assert wait.silent() == [A]
    active.clear()
    clock.now_s += publications.LOOK_AGAIN_S
    assert wait.silent() == []


def test_while_nobody_knows_who_is_left_all_are_waited_for_until_time_is_up(clock: Time) -> None:
    def unreachable() -> Collection[str]:
        raise ClusterUnreachable("no answer")

    wait = Wait(as_listener(FromNobody()), {A}, unreachable, 65)
    clock.now_s += 64.9
    assert wait.silent() == [A]
    clock.now_s += 0.1
    assert wait.silent() == []


def test_who_may_not_listen_does_not_wait(clock: Time) -> None:
    listener = FromNobody()
    listener.refused = "AuthorizationError"
    assert Wait(as_listener(listener), {A}, lambda: {A}, 900).silent() == []


def as_listener(double: Any) -> Listener:
    listener: Listener = double
    return listener
