"""One capture: complete from a healthy cluster, honest about a half broken one, and nothing at all from none."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from werkzeug import Request, Response

from captures import Silence, capture, everything_in, lines_of, manifest_of
from pulsar_advisor.admin.decoding import Document
from pulsar_advisor.admin.oauth2 import NoToken
from pulsar_advisor.admin.oxia import OxiaConnection
from pulsar_advisor.capture.documents import unloads_of_leader
from pulsar_advisor.capture.raw_files import read_lines
from pulsar_advisor.documents.manifest import NOT_AVAILABLE
from pulsar_advisor.model.errors import AdvisorError, ClusterUnreachable, DataNotFit, UsageError
from pulsar_advisor.storage.files import sha256_hex
from pulsar_advisor.storage.root import MANIFEST, Root
from unit.admin.fake_oxia import FakeOxia, Record, served, with_parents
from unit.capture.fake_cluster import (
    LOWER,
    MODULAR,
    SECRET,
    TOPIC,
    UPPER,
    FakeBroker,
    FakeCluster,
    leader_metrics,
    load_report,
    with_zookeeper,
)
from web_server import HTTPServer


def files_under(root: Root) -> list[Path]:
    return [path for path in Path(root.url).rglob("*") if path.is_file()]


def missing(manifest: dict[str, Any]) -> set[tuple[str, str | None]]:
    return {(entry["surface"], entry["broker"]) for entry in manifest["missing"]}


ONLY_IN_ZOOKEEPER = {
    (name, None) for name in ("local_policies", "bundle_data", "broker_time_averages", "resource_quotas")
}


def test_the_manifest_lists_every_file_with_its_hash_and_rows(cluster: FakeCluster, root: Root) -> None:
    snapshot = capture(cluster.options(), root)
    folder = snapshot.folder("raw")
    manifest = manifest_of(snapshot)
    listed = {entry["path"]: entry for entry in manifest["files"]}
    on_disk = {str(path.relative_to(str(folder))) for path in files_under(root)}
    assert on_disk == listed.keys() | {MANIFEST}
    for path, entry in listed.items():
        content = (folder / path).read_bytes()
        assert (entry["bytes"], entry["sha256"]) == (len(content), sha256_hex(content))
        assert entry["rows"] == len(list(read_lines(content)))


def test_the_manifest_says_what_the_cluster_is(cluster: FakeCluster, root: Root) -> None:
    manifest = manifest_of(capture(cluster.options(), root))
    assert manifest["identity"] == {"cluster_name": "fake", "broker_ids": [cluster.first.id, cluster.second.id]}
    assert manifest["load_manager"] == "modular"
    assert manifest["pulsar_version"] == "4.0.8"
    assert manifest["leader"] == cluster.second.id
    assert missing(manifest) == ONLY_IN_ZOOKEEPER
    assert manifest["incomplete_brokers"] == manifest["failures"] == manifest["moved_bundles"] == []


def test_what_was_read_stands_in_the_files(cluster: FakeCluster, root: Root) -> None:
    snapshot = capture(cluster.options(), root)
    assert lines_of(snapshot, "leader") == [{"source": "rest", "broker": cluster.second.id}]
    (namespace,) = lines_of(snapshot, "namespaces")
    assert namespace["document"]["bundles"]["boundaries"] == ["0x00000000", "0x80000000", "0xffffffff"]
    (topic,) = lines_of(snapshot, "topic_names")
    assert topic == {"source": "rest", "namespace": "retail/orders", "domain": "persistent", "topic": TOPIC}
    (partitioned,) = lines_of(snapshot, "partitioned_topics")
    assert (partitioned["topic"], partitioned["partitions"]) == ("persistent://retail/orders/parts", 4)
    stats = lines_of(snapshot, "topic_stats")[0]
    assert (stats["topic"], stats["range"], stats["stats"]["msgRateIn"]) == (TOPIC, "0x00000000_0x80000000", 4.5)
    assert lines_of(snapshot, "isolation_policies") == []
    assert {(line["bundle"], line["pass"]) for line in lines_of(snapshot, "owned_bundles")} == {
        (bundle, moment) for bundle in (LOWER, UPPER) for moment in ("begin", "end")
    }


def test_no_secret_reaches_the_disk(cluster: FakeCluster, root: Root) -> None:
    capture(cluster.options(), root)
    content = everything_in(root)
    assert b'"msgRateIn":4.5' in content
    assert SECRET.encode() not in content


def test_nothing_but_get_is_sent(cluster: FakeCluster, root: Root) -> None:
    capture(cluster.options(), root)
    assert {method for broker in (cluster.first, cluster.second) for method, _ in broker.requests} == {"GET"}


def test_namespaces_are_shared_out_and_no_broker_is_asked_two_things_at_a_time(
    cluster: FakeCluster, root: Root
) -> None:
    namespaces = [f"retail/n{number}" for number in range(12)]
    asked: dict[str, int] = {cluster.first.id: 0, cluster.second.id: 0}
    overlaps = []

    def answer_slowly(broker: str, busy: threading.Lock) -> Callable[[Request], Response]:
        def answer(_request: Request) -> Response:
            asked[broker] += 1
            if not busy.acquire(blocking=False):
                overlaps.append(broker)
                return Response("{}")
            time.sleep(0.01)
            busy.release()
            return Response("{}")

        return answer

    for broker in (cluster.first, cluster.second):
        broker.answers("/namespaces/retail", namespaces)
        answer = answer_slowly(broker.id, threading.Lock())
        for namespace in namespaces:
            broker.answers_by(f"/namespaces/{namespace}", answer)
            broker.answers(f"/namespaces/{namespace}/antiAffinity", "", status=204)
            for topics in ("persistent/{}", "persistent/{}/partitioned", "non-persistent/{}/partitioned"):
                broker.answers(f"/{topics.format(namespace)}", [])
    capture(cluster.options(), root)
    assert asked == {cluster.first.id: 6, cluster.second.id: 6}
    assert overlaps == []


def test_a_broker_that_is_down_costs_its_part_only(cluster: FakeCluster, root: Root) -> None:
    cluster.second.stop()
    snapshot = capture(cluster.options(), root)
    manifest = manifest_of(snapshot)
    lost = {
        (name, cluster.second.id) for name in ("owned_bundles", "settings", "brokers", "load_reports", "topic_stats")
    }
    assert missing(manifest) == lost | ONLY_IN_ZOOKEEPER
    assert manifest["incomplete_brokers"] == [cluster.second.id]
    reasons = {entry["reason"] for entry in manifest["missing"] if entry["broker"]}
    assert [reason for reason in reasons if "connection refused" not in reason] == []
    assert len(lines_of(snapshot, "namespaces")) == 1
    assert len(lines_of(snapshot, "load_reports")) == 1


def test_a_load_report_without_usage_is_none(cluster: FakeCluster, root: Root) -> None:
    cluster.second.answers("/broker-stats/load-report", {})
    snapshot = capture(cluster.options(), root)
    (failure,) = manifest_of(snapshot)["failures"]
    assert (failure["surface"], failure["broker"]) == ("load_reports", cluster.second.id)
    assert [line["broker"] for line in lines_of(snapshot, "load_reports")] == [cluster.first.id]


def test_a_document_that_cannot_be_decoded_costs_its_broker_only(cluster: FakeCluster, root: Root) -> None:
    cluster.first.answers("/broker-stats/topics", {"retail/orders": {"0x0_0x1": {"persistent": {TOPIC: SECRET}}}})
    snapshot = capture(cluster.options(), root)
    manifest = manifest_of(snapshot)
    (failure,) = manifest["failures"]
    assert (failure["surface"], failure["broker"]) == ("topic_stats", cluster.first.id)
    assert "Expected `object`, got `str`" in failure["error"]
    assert manifest["incomplete_brokers"] == [cluster.first.id]
    assert [path.name for path in files_under(root) if path.parent.name == "topic_stats"] == ["1.jsonl.zst"]
    assert SECRET.encode() not in everything_in(root)


def test_a_namespace_that_cannot_be_read_is_named(cluster: FakeCluster, root: Root) -> None:
    cluster.answers("/persistent/retail/orders", {"reason": "no permission"}, status=403)
    manifest = manifest_of(capture(cluster.options(), root))
    (entry,) = [entry for entry in manifest["missing"] if entry["namespace"]]
    assert (entry["surface"], entry["namespace"]) == ("topic_names", "retail/orders")
    assert "403, forbidden: the role lacks permission" in entry["reason"]
    assert "topic_names.jsonl.zst" not in {file["path"] for file in manifest["files"]}


def test_a_namespace_behind_a_proxy_that_does_not_know_its_path_is_named(cluster: FakeCluster, root: Root) -> None:
    cluster.answers("/persistent/retail/orders", "<html>404 Not Found</html>", status=404)
    manifest = manifest_of(capture(cluster.options(), root))
    (entry,) = [entry for entry in manifest["missing"] if entry["namespace"]]
    assert (entry["surface"], entry["namespace"]) == ("topic_names", "retail/orders")


def test_the_topics_of_a_namespace_of_three_parts_are_not_available(cluster: FakeCluster, root: Root) -> None:
    old = "retail/us-east/orders"
    cluster.answers("/namespaces/retail", ["retail/orders", old])
    manifest = manifest_of(capture(cluster.options(), root))
    [entry] = [entry for entry in manifest["missing"] if entry["namespace"]]
    assert (entry["surface"], entry["namespace"]) == ("topic_names", old)
    assert entry["reason"].startswith(NOT_AVAILABLE), "or a check would fail in each snapshot"
    assert [path for _, path in cluster.first.requests + cluster.second.requests if old in path] == []


def test_a_broker_that_is_closing_costs_no_namespace(cluster: FakeCluster, root: Root) -> None:
    namespaces = [f"retail/n{number}" for number in range(2)]  # one for each broker
    cluster.answers("/namespaces/retail", namespaces)
    for namespace in namespaces:
        cluster.answers(f"/namespaces/{namespace}", {})
        cluster.answers(f"/namespaces/{namespace}/antiAffinity", "", status=204)
        for topics in ("persistent/{}", "persistent/{}/partitioned", "non-persistent/{}/partitioned"):
            cluster.answers(f"/{topics.format(namespace)}", [])
    for namespace in namespaces:
        for path in (f"/namespaces/{namespace}", f"/persistent/{namespace}"):
            cluster.second.answers(path, {"reason": "closing"}, status=503)
    snapshot = capture(cluster.options(), root)
    assert missing(manifest_of(snapshot)) == ONLY_IN_ZOOKEEPER
    assert {line["namespace"] for line in lines_of(snapshot, "namespaces")} == set(namespaces)


def test_a_cluster_that_falls_silent_midway_is_asked_once_and_no_more(cluster: FakeCluster, root: Root) -> None:
    namespaces = [f"retail/n{number}" for number in range(50)]
    cluster.answers("/namespaces/retail", namespaces)
    manifest = manifest_of(capture(cluster.options(), root, StopBrokersAt("namespaces", cluster)))
    lost = {entry["namespace"] for entry in manifest["missing"] if entry["surface"] == "namespaces"}
    assert lost == set(namespaces)
    assert manifest["incomplete_brokers"] == [cluster.first.id, cluster.second.id]


class At(Silence):
    """Something happens once this step begins."""

    def __init__(self, step: str, happens: Callable[[], None]) -> None:
        self.step, self.happens = step, happens

    def begin(self, step: str, total: int) -> None:
        if step == self.step:
            self.happens()


def test_a_capture_that_gets_no_more_tokens_ends(cluster: FakeCluster, root: Root, tmp_path: Path) -> None:
    (tmp_path / "key.json").write_text(json.dumps({"client_id": "us", "client_secret": SECRET}))
    with HTTPServer(host="127.0.0.1", port=0) as issuer:
        endpoint = {"token_endpoint": issuer.url_for("/token")}
        issuer.expect_request("/.well-known/openid-configuration").respond_with_json(endpoint)
        issuer.expect_request("/token").respond_with_json({"access_token": "token", "expires_in": 0})
        oauth2 = {"issuer_url": issuer.url_for(""), "key_file": tmp_path / "key.json"}
        with pytest.raises(NoToken, match=r"^OAuth2 issuer"):
            capture(cluster.options(oauth2=oauth2), root, At("namespaces", issuer.clear))
    assert files_under(root) == []


def test_a_capture_whose_token_is_taken_away_ends(cluster: FakeCluster, root: Root, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(SECRET)
    with pytest.raises(NoToken, match=f"can't read the secret in {token}: No such file or directory$"):
        capture(cluster.options(token_file=token), root, At("namespaces", token.unlink))
    assert files_under(root) == []


def test_a_namespace_deleted_while_we_read_is_not_missing(cluster: FakeCluster, root: Root) -> None:
    cluster.answers("/namespaces/retail/orders", {"reason": "Namespace does not exist"}, status=404)
    manifest = manifest_of(capture(cluster.options(), root))
    assert missing(manifest) == ONLY_IN_ZOOKEEPER


def test_a_namespace_that_is_being_deleted_is_not_asked_for_topics(cluster: FakeCluster, root: Root) -> None:
    cluster.answers("/namespaces/retail/orders", {"deleted": True})
    cluster.answers("/persistent/retail/orders", {"reason": "is being deleted"}, status=412)
    manifest = manifest_of(capture(cluster.options(), root))
    assert missing(manifest) == ONLY_IN_ZOOKEEPER


def test_a_broker_that_joins_while_we_read_has_no_report(cluster: FakeCluster, root: Root) -> None:
    known, late = [cluster.first.id, cluster.second.id], "late.example:8080"
    lists = in_turn(known, [*known, late])
    cluster.answers_by("/brokers/fake", lists)
    snapshot = capture(cluster.options(), root)
    assert missing(manifest_of(snapshot)) == {*ONLY_IN_ZOOKEEPER, ("load_reports", late)}
    assert [line["broker"] for line in lines_of(snapshot, "brokers")] == sorted([*known, late])


def test_partitioned_topics_of_a_namespace_of_other_clusters_are_not_missing(cluster: FakeCluster, root: Root) -> None:
    cluster.answers("/namespaces/retail/orders", {"replication_clusters": ["west"], "allowed_clusters": []})
    cluster.answers("/persistent/retail/orders/parts/partitions", {"reason": "missing local cluster"}, status=412)
    manifest = manifest_of(capture(cluster.options(), root))
    assert missing(manifest) == ONLY_IN_ZOOKEEPER


def test_a_bundle_that_moves_while_we_read_is_marked(cluster: FakeCluster, root: Root) -> None:
    path = f"/brokers/fake/{cluster.first.id}/ownedNamespaces"
    answers: Iterator[dict[str, Any]] = iter([{LOWER: {"is_active": True}}, {}])
    cluster.first.answers_by(path, lambda _: Response(json.dumps(next(answers))))
    assert manifest_of(capture(cluster.options(), root))["moved_bundles"] == [LOWER]


def in_turn(*documents: Any) -> Callable[[Request], Response]:
    """One document after the other, for as many requests."""
    answers = iter(documents)
    return lambda _: Response(json.dumps(next(answers)))


def test_brokers_are_not_gone_where_a_later_list_names_none(cluster: FakeCluster, root: Root) -> None:
    lists = in_turn([cluster.first.id, cluster.second.id], [])
    cluster.answers_by("/brokers/fake", lists)
    snapshot = capture(cluster.options(), root)
    assert ("brokers", None) in missing(manifest_of(snapshot))
    assert {line["available"] for line in lines_of(snapshot, "brokers")} == {True}


@pytest.fixture
def settled(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    """A cluster whose reports cover their own bundles only, and whose statistics are updated at once."""
    monkeypatch.setattr("pulsar_advisor.capture.capture.STATISTICS_PASS_S", 0)
    cluster.configure_all(loadManagerClassName=MODULAR, statsUpdateFrequencyInSecs="0")
    cluster.second.answers("/broker-stats/load-report", load_report(lastStats={UPPER: {"msgRateIn": 1.5}}))
    return cluster


def times_asked(broker: FakeBroker, path: str) -> int:
    return broker.requests.count(("GET", f"/admin/v2{path}"))


def test_a_second_pass_reads_the_brokers_between_which_bundles_moved(settled: FakeCluster, root: Root) -> None:
    first, second = settled.first, settled.second
    first.answers_by(f"/brokers/fake/{first.id}/ownedNamespaces", in_turn({LOWER: {"is_active": True}}, {}))
    first.answers_by("/broker-stats/load-report", in_turn(load_report(), load_report(lastStats={}, numBundles=0)))
    first.answers_by("/broker-stats/topics", in_turn({"retail/orders": {"0x0_0x1": {"persistent": {TOPIC: {}}}}}, {}))
    options = settled.options().model_copy(update={"second_pass": True})
    snapshot = capture(options, root)
    manifest = manifest_of(snapshot)
    assert (manifest["moved_bundles"], manifest["read_again"]) == ([LOWER], [first.id])
    assert times_asked(second, "/broker-stats/load-report") == times_asked(second, "/broker-stats/topics") == 1
    reports = {line["broker"]: line["document"] for line in lines_of(snapshot, "load_reports")}
    assert len(lines_of(snapshot, "load_reports")) == 2
    assert (reports[first.id]["numBundles"], reports[first.id]["lastStats"]) == (0, {})
    assert first.id not in {line["broker"] for line in lines_of(snapshot, "topic_stats")}
    assert len([entry for entry in manifest["files"] if entry["path"] == "topic_stats/0.jsonl.zst"]) == 1


def test_a_report_that_tells_of_another_brokers_bundle_is_a_reason_for_a_second_pass(
    settled: FakeCluster, root: Root
) -> None:
    stale = load_report(lastStats={UPPER: {"msgRateIn": 1.5}, LOWER: {"msgRateIn": 4.5}})
    settled.second.answers("/broker-stats/load-report", stale)
    options = settled.options().model_copy(update={"second_pass": True})
    manifest = manifest_of(capture(options, root))
    assert (manifest["moved_bundles"], manifest["read_again"]) == ([], [settled.first.id, settled.second.id])


def test_where_nothing_moved_or_no_second_pass_is_wanted_nothing_is_read_again(
    settled: FakeCluster, root: Root
) -> None:
    for second_pass in (True, False):
        options = settled.options().model_copy(update={"second_pass": second_pass})
        assert manifest_of(capture(options, root))["read_again"] == []
        settled.second.answers("/broker-stats/load-report", load_report())  # reports the other broker's bundle
    assert times_asked(settled.first, "/broker-stats/topics") == 2


def test_the_extensible_manager_is_asked_for_metrics_in_place_of_load_reports(cluster: FakeCluster, root: Root) -> None:
    name = "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl"
    cluster.configure_all(loadManagerClassName=name)
    usage = {"dimensions": {"broker": SECRET}, "metrics": {"brk_lb_cpu_usage": 12.5, "brk_ml_cache_size": 7}}
    cluster.first.answers("/broker-stats/metrics", [usage])
    cluster.second.answers("/broker-stats/metrics", {"reason": "gone"}, status=500)
    snapshot = capture(cluster.options(), root)
    manifest = manifest_of(snapshot)
    assert manifest["load_manager"] == "extensible"
    unavailable = {entry["surface"] for entry in manifest["missing"] if entry["reason"].startswith("not available")}
    told_to_the_leader = {"service_unit_states", "broker_load_data", "top_bundles"}
    assert unavailable == {"load_reports", "bundle_data", "broker_time_averages"} | told_to_the_leader
    assert [line["document"] for line in lines_of(snapshot, "broker_metrics")] == [{"brk_lb_cpu_usage": 12.5}]
    assert manifest["incomplete_brokers"] == [cluster.second.id]
    assert ("GET", "/admin/v2/broker-stats/load-report") not in cluster.first.requests


def test_the_modular_leader_is_asked_how_many_bundles_it_has_unloaded(cluster: FakeCluster, root: Root) -> None:
    cluster.second.answers("/broker-stats/metrics", leader_metrics(7))
    assert manifest_of(capture(cluster.options(), root))["leader_unloads"] == 7
    assert times_asked(cluster.first, "/broker-stats/metrics") == 0


def test_a_leader_that_changes_during_a_capture_is_told_and_counts_no_unloads(
    cluster: FakeCluster, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.second.answers("/broker-stats/metrics", leader_metrics(7))

    def then_another_leads(document: Document) -> int | None:
        cluster.answers("/brokers/leaderBroker", {"brokerId": cluster.first.id})
        return unloads_of_leader(document)

    monkeypatch.setattr("pulsar_advisor.capture.surfaces.unloads_of_leader", then_another_leads)
    manifest = manifest_of(capture(cluster.options(), root))
    assert (manifest["leader"], manifest["leader_unloads"]) == (cluster.second.id, None)
    (reason,) = [entry["reason"] for entry in manifest["missing"] if entry["surface"] == "leader"]
    assert reason == (f"it changed during the capture, from {cluster.second.id} to {cluster.first.id}: capture again")


def test_without_the_leaders_count_a_snapshot_is_complete_but_for_it(cluster: FakeCluster, root: Root) -> None:
    cluster.second.answers("/broker-stats/metrics", {"reason": "gone"}, status=500)
    manifest = manifest_of(capture(cluster.options(), root))
    assert manifest["leader_unloads"] is None
    assert ("leader", None) in missing(manifest)
    assert manifest["incomplete_brokers"] == []


def test_brokers_that_disagree_about_the_manager_are_told(cluster: FakeCluster, root: Root) -> None:
    cluster.first.answers("/broker-stats/load-report", load_report(loadReportType="LoadReport"))
    manifest = manifest_of(capture(cluster.options(), root))
    assert manifest["load_managers"] == {cluster.first.id: "simple", cluster.second.id: "modular"}
    assert manifest["load_manager"] == "modular"


def broken(cluster: FakeCluster, fault: str) -> None:
    for broker in (cluster.first, cluster.second):
        if fault == "down":
            broker.stop()
        elif fault == "bad token":
            broker.answers("/brokers/configuration/runtime", "<html>401</html>", status=401)
        elif fault == "another service":
            broker.answers("/brokers/configuration/runtime", "<html>welcome</html>")
        elif fault == "addresses out of reach":
            broker.answers("/brokers/fake", ["127.0.0.1:1", "127.0.0.2:1"])
        elif fault == "no load manager":
            cluster.configure(broker, loadManagerClassName="org.apache.pulsar.broker.loadbalance.NoopLoadManager")
            broker.answers("/broker-stats/load-report", {})


@pytest.mark.parametrize(
    ("fault", "error", "message"),
    [
        ("down", ClusterUnreachable, "connection refused"),
        ("bad token", ClusterUnreachable, "401, credentials required"),
        ("another service", ClusterUnreachable, "check that this is the admin URL of a Pulsar broker"),
        ("addresses out of reach", ClusterUnreachable, "no broker responds at its own address; the first of 2: "),
        ("no load manager", DataNotFit, "NoopLoadManager"),
    ],
)
def test_without_a_cluster_there_is_one_clear_line_and_nothing_on_disk(
    cluster: FakeCluster, root: Root, fault: str, error: type[AdvisorError], message: str
) -> None:
    broken(cluster, fault)
    with pytest.raises(error, match=message) as failure:
        capture(cluster.options(), root)
    assert "\n" not in str(failure.value)
    assert files_under(root) == []


def test_the_zookeeper_of_another_cluster_is_refused(
    cluster: FakeCluster, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = with_zookeeper(cluster, {"/loadbalance/brokers/stranger:8080": b"{}"}, monkeypatch)
    with pytest.raises(UsageError, match="belongs to a different cluster"):
        capture(options, root)
    assert files_under(root) == []


def at_migration(cluster: FakeCluster, phase: str | None, release: str = "5.0.1") -> None:
    cluster.answers("/brokers/version", release)
    if phase is None:
        cluster.answers("/metadata/migration/status", {"reason": "HTTP 404 Not Found"}, status=404)
    else:
        cluster.answers("/metadata/migration/status", {"phase": phase, "targetUrl": "oxia://o:6648/broker"})


@pytest.mark.parametrize(
    ("phase", "says"),
    [("PREPARATION", True), ("COPYING", True), ("NOT_STARTED", False), ("COMPLETED", False), (None, False)],
)
def test_a_migration_of_the_metadata_store_is_a_problem_while_it_lasts(
    cluster: FakeCluster, root: Root, phase: str | None, says: bool
) -> None:
    at_migration(cluster, phase)
    manifest = manifest_of(capture(cluster.options(), root))
    reasons = [entry["reason"] for entry in manifest["missing"] if entry["surface"] == "metadata_store"]
    assert [reason.partition(":")[0] for reason in reasons] == [f"it is being migrated to another ({phase})"] * says
    assert manifest["failures"] == []


def test_one_broker_that_can_migrate_is_enough_to_ask_for_a_migration(cluster: FakeCluster, root: Root) -> None:
    at_migration(cluster, "COPYING")
    cluster.second.answers("/brokers/version", "4.0.8")
    manifest = manifest_of(capture(cluster.options(), root))
    assert any(entry["reason"].startswith("it is being migrated") for entry in manifest["missing"])


def test_after_the_migration_what_zookeeper_answers_is_refused_as_stale(
    cluster: FakeCluster, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = with_zookeeper(cluster, {f"/loadbalance/brokers/{cluster.first.id}": b"{}"}, monkeypatch)
    at_migration(cluster, "COMPLETED")
    with pytest.raises(DataNotFit, match="what ZooKeeper has is outdated: give --metadata-store"):
        capture(options, root)
    assert files_under(root) == []


@pytest.mark.parametrize(
    ("phase", "namespace", "why"),
    [
        ("PREPARATION", "broker", r"still uses the store it is migrating from \(migration PREPARATION\)"),
        ("COPYING", "broker", r"still uses the store it is migrating from \(migration COPYING\)"),
        ("FAILED", "broker", r"still uses the store it is migrating from \(migration FAILED\)"),
        ("COMPLETED", "other", "was migrated to oxia://o:6648/broker, not to Oxia"),
        ("COMPLETED", "broker", None),
        ("NOT_STARTED", "broker", None),
    ],
)
def test_an_oxia_that_is_not_in_use_is_refused(
    cluster: FakeCluster, root: Root, phase: str, namespace: str, why: str | None
) -> None:
    at_migration(cluster, phase)
    records = with_parents({f"/loadbalance/brokers/{cluster.first.id}": Record(b"{}")})
    with served(FakeOxia(records, namespace=namespace)) as oxia:
        connection = OxiaConnection(url=f"oxia://{oxia.address}/{namespace}")
        options = cluster.options().model_copy(update={"oxia": connection})
        refused = nullcontext() if why is None else pytest.raises(DataNotFit, match=why)
        with refused:
            capture(options, root)
    assert (files_under(root) == []) is (why is not None)


def test_a_broker_of_another_cluster_is_named_and_its_settings_are_not_taken(cluster: FakeCluster, root: Root) -> None:
    cluster.configure(cluster.second, clusterName="elsewhere")
    snapshot = capture(cluster.options(), root)
    manifest = manifest_of(snapshot)
    reasons = {entry["broker"]: entry["reason"] for entry in manifest["missing"] if entry["surface"] == "settings"}
    assert reasons == {cluster.second.id: "the broker is configured for cluster 'elsewhere', not 'fake'"}
    assert manifest["incomplete_brokers"] == [cluster.second.id]
    assert {line["broker"] for line in lines_of(snapshot, "settings")} == {cluster.first.id, None}


def test_a_configuration_that_names_no_cluster_is_not_a_brokers(cluster: FakeCluster, root: Root) -> None:
    cluster.configure(cluster.first, clusterName="")
    with pytest.raises(ClusterUnreachable, match="names no cluster"):
        capture(cluster.options(), root)


def test_a_configuration_that_names_a_cluster_which_is_none_is_refused_by_that_name(
    cluster: FakeCluster, root: Root
) -> None:
    cluster.configure(cluster.first, clusterName="elsewhere")
    cluster.first.answers("/brokers/elsewhere", {"reason": "Cluster does not exist"}, status=404)
    with pytest.raises(ClusterUnreachable, match=r"belongs to cluster 'elsewhere', but that cluster does not exist"):
        capture(cluster.options(), root)


@pytest.mark.parametrize(("leader", "is_missing"), [("second", False), ("first", True)])
def test_two_leaders_are_told(
    cluster: FakeCluster, root: Root, monkeypatch: pytest.MonkeyPatch, leader: str, is_missing: bool
) -> None:
    node = f'{{"brokerId": "{getattr(cluster, leader).id}"}}'.encode()
    brokers = {f"/loadbalance/brokers/{broker.id}": b"{}" for broker in (cluster.first, cluster.second)}
    options = with_zookeeper(cluster, {"/loadbalance/leader": node, **brokers}, monkeypatch)
    manifest = manifest_of(capture(options, root))
    assert (("leader", None) in missing(manifest)) == is_missing


def test_a_node_that_cannot_be_decoded_costs_itself_only(
    cluster: FakeCluster, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = {
        f"/loadbalance/brokers/{cluster.first.id}": b"{}",
        f"/loadbalance/brokers/{cluster.second.id}": b"not JSON",
        f"/loadbalance/bundle-data/{LOWER}": b'{"topics": "many"}',
        f"/loadbalance/bundle-data/{UPPER}": b'{"topics": 3}',
    }
    snapshot = capture(with_zookeeper(cluster, nodes, monkeypatch), root)
    manifest = manifest_of(snapshot)
    assert [(failure["surface"], failure["broker"]) for failure in manifest["failures"]] == [
        ("bundle_data", None),
        ("load_reports", cluster.second.id),
    ]
    assert [line["bundle"] for line in lines_of(snapshot, "bundle_data")] == [UPPER]
    assert manifest["missing"] == []


def test_a_spent_budget_ends_the_asking_and_the_manifest_names_what_was_not_asked(
    cluster: FakeCluster, root: Root
) -> None:
    options = cluster.options().model_copy(update={"max_requests": 14})
    manifest = manifest_of(capture(options, root))
    assert len(cluster.first.requests) + len(cluster.second.requests) == 14
    assert sum(read["requests"] for read in manifest["reads"]) == 14 - 3  # the first three identify the cluster
    reason = "not read: the budget of 14 requests (--max-requests) is spent"
    unasked = {entry["surface"]: entry["broker"] for entry in manifest["missing"] if entry["reason"] == reason}
    assert unasked.keys() >= {"isolation_policies", "failure_domains", "tenants"}
    assert {entry["broker"] for entry in manifest["missing"] if entry["surface"] == "owned_bundles"} == {
        cluster.first.id,
        cluster.second.id,
    }
    assert manifest["moved_bundles"] == []


def test_reads_of_zookeeper_count_too(cluster: FakeCluster, root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = {f"/loadbalance/bundle-data/retail/orders/{number}": b"{}" for number in range(1000)}
    nodes[f"/loadbalance/brokers/{cluster.first.id}"] = b"{}"
    options = with_zookeeper(cluster, nodes, monkeypatch).model_copy(update={"max_requests": 60})
    manifest = manifest_of(capture(options, root))
    assert ("bundle_data", None) in missing(manifest)
    assert len(cluster.first.requests) + len(cluster.second.requests) < 60


@pytest.mark.parametrize("limit", [1, 3])
def test_a_budget_too_small_to_know_the_cluster_leaves_nothing(cluster: FakeCluster, root: Root, limit: int) -> None:
    with pytest.raises(AdvisorError, match=rf"the budget of {limit} requests? \(--max-requests\) is spent"):
        capture(cluster.options().model_copy(update={"max_requests": limit}), root)
    assert files_under(root) == []


class StopAt(Silence):
    """Interrupts the capture when a step begins, as Ctrl-C would."""

    def __init__(self, step: str) -> None:
        self._step = step

    def begin(self, step: str, total: int) -> None:
        if step == self._step:
            raise KeyboardInterrupt


class StopBrokersAt(Silence):
    """Stops every broker when a step begins."""

    def __init__(self, step: str, cluster: FakeCluster) -> None:
        self._step, self._cluster = step, cluster

    def begin(self, step: str, total: int) -> None:
        if step == self._step:
            self._cluster.first.stop()
            self._cluster.second.stop()


CAPTURE_IN_A_PROCESS = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # as in a shell, also where the tests run in the background
from captures import capture
from pulsar_advisor.admin.options import capture_options
from pulsar_advisor.storage.root import Root
capture(capture_options(admin={"admin_urls": (sys.argv[1],)}), Root(sys.argv[2], "test"))
"""


