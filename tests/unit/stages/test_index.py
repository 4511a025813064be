"""The page over all clusters of a root reads what their folded days and last advice say."""

from pathlib import Path

import pytest

import documents
from pulsar_advisor.execution.ledger.lists import AfterRun
from pulsar_advisor.execution.ledger.tables import Run
from pulsar_advisor.stages.export_history import run as export_days
from pulsar_advisor.stages.fold import run as fold
from pulsar_advisor.stages.index import fleet_row, run
from pulsar_advisor.stages.snapshot_lines import Recorded
from pulsar_advisor.storage.files import write_file
from pulsar_advisor.storage.root import RESULT, Root
from written_tables import snapshot_of_one_bundle

DAY = "20261121"


def root_with_moves(folder: Path) -> Root:
    """Three snapshots that weren't validated; in the second, the bundle has moved."""
    for hour, owner in ((8, "a:8080"), (12, "b:8080"), (20, "b:8080")):
        root = snapshot_of_one_bundle(folder, f"{DAY}T{hour:02}0000Z", owner)
    return root


def test_a_row_is_the_sum_of_its_days(tmp_path: Path) -> None:
    root = root_with_moves(tmp_path)
    fold(root.day(DAY))
    row = fleet_row(root, 28, "/{}/{}".format, Recorded())
    assert (row.days, row.snapshots, row.fit, row.brokers, row.bundles) == (1, 3, 0, 2, 1)
    assert (row.moves, row.now, row.day, row.busiest) == ("1: 1 unexplained", None, "", (None,))


def test_a_day_that_has_only_begun_bends_no_slope(tmp_path: Path) -> None:
    root = Root(str(tmp_path), "test")
    times = [(day, hour) for day in range(20, 26) for hour in (2, 10, 18) if (day, hour) <= (25, 2)]
    for day, hour in times:
        id = f"202611{day}T{hour:02}0000Z"
        snapshot_of_one_bundle(tmp_path, id, brokers=["a:8080"], cpu_usage=20.0 if hour == 2 else 60.0)
        write_file(root.snapshot(id).folder("validation") / RESULT, documents.validation(snapshot=id).content())
    for day in sorted({day for day, _ in times}):
        fold(root.day(f"202611{day}"))
    row = fleet_row(root, 28, "/{}/{}".format, Recorded())
    assert (row.days, row.slope) == (6, "+0.00 points/day (90%: +0.00 to +0.00)")
    assert row.now == pytest.approx(0.2)


def test_a_cluster_that_was_never_folded_is_on_the_page(tmp_path: Path) -> None:
    root = root_with_moves(tmp_path)
    assert run(root, 28, None) == str(root.path / "index.html")
    assert "no folded day" in (tmp_path / "index.html").read_text()


def test_a_cluster_of_which_only_days_are_left_was_captured_all_the_same(tmp_path: Path) -> None:
    """As after `snapshots prune`, and in a root that `history export` wrote."""
    root = root_with_moves(tmp_path / "root")
    assert fleet_row(Root(root.url, "other"), 28, "/{}/{}".format, Recorded()).verdict == "never captured"
    fold(root.day(DAY))
    list(export_days(root, str(tmp_path / "exported"), pseudonyms=False))
    row = fleet_row(Root(str(tmp_path / "exported"), root.cluster), 28, "/{}/{}".format, Recorded())
    assert (row.snapshots, row.verdict, row.report) == (3, "no snapshot is left", None)


def test_snapshots_that_can_not_be_listed_are_not_taken_for_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = root_with_moves(tmp_path)

    def unreadable(*_: object) -> None:
        raise OSError("Input/output error")

    monkeypatch.setattr("pulsar_advisor.stages.index.newest", unreadable)
    row = fleet_row(root, 28, "/{}/{}".format, Recorded())
    assert (row.verdict, row.problem) == ("not known", "Input/output error")


def test_the_last_advice_is_dated_and_stays_while_a_newer_snapshot_is_processed(tmp_path: Path) -> None:
    root = root_with_moves(tmp_path)
    advised, newer = f"{DAY}T120000Z", f"{DAY}T200000Z"
    write_file(root.snapshot(advised).folder("validation") / RESULT, documents.validation().content())
    document = documents.recommendation(plan="a.json", digest="sha256:0", sentence="Move one bundle.")
    write_file(root.snapshot(advised).folder("plans") / "recommendation.json", document.content())
    row = fleet_row(root, 28, "/{}/{}".format, Recorded())
    assert (row.verdict, row.advised_at) == ("Move one bundle.", "2026-11-21 12:00 UTC")
    write_file(root.snapshot(advised).folder("reports") / "report.html", b"")
    assert fleet_row(root, 28, "/{}/{}".format, Recorded()).report == f"/{root.cluster}/{advised}"
    verified = Recorded(after={(root.cluster, newer): AfterRun(7, True, 0.511, 0.1)})
    row = fleet_row(root, 28, "/{}/{}".format, verified)
    assert row.verdict == "after run 7: highest usage 51.1%, as predicted"
    unjudged = Recorded(after={(root.cluster, newer): AfterRun(7, True, None, None)})
    row = fleet_row(root, 28, "/{}/{}".format, unjudged)
    assert row.verdict == "after run 7: bundles as predicted, usage not judged"


def test_advice_that_was_carried_out_is_not_the_last_word(tmp_path: Path) -> None:
    root = root_with_moves(tmp_path)
    document = documents.recommendation(plan="a.json", digest="sha256:0", sentence="Move one bundle.")
    newest = f"{DAY}T200000Z"
    write_file(root.snapshot(newest).folder("validation") / RESULT, documents.validation().content())
    write_file(root.snapshot(newest).folder("plans") / "recommendation.json", document.content())
    run_since = Run(id=7, state="done", started_at_ms=1_795_400_000_000)
    row = fleet_row(root, 28, "/{}/{}".format, Recorded(carried_out={root.cluster: run_since}))
    assert row.verdict == "before run 7: Move one bundle."


def test_a_day_that_can_not_be_read_is_named_and_the_page_is_made(tmp_path: Path) -> None:
    root = root_with_moves(tmp_path)
    write_file(root.day(DAY).result_file, b"{}")
    row = fleet_row(root, 28, "/{}/{}".format, Recorded())
    assert row.problem is not None
    assert row.problem.startswith(f"{DAY} can't be read")
