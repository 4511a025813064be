"""The index says what the files say, whoever writes at the same time, and nothing depends on it."""

from __future__ import annotations

import json
from typing import Any

import pytest

import documents
from published import faults
from pulsar_advisor.storage import index
from pulsar_advisor.storage.files import write_file
from pulsar_advisor.storage.index import newest, update_index
from pulsar_advisor.storage.root import MANIFEST, RESULT, Root, Snapshot

SNAPSHOTS = [f"2026112{day}T083000Z" for day in range(5)]


def captured(snapshot: Snapshot) -> None:
    write_file(snapshot.folder("raw") / MANIFEST, documents.manifest().content())


def recommended(snapshot: Snapshot, sentence: str) -> None:
    captured(snapshot)
    validation = documents.validation(documents.check(success=False))
    write_file(snapshot.folder("validation") / RESULT, validation.content())
    rows = (documents.combination(standard_deviation_before=each) for each in (None, 0.2))
    document = documents.recommendation(*rows, plan="a.json", digest="sha256:0", sentence=sentence)
    write_file(snapshot.folder("plans") / "recommendation.json", document.content())


def reported(snapshot: Snapshot, sentence: str) -> None:
    recommended(snapshot, sentence)
    report = snapshot.folder("reports") / "report.html"
    report.parent.mkdir(parents=True, exist_ok=True)
    report.write_text("")


def file_of(root: Root) -> Any:
    return root.path / "index" / f"cluster={root.cluster}" / "snapshots.json"


def test_a_row_says_what_became_of_a_snapshot(root: Root) -> None:
    reported(root.snapshot(SNAPSHOTS[0]), "Move one bundle.")
    captured(root.snapshot(SNAPSHOTS[1]))
    before = newest(root, 9)
    update_index(root)
    assert newest(root, 9) == before
    assert [(row.id, row.verdict, row.has_report) for row in before] == [
        (SNAPSHOTS[1], "unfinished", False),
        (SNAPSHOTS[0], "act", True),
    ]
    assert (before[1].sentence, before[1].failed_checks, before[1].imbalance_ratio) == ("Move one bundle.", 1, 0.2)
    assert faults(json.loads(file_of(root).read_text())) == []


def test_what_no_strategy_could_judge_is_unfit_as_in_its_report(root: Root) -> None:
    captured(root.snapshot(SNAPSHOTS[0]))
    write_file(root.snapshot(SNAPSHOTS[0]).folder("validation") / RESULT, documents.validation().content())
    lacking = documents.combination(plan=None, digest=None, steps=0, error="isolation_policies is missing")
    document = documents.recommendation(lacking, sentence="No unload can be judged.")
    write_file(root.snapshot(SNAPSHOTS[0]).folder("plans") / "recommendation.json", document.content())
    assert [(row.verdict, row.sentence) for row in newest(root, 1)] == [("unfit", "No unload can be judged.")]


def test_a_sentence_that_was_cut_says_so(root: Root) -> None:
    recommended(root.snapshot(SNAPSHOTS[0]), f"Unload 3 bundles from {'b' * 500}: the busiest broker should fall.")
    assert newest(root, 1)[0].sentence.endswith("bbb…")


