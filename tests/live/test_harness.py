"""The live cluster does what the tests built on it rely on."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from statistics import mean
from typing import Any

import pytest
import requests

from harness import children
from harness.admin_api import AdminApi
from harness.artifacts import DEFAULT_RELEASE
from harness.cluster import ClusterOptions, LiveCluster
from harness.errors import ClusterDidNotStart
from harness.load import running_load
from harness.ports import listened_on_beyond_loopback
from harness.workload import skewed_workload, topic_hash
from live.starting import StartCluster, with_cpu_skew

pytestmark = [pytest.mark.live, pytest.mark.full]

WORKLOAD = skewed_workload()
UNLOADS = "[ThresholdShedder] Unloading bundle"
"""What the leader logs for each unload (ModularLoadManagerImpl)."""
PULSAR_ACTS_LIMIT_S = 300
HOT_BUNDLE = "retail/orders/0x00000000_0x40000000"


def loaded_topics(cluster: LiveCluster) -> dict[str, dict[str, Any]]:
    return {name: stats for url in cluster.admin_urls for name, stats in cluster.admin.topics(url).items()}


def load_report(cluster: LiveCluster, url: str) -> dict[str, Any]:
    report: dict[str, Any] = cluster.admin.read("/broker-stats/load-report", url=url)
    return report


def test_every_broker_is_active_and_runs_the_release_that_was_asked_for(cluster: LiveCluster) -> None:
    assert sorted(cluster.admin.read("/brokers/live")) == sorted(cluster.broker_ids)
    versions = {cluster.admin.call("GET", "/admin/v2/brokers/version", url=url).text for url in cluster.admin_urls}
    assert versions == {DEFAULT_RELEASE}


def test_nothing_listens_for_other_machines(cluster: LiveCluster) -> None:
    assert listened_on_beyond_loopback(cluster.process_ids) == set()


def test_brokers_run_with_the_settings_of_the_harness(cluster: LiveCluster) -> None:
    settings = cluster.admin.read("/brokers/configuration/runtime")
    assert settings["loadBalancerNamespaceBundleMaxMsgRate"] == "500"
    assert settings["loadBalancerSheddingEnabled"] == "false"


def test_the_write_counter_sees_a_put_and_no_get(cluster: LiveCluster) -> None:
    before = cluster.write_requests()

    cluster.admin.read("/tenants")
    cluster.admin.write("PUT", "/tenants/counted", body={"allowedClusters": ["live"], "adminRoles": []})

    (seen,) = cluster.write_requests()[len(before) :]
    assert seen == f"PUT /admin/v2/tenants/counted 204 {cluster.broker_ids[0]}"


def test_the_brokers_report_the_rates_of_the_load(loaded_cluster: LiveCluster) -> None:
    rates = {name: stats["msgRateIn"] for name, stats in loaded_topics(loaded_cluster).items()}
    plain = [topic for topic in WORKLOAD.topics if not topic.partitions]
    assert {topic.name: rates[topic.name] for topic in plain} == pytest.approx(
        {topic.name: topic.messages_per_s for topic in plain}, rel=0.2, abs=1
    )


def test_each_bundle_is_where_the_load_wants_it(loaded_cluster: LiveCluster) -> None:
    owners = loaded_cluster.admin.owners("live")
    wanted = {bundle: loaded_cluster.broker_ids[broker] for bundle, broker in WORKLOAD.brokers.items()}
    assert {bundle: owners[bundle] for bundle in wanted} == wanted


def test_one_namespace_stays_empty(loaded_cluster: LiveCluster) -> None:
    assert not [name for name in loaded_topics(loaded_cluster) if "/archive/" in name]
    assert "telemetry/archive" in loaded_cluster.admin.read("/namespaces/telemetry")


def test_the_hot_bundle_is_over_the_split_threshold_with_topics_in_both_halves(loaded_cluster: LiveCluster) -> None:
    report = load_report(loaded_cluster, loaded_cluster.admin_urls[0])
    hot = report["lastStats"][HOT_BUNDLE]
    assert hot["msgRateIn"] + hot["msgRateOut"] > 500
    hashes = [topic_hash(name) for name in loaded_topics(loaded_cluster) if "://retail/orders/checkout" in name]
    assert min(hashes) < 0x20000000 <= max(hashes)


def test_the_first_broker_reports_clearly_more_cpu_than_the_mean(skewed_cluster: LiveCluster) -> None:
    usage = [load_report(skewed_cluster, url)["cpu"] for url in skewed_cluster.admin_urls]
    percents = [100 * cpu["usage"] / cpu["limit"] for cpu in usage]
    assert percents[0] > mean(percents) + 10
    assert max(percents) <= 100


def test_a_broker_asks_for_a_token_and_lets_only_the_super_user_in(start_cluster: StartCluster) -> None:
    cluster = start_cluster(ClusterOptions(brokers=1, token_authentication=True))
    assert cluster.tokens is not None

    def status(token: str | None) -> int:
        return AdminApi(cluster.admin_urls, token).call("GET", "/admin/v2/broker-stats/load-report").status_code

    assert status(None) == 401
    assert status(cluster.tokens.reader) == 401
    assert status(cluster.tokens.super_user) == 200


def test_a_killed_broker_no_longer_answers_and_the_write_counter_still_works(start_cluster: StartCluster) -> None:
    cluster = start_cluster(ClusterOptions(brokers=2))

    cluster.kill_broker(cluster.brokers[1])

    with pytest.raises(requests.ConnectionError):
        cluster.admin.read("/tenants", url=cluster.admin_urls[1])
    cluster.admin.call("DELETE", "/admin/v2/tenants/absent")
    assert cluster.write_requests() == [f"DELETE /admin/v2/tenants/absent 404 {cluster.broker_ids[0]}"]


def test_leaving_the_block_leaves_no_process_no_mount_and_no_file() -> None:
    mounts_before = Path("/proc/self/mountinfo").read_text()
    with LiveCluster(ClusterOptions(brokers=1)) as cluster:
        process_ids = cluster.process_ids
        assert len(process_ids) == 3

    assert not [pid for pid in process_ids if Path(f"/proc/{pid}").exists()]
    assert Path("/proc/self/mountinfo").read_text() == mounts_before
    assert not cluster.directory.exists()


def test_a_killed_owner_takes_its_cluster_with_it(tmp_path: Path) -> None:
    owner = tmp_path / "owner.py"
    owner.write_text(
        "import signal\n"
        "from pathlib import Path\n"
        "from harness.cluster import ClusterOptions, LiveCluster\n"
        f"with LiveCluster(ClusterOptions(brokers=1), Path({str(tmp_path / 'run')!r})) as cluster:\n"
        "    print(*cluster.process_ids, flush=True)\n"
        "    signal.pause()\n"
    )
    with subprocess.Popen([sys.executable, owner], env=children.environment(), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process_ids = process.stdout.readline().split()
        process.kill()

    deadline = time.monotonic() + 10
    while [pid for pid in process_ids if is_running(pid.decode())]:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def is_running(pid: str) -> bool:
    """Whether a process runs; one that has ended but isn't reaped yet doesn't."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_broker_that_does_not_start_is_named_with_the_end_of_its_log_which_is_kept(tmp_path: Path) -> None:
    options = ClusterOptions(brokers=1, settings={"webServicePort": "not-a-port"})

    with pytest.raises(ClusterDidNotStart, match=r"broker-1 of Pulsar .* ended with exit code") as failure:
        LiveCluster(options, tmp_path / "run").__enter__()

    assert "not-a-port" in str(failure.value)
    assert (tmp_path / "run" / "broker-1.log").is_file()
    assert not (tmp_path / "run" / "bookie").exists()


@pytest.mark.full
def test_at_these_settings_pulsar_itself_unloads_from_the_hot_broker_and_splits_the_hot_bundle(
    start_cluster: StartCluster,
) -> None:
    cluster = start_cluster(
        ClusterOptions(
            settings={
                "loadBalancerSheddingEnabled": "true",
                "loadBalancerSheddingIntervalMinutes": "1",
                "loadBalancerAutoBundleSplitEnabled": "true",
            }
        )
    )
    with_cpu_skew(cluster)
    hot = cluster.broker_ids[0]
    with running_load(cluster):
        deadline = time.monotonic() + PULSAR_ACTS_LIMIT_S
        unloaded = split = False
        while not (unloaded and split):
            assert time.monotonic() < deadline, f"unloaded: {unloaded}, split: {split}"
            logs = [(cluster.directory / f"{broker.name}.log").read_text() for broker in cluster.brokers]
            unloaded = any(f"from broker {hot}" in line for log in logs for line in log.splitlines() if UNLOADS in line)
            split = "0x20000000" in cluster.admin.read("/namespaces/retail/orders/bundles")["boundaries"]
            time.sleep(2)