@pytest.mark.parametrize(("signal_number", "folders_left"), [(signal.SIGINT, 0), (signal.SIGKILL, 1)])
def test_a_signal_leaves_no_snapshot_and_the_next_run_cleans_up(
    cluster: FakeCluster, root: Root, signal_number: signal.Signals, folders_left: int
) -> None:
    reached, release = threading.Event(), threading.Event()

    def hang(_request: Request) -> Response:
        reached.set()
        release.wait(240)
        return Response('["retail"]')

    cluster.answers_by("/tenants", hang)
    process = subprocess.Popen(
        [sys.executable, "-c", CAPTURE_IN_A_PROCESS, cluster.first.url, root.url],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        stderr=subprocess.DEVNULL,
    )
    assert reached.wait(240)
    process.send_signal(signal_number)
    release.set()
    process.wait(240)
    folders = list((Path(root.url) / "raw" / "cluster=test").iterdir())
    assert (len(folders), root.snapshots()) == (folders_left, [])
    snapshot = capture(cluster.options(), root)
    assert [folder.name for folder in (Path(root.url) / "raw" / "cluster=test").iterdir()] == [f"snapshot={snapshot}"]


def test_an_interrupted_capture_leaves_nothing(cluster: FakeCluster, root: Root) -> None:
    with pytest.raises(KeyboardInterrupt):
        capture(cluster.options(), root, StopAt("topic names"))
    assert root.snapshots() == []
    assert files_under(root) == []


