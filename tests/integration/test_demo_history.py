"""`make demo-history`: from a recorded series to trend, difference and index, without Spark and without a cluster."""

import re
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What it prints, and the page that it writes."""
    root = tmp_path_factory.mktemp("root")
    command = ["make", "--old-file=setup", "demo-history", f"DEMO_HISTORY={root}"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout, root / "index.html"


def test_every_recorded_snapshot_is_folded(shown: tuple[str, Path]) -> None:
    assert re.findall(r"(\d+) snapshots, (\d+) fit", shown[0]) == [("18", "18"), ("5", "5"), ("5", "5")]


def test_the_trend_names_who_moved_bundles(shown: tuple[str, Path]) -> None:
    assert "18 of 18 snapshots fit" in shown[0]
    assert re.search(r"moves +11: 11 by the leader", shown[0])


def test_the_difference_shows_that_the_busiest_broker_was_relieved(shown: tuple[str, Path]) -> None:
    assert "127.0.0.1:19941: 93.8% -> 63.5%" in shown[0]
    assert "moves 8: 8 by the leader" in shown[0]


def test_the_page_has_all_clusters_with_the_busiest_broker_first(shown: tuple[str, Path]) -> None:
    clusters = re.findall("avg-quiet|threshold-crowded|uniform-crowded", shown[1].read_text(encoding="utf-8"))
    assert list(dict.fromkeys(clusters)) == ["avg-quiet", "threshold-crowded", "uniform-crowded"]
