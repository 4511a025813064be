"""When snapshots are overdue, and who hears of it, once."""

from __future__ import annotations

import os
import re
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowException

from dags.conftest import RunDag, Stages
from pulsar_advisor.admin.webhook import NotDelivered, Webhook
from pulsar_advisor.execution.ledger.opening import open_ledger
from pulsar_advisor.model.errors import StorageError
from pulsar_advisor.storage import index
from pulsar_advisor.storage.root import Root
from pulsar_advisor_airflow.clusters import Cluster
from pulsar_advisor_airflow.metrics import age_measured
from pulsar_advisor_airflow.notifiers import Call
from pulsar_advisor_airflow.overdue import why_overdue
from pulsar_advisor_airflow.tasks import watch
from unit.execution.actors import started

pytestmark = pytest.mark.airflow

OPERATIONS = Path(__file__).parents[2] / "docs" / "operations.md"
NOON = datetime(2026, 11, 25, 12, 0, 30, tzinfo=UTC)


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """What the state store of the cluster's asset holds, without Airflow."""
    kept = dict[str, object]()
    store = defaultdict(lambda: SimpleNamespace(get=kept.get, set=kept.__setitem__, delete=kept.__delitem__))
    monkeypatch.setattr(watch, "get_current_context", lambda: {"asset_state_store": store, "dag": None})
    return kept


@pytest.fixture
def watched_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a cluster without snapshots isn't new."""
    monkeypatch.setattr(watch, "_awaited_since", lambda _cluster, _newest, now: now - timedelta(days=1))