CAPTURE_TO_A_FULL_DISK = """
import sys
from pathlib import Path
from captures import capture
from pulsar_advisor.admin.options import capture_options
from pulsar_advisor.model.errors import StorageError
from pulsar_advisor.storage.root import Root
root = Root(sys.argv[2], "test")
try:
    capture(capture_options(admin={"admin_urls": (sys.argv[1],)}), root)
except StorageError as error:
    print(error)
print(root.snapshots(), [path for path in Path(root.url).rglob("*") if path.is_file()])
"""

NO_ROOM = {
    "file system": 'mount -t tmpfs -o size=16k none "$3" && exec "$0" -c "$1" "$2" "$3"',
    "limit of a file's size": 'ulimit -f 1 && exec "$0" -c "$1" "$2" "$3"',
}


@pytest.mark.parametrize(
    ("place", "message"), [("file system", "No space left on device"), ("limit of a file's size", "File too large")]
)
def test_a_full_disk_leaves_nothing(cluster: FakeCluster, root: Root, place: str, message: str) -> None:
    isolated = ["unshare", "--user", "--map-root-user", "--mount"] if place == "file system" else []
    if isolated and subprocess.run([*isolated, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        pytest.skip("this machine doesn't permit mount namespaces")
    Path(root.url).mkdir()
    arguments = [sys.executable, CAPTURE_TO_A_FULL_DISK, cluster.first.url, root.url]
    ended = subprocess.run(
        [*isolated, "bash", "-c", NO_ROOM[place], *arguments],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ended.stderr == ""
    error, remains = ended.stdout.splitlines()
    assert (error.startswith("can't write"), error.endswith(message), remains) == (True, True, "[] []")


def test_a_root_that_cannot_be_written_is_named(cluster: FakeCluster, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=f"{tmp_path}/file is a file: name a folder"):
        capture(cluster.options(), Root(str(tmp_path / "file"), "test"))


def test_remains_of_an_earlier_run_are_removed(cluster: FakeCluster, root: Root) -> None:
    remains = root.snapshot("20260101T000000Z").folder("raw")
    (remains / "topic_stats").mkdir(parents=True)
    (remains / "topic_stats" / "0.jsonl.zst").write_bytes(b"half")
    os.utime(str(remains / "topic_stats"), (0, 0))
    snapshot = capture(cluster.options(), root)
    assert root.snapshots() == [snapshot.id]
    assert not remains.exists()


def test_a_capture_never_touches_an_existing_snapshot(cluster: FakeCluster, root: Root) -> None:
    today = datetime.now(UTC).strftime("%Y%m%d")
    first = capture(cluster.options(), root)
    before = (first.folder("raw") / MANIFEST).read_bytes()
    second = capture(cluster.options(), root)
    assert first.id < second.id
    assert (first.folder("raw") / MANIFEST).read_bytes() == before
    assert second.id >= today
