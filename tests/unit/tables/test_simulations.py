"""What is removed of the tables of simulations."""

from __future__ import annotations

from pathlib import Path

from pulsar_advisor.storage.root import Root
from pulsar_advisor.tables.simulations import FOLDER, SCORES, remove_simulations

SNAPSHOT = "20261121T083000Z"


def test_nothing_that_a_link_leads_to_is_removed(root: Root, tmp_path: Path) -> None:
    folder, elsewhere = Path(str(root.folder(f"{FOLDER}/{SCORES}", SNAPSHOT))), tmp_path / "precious"
    elsewhere.mkdir()
    (elsewhere / "file").write_text("stays")
    folder.parent.mkdir(parents=True)
    folder.symlink_to(elsewhere)
    remove_simulations(root, SNAPSHOT)
    assert (elsewhere / "file").read_text() == "stays"
