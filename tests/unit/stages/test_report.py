"""The report of a snapshot that three real brokers of 4.0.8 gave."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pulsar_advisor.model.cluster.cluster_state import rate_per_s
from pulsar_advisor.stages import report
from pulsar_advisor.storage.plans import read_recommendation
from pulsar_advisor.storage.root import Root, Snapshot
from pulsar_advisor.tables.outcomes import SCHEMA
from pulsar_advisor.tables.state import cluster_state

LIVE = Path(__file__).parents[2] / "data/earlier/root"
SNAPSHOT = "20261122T093126Z"
LONG_MS = 20 * 60_000
"""Longer than a broker waits until it reports anew."""


def test_of_the_published_view_a_report_shows_what_plans_start_from_the_reports_that_are_due(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = Root(str(shutil.copytree(LIVE, tmp_path / "root")), "live").snapshot(SNAPSHOT)
    for file in Path(str(snapshot.folder("tables/brokers"))).glob("*.parquet"):
        rows = pq.read_table(file)
        place, published = rows.schema.get_field_index("report_updated_at_ms"), pc.equal(rows["view"], "published")
        ages = pc.if_else(published, pa.scalar(LONG_MS), pa.scalar(0))
        rows = rows.set_column(place, rows.schema.field(place), pc.subtract(rows["report_updated_at_ms"], ages))
        pq.write_table(rows, file)
    published_view = read_recommendation(snapshot).model_copy(update={"view": "published"})
    monkeypatch.setattr(report, "read_recommendation", lambda *_: published_view)
    fresh = cluster_state(snapshot, "fresh").brokers
    shown = {row.id: row.msg_rate_per_s for row in report.report_page(snapshot).brokers.rows}
    assert shown == pytest.approx(dict(zip(fresh.ids, rate_per_s(fresh.traffic).tolist(), strict=True)))


def test_a_plan_of_splits_is_not_looked_for_among_the_answers_of_the_shedder_that_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = Root(str(shutil.copytree(LIVE, tmp_path / "root")), "live").snapshot(SNAPSHOT)
    made = read_recommendation(snapshot)
    (drain,) = made.combinations
    splits = replace(drain, shedder="SimpleLoadManagerImpl", digest="sha256:splits")
    simple = replace(splits, placement="AvgShedder", digest="sha256:moves")
    with_splits = made.model_copy(update={"combinations": (drain, splits, simple)})
    looked_for = dict[str, Collection[str]]()

    def answers(_snapshot: Snapshot, plans: Mapping[str, Collection[str]]) -> pa.Table:
        looked_for.update(plans)
        return SCHEMA.empty_table()

    monkeypatch.setattr(report, "read_recommendation", lambda *_: with_splits)
    monkeypatch.setattr(report, "outcomes_of", answers)
    report.report_page(snapshot)
    assert looked_for == {"drain": [drain.digest], "SimpleLoadManagerImpl": ["sha256:moves"]}


def test_a_ledger_that_can_not_be_read_keeps_the_report_from_nobody(tmp_path: Path) -> None:
    snapshot = Root(str(shutil.copytree(LIVE, tmp_path / "root")), "live").snapshot(SNAPSHOT)
    ledger = tmp_path / "ledger.sqlite"
    ledger.write_text("not a database, but long enough to be taken for one" * 100)
    page = report.report_page(snapshot, f"sqlite:///{ledger}")
    [said] = [command.purpose for command in page.verdict.commands if "can't be looked up" in command.purpose]
    assert "file is not a database" in said
