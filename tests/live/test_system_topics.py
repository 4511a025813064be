"""What Extensible brokers publish is captured from the real topics, and decides what TransferShedder would do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from harness.cluster import ClusterOptions, LiveCluster
from harness.configuration import CLUSTER_NAME
from harness.load import running_load
from harness.shell import Shell, plain_connection
from harness.skew import wait_for_figures
from live.starting import StartCluster
from pulsar_advisor.capture.raw_files import read_lines
from pulsar_advisor.model.cluster.cluster_state import NO_ROW
from pulsar_advisor.storage.root import MANIFEST, Root
from pulsar_advisor.tables.state import cluster_state

pytestmark = [pytest.mark.live, pytest.mark.full]

METADATA_STORE = "org.apache.pulsar.broker.loadbalance.extensions.channel.ServiceUnitStateMetadataStoreTableViewImpl"
SYSTEM = ("pulsar/", "sla-monitor/")


def listening(root: Path, cluster: LiveCluster) -> Shell:
    return Shell(root, (*plain_connection(cluster), "--service-url", cluster.service_url))


def lines(shell: Shell, surface: str) -> list[dict[str, Any]]:
    (path,) = (shell.root / "raw" / "cluster=live").glob(f"snapshot=*/{surface}.jsonl.zst")
    return [msgspec.json.decode(line) for line in read_lines(path.read_bytes())]


def owners(cluster: LiveCluster) -> dict[str, str]:
    """Owner of every bundle of a user's."""
    owned = cluster.admin.owners(CLUSTER_NAME)
    return {bundle: owner for bundle, owner in owned.items() if not bundle.startswith(SYSTEM)}


def writes_of_others(cluster: LiveCluster) -> list[str]:
    """Without those of the leader itself, which sets the compaction of its channel from time to time."""
    return [request for request in cluster.write_requests() if "/pulsar/system/loadbalancer-" not in request]


def owners_in_channel(shell: Shell) -> dict[str, str]:
    return {
        line["bundle"]: line["document"]["dstBroker"]
        for line in lines(shell, "service_unit_states")
        if line["document"]["state"] == "Owned" and not line["bundle"].startswith(SYSTEM)
    }


@pytest.mark.parametrize("release", ["4.0.8", "4.2.4"])
def test_the_leaders_view_is_what_the_brokers_told_it(
    release: str, start_cluster: StartCluster, tmp_path: Path
) -> None:
    cluster = start_cluster(ClusterOptions(release=release, load_manager="extensible"))
    shell = listening(tmp_path, cluster)
    with running_load(cluster) as workload:
        wait_for_figures(cluster.admin, workload)
        before, writes = owners(cluster), writes_of_others(cluster)
        wishes = ("--view", "published", "--shedder", "TransferShedder", "--placement", "all", "--no-splits")
        ran = shell("run", *shell.connection, *wishes, "--master", "local[2]", "--json")
        assert ran.code == 0, ran.err
        assert owners(cluster) == before
        assert writes_of_others(cluster) == writes
    manifest = shell.document("raw", MANIFEST)
    assert [entry for entry in manifest["missing"] if not entry["reason"].startswith("not available")] == []
    assert manifest["failures"] == []

    assert owners_in_channel(shell) == before
    load = {line["broker"]: line["document"] for line in lines(shell, "broker_load_data")}
    top = {  # the last one counts; a broker takes its own back now and then, to publish them anew
        line["broker"]: [bundle["bundleName"] for bundle in (line["document"] or {}).get("topBundlesLoadData", ())]
        for line in lines(shell, "top_bundles")
    }
    assert load.keys() == top.keys() == set(cluster.broker_ids)
    assert all(before[bundle] == broker for broker, bundles in top.items() for bundle in bundles)

    state = cluster_state(Root(str(tmp_path), "live").snapshot(manifest["snapshot"]), "published")
    published = state.published_load
    assert published is not None
    assert published.weighted_max_ema.tolist() == [load[broker]["weightedMaxEMA"] for broker in state.brokers.ids]
    in_order = np.flatnonzero(published.top_position != NO_ROW)
    in_order = in_order[np.lexsort((published.top_position[in_order], state.bundles.owner[in_order]))]
    expected = [bundle for broker in state.brokers.ids for bundle in top[broker]]
    assert [state.bundle_name(row) for row in in_order.tolist()] == expected


def test_a_channel_in_the_metadata_store_is_read_from_zookeeper(start_cluster: StartCluster, tmp_path: Path) -> None:
    settings = {"loadManagerServiceUnitStateTableViewClassName": METADATA_STORE}
    cluster = start_cluster(ClusterOptions(load_manager="extensible", settings=settings, cpu_sensor=False))
    shell = listening(tmp_path, cluster)
    with running_load(cluster):
        before = owners(cluster)
        captured = shell("capture", *shell.connection)
        assert captured.code == 0, captured.err
    assert {line["source"] for line in lines(shell, "service_unit_states")} == {"zookeeper"}
    assert owners_in_channel(shell) == before