def test_lists_read_nothing_but_the_index(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    for snapshot in SNAPSHOTS:
        reported(root.snapshot(snapshot), "Nothing.")
    update_index(root)
    monkeypatch.setattr(Root, "folders", lambda _: pytest.fail("the snapshots were listed"))
    monkeypatch.setattr(index, "_row", lambda *_: pytest.fail("a snapshot's files were read"))
    assert [row.id for row in newest(root, 2)] == [SNAPSHOTS[4], SNAPSHOTS[3]]
    assert [row.id for row in newest(root, 2, before=SNAPSHOTS[3])] == [SNAPSHOTS[2], SNAPSHOTS[1]]


def test_an_index_is_bounded_and_older_snapshots_are_read_from_their_files(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "INDEXED", 3)
    for snapshot in SNAPSHOTS:
        reported(root.snapshot(snapshot), "x" * 10_000)
    update_index(root)
    assert file_of(root).stat().st_size < 3_000
    assert [row.id for row in newest(root, 2, before=SNAPSHOTS[3])] == [SNAPSHOTS[2], SNAPSHOTS[1]]
    assert [row.id for row in newest(root, 9)] == SNAPSHOTS[::-1]


def test_only_what_may_have_changed_is_read_again(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    for snapshot in SNAPSHOTS[:3]:
        reported(root.snapshot(snapshot), "Nothing.")
    update_index(root)
    read = []
    row = index._row
    monkeypatch.setattr(index, "_row", lambda snapshot: read.append(snapshot.id) or row(snapshot))
    reported(root.snapshot(SNAPSHOTS[1]), "Move two bundles.")
    captured(root.snapshot(SNAPSHOTS[3]))
    update_index(root, SNAPSHOTS[1])
    assert set(read) == {SNAPSHOTS[1], SNAPSHOTS[3]}
    assert [row.sentence for row in newest(root, 3)] == ["captured; not validated", "Nothing.", "Move two bundles."]


def test_of_two_writers_at_once_the_last_leaves_what_both_have_seen(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported(root.snapshot(SNAPSHOTS[0]), "Nothing.")

    def write_after_another(*arguments: Any) -> None:
        monkeypatch.setattr(index, "write_file", write_file)
        captured(root.snapshot(SNAPSHOTS[1]))
        update_index(root, SNAPSHOTS[1])
        write_file(*arguments)  # what was read before the other one captured

    monkeypatch.setattr(index, "write_file", write_after_another)
    update_index(root, SNAPSHOTS[0])
    assert [row.id for row in newest(root, 9)] == [SNAPSHOTS[1], SNAPSHOTS[0]]


def test_what_another_process_learns_meanwhile_of_a_snapshot_stays(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    reported(root.snapshot(SNAPSHOTS[0]), "Nothing.")
    update_index(root)
    captured(root.snapshot(SNAPSHOTS[1]))
    rows = index._rows

    def recommended_meanwhile(*arguments: Any) -> Any:
        found = rows(*arguments)
        monkeypatch.setattr(index, "_rows", rows)
        recommended(root.snapshot(SNAPSHOTS[0]), "Move one bundle.")
        update_index(root, SNAPSHOTS[0])
        return found

    monkeypatch.setattr(index, "_rows", recommended_meanwhile)
    update_index(root, SNAPSHOTS[1])
    assert [row.sentence for row in newest(root, 9)] == ["captured; not validated", "Move one bundle."]


def test_a_snapshot_that_was_removed_is_no_longer_listed(root: Root) -> None:
    for snapshot in SNAPSHOTS[:2]:
        reported(root.snapshot(snapshot), "Nothing.")
    update_index(root)
    (root.snapshot(SNAPSHOTS[0]).folder("raw") / MANIFEST).unlink()
    root.snapshot(SNAPSHOTS[0]).folder("raw").rmdir()
    update_index(root)
    assert [row.id for row in newest(root, 9)] == [SNAPSHOTS[1]]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        '{"schema": "other/1", "rows": []}',
        '{"schema": "pulsar-advisor/snapshot-index/1", "rows": 7}',
        '{"schema": "pulsar-advisor/snapshot-index/1", "rows": [{"id": "20269999T999999Z", "verdict": "act", '
        '"sentence": "", "failed_checks": 0, "imbalance_ratio": 0.1, "has_report": true}]}',
    ],
)
def test_an_index_that_can_not_be_read_is_none(root: Root, content: str) -> None:
    captured(root.snapshot(SNAPSHOTS[0]))
    file_of(root).parent.mkdir(parents=True)
    file_of(root).write_text(content)
    assert [row.id for row in newest(root, 9)] == [SNAPSHOTS[0]]
    update_index(root)
    assert [row["id"] for row in json.loads(file_of(root).read_text())["rows"]] == [SNAPSHOTS[0]]


def test_a_stage_does_not_fail_for_its_index(root: Root, caplog: pytest.LogCaptureFixture) -> None:
    captured(root.snapshot(SNAPSHOTS[0]))
    (root.path / "index").write_text("a file where the folder should be")
    update_index(root, SNAPSHOTS[0])
    assert "is not up to date" in caplog.text


def test_a_snapshot_that_must_not_be_used_is_not_said_to_hold_what_its_checks_ask(root: Root) -> None:
    captured(root.snapshot(SNAPSHOTS[0]))
    failed = documents.check(title="No bundle is owned by two brokers", severity="critical", success=False)
    validation = documents.validation(failed, success=False)
    write_file(root.snapshot(SNAPSHOTS[0]).folder("validation") / RESULT, validation.content())
    assert newest(root, 1)[0].sentence == "must not be used; did not pass: No bundle is owned by two brokers"
