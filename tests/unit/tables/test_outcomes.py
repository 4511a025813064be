"""A file of answers is new, whatever lies in its place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pulsar_advisor.model.errors import StorageError
from pulsar_advisor.storage.root import Root
from pulsar_advisor.tables.outcomes import outcomes_of, write_outcomes
from unit.planning.kinds.clusters import cluster

TABLES_PAGE = Path(__file__).parents[3] / "docs" / "tables.md"


def test_what_a_link_in_the_place_of_answers_leads_to_stays(root: Root, tmp_path: Path) -> None:
    state, elsewhere = cluster({"a": [10], "b": [10]}), tmp_path / "precious"
    snapshot = root.snapshot(state.snapshot)
    elsewhere.write_text("stays")
    place = Path(str(snapshot.folder("outcomes") / "ThresholdShedder.parquet"))
    place.parent.mkdir(parents=True)
    place.symlink_to(elsewhere)
    write_outcomes(snapshot, state, "ThresholdShedder", [])
    assert elsewhere.read_text() == "stays"
    assert outcomes_of(snapshot, {"ThresholdShedder": ()}).num_rows == 0


def test_the_page_of_tables_describes_every_column_of_a_file(root: Root) -> None:
    state = cluster({"a": [10], "b": [10]})
    snapshot = root.snapshot(state.snapshot)
    write_outcomes(snapshot, state, "ThresholdShedder", [])
    section = TABLES_PAGE.read_text().partition("## outcomes\n")[2].partition("\n## ")[0]
    described = re.findall(r"^\| `(\w+)` .*\| \w+ +\| .+ \|$", section, re.MULTILINE)
    assert described == outcomes_of(snapshot, {"ThresholdShedder": ()}).column_names


def test_answers_that_another_request_has_replaced_are_not_those_of_the_result(root: Root) -> None:
    state = cluster({"a": [10], "b": [10]})
    snapshot = root.snapshot(state.snapshot)
    write_outcomes(snapshot, state, "ThresholdShedder", [], ["sha256:a", "sha256:b"])
    outcomes_of(snapshot, {"ThresholdShedder": ["sha256:b"]})
    write_outcomes(snapshot, state, "ThresholdShedder", [], ["sha256:c"])
    with pytest.raises(StorageError, match="of different runs of `recommend`: one is under way, or was interrupted"):
        outcomes_of(snapshot, {"ThresholdShedder": ["sha256:b"]})
