"""The whole line on real brokers of every load manager and release: what the tables say is what the brokers said."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.cluster import ClusterOptions, LiveCluster
from harness.configuration import CLUSTER_NAME, LoadManager
from harness.load import running_load
from harness.skew import cpu_percents
from pulsar_advisor.model.cluster_state import NOBODY, ClusterState
from pulsar_advisor.model.errors import DataNotFit
from pulsar_advisor.storage import MANIFEST, RESULT, Root
from pulsar_advisor.tables.state import cluster_state

StartCluster = Callable[[ClusterOptions], LiveCluster]

pytestmark = [pytest.mark.live, pytest.mark.full]

STAGES_LIMIT_S = 300
STATISTICS_LIMIT_S = 180
SAMPLED_CPU_PERCENT = 1
BACKPRESSURE_RATIO = 0.2
"""How far a producer's rate over one statistics pass may be from what it is meant to be."""


def run(cluster: LiveCluster, root: Path) -> subprocess.CompletedProcess[str]:
    """Capture to report, as an operator does it in one go."""
    urls = [word for url in cluster.admin_urls for word in ("--admin-url", url)]
    command = [str(Path(sys.executable).with_name("pulsar-advisor")), "run", "--root", str(root), "--cluster", "live"]
    command += [*urls, "--zookeeper", cluster.zookeeper, "--master", "local[2]", "--json"]
    command += ["--shedder", "all", "--placement", "all", "--splits"]
    return subprocess.run(command, capture_output=True, text=True, timeout=STAGES_LIMIT_S, check=False)


def messages_per_s(cluster: LiveCluster) -> float:
    """What all topics take in, as the brokers say."""
    return sum(float(stats["msgRateIn"]) for url in cluster.admin_urls for stats in cluster.admin.topics(url).values())


def wait_for_figures(cluster: LiveCluster, wanted_per_s: float) -> None:
    """Wait until two passes of statistics showed all of the load, and the CPU that is sampled each minute shows it."""
    deadline = time.monotonic() + STATISTICS_LIMIT_S
    while (
        abs(messages_per_s(cluster) - wanted_per_s) > BACKPRESSURE_RATIO * wanted_per_s
        or min(cpu_percents(cluster.admin).values()) < SAMPLED_CPU_PERCENT
    ):
        assert time.monotonic() < deadline, f"the brokers never showed {wanted_per_s:.0f} messages/s, or no CPU for it"
        time.sleep(1)
    time.sleep(2 * float(cluster.admin.read("/brokers/configuration/runtime")["statsUpdateFrequencyInSecs"]))


def document(root: Path, stage: str, name: str) -> dict[str, Any]:
    (path,) = (root / stage / "cluster=live").glob(f"snapshot=*/{name}")
    content: dict[str, Any] = json.loads(path.read_bytes())
    return content


def owners(state: ClusterState) -> dict[str, str]:
    """Owner of every owned bundle."""
    return {
        state.bundle_name(row): state.brokers.ids[state.bundles.owner[row]]
        for row in np.flatnonzero(state.bundles.owner != NOBODY).tolist()
    }


def of_users(owned: dict[str, str]) -> dict[str, str]:
    """Without the bundles of Pulsar's own namespaces."""
    return {bundle: owner for bundle, owner in owned.items() if not bundle.startswith(("pulsar/", "sla-monitor/"))}


def checked_state(cluster: LiveCluster, root: Path, release: str, manager: LoadManager, wanted_per_s: float) -> None:
    """What the tables say of a loaded cluster, against what its brokers say."""
    manifest = document(root, "raw", MANIFEST)
    assert (manifest["load_manager"], manifest["pulsar_version"]) == (manager, release)
    assert [entry for entry in manifest["missing"] if not entry["reason"].startswith("not available")] == []
    failing = [result for result in document(root, "validation", RESULT)["results"] if not result["success"]]
    assert [result["check"] for result in failing if result["severity"] != "info"] == []

    state = cluster_state(Root(str(root), "live"), manifest["snapshot"])
    assert state.brokers.ids == tuple(sorted(cluster.broker_ids))
    assert state.brokers.ids[state.leader] == manifest["leader"]
    assert state.brokers.complete.all()
    # A broker may take a bundle of the system's own at any time; the load's stay, as nothing sheds.
    assert of_users(owners(state)) == of_users(cluster.admin.owners(CLUSTER_NAME))
    assert state.brokers.traffic[:, 0].sum() == pytest.approx(wanted_per_s, rel=BACKPRESSURE_RATIO)
    of_bundles = np.zeros_like(state.brokers.traffic)
    reported = state.bundles.reported & (state.bundles.owner != NOBODY)
    np.add.at(of_bundles, state.bundles.owner[reported], state.bundles.traffic[reported])
    # Topics of an unowned bundle of `pulsar/system` count for the leader that serves them.
    np.testing.assert_allclose(of_bundles, state.brokers.traffic, rtol=0.02, atol=2_000)


@pytest.mark.parametrize(
    ("release", "manager"),
    [
        ("4.0.8", "extensible"),
        ("4.0.8", "simple"),
        ("4.2.4", "extensible"),
        ("4.2.4", "modular"),
        ("3.0.7", "modular"),
        ("2.11.0", "modular"),
    ],
)
def test_the_line_from_capture_to_report(
    release: str, manager: LoadManager, start_cluster: StartCluster, tmp_path: Path
) -> None:
    cluster = start_cluster(ClusterOptions(release=release, load_manager=manager))
    with running_load(cluster) as workload:
        wanted_per_s = sum(topic.messages_per_s for topic in workload.topics)
        wait_for_figures(cluster, wanted_per_s)
        ran = run(cluster, tmp_path)
        assert ran.returncode == 0, ran.stderr
        checked_state(cluster, tmp_path, release, manager, wanted_per_s)
    assert document(tmp_path, "plans", "recommendation.json")["combinations"]
    snapshot, root = document(tmp_path, "raw", MANIFEST)["snapshot"], Root(str(tmp_path), "live")
    if manager == "extensible":
        with pytest.raises(DataNotFit, match="Extensible brokers write no load"):
            cluster_state(root, snapshot, "published")
    else:
        assert cluster_state(root, snapshot, "published").brokers.traffic[:, 0].sum() > 0


def test_before_2_11_there_are_tables_and_no_recommendation(start_cluster: StartCluster, tmp_path: Path) -> None:
    cluster = start_cluster(ClusterOptions(release="2.10.5"))
    with running_load(cluster) as workload:
        wanted_per_s = sum(topic.messages_per_s for topic in workload.topics)
        wait_for_figures(cluster, wanted_per_s)
        ran = run(cluster, tmp_path)
        assert (ran.returncode, "2.11" in ran.stderr) == (3, True), ran.stderr
        checked_state(cluster, tmp_path, "2.10.5", "modular", wanted_per_s)
    assert not (tmp_path / "plans").exists()
