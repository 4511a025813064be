"""One rotten file takes nothing else with it: lists say which row can't be read, and go on."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from pathlib import Path

import pytest

import documents
from pulsar_advisor.cli import exit_code
from pulsar_advisor.cli.places import CLUSTER_VARIABLE, ROOT_VARIABLE
from pulsar_advisor.execution.ledger.opening import open_ledger
from pulsar_advisor.storage.files import write_file
from pulsar_advisor.storage.index import newest
from pulsar_advisor.storage.root import MANIFEST, Root
from rotten_root import (
    CLUSTERS,
    FILES,
    NEW,
    NOT_A_TIME,
    NOT_WHAT_IT_SHOULD_BE,
    OLD,
    ROTTEN,
    add_strange_folders,
    spoil,
    spoil_plan_in_ledger,
    write_root,
)

LISTS = (
    "snapshots list",
    "snapshots list --json",
    f"snapshots show {OLD}",
    "snapshots show",
    "snapshots prune --keep-days 1 --dry-run",
    "plans",
    "plans --all --json",
    "runs",
    "runs --json",
    "history show",
    "history verify",
    "trend",
    "guard",
    "audit verify",
    "snapshots prune --keep-days 1",
)
"""Every verb that goes through a cluster's files or plans, and needs neither Spark nor a cluster."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    write_root(folder)
    return folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(whole, tmp_path / "root")
    monkeypatch.setenv(ROOT_VARIABLE, str(tmp_path / "root"))
    return tmp_path / "root"


def run(
    cluster: str, verb: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str]:
    monkeypatch.setenv(CLUSTER_VARIABLE, cluster)
    code = exit_code(verb.split())
    said = capsys.readouterr()
    return code, said.out + said.err


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("how", ["half", "a folder"])
@pytest.mark.parametrize("file", FILES)
def test_a_file_that_can_not_be_read_is_named_and_nothing_else_is_lost(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], file: str, how: str
) -> None:
    spoil(folder, file, how)
    for cluster in CLUSTERS[:2]:
        for verb in LISTS:
            code, said = run(cluster, verb, monkeypatch, capsys)
            is_about_it = {("manifest", "snapshots show"): 1, ("day", "trend"): 2, ("day", "history verify"): 3}
            wanted = is_about_it.get((file, verb), 0) if cluster == ROTTEN else 0
            assert code == wanted, (cluster, verb, said)
            assert "unexpected failure" not in said
    assert Root(str(folder), ROTTEN).snapshots() == [NEW]  # the older one was pruned


@pytest.mark.parametrize("how", NOT_WHAT_IT_SHOULD_BE)
@pytest.mark.parametrize("file", FILES)
def test_a_row_that_can_not_be_read_says_so(folder: Path, file: str, how: str) -> None:
    spoil(folder, file, how)
    rows = newest(Root(str(folder), ROTTEN), 2)
    assert [row.id for row in rows] == [NEW, OLD]
    assert (rows[0].verdict == "unreadable") == (file in ("validation", "recommendation"))
    assert str(folder) not in rows[0].sentence


@pytest.mark.parametrize(
    ("change", "code", "says"),
    [
        ({"tables": {}}, 1, "names no file of table 'index'"),
        ({"tables": {"index": {"file": "../../../../elsewhere.parquet"}}}, 1, "names no file of table 'index'"),
        ({"tables": {"index": {"file": "part\0.parquet"}}}, 1, "names no file of table 'index'"),
        ({"tables": {"index": {"rows": 7}}}, 1, "has 1 rows, its day's result says 7"),
        ({"day": "../20261121"}, 2, "no day of cluster 'prod-eu' was folded yet"),
    ],
)
def test_a_folded_day_is_read_from_its_own_folder_alone(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    change: dict[str, object],
    code: int,
    says: str,
) -> None:
    result = FILES["day"](folder)
    day = json.loads(result.read_text())
    tables = change.get("tables", day["tables"])
    assert isinstance(tables, dict)
    day |= change | {"tables": {name: {**day["tables"][name], **tables[name]} for name in tables}}
    result.write_text(json.dumps(day))
    found, said = run(ROTTEN, "trend", monkeypatch, capsys)
    assert (found, says in said, "unexpected" in said) == (code, True, False), said
    assert run(CLUSTERS[1], "trend", monkeypatch, capsys)[0] == 0


@pytest.mark.parametrize("cluster", CLUSTERS[:2])
def test_strange_names_are_no_snapshots_and_no_clusters(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], cluster: str
) -> None:
    add_strange_folders(folder)
    for verb in LISTS:
        code, said = run(cluster, verb, monkeypatch, capsys)
        assert (code, NOT_A_TIME in said) == (0, False), (verb, said)
    assert [row.id for row in newest(Root(str(folder), cluster), 9)] == [NEW]
    code, said = run("elsewhere", "snapshots list", monkeypatch, capsys)
    assert code == 2
    assert not {"\u202e", "\x1b"} & set(said)


def test_a_plan_that_the_ledger_holds_in_another_form_keeps_its_snapshot(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil_plan_in_ledger(folder)
    for cluster in CLUSTERS[:2]:
        for verb in LISTS:
            code, said = run(cluster, verb, monkeypatch, capsys)
            assert code == (5 if verb == "audit verify" else 0), (cluster, verb, said)
    assert Root(str(folder), ROTTEN).snapshots() == [NEW]


def test_prune_keeps_what_a_plan_that_can_not_be_read_was_made_from(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    later = "20261122T083000Z"
    for cluster in CLUSTERS[:2]:
        root = Root(str(folder), cluster)
        write_file(root.snapshot(later).folder("raw") / MANIFEST, documents.manifest(snapshot=later).content())
    spoil(folder, "plan", "half")
    (folder / "ledger.sqlite").unlink()
    with closing(open_ledger(Root(str(folder), ROTTEN).ledger_url)):
        pass
    for path in (folder / "plans" / f"cluster={CLUSTERS[1]}").rglob("*--*.json"):
        path.unlink()
    code, said = run(ROTTEN, "snapshots prune --keep-days 1", monkeypatch, capsys)
    assert (code, "can't be read: " in said) == (0, True)
    assert Root(str(folder), ROTTEN).snapshots() == [NEW, later]
    run(CLUSTERS[1], "snapshots prune --keep-days 1", monkeypatch, capsys)
    assert Root(str(folder), CLUSTERS[1]).snapshots() == [later]
