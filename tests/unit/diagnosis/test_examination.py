"""Asking a cluster everything once: what comes back, what is lacking, and that nothing but GET is sent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pulsar_advisor.admin.metadata_store import MetadataReader
from pulsar_advisor.admin.oauth2 import NoToken
from pulsar_advisor.admin.options import CaptureOptions
from pulsar_advisor.admin.read_client import Migration
from pulsar_advisor.admin.zookeeper import ZooKeeperConnection, ZooKeeperStore
from pulsar_advisor.diagnosis.examination import Lack, StoreAnswers, examine
from unit.capture.fake_cluster import ADMIN, FakeCluster
from unit.capture.recorded_store import RecordedStore

LOGIN_PAGE = "<html><body>Error 401 Authentication required</body></html>"


def test_a_healthy_cluster_lacks_nothing_and_is_only_read(cluster: FakeCluster) -> None:
    found = examine(cluster.options())
    assert (found.cluster_name, set(found.brokers)) == ("fake", {cluster.first.id, cluster.second.id})
    assert (found.leader, found.lacks) == (cluster.second.id, {})
    assert found.releases == dict.fromkeys(found.brokers, "4.0.8")
    assert found.load_managers == dict.fromkeys(found.brokers, "modular")
    assert [answers.lacks for answers in found.answers.values()] == [{}, {}]
    assert all(answers.clock is not None for answers in found.answers.values())
    assert {method for broker in (cluster.first, cluster.second) for method, _ in broker.requests} == {"GET"}


def test_a_brokers_listeners_are_known_by_their_names(cluster: FakeCluster) -> None:
    internal, listed = "internal:pulsar://10.0.0.1:6650, internal:http://10.0.0.1:8080", "outer:pulsar://a:6650"
    cluster.configure(cluster.first, internalListenerName="internal", advertisedListeners=f"{internal},{listed}")
    found = examine(cluster.options()).answers
    assert found[cluster.first.id].listeners == {"internal", "outer"}
    assert found[cluster.first.id].internal_listener == "internal"
    assert not found[cluster.second.id].internal_listener


def test_statistics_of_topics_are_read_at_one_broker_only(cluster: FakeCluster) -> None:
    examine(cluster.options())
    requests = [path for broker in (cluster.first, cluster.second) for _, path in broker.requests]
    assert requests.count(f"{ADMIN}/broker-stats/topics") == 1
    assert requests.count(f"{ADMIN}/broker-stats/load-report") == 2


def test_secrets_in_a_brokers_configuration_are_not_kept(cluster: FakeCluster) -> None:
    found = examine(cluster.options())
    assert found.leading_settings.keys() == {"loadManagerClassName"}
    assert found.dynamic == {"loadBalancerEnabled": "true"}


def test_a_release_with_scalable_topics_is_asked_for_them_and_for_a_migration(cluster: FakeCluster) -> None:
    assert "segments" not in examine(cluster.options()).asked
    for broker in (cluster.first, cluster.second):
        broker.answers("/brokers/version", "5.0.1")
        broker.answers("/metadata/migration/status", {"phase": "COPYING"})
        broker.answers("/scalable/retail/orders", {"reason": "HTTP 404 Not Found"}, status=404)
    found = examine(cluster.options())
    assert found.migration == Migration("COPYING")
    assert found.lacks["segments"].status == 404


def test_during_an_upgrade_an_upgraded_broker_is_asked_for_what_only_its_release_has(cluster: FakeCluster) -> None:
    only_later: dict[str, object] = {"/metadata/migration/status": {"phase": "COPYING"}, "/scalable/retail/orders": []}
    for path, document in only_later.items():
        cluster.first.answers(path, {"reason": "HTTP 404 Not Found"}, status=404)
        cluster.second.answers(path, document)
    cluster.second.answers("/brokers/version", "5.0.1")
    found = examine(cluster.options())
    assert (found.migration, found.lacks) == (Migration("COPYING"), {})


@pytest.mark.parametrize(("apart", "scheme"), [("", ""), ("zk:a:2181", ""), ("oxia://secret@o:6648/c", "oxia")])
def test_a_configuration_store_of_its_own_is_known_by_its_scheme(cluster: FakeCluster, apart: str, scheme: str) -> None:
    cluster.configure(cluster.first, metadataStoreUrl="zk:a:2181", configurationMetadataStoreUrl=apart)
    answers = examine(cluster.options()).answers[cluster.first.id]
    assert (answers.store_scheme, answers.configuration_scheme) == ("zk", scheme)


@pytest.mark.parametrize("authorization", [True, False])
def test_whether_the_brokers_check_permissions_is_kept(cluster: FakeCluster, authorization: bool) -> None:
    cluster.configure(cluster.first, authorizationEnabled=str(authorization).lower())
    assert examine(cluster.options()).checks_permissions is authorization


def test_under_extensible_metrics_are_asked_for_in_place_of_a_load_report(cluster: FakeCluster) -> None:
    for broker in (cluster.first, cluster.second):
        cluster.configure(
            broker, loadManagerClassName="org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl"
        )
    cluster.first.answers("/broker-stats/metrics", [])
    cluster.second.answers("/broker-stats/metrics", {"reason": "super-user"}, status=401)
    found = examine(cluster.options())
    assert found.answers[cluster.first.id].lacks == {}
    assert found.answers[cluster.second.id].lacks.keys() == {"broker_metrics"}
    assert "/broker-stats/load-report" not in {path.removeprefix(ADMIN) for _, path in cluster.first.requests}


def test_an_issuer_that_gives_no_token_ends_the_asking(cluster: FakeCluster, tmp_path: Path) -> None:
    (tmp_path / "key.json").write_text('{"client_id": "us", "client_secret": "hunter2"}')
    oauth2 = {"issuer_url": "http://127.0.0.1:1", "key_file": tmp_path / "key.json"}
    with pytest.raises(NoToken, match="OAuth2 issuer"):
        examine(cluster.options(oauth2=oauth2))
    assert cluster.first.requests == []


def test_a_broker_that_is_down_is_asked_once(cluster: FakeCluster) -> None:
    cluster.second.stop()
    found = examine(cluster.options())
    answers = found.answers[cluster.second.id]
    assert answers.silence is not None
    assert answers.lacks.keys() == {"owned_bundles"}
    assert isinstance(found.admin_urls[cluster.second.url], Lack)
    assert found.answers[cluster.first.id].lacks == {}


def test_without_credentials_nothing_more_is_asked(cluster: FakeCluster) -> None:
    for broker in (cluster.first, cluster.second):
        broker.answers("/brokers/version", LOGIN_PAGE, status=401)
    found = examine(cluster.options())
    assert [lack.status for lack in found.admin_urls.values() if isinstance(lack, Lack)] == [401, 401]
    assert len(cluster.first.requests) == 1


def test_a_role_without_rights_still_tells_which_surfaces_it_lacks(cluster: FakeCluster) -> None:
    refused = ("/brokers/configuration/runtime", "/brokers/configuration/values", "/brokers/fake", "/tenants")
    for broker in (cluster.first, cluster.second):
        for path in refused:
            broker.answers(path, {"reason": "Unauthorized"}, status=401)
        broker.answers("/clusters", ["fake"])
    found = examine(cluster.options())
    assert {surface: lack.status for surface, lack in found.lacks.items()} == dict.fromkeys(
        ("settings", "brokers", "tenants"), 401
    )
    assert found.cluster_name == "fake"


def test_a_role_that_may_not_read_the_clusters_name_lacks_what_is_asked_by_it(cluster: FakeCluster) -> None:
    for broker in (cluster.first, cluster.second):
        for path in ("/brokers/configuration/runtime", "/brokers/configuration/values", "/clusters"):
            broker.answers(path, {"reason": "Unauthorized"}, status=401)
    found = examine(cluster.options())
    by_name = dict.fromkeys(("settings", "brokers", "isolation_policies", "failure_domains"), 401)
    assert {surface: lack.status for surface, lack in found.lacks.items()} == by_name
    assert not [path for _, path in cluster.first.requests if "//" in path or path.endswith("/")]


def test_an_answer_that_can_not_be_read_is_a_lack_of_its_surface_alone(cluster: FakeCluster) -> None:
    for broker in (cluster.first, cluster.second):
        broker.answers("/brokers/leaderBroker", LOGIN_PAGE)
    found = examine(cluster.options())
    assert {surface: lack.status for surface, lack in found.lacks.items()} == {"leader": 200}
    assert "can't decode the response" in found.lacks["leader"].reason


def test_a_tenant_without_namespaces_is_passed_over(cluster: FakeCluster) -> None:
    for broker in (cluster.first, cluster.second):
        broker.answers("/tenants", ["empty", "retail"])
        broker.answers("/namespaces/empty", [])
    examine(cluster.options())
    asked = [path for broker in (cluster.first, cluster.second) for _, path in broker.requests]
    assert f"{ADMIN}/namespaces/retail/orders" in asked


def test_something_that_is_no_broker_is_named(cluster: FakeCluster) -> None:
    cluster.first.answers("/brokers/version", "<html>Welcome</html>")
    lack = examine(cluster.options(admin_urls=(cluster.first.url,))).admin_urls[cluster.first.url]
    assert isinstance(lack, Lack)
    assert "check that this is the admin URL of a Pulsar broker" in lack.reason


def test_a_zookeeper_that_can_not_be_reached_is_noted(cluster: FakeCluster) -> None:
    zookeeper = ZooKeeperConnection(hosts="127.0.0.1:1", timeout_s=0.5)
    found = examine(cluster.options().model_copy(update={"zookeeper": zookeeper}))
    assert found.store is not None
    assert "no session within 0.5 s" in (found.store.lack or "")


def test_where_no_admin_url_answers_the_store_is_asked_for_brokers_that_get_no_call(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = StoreAnswers(None, (cluster.first.id, cluster.second.id))
    monkeypatch.setattr("pulsar_advisor.diagnosis.examination._ask_store", lambda _: store)
    cluster.first.stop()
    options = cluster.options(admin_urls=(cluster.first.url,))
    found = examine(options.model_copy(update={"zookeeper": ZooKeeperConnection(hosts="zk1:2181")}))
    assert (found.store, found.is_answered, cluster.second.requests) == (store, False, [])


@pytest.mark.parametrize(
    ("more", "name", "lack"), [({}, "live", None), ({"/admin/clusters/east": "{}"}, "", "several")]
)
def test_without_an_admin_url_zookeeper_is_asked_alone(
    monkeypatch: pytest.MonkeyPatch, more: dict[str, str], name: str, lack: str | None
) -> None:
    store = RecordedStore("modular", monkeypatch, **more)

    @contextmanager
    def connected(connection: ZooKeeperConnection, **_: object) -> Iterator[MetadataReader]:
        yield MetadataReader(ZooKeeperStore(store.kazoo, connection))

    monkeypatch.setattr("pulsar_advisor.diagnosis.examination.connected", connected)
    found = examine(CaptureOptions(zookeeper=ZooKeeperConnection(hosts="zk1:2181")))
    assert (found.admin_urls, found.cluster_name) == ({}, name)
    assert found.store is not None
    if lack is None:
        assert (found.store.lack, set(found.brokers)) == (None, set(store.brokers))
    else:
        assert found.store.lack is not None
        assert lack in found.store.lack


def test_without_an_admin_url_a_zookeeper_that_is_not_there_is_noted() -> None:
    found = examine(CaptureOptions(zookeeper=ZooKeeperConnection(hosts="127.0.0.1:1", timeout_s=0.2)))
    assert found.store is not None
    assert found.store.lack is not None
    assert "no session within 0.2 s" in found.store.lack
