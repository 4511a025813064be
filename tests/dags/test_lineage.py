"""What Airflow's OpenLineage provider gets from the stages; the provider's types are doubles."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, get_args

import pytest

from pulsar_advisor.storage.root import Root
from pulsar_advisor_airflow.lineage import lineage
from pulsar_advisor_airflow.operators.capture import PulsarCaptureOperator
from pulsar_advisor_airflow.operators.spark_stage import PulsarSparkStageOperator, SparkStage

pytestmark = pytest.mark.airflow


class Dataset(NamedTuple):
    namespace: str
    name: str


class OperatorLineage(NamedTuple):
    inputs: list[Dataset]
    outputs: list[Dataset]


@pytest.fixture(autouse=True)
def provider(monkeypatch: pytest.MonkeyPatch) -> None:
    extractors = ModuleType("extractors")
    extractors.OperatorLineage = OperatorLineage  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "airflow.providers.openlineage", ModuleType("openlineage"))
    monkeypatch.setitem(sys.modules, "airflow.providers.openlineage.extractors", extractors)
    monkeypatch.setattr("airflow.providers.common.compat.openlineage.facet.Dataset", Dataset)


def test_a_stage_reads_what_an_earlier_one_has_written(tmp_path: Path) -> None:
    place: dict[str, Any] = {"root": str(tmp_path), "cluster": "demo"}
    captured = PulsarCaptureOperator(task_id="capture", pulsar_conn_id="p", **place)
    normalized = PulsarSparkStageOperator(task_id="normalize", stage="normalize", snapshot="s", **place)
    raw, tables = (Dataset("file", f"{tmp_path}/{folder}/cluster=demo") for folder in ("raw", "tables"))
    assert captured.get_openlineage_facets_on_complete(None) == OperatorLineage([], [raw])
    assert normalized.get_openlineage_facets_on_complete(None) == OperatorLineage([raw], [tables])


def test_on_an_object_store_the_namespace_is_the_bucket() -> None:
    written = lineage("capture", Root("memory://bucket/advisor", "demo"))
    assert written.outputs == [Dataset("memory://bucket", "advisor/raw/cluster=demo")]


@pytest.mark.parametrize("stage", get_args(SparkStage))
def test_every_stage_has_its_datasets(stage: str) -> None:
    made = lineage(stage, Root("/root", "demo"))
    assert made.inputs
    assert made.outputs
