"""What is removed of the tables of simulations."""

from __future__ import annotations

from pathlib import Path

import pytest

from pulsar_advisor.storage.files import write_file
from pulsar_advisor.storage.root import RESULT, Root
from pulsar_advisor.tables.simulations import FOLDER, SCORES, remove_simulations

SNAPSHOT = "20261121T083000Z"


@pytest.mark.parametrize("levels_up", [0, 1, 2])
def test_nothing_that_a_link_leads_to_is_removed(levels_up: int, root: Root, tmp_path: Path) -> None:
    folder = Path(str(root.snapshot(SNAPSHOT).folder(f"{FOLDER}/{SCORES}")))
    folder.mkdir(parents=True)
    (folder / "file").write_text("stays")
    link = [folder, *folder.parents][levels_up]
    link.rename(tmp_path / "precious")
    link.symlink_to(tmp_path / "precious")
    remove_simulations(root.snapshot(SNAPSHOT))
    assert (folder / "file").read_text() == "stays"


def test_no_result_stays_of_simulations_that_are_removed(root: Root) -> None:
    result = root.snapshot(SNAPSHOT).folder(f"{FOLDER}/result") / RESULT
    write_file(result, b"{}")
    remove_simulations(root.snapshot(SNAPSHOT))
    assert not result.exists()
