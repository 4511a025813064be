"""Two clusters of a registry at once, one of them down: the report of the other comes, and the pages show both."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from harness.airflow_api import Api, wait_for
from harness.cluster import ClusterOptions, LiveCluster
from harness.load import running_load
from harness.pages import PAGE_LIMIT_MS
from harness.ports import free_port
from live.starting import unavailable_skips
from pulsar_advisor.storage.root import Root

pytestmark = [pytest.mark.live, pytest.mark.airflow, pytest.mark.full]

CLUSTERS = ("down", "live")
SOON = """
from datetime import timedelta

def task_policy(task):
    task.retry_policy = None
    task.retry_delay = timedelta(seconds=1)
"""
"""Airflow's local settings: a cluster that doesn't answer is tried again at once, not after five minutes."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[LiveCluster]:
    """Two brokers under load."""
    options = ClusterOptions(brokers=2, cpu_sensor=False)
    with unavailable_skips(), LiveCluster(options) as cluster, running_load(cluster):
        yield cluster


@pytest.fixture(scope="module")
def dead() -> dict[str, str]:
    """A connection to brokers and a ZooKeeper that are down: their ports are closed."""
    return {
        "admin_urls": f"http://127.0.0.1:{free_port()},http://127.0.0.1:{free_port()}",
        "zookeeper": f"127.0.0.1:{free_port()}",
    }


@pytest.fixture(scope="module")
def settings(cluster: LiveCluster, dead: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    folder = tmp_path_factory.mktemp("configuration")
    entries = [{"name": name, "pulsar_conn_id": f"pulsar_{name}", "schedule": None} for name in CLUSTERS]
    registry = {"schema": "pulsar-advisor/clusters/1", "clusters": entries}
    (folder / "clusters.yaml").write_text(json.dumps(registry))
    (folder / "airflow_local_settings.py").write_text(SOON)
    living = {"admin_urls": ",".join(cluster.admin_urls), "zookeeper": cluster.zookeeper}
    connections = {"DOWN": dead, "LIVE": living}
    return {
        "PYTHONPATH": os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH")))),
        "AIRFLOW__PULSAR_ADVISOR__CLUSTERS": str(folder / "clusters.yaml"),
        "AIRFLOW__PULSAR_ADVISOR__ONE_SPARK_TASK": "true",
        **{
            f"AIRFLOW_CONN_PULSAR_{name}": json.dumps({"conn_type": "pulsar_admin", "extra": extra})
            for name, extra in connections.items()
        },
    }


@pytest.fixture(scope="module")
def runs(user: Callable[[str], Api]) -> dict[str, str]:
    """The run of each cluster's `pulsar_snapshot`, begun together."""
    admin = user("admin")
    wait_for(
        lambda: {dag["dag_id"] for dag in admin.get("/dags")["dags"]} >= {*map("pulsar_snapshot__{}".format, CLUSTERS)}
    )
    for name in CLUSTERS:
        admin.call("PATCH", f"/dags/pulsar_snapshot__{name}", {"is_paused": False}).raise_for_status()
    return {name: admin.trigger(f"pulsar_snapshot__{name}") for name in CLUSTERS}


@pytest.fixture(scope="module")
def advice(user: Callable[[str], Api], runs: dict[str, str], root: Root) -> dict[str, Any]:
    """What the report of the living cluster advises."""
    admin = user("admin")
    assert admin.finished("pulsar_snapshot__live", runs["live"]) == "success"
    followed = wait_for(lambda: admin.get("/dags/pulsar_recommend__live/dagRuns")["dag_runs"])[0]["dag_run_id"]
    assert admin.finished("pulsar_recommend__live", followed) == "success"
    [snapshot] = root.snapshots()
    recommendation = json.loads((root.snapshot(snapshot).folder("plans") / "recommendation.json").read_bytes())
    return {**recommendation["advice"], "snapshot": snapshot}


def test_the_run_of_the_cluster_that_is_down_fails_and_says_what_did_not_answer(
    user: Callable[[str], Api], runs: dict[str, str], dead: dict[str, str]
) -> None:
    admin = user("admin")
    assert admin.finished("pulsar_snapshot__down", runs["down"]) == "failed"
    assert admin.tasks("pulsar_snapshot__down", runs["down"]) == {
        "capture": "failed",
        "snapshot": "upstream_failed",
        "require_trusted_snapshot": "upstream_failed",
    }
    log = admin.get(f"/dags/pulsar_snapshot__down/dagRuns/{runs['down']}/taskInstances/capture/logs/3")
    for url in dead["admin_urls"].split(","):
        assert f"{url}: connection refused" in json.dumps(log)


def test_the_report_of_the_other_comes(
    user: Callable[[str], Api], runs: dict[str, str], advice: dict[str, Any], root: Root
) -> None:
    report = root.snapshot(advice["snapshot"]).folder("reports") / "report.html"
    assert "<html" in report.read_text()
    assert user("admin").get("/dags/pulsar_recommend__down/dagRuns")["dag_runs"] == []


def test_the_list_of_clusters_shows_the_advice_for_one_and_what_did_not_answer_of_the_other(
    person: Callable[[str], Page], advice: dict[str, Any], dead: dict[str, str], tmp_path: Path
) -> None:
    page = person("vic")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.goto("/pulsar-advisor/")
        page.screenshot(path=tmp_path / f"clusters-{scheme}.png", full_page=True)
    down, live = page.locator("tr", has=page.locator("td")).all()
    expect(down).to_contain_text("capture failed")
    expect(down).to_contain_text(f"{dead['admin_urls'].split(',')[0]}: connection refused")
    expect(live).to_contain_text(advice["sentence"])
    live.get_by_role("link", name="report").click()
    expect(page.frame_locator("iframe").locator("body")).to_contain_text("Advice", timeout=PAGE_LIMIT_MS)
    page.goto("/pulsar-advisor/clusters/down")
    expect(page.locator("body")).to_contain_text("connection refused")
    page.screenshot(path=tmp_path / "down.png", full_page=True)
