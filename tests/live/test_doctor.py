"""`doctor` on real brokers: a healthy cluster is fit, and with tokens each refusal is named correctly."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from harness.cluster import ClusterOptions, LiveCluster
from live.starting import StartCluster
from pulsar_advisor.admin.options import CaptureOptions, capture_options
from pulsar_advisor.diagnosis.examination import examine
from pulsar_advisor.diagnosis.findings import diagnose
from pulsar_advisor.documents.diagnosis import Diagnosis

pytestmark = pytest.mark.live

AVERAGES_LIMIT_S = 90


def options(cluster: LiveCluster, **admin: Any) -> CaptureOptions:
    return capture_options(admin={"admin_urls": tuple(cluster.admin_urls), **admin}, zookeeper=cluster.zookeeper)


def diagnosis(cluster: LiveCluster, **admin: Any) -> Diagnosis:
    return diagnose(examine(options(cluster, **admin)))


def statuses(found: Diagnosis) -> dict[str, str]:
    """Check -> its worst status."""
    order = ("ok", "warning", "problem")
    worst: dict[str, str] = {}
    for row in found.rows:
        worst[row.check] = max(worst.get(row.check, "ok"), row.status, key=order.index)
    return worst


def test_a_healthy_cluster_is_fit_and_nothing_is_written_to_it(cluster: LiveCluster) -> None:
    owners, writes = cluster.admin.owners("live"), cluster.write_requests()
    deadline = time.monotonic() + AVERAGES_LIMIT_S
    while (found := statuses(diagnosis(cluster))).get("computable") is not None:  # until the leader's first averages
        assert time.monotonic() < deadline
        time.sleep(2)
    assert {check: status for check, status in found.items() if status != "ok"} == {"switch": "warning"}
    surfaces = {"owned_bundles", "settings", "brokers", "load_reports", "topic_stats", "namespaces", "tenants"}
    assert {f"surface.{surface}" for surface in surfaces} <= found.keys()
    assert {"clock", "release", "load_manager", "settings.agree", "zookeeper", "leader"} <= found.keys()
    assert diagnosis(cluster).exit_code == 0
    assert cluster.admin.owners("live") == owners
    assert cluster.write_requests() == writes


@pytest.mark.full
def test_a_dead_broker_costs_its_part_only(start_cluster: StartCluster) -> None:
    cluster = start_cluster(ClusterOptions(cpu_sensor=False))
    dead = cluster.brokers[-1]
    cluster.kill_broker(dead)
    found = diagnosis(cluster)
    assert found.fit
    sentences = [row.sentence for row in found.rows if row.check == "broker"]
    assert sentences == [
        sentence
        for sentence in sentences
        if sentence.startswith(f"{dead.broker_id} does not respond at its own address")
    ]
    assert len(sentences) == 1


@pytest.mark.full
def test_with_tokens_each_refusal_is_told_for_what_it_is(start_cluster: StartCluster, tmp_path: Path) -> None:
    cluster = start_cluster(ClusterOptions(brokers=1, token_authentication=True, cpu_sensor=False))
    assert cluster.tokens is not None
    tokens = {"super user": cluster.tokens.super_user, "reader": cluster.tokens.reader, "rubbish": "rubbish"}
    for name, token in tokens.items():
        (tmp_path / name).write_text(token)

    without_token = diagnosis(cluster)
    assert [row.check for row in without_token.rows if row.status == "problem"] == ["credentials"]
    assert "credentials required" in without_token.rows[0].sentence
    rubbish = diagnosis(cluster, token_file=tmp_path / "rubbish")
    assert "credentials rejected" in rubbish.rows[0].sentence
    assert (without_token.exit_code, rubbish.exit_code) == (3, 3)

    reader = diagnosis(cluster, token_file=tmp_path / "reader")
    assert reader.exit_code == 3
    refused = {row.check: row for row in reader.rows if row.status != "ok" and row.check.startswith("surface.")}
    assert {"surface.settings", "surface.brokers", "surface.tenants"} <= refused.keys()
    assert "the role lacks permission" in refused["surface.settings"].sentence
    assert {row.what_to_do for row in refused.values()} == {"use the credentials of a super-user"}
    assert statuses(reader)["permissions"] == "problem"

    super_user = diagnosis(cluster, token_file=tmp_path / "super user")
    assert super_user.fit
    assert [row.sentence for row in super_user.rows if row.check == "permissions"] == [
        "the credentials are a super-user's: the brokers permit every verb"
    ]
