"""`capture` is deferred while the triggerer listens to Extensible brokers, and takes over what it heard."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import TaskDeferred
from airflow.sdk.module_loading import import_string

from captures import lines_of
from pulsar_advisor.capture.publications import Heard
from pulsar_advisor.storage.root import Root
from pulsar_advisor_airflow.operators.capture import PulsarCaptureOperator
from pulsar_advisor_airflow.triggers.publications import PublicationsTrigger
from unit.capture.fake_cluster import MODULAR, FakeCluster, fake_cluster
from unit.capture.fake_topics import EXTENSIBLE, LOAD, SERVICE_URL, TOP, Client

pytestmark = pytest.mark.airflow


@pytest.fixture
def root(tmp_path: Path) -> Root:
    return Root(str(tmp_path), "test")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCluster]:
    with fake_cluster() as cluster:
        cluster.configure_all(loadManagerClassName=EXTENSIBLE)
        cluster.answers("/broker-stats/metrics", [])
        connect(monkeypatch, cluster)
        yield cluster


def connect(monkeypatch: pytest.MonkeyPatch, cluster: FakeCluster, **extra: str) -> None:
    urls = f"{cluster.first.url},{cluster.second.url}"
    document = {"conn_type": "pulsar_admin", "extra": {"admin_urls": urls, "service_url": SERVICE_URL, **extra}}
    monkeypatch.setenv("AIRFLOW_CONN_PULSAR_DEFAULT", json.dumps(document))


def published(cluster: FakeCluster, topics: int) -> Client:
    ids = (cluster.first.id, cluster.second.id)
    return Client({LOAD: [(broker, {"topics": topics}) for broker in ids], TOP: [(broker, {}) for broker in ids]})


def operator(root: Root) -> PulsarCaptureOperator:
    return PulsarCaptureOperator(
        task_id="capture", root=root.url, cluster=root.cluster, pulsar_conn_id="pulsar_default", deferrable=True
    )


def fired(deferred: TaskDeferred) -> Any:
    """The event of the trigger as another triggerer builds it from the database."""
    name, arguments = deferred.trigger.serialize()
    trigger = import_string(name)(**json.loads(json.dumps(arguments)))

    async def first() -> Any:
        return await asyncio.wait_for(anext(trigger.run()), 20)

    return json.loads(json.dumps(asyncio.run(first()).payload))


@pytest.fixture
def sealed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    snapshots: list[str] = []
    monkeypatch.setattr(
        "pulsar_advisor_airflow.operators.capture.seal", lambda snapshot, _stage: snapshots.append(snapshot.id)
    )
    return snapshots


def test_the_triggerer_listens_and_the_task_reads_the_rest(
    cluster: FakeCluster, root: Root, sealed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pulsar.Client", published(cluster, topics=1))
    task = operator(root)
    with pytest.raises(TaskDeferred) as deferred:
        task.execute({})
    event = fired(deferred.value)
    assert len(Heard.unpacked(event["heard"]).broker_load_data) == 2
    monkeypatch.setattr("pulsar.Client", Client({}))
    snapshot = getattr(task, deferred.value.method_name)({}, event)
    assert [line["document"]["topics"] for line in lines_of(root.snapshot(snapshot), "broker_load_data")] == [1, 1]
    assert sealed == [snapshot]


def test_a_triggerer_out_of_the_clusters_reach_leaves_it_to_the_worker(
    cluster: FakeCluster, root: Root, sealed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pulsar.Client", published(cluster, topics=2))
    task = operator(root)
    with pytest.raises(TaskDeferred) as deferred:
        task.execute({})
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv(
            "AIRFLOW_CONN_PULSAR_DEFAULT",
            json.dumps({"conn_type": "pulsar_admin", "extra": {"admin_urls": "http://127.0.0.9:1"}}),
        )
        event = fired(deferred.value)
    assert event == {"heard": None}
    snapshot = task.go_on({}, event)
    assert [line["document"]["topics"] for line in lines_of(root.snapshot(snapshot), "broker_load_data")] == [2, 2]
    assert sealed == [snapshot]


@pytest.mark.parametrize("listen", ["0s", "59s"])
def test_a_short_wait_starts_no_process(
    cluster: FakeCluster, root: Root, sealed: list[str], monkeypatch: pytest.MonkeyPatch, listen: str
) -> None:
    connect(monkeypatch, cluster, listen=listen)
    monkeypatch.setattr("pulsar.Client", published(cluster, topics=1))
    snapshot = operator(root).execute({})
    assert sealed == [snapshot]


def test_brokers_of_another_load_manager_are_not_listened_to(
    cluster: FakeCluster, root: Root, sealed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.configure_all(loadManagerClassName=MODULAR)
    client = Client({})
    monkeypatch.setattr("pulsar.Client", client)
    snapshot = operator(root).execute({})
    assert (sealed, client.opened) == ([snapshot], {})


def test_what_a_stopped_task_was_about_to_open_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    connecting, cancelled, closed = threading.Event(), threading.Event(), threading.Event()

    def listening(_trigger: PublicationsTrigger, stack: ExitStack) -> Any:
        connecting.set()
        cancelled.wait(20)
        stack.callback(closed.set)

    async def stopped_meanwhile() -> bool:
        waiting = asyncio.ensure_future(anext(PublicationsTrigger("pulsar_default").run()))
        await asyncio.to_thread(connecting.wait, 20)
        waiting.cancel()
        await asyncio.wait([waiting])
        cancelled.set()
        return await asyncio.to_thread(closed.wait, 20)

    monkeypatch.setattr(PublicationsTrigger, "_listening", listening)
    assert asyncio.run(stopped_meanwhile())


def test_no_other_trigger_waits_until_the_connections_are_closed(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed_by: list[threading.Thread] = []
    closed = threading.Event()
    monkeypatch.setattr(Client, "close", lambda _: (closed_by.append(threading.current_thread()), closed.set()))
    monkeypatch.setattr("pulsar.Client", published(cluster, topics=1))

    async def heard() -> None:
        async for _event in PublicationsTrigger("pulsar_default").run():
            pass

    asyncio.run(heard())
    assert closed.wait(20)
    assert threading.main_thread() not in closed_by
