"""What a run reports to machines."""

from __future__ import annotations

import json
import logging
from threading import Event
from types import SimpleNamespace

import pytest
from opentelemetry import metrics
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader

from pulsar_advisor.execution import telemetry
from pulsar_advisor.execution.cluster.cluster_port import Reply
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.telemetry import LOGGER
from pulsar_advisor.model.errors import Refused
from pulsar_advisor.model.plans.sealed import digest_of
from unit.execution.actors import approved, carried_out, run
from unit.execution.doubles import FakeCluster, make_plan, split_step, unload_step


def points(measured: InMemoryMetricReader) -> dict[tuple[str, ...], float]:
    """Value or sum of every metric by its short name and the values of its attributes."""
    data = measured.get_metrics_data()
    found = [] if data is None else data.resource_metrics[0].scope_metrics[0].metrics
    return {
        (metric.name.removeprefix("pulsar_advisor.apply."), *map(str, (point.attributes or {}).values())): (
            point.value if hasattr(point, "value") else point.sum  # type: ignore[union-attr]
        )
        for metric in found
        for point in metric.data.data_points
    }


def added(before: dict[tuple[str, ...], float], after: dict[tuple[str, ...], float]) -> dict[tuple[str, ...], float]:
    return {name: value - before.get(name, 0) for name, value in after.items() if value != before.get(name, 0)}


def test_steps_calls_and_the_time_to_the_owner_are_measured(
    ledger: Ledger, cluster: FakeCluster, measured: InMemoryMetricReader
) -> None:
    cluster.effect_after_s = 2.0
    before = points(measured)
    carried_out(ledger, cluster, unload_step(1), split_step(2))
    assert added(before, points(measured)) == {
        ("steps", "demo", "unload", "confirmed"): 1,
        ("steps", "demo", "split", "confirmed"): 1,
        ("call.duration", "demo", "unload", "204"): 2.0,
        ("call.duration", "demo", "split", "204"): 2.0,
        ("time_to_owner", "demo"): 2.0,
    }


def test_refusals_are_counted(ledger: Ledger, cluster: FakeCluster, measured: InMemoryMetricReader) -> None:
    before = points(measured)
    with pytest.raises(Refused):
        run(make_plan([unload_step()]), ledger, cluster)
    assert added(before, points(measured)) == {("refusals", "demo"): 1}


def test_milliseconds_and_seconds_are_told_apart(measured: InMemoryMetricReader) -> None:
    """So that a quantile of calls which take milliseconds is not the four seconds in the middle of a first bucket."""
    for seconds in (0.02, 0.4, 4.0, 12.0, 40.0, 100.0):
        telemetry.owned_after("buckets", seconds)
    data = measured.get_metrics_data()
    assert data is not None
    [point] = [
        point
        for metric in data.resource_metrics[0].scope_metrics[0].metrics
        for point in metric.data.data_points
        if isinstance(point, HistogramDataPoint) and (point.attributes or {})["cluster"] == "buckets"
    ]
    assert max(point.bucket_counts) == 1
    assert 10.0 in point.explicit_bounds  # the threshold of the alert


@pytest.mark.parametrize("is_approved", [True, False])
@pytest.mark.parametrize("is_reached", [True, False])
def test_what_was_measured_is_exported_when_a_run_ends_or_is_refused(
    ledger: Ledger, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, *, is_approved: bool, is_reached: bool
) -> None:
    """A task of Airflow ends without the exit handlers in which the SDK would; nor may its failure end a run."""
    exported: list[str] = []

    def force_flush() -> None:
        exported.append("all")
        if not is_reached:
            raise ConnectionError("no collector")

    monkeypatch.setattr(metrics, "get_meter_provider", lambda: SimpleNamespace(force_flush=force_flush))
    plan = make_plan([unload_step()])
    if is_approved:
        assert run(approved(ledger, plan), ledger, cluster).outcome == "done"
    else:
        with pytest.raises(Refused):
            run(plan, ledger, cluster)
    assert exported == ["all"]


def test_a_collector_that_hangs_keeps_no_run_waiting_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    answers, exported = Event(), Event()

    def force_flush() -> None:
        answers.wait(60)
        exported.set()

    monkeypatch.setattr(metrics, "get_meter_provider", lambda: SimpleNamespace(force_flush=force_flush))
    monkeypatch.setattr(telemetry, "_EXPORT_S", 0.01)
    telemetry.flush()
    assert not exported.is_set()
    answers.set()


def test_each_event_is_one_line_of_json_with_the_ids_of_run_and_step(
    ledger: Ledger, cluster: FakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    plan = approved(ledger, make_plan([unload_step()]))
    cluster.replies = [Reply(204, "two\nlines \x1b[31m")]
    caplog.clear()  # a command line in this process may have asked for the events of the approval, too
    with caplog.at_level(logging.INFO, LOGGER):
        run(plan, ledger, cluster)
    lines = [json.loads(record.getMessage()) for record in caplog.records if record.name == LOGGER]
    assert [(line["event"], line["run"], line["step"]) for line in lines] == [
        ("run started", 1, None),
        ("step sent", 1, "step-001"),
        ("reply", 1, "step-001"),
        ("step confirmed", 1, "step-001"),
        ("run done", 1, None),
    ]
    assert {line["plan"] for line in lines} == {digest_of(plan)}
    assert not any("\n" in record.getMessage() or "\x1b" in record.getMessage() for record in caplog.records)
