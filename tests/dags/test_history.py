"""Whole runs of `pulsar_history`: what a snapshot appends, and what a night seals, removes and writes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from dags.conftest import RunDag, Stages
from pulsar_advisor.model.cluster.snapshot_id import day_of, snapshot_id
from pulsar_advisor.storage.history import folded_days
from pulsar_advisor.storage.root import Root
from pulsar_advisor_airflow import tasks
from written_tables import snapshot_of_one_bundle

pytestmark = pytest.mark.airflow

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def no_day_ends_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pulsar_advisor_airflow.tasks.history.datetime", SimpleNamespace(now=lambda _zone: NOW))


def ago(**time: int) -> str:
    return snapshot_id(NOW - timedelta(**time))


@pytest.fixture
def root(stages: Stages, monkeypatch: pytest.MonkeyPatch) -> Root:
    """The root of the cluster that `written` writes."""
    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__CLUSTER", "test")
    return Root(stages.root.url, "test")


def snapshot(root: Root, id: str) -> str:
    snapshot_of_one_bundle(Path(root.url), id, brokers=["a:8080"])
    return id


def triggered_by(monkeypatch: pytest.MonkeyPatch, *snapshots: str) -> None:
    """The task runs because of these snapshots, and of an event that a user made."""
    made = ({"from_rest_api": True}, {"snapshot": "../cluster=other"})
    events = [SimpleNamespace(extra=extra) for extra in (*made, *({"snapshot": each} for each in snapshots))]
    context = {"triggering_asset_events": {"asset": events}}
    monkeypatch.setattr("pulsar_advisor_airflow.tasks.snapshots.get_current_context", lambda: context)


def test_a_night_folds_the_days_before_removes_what_is_old_and_writes_the_page(root: Root, run_dag: RunDag) -> None:
    old, yesterday, now = (snapshot(root, ago(days=days)) for days in (40, 1, 0))
    state, ended = run_dag("pulsar_history")
    assert (state, set(ended.values())) == ("success", {"success"})
    assert root.snapshots() == [yesterday, now]
    assert [day.day for day in folded_days(root)[0]] == [day_of(old), day_of(yesterday)]
    assert (root.path / "index.html").exists()


def test_what_was_removed_is_handed_on_by_day_whatever_the_number_of_snapshots(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    day = NOW.replace(hour=1) - timedelta(days=40)
    first, _ = (snapshot(root, snapshot_id(day + timedelta(minutes=minutes))) for minutes in (0, 15))
    snapshot(root, ago(days=0))
    triggered_by(monkeypatch)
    tasks.seal_history("test")
    assert tasks.thin_history("test", "--tables 30d --history 400d") == [f"removed 2 snapshots of {day_of(first)}"]


def test_what_is_kept_is_as_configured(root: Root, run_dag: RunDag, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__RETENTION", "--tables 2d --thin 1d:30d --history 60d")
    gone, kept, newest = (snapshot(root, ago(days=days)) for days in (40, 5, 0))
    assert run_dag("pulsar_history")[0] == "success"
    assert root.snapshots() == [kept, newest]
    assert day_of(gone) in [day.day for day in folded_days(root)[0]]


def test_a_retention_that_says_nothing_fails_and_removes_nothing(
    root: Root, run_dag: RunDag, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__RETENTION", "30d")
    old = snapshot(root, ago(days=40))
    snapshot(root, ago(days=0))
    state, ended = run_dag("pulsar_history")
    assert (state, ended["seal"], ended["thin"]) == ("failed", "success", "failed")
    assert old in root.snapshots()


def test_nothing_is_thinned_before_all_days_are_sealed(root: Root, run_dag: RunDag) -> None:
    old = snapshot(root, ago(days=40))
    broken = snapshot(root, ago(days=39))
    snapshot(root, ago(days=0))
    for file in root.snapshot(broken).folder("tables/bundles").iterdir():
        file.write_bytes(b"rotten")
    state, ended = run_dag("pulsar_history")
    assert (state, ended["seal"], ended["thin"]) == ("failed", "failed", "upstream_failed")
    assert [day.day for day in folded_days(root)[0]] == [day_of(old)]
    assert old in root.snapshots()


def test_a_snapshot_is_appended_to_its_day_and_nothing_else_happens(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    yesterday, now = (snapshot(root, ago(days=days)) for days in (1, 0))
    triggered_by(monkeypatch, now)
    assert len(tasks.append_to_history("test")) == 1
    assert [day.day for day in folded_days(root)[0]] == [day_of(now)]
    with pytest.raises(AirflowSkipException):
        tasks.seal_history("test")
    triggered_by(monkeypatch, yesterday, now)
    tasks.append_to_history("test")
    assert [day.day for day in folded_days(root)[0]] == [day_of(yesterday), day_of(now)]


def test_a_snapshot_that_is_gone_again_is_no_reason_to_try_again(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    triggered_by(monkeypatch, ago(days=0))
    with pytest.raises(AirflowFailException, match="nothing to fold"):
        tasks.append_to_history("test")


def test_a_cluster_that_was_never_captured_has_quiet_nights(root: Root, run_dag: RunDag) -> None:
    assert run_dag("pulsar_history")[0] == "success"
