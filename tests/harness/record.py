"""Records a cluster for the demo: the product's own capture of the skewed load, packed into one reproducible file."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from harness.cluster import LiveCluster
from harness.load import running_load
from harness.skew import wait_for_skew

ADVISOR = Path(sys.executable).with_name("pulsar-advisor")
RECORDED_CLUSTER = "demo"
CAPTURE_LIMIT_S = 120


def record(archive: Path) -> None:
    """Start a cluster, wait until its figures are right, capture it, and write `archive`: a tar of the root's `raw/`.

    Raises:
        LiveClusterUnavailable, ClusterDidNotStart, LoadDidNotStart, NoSkew: no cluster to record.
        subprocess.CalledProcessError: the capture failed; it said why.
    """
    with LiveCluster() as cluster, running_load(cluster), tempfile.TemporaryDirectory() as root:
        wait_for_skew(cluster.admin)
        command = capture_command(root, RECORDED_CLUSTER, cluster.admin_urls, cluster.zookeeper)
        subprocess.run(command, check=True, timeout=CAPTURE_LIMIT_S)
        pack(Path(root), archive)


def capture_command(root: str, name: str, admin_urls: list[str], zookeeper: str) -> list[str]:
    """The `pulsar-advisor capture` command line for a cluster of this harness."""
    command = [str(ADVISOR), "capture", "--root", root, "--cluster", name]
    for url in admin_urls:
        command += ["--admin-url", url]
    return [*command, "--zookeeper", zookeeper]


def pack(root: Path, archive: Path) -> None:
    """Write everything below `root`/raw, with paths relative to `root`. Equal content gives equal bytes."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive, "w", format=tarfile.USTAR_FORMAT) as tar:
        for file in sorted(path for path in (root / "raw").rglob("*") if path.is_file()):
            entry = tarfile.TarInfo(file.relative_to(root).as_posix())
            entry.size = file.stat().st_size
            with file.open("rb") as content:
                tar.addfile(entry, content)
