"""The whole line on real brokers of every load manager and release: what the tables say is what the brokers said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness.cluster import ClusterOptions, LiveCluster
from harness.configuration import CLUSTER_NAME, LoadManager
from harness.load import running_load
from harness.shell import Answer, Shell, plain_connection
from harness.skew import BACKPRESSURE_RATIO, wait_for_figures
from harness.workload import Workload
from live.starting import StartCluster
from pulsar_advisor.model.cluster.cluster_state import NO_ROW, ClusterState
from pulsar_advisor.model.errors import DataNotFit
from pulsar_advisor.storage.root import MANIFEST, RESULT, Root
from pulsar_advisor.tables.state import cluster_state

pytestmark = [pytest.mark.live, pytest.mark.full]


def run(shell: Shell) -> Answer:
    """Capture to report, as an operator does it in one go."""
    wishes = ("--shedder", "all", "--placement", "all", "--splits")
    return shell("run", *shell.connection, *wishes, "--master", "local[2]", "--json")


def owners(state: ClusterState) -> dict[str, str]:
    """Owner of every owned bundle."""
    return {
        state.bundle_name(row): state.brokers.ids[state.bundles.owner[row]]
        for row in np.flatnonzero(state.bundles.owner != NO_ROW).tolist()
    }


def of_users(owned: dict[str, str]) -> dict[str, str]:
    """Without the bundles of Pulsar's own namespaces."""
    return {bundle: owner for bundle, owner in owned.items() if not bundle.startswith(("pulsar/", "sla-monitor/"))}


def checked_state(cluster: LiveCluster, shell: Shell, release: str, manager: LoadManager, workload: Workload) -> None:
    """What the tables say of a loaded cluster, against what its brokers say."""
    manifest = shell.document("raw", MANIFEST)
    assert (manifest["load_manager"], manifest["pulsar_version"]) == (manager, release)
    assert [entry for entry in manifest["missing"] if not entry["reason"].startswith("not available")] == []
    failing = [result for result in shell.document("validation", RESULT)["results"] if not result["success"]]
    assert [result["check"] for result in failing if result["severity"] != "info"] == []

    state = cluster_state(Root(str(shell.root), "live").snapshot(manifest["snapshot"]))
    assert state.brokers.ids == tuple(sorted(cluster.broker_ids))
    assert state.brokers.ids[state.leader] == manifest["leader"]
    assert state.brokers.complete.all()
    # A broker may take a bundle of the system's own at any time; the load's stay, as nothing sheds.
    assert of_users(owners(state)) == of_users(cluster.admin.owners(CLUSTER_NAME))
    assert state.brokers.traffic[:, 0].sum() == pytest.approx(workload.messages_per_s, rel=BACKPRESSURE_RATIO)
    of_bundles = np.zeros_like(state.brokers.traffic)
    reported = state.bundles.reported & (state.bundles.owner != NO_ROW)
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
        ("5.0.1", "extensible"),
        ("5.0.1", "modular"),
    ],
)
def test_the_line_from_capture_to_report(
    release: str, manager: LoadManager, start_cluster: StartCluster, tmp_path: Path
) -> None:
    cluster = start_cluster(ClusterOptions(release=release, load_manager=manager))
    shell = Shell(tmp_path, plain_connection(cluster))
    with running_load(cluster) as workload:
        wait_for_figures(cluster.admin, workload)
        ran = run(shell)
        assert ran.code == 0, ran.err
        checked_state(cluster, shell, release, manager, workload)
    assert shell.document("plans", "recommendation.json")["combinations"]
    snapshot, root = shell.document("raw", MANIFEST)["snapshot"], Root(str(tmp_path), "live")
    if manager == "extensible":
        with pytest.raises(DataNotFit, match="Extensible brokers write no load"):
            cluster_state(root.snapshot(snapshot), "published")
    else:
        assert cluster_state(root.snapshot(snapshot), "published").brokers.traffic[:, 0].sum() > 0


def test_before_2_11_there_are_tables_and_no_recommendation(start_cluster: StartCluster, tmp_path: Path) -> None:
    cluster = start_cluster(ClusterOptions(release="2.10.5"))
    shell = Shell(tmp_path, plain_connection(cluster))
    with running_load(cluster) as workload:
        wait_for_figures(cluster.admin, workload)
        ran = run(shell)
        assert (ran.code, "2.11" in ran.err) == (3, True), ran.err
        checked_state(cluster, shell, "2.10.5", "modular", workload)
    assert not (tmp_path / "plans").exists()