def test_a_snapshot_dated_by_a_clock_that_is_ahead_has_no_negative_age(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[float] = []
    monkeypatch.setattr("airflow.sdk.observability.stats.gauge", lambda _name, value, **_: measured.append(value))
    age_measured("99991231T235959Z", "prod-eu")
    assert measured == [0.0]


def test_the_rule_about_a_watch_that_is_down_finds_the_metric_that_it_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """As exporters write it: Airflow's prefix, and an underscore in place of what Prometheus doesn't allow."""
    measured: list[str] = []
    monkeypatch.setattr("airflow.sdk.observability.stats.gauge", lambda name, *_, **__: measured.append(name))
    age_measured("20261125T080000Z", "prod-eu")
    [rule] = re.findall(r'absent\(changes\(sum\(\{__name__=~"([^"]+)"\}', OPERATIONS.read_text(encoding="utf-8"))
    [exported] = ["airflow_" + re.sub(r"\W", "_", name) for name in measured]
    assert re.fullmatch(rule, exported)


@pytest.mark.parametrize(
    ("schedule", "validated", "overdue"),
    [
        ("*/15 * * * *", "20261125T113004Z", False),  # the one of 11:45 is late
        ("*/15 * * * *", "20261125T112957Z", False),  # the same, named by a clock that is some seconds behind
        ("*/15 * * * *", "20261125T111502Z", True),  # 45 minutes and a half
        ("*/15 * * * *", None, True),
        ("@daily", "20261123T000003Z", False),
        ("@daily", "20261122T000003Z", True),
        (None, None, False),
    ],
)
def test_three_that_were_due_and_did_not_come_are_overdue(
    schedule: str | None, validated: str | None, overdue: bool
) -> None:
    assert bool(why_overdue(schedule, validated, NOON)) is overdue


@pytest.mark.parametrize("preset", ["@hourly", "@daily", "@weekly", "@monthly", "@quarterly", "@yearly"])
def test_every_preset_of_airflow_falls_due(preset: str) -> None:
    known = Cluster(name="demo", pulsar_conn_id="p", schedule=preset)
    assert why_overdue(known.schedule, None, NOON).endswith("though 3 were due: none of the newest 100 did")


def test_snapshots_are_due_by_the_clock_that_starts_them(dags: Mapping[str, Any]) -> None:
    timetable = dags["pulsar_snapshot"].schedule
    assert (timetable.expression, timetable.timezone) == ("*/15 * * * *", "UTC")  # in which `why_overdue` reckons


@pytest.mark.parametrize("verdict", ["unfit", "unfinished", "unreadable"])
def test_a_snapshot_that_led_to_no_advice_does_not_count(monkeypatch: pytest.MonkeyPatch, verdict: str) -> None:
    rows = [
        SimpleNamespace(id="20261125T113000Z", verdict=verdict),
        SimpleNamespace(id="20261125T080000Z", verdict="act"),
    ]
    monkeypatch.setattr(index, "newest", lambda *_: rows)
    assert index.newest_advised(Root("/root", "demo"), NOON) == "20261125T080000Z"


def test_a_snapshot_dated_by_a_clock_that_was_ahead_does_not_hide_that_none_has_come_since(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [
        SimpleNamespace(id=id, verdict="act") for id in ("20991231T000000Z", "20261125T120120Z", "20261125T080000Z")
    ]
    monkeypatch.setattr(index, "newest", lambda *_: rows)
    assert index.newest_advised(Root("/root", "demo"), NOON) == "20261125T120120Z"  # of a clock somewhat ahead
    assert index.newest_advised(Root("/root", "demo"), NOON - timedelta(hours=1)) == "20261125T080000Z"


def test_nobody_is_called_about_a_new_cluster_before_three_were_due_since_it_is_watched(
    monkeypatch: pytest.MonkeyPatch, calls: list[str], kept: dict[str, object]
) -> None:
    monkeypatch.setattr(index, "newest_advised", lambda *_: None)
    known = Cluster(name="demo", pulsar_conn_id="p")
    looks = [watch._is_overdue(known, NOON + timedelta(minutes=minutes)) for minutes in (0, 29, 45, 50)]
    assert (looks, len(calls)) == ([False, False, True, True], 1)


@pytest.mark.parametrize(
    ("schedule", "newest"), [(None, None), ("*/15 * * * *", "20261125T113000Z")], ids=["captured by hand", "advised on"]
)
def test_a_cluster_is_awaited_anew_after_it_was_captured_by_hand_or_advised_on(
    kept: dict[str, object], schedule: str | None, newest: str | None
) -> None:
    known = Cluster(name="demo", pulsar_conn_id="p", schedule="*/15 * * * *")
    watch._awaited_since(known, None, NOON - timedelta(days=9))
    assert watch._awaited_since(known.model_copy(update={"schedule": schedule}), newest, NOON) is None
    assert watch._awaited_since(known, None, NOON) == NOON


def test_a_first_look_by_a_clock_that_was_ahead_counts_from_now(kept: dict[str, object]) -> None:
    known = Cluster(name="demo", pulsar_conn_id="p", schedule="*/15 * * * *")
    watch._awaited_since(known, None, NOON + timedelta(days=9))
    assert watch._awaited_since(known, None, NOON) == NOON


def test_it_says_since_when() -> None:
    said = why_overdue("*/15 * * * *", "20261125T111502Z", NOON)
    assert (
        said == "no snapshot since 2026-11-25 11:30 UTC led to advice, though 3 were due: "
        "the last that did is 20261125T111502Z"
    )


def sent_with_a_failure(monkeypatch: pytest.MonkeyPatch, failing: int) -> list[str]:
    """The events sent to a webhook, whose call of this number fails."""
    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__WEBHOOK", "https://example.org/receiver")
    sent: list[str] = []

    def send(_webhook: Webhook, event: str, _what: object) -> None:
        sent.append(event)
        if len(sent) == failing:
            raise NotDelivered("nothing answers")

    monkeypatch.setattr(Webhook, "send", send)
    return sent


@pytest.mark.usefixtures("watched_for_long")
def test_each_receiver_is_called_once_and_one_that_failed_again(
    stages: Stages, run_dag: RunDag, monkeypatch: pytest.MonkeyPatch, registered: Callable[..., None], calls: list[str]
) -> None:
    registered("demo", {"name": "by-hand", "schedule": None})
    tried = sent_with_a_failure(monkeypatch, 1)
    for _ in range(3):
        assert run_dag("pulsar_watch")[0] == "success"
    assert tried == ["snapshot.overdue", "snapshot.overdue"]
    [message] = calls
    assert message.startswith("snapshot.overdue demo")


@pytest.mark.parametrize(
    ("option", "receiver", "why"),
    [
        ("WEBHOOK", "https://example.org/receiver", "the webhook: it returned 500"),
        ("CALL_NOTIFIERS", "dags.notifiers.failing", "dags.notifiers.failing: nothing answers"),
    ],
)
def test_a_look_fails_if_nobody_could_be_called(
    monkeypatch: pytest.MonkeyPatch, kept: dict[str, object], option: str, receiver: str, why: str
) -> None:
    monkeypatch.setenv(f"AIRFLOW__PULSAR_ADVISOR__{option}", receiver)
    monkeypatch.setattr(Webhook, "send", partial(_refuse, "it returned 500"))
    known = Cluster(name="demo", pulsar_conn_id="p")
    with pytest.raises(AirflowException, match=f"overdue; nobody could be called: {why}"):
        watch._call_about_snapshots(known, "20261125T080000Z", "overdue")
    assert kept == {}


def test_a_webhook_that_can_not_be_read_keeps_nobody_else_from_being_called(
    monkeypatch: pytest.MonkeyPatch, kept: dict[str, object], calls: list[str]
) -> None:
    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__WEBHOOK_CMD", "false")
    watch._call_about_snapshots(Cluster(name="demo", pulsar_conn_id="p"), "20261125T080000Z", "overdue")
    assert len(calls) == 1


def test_a_look_succeeds_where_nobody_is_to_be_called(kept: dict[str, object]) -> None:
    watch._call_about_snapshots(Cluster(name="demo", pulsar_conn_id="p"), "20261125T080000Z", "overdue")


@pytest.mark.usefixtures("watched_for_long")
def test_the_age_is_measured_though_nobody_could_be_called_about_an_abandoned_run(
    stages: Stages, run_dag: RunDag, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__CALL_NOTIFIERS", "dags.notifiers.failing")
    measured: list[str] = []
    monkeypatch.setattr(watch, "age_measured", lambda *what: measured.append(" of ".join(what)))
    now = datetime.now(UTC)
    monkeypatch.setattr(index, "newest_advised", lambda *_: f"{now:%Y%m%dT%H%M%SZ}")
    run = SimpleNamespace(id=1, lease=1)
    monkeypatch.setattr(watch, "_abandoned_runs", lambda: {"demo": (run, "abandoned")})
    assert run_dag("pulsar_watch")[0] == "failed"
    assert f"{now:%Y%m%dT%H%M%SZ} of demo" in measured


def _refuse(why: str, *_: object) -> None:
    raise NotDelivered(why)


def test_who_was_called_about_one_snapshot_is_called_again_about_a_newer_one(
    calls: list[str], kept: dict[str, object]
) -> None:
    known = Cluster(name="demo", pulsar_conn_id="p")
    for newest in ("20261125T080000Z", "20261125T080000Z", "20261125T113000Z"):
        watch._call_about_snapshots(known, newest, f"the last is {newest}")
    assert [call.split()[5] for call in calls] == ["20261125T080000Z", "20261125T113000Z"]


@pytest.mark.usefixtures("watched_for_long")
def test_a_cluster_that_can_not_be_read_keeps_no_other_from_it_and_has_somebody_called_once(
    stages: Stages, run_dag: RunDag, monkeypatch: pytest.MonkeyPatch, registered: Callable[..., None], calls: list[str]
) -> None:
    def newest_advised(root: Root, _now: datetime) -> None:
        if root.cluster == "unreadable":
            raise StorageError("this folder can't be read")

    registered("unreadable", "overdue")
    monkeypatch.setattr("pulsar_advisor.storage.index.newest_advised", newest_advised)
    assert [run_dag("pulsar_watch")[0] for _ in range(3)] == ["success"] * 3
    overdue, unreadable = calls
    assert overdue.startswith("snapshot.overdue overdue no snapshot since")
    assert unreadable.startswith("snapshot.overdue unreadable its snapshots can't be read")
    assert "this folder can't be read" in unreadable


def test_whoever_was_called_hears_that_snapshots_come_again_or_can_be_read_again(
    monkeypatch: pytest.MonkeyPatch, calls: list[str], kept: dict[str, object]
) -> None:
    known = Cluster(name="demo", pulsar_conn_id="p")
    advised: list[str | None] = ["20261125T080000Z", "20261125T113000Z", None, "20261125T113000Z", None, None]

    def newest_advised(_root: Root, _now: datetime) -> str:
        if (newest := advised.pop(0)) is None:
            raise StorageError("this folder can't be read")
        return newest

    monkeypatch.setattr(index, "newest_advised", newest_advised)
    looks = [watch._is_overdue(known, NOON) for _ in range(6)]
    assert looks == [True, False, True, False, True, True]
    assert [call.split()[0] for call in calls] == ["snapshot.overdue", "snapshot.resumed", "snapshot.overdue"]
    assert "the last that led to advice: 20261125T113000Z" in calls[1]  # not after a single failed read


@pytest.mark.parametrize(
    ("afterwards", "heard"),
    [("20261125T080000Z", []), ("20261125T113000Z", ["snapshot.resumed"])],
    ids=["still overdue", "no longer"],
)
def test_one_failed_read_forgets_nothing_that_people_were_called_about(
    monkeypatch: pytest.MonkeyPatch, calls: list[str], kept: dict[str, object], afterwards: str, heard: list[str]
) -> None:
    known = Cluster(name="demo", pulsar_conn_id="p")
    for newest in ("20261125T080000Z", None, afterwards):
        monkeypatch.setattr(index, "newest_advised", partial(_newest, newest))
        watch._is_overdue(known, NOON)
    assert [call.split()[0] for call in calls] == ["snapshot.overdue", *heard]


def test_a_receiver_whose_call_failed_hears_later_that_snapshots_come_again(
    monkeypatch: pytest.MonkeyPatch, calls: list[str], kept: dict[str, object]
) -> None:
    sent = sent_with_a_failure(monkeypatch, 2)
    known = Cluster(name="demo", pulsar_conn_id="p")
    for sentence in ("overdue", "", "", ""):
        watch._call_about_snapshots(known, "20261125T080000Z", sentence)
    assert sent == ["snapshot.overdue", "snapshot.resumed", "snapshot.resumed"]
    assert [call.split()[0] for call in calls] == ["snapshot.overdue", "snapshot.resumed"]
    assert kept == {}


def _newest(advised: str | None, *_: object) -> str:
    if advised is None:
        raise StorageError("this folder can't be read")
    return advised


@pytest.mark.parametrize(("silent_min", "called"), [(10, 0), (60, 1)], ids=["a task may take it over", "for good"])
def test_somebody_is_called_once_about_a_run_that_its_process_abandoned(
    stages: Stages, run_dag: RunDag, calls: list[str], silent_min: int, called: int
) -> None:
    with closing(
        open_ledger(stages.root.ledger_url, lambda: time.time_ns() // 1_000_000 - 60_000 * silent_min)
    ) as then:
        run = started(then, stages.plan).id
    assert [run_dag("pulsar_watch")[0] for _ in range(2)] == ["success"] * 2
    assert len(calls) == called
    for message in calls:
        assert message.startswith(f"run.abandoned demo run {run} is abandoned: process {os.getpid()} on ")
        assert "was last active 60 min ago; go on with it where it was begun (clear its task apply, or " in message
        assert f"/runs/{run}" in message


def test_a_ledger_that_can_not_be_read_does_not_silence_the_watch(
    stages: Stages, run_dag: RunDag, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__LEDGER", "postgresql://127.0.0.1:1/gone")
    assert run_dag("pulsar_watch")[0] == "success"


def test_a_notifier_that_can_not_be_made_any_more_keeps_no_other_from_its_call(
    stages: Stages, monkeypatch: pytest.MonkeyPatch, noted: list[str]
) -> None:
    """It must not end the calling task either: a gate that ends can no longer be answered."""
    call = Call("run.parked", "run 1 is parked")
    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__CALL_NOTIFIERS", "dags.notifiers.gone, dags.notifiers.noting_calls")
    ti = SimpleNamespace(dag_id="pulsar_rebalance", run_id="r", task_id="apply")
    call.notify({"task": SimpleNamespace(cluster="demo"), "ti": ti, "dag": None})
    [message] = noted
    assert message.startswith("run.parked demo run 1 is parked")


def test_a_registry_that_is_invalid_does_not_silence_the_watch(
    stages: Stages, run_dag: RunDag, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: list[str]
) -> None:
    registry = tmp_path / "clusters.yaml"
    registry.write_text("schema: something else")
    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__CLUSTERS", str(registry))
    assert run_dag("pulsar_watch")[0] == "failed"
    [message] = calls
    assert "pulsar_watch: overdue failed: the registry of clusters" in message
