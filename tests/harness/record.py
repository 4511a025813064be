"""Records a cluster for the demo: the product's own capture of the skewed load, in one file."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from harness.cluster import LiveCluster
from harness.errors import HarnessError
from harness.load import running_load
from harness.skew import wait_for_skew

ADVISOR = Path(sys.executable).with_name("pulsar-advisor")
RECORDED_CLUSTER = "demo"
STAGE_LIMIT_S = 120


def record(archive: Path) -> None:
    """Start a cluster, wait until its figures are right, capture it, and write the snapshot's archive.

    Raises:
        HarnessError: no cluster to record, or the capture failed; the advisor said why.
    """
    if archive.exists():
        raise HarnessError(f"{archive} exists already: remove it first.")
    with LiveCluster() as cluster, running_load(cluster), tempfile.TemporaryDirectory() as root:
        wait_for_skew(cluster.admin)
        _run(capture_command(root, RECORDED_CLUSTER, cluster.admin_urls, cluster.zookeeper))
        archive.parent.mkdir(parents=True, exist_ok=True)
        _run([*_advisor("snapshots", "export", root=root, name=RECORDED_CLUSTER), str(archive)])


def capture_command(root: str, name: str, admin_urls: list[str], zookeeper: str) -> list[str]:
    """The `pulsar-advisor capture` command line for a cluster of this harness."""
    urls = [part for url in admin_urls for part in ("--admin-url", url)]
    return [*_advisor("capture", root=root, name=name), *urls, "--zookeeper", zookeeper]


def _advisor(*verb: str, root: str, name: str) -> list[str]:
    return [str(ADVISOR), *verb, "--root", root, "--cluster", name]


def _run(command: list[str]) -> None:
    exit_code = subprocess.run(command, check=False, timeout=STAGE_LIMIT_S).returncode
    if exit_code != 0:
        raise HarnessError(f"Nothing was recorded: exit code {exit_code} of {' '.join(command)}")
