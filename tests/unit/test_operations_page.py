"""The operations guide and the dashboard: metrics that the code emits, messages that it writes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from opentelemetry.metrics import Instrument
from opentelemetry.sdk.metrics.export import Histogram, InMemoryMetricReader

from pulsar_advisor.cli.output import CHANGES_PROPOSED, GOAL_NOT_REACHED
from pulsar_advisor.execution import telemetry
from pulsar_advisor.model import errors

REPOSITORY = Path(__file__).parents[2]
GUIDE = (REPOSITORY / "docs" / "operations.md").read_text()
DASHBOARD = json.loads((REPOSITORY / "docs" / "grafana" / "pulsar-advisor.json").read_text())
QUERIES = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
ALERTS = [query for query in re.findall(r"^\| `([^`]+)` \|", GUIDE, re.M) if "(" in query]
MESSAGES = re.findall(r"^\| `([^`(]+)` +\| (\d) +\|", GUIDE, re.M)


@pytest.fixture(scope="module")
def emitted(measured: InMemoryMetricReader) -> dict[str, set[str]]:
    """Series that `apply` emits, with their labels, named as OpenTelemetry's Prometheus exporter does.

    Source: OpenTelemetry specification, "Prometheus and OpenMetrics Compatibility" (dots become underscores, units and
    `_total` become suffixes, units in braces are dropped).
    """
    telemetry.step_ended("demo", "unload", "confirmed")
    telemetry.refused("demo")
    telemetry.answered("demo", "unload", 204, 0.1)
    telemetry.owned_after("demo", 0.1)
    data = measured.get_metrics_data()
    assert data is not None
    series: dict[str, set[str]] = {}
    metrics = data.resource_metrics[0].scope_metrics[0].metrics
    assert len(metrics) == sum(isinstance(value, Instrument) for value in vars(telemetry).values())
    for metric in metrics:
        base = metric.name.replace(".", "_") + {"s": "_seconds"}.get(metric.unit or "", "")
        attributes = metric.data.data_points[0].attributes or {}
        labels = {attribute.replace(".", "_") for attribute in attributes}
        if isinstance(metric.data, Histogram):
            series |= {f"{base}_count": labels, f"{base}_sum": labels, f"{base}_bucket": labels | {"le"}}
        else:
            series[f"{base}_total"] = labels
    return series


@pytest.mark.parametrize("query", [*QUERIES, *ALERTS])
def test_a_query_asks_for_series_and_labels_that_apply_emits(query: str, emitted: dict[str, set[str]]) -> None:
    [name] = re.findall(r"\bpulsar_advisor\w+", query)
    assert name in emitted
    asked = {label.strip() for labels in re.findall(r"by \(([^)]+)\)", query) for label in labels.split(",")}
    asked |= set(re.findall(r"[{,](\w+)=", query))
    assert asked <= emitted[name]


@pytest.mark.parametrize("query", [*QUERIES, *ALERTS])
def test_a_query_sees_what_a_process_exports_once_and_which_cluster_it_is_about(query: str) -> None:
    """A refusal ends its process: its counter is never seen at 0, so it has no increase and no rate."""
    assert not re.search(r"\b(increase|rate|delta)\(", query)
    assert all("cluster" in kept for kept in re.findall(r"by \(([^)]+)\)", query))


def test_every_metric_has_a_panel_and_a_row(emitted: dict[str, set[str]]) -> None:
    for name in {re.sub(r"_(bucket|count|sum)$", "", name) for name in emitted}:
        assert any(name in query for query in QUERIES)
        assert f"| `{name}`" in GUIDE


def test_panels_have_their_own_places() -> None:
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in DASHBOARD["panels"]]
    assert len(set(places)) == len(places)
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(places)


@pytest.mark.parametrize(("message", "code"), MESSAGES)
def test_a_message_of_the_troubleshooting_table_is_written_by_an_error_of_that_code(message: str, code: str) -> None:
    raised = [name for name, error in vars(errors).items() if getattr(error, "exit_code", None) == int(code)]
    sources = "\n".join(file.read_text() for file in (REPOSITORY / "jobs" / "pulsar_advisor").rglob("*.py"))
    statements = re.findall(rf"(?:{'|'.join(raised)})\((?:[^()]|\([^()]*\))*\)", sources)
    assert any(message in re.sub(r'"\s+f?"', "", statement) for statement in statements)


def test_the_table_of_codes_has_every_code() -> None:
    codes = {
        error.exit_code for error in vars(errors).values() if isinstance(error, type) and hasattr(error, "exit_code")
    }
    codes |= {0, GOAL_NOT_REACHED, CHANGES_PROPOSED}
    assert codes == {int(code) for code in re.findall(r"^\| (\d) +\| [a-z]", GUIDE, re.M)}
