"""Makes the series that `make demo-history` folds: what live brokers did by themselves, normalized and validated.

    PYTHONPATH=tests python -m decisions.history FILE

It takes Spark a minute for each snapshot. Of these, the file has what `history fold` reads.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from decisions.recording import RECORDINGS, read_recording
from pulsar_advisor.stages.normalize import run as normalize
from pulsar_advisor.stages.validate import run as validate
from pulsar_advisor.storage.root import Root
from pulsar_advisor.tables.session import spark_session

CLUSTERS: Final = {
    "avg-quiet": "AvgShedder-4.0.8-modular-quiet",
    "threshold-crowded": "ThresholdShedder-4.0.8-modular-crowded",
    "uniform-crowded": "UniformLoadShedder-4.0.8-modular-crowded",
}
"""Name in the series -> recording."""
_FOLDED: Final = (
    "index/*/*",
    "raw/*/*/manifest.json",
    "validation/*/*/*",
    *(f"tables/{table}/*/*/*" for table in ("brokers", "bundles", "namespaces", "policies", "result", "settings")),
)


def write(file: Path) -> None:
    """Write the series; its files have neither owner nor time."""
    with tempfile.TemporaryDirectory() as folder, spark_session("local[2]") as spark:
        for cluster, name in CLUSTERS.items():
            root = Root(folder, cluster)
            for captured in read_recording(RECORDINGS / f"{name}.json.zst").snapshots.values():
                snapshot = captured.write(root)
                normalize(spark, snapshot)
                validate(spark, snapshot)
        with tarfile.open(file, "w:xz", format=tarfile.GNU_FORMAT) as archive:
            for path in sorted(_files(Path(folder))):
                member = tarfile.TarInfo(str(path.relative_to(folder)))
                member.size = path.stat().st_size
                with path.open("rb") as content:
                    archive.addfile(member, content)


def _files(folder: Path) -> Iterator[Path]:
    for pattern in _FOLDED:
        yield from folder.glob(pattern)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
