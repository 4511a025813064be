"""A report is served as a document that can do nothing, whoever wrote it."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from pulsar_advisor_airflow import report_page
from pulsar_advisor_airflow.clusters import clusters

SNAPSHOT = "20261121T083000Z"


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TestClient:
    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__ROOT", str(tmp_path))
    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__CLUSTER", "c")
    for stage, file in (("raw", "manifest.json"), ("reports", "report.html")):
        folder = tmp_path / stage / "cluster=c" / f"snapshot={SNAPSHOT}"
        folder.mkdir(parents=True)
        (folder / file).write_text("<script>alert(1)</script>")
    report_page.app.dependency_overrides[report_page.readable] = lambda: clusters()["c"]
    yield TestClient(report_page.app)
    report_page.app.dependency_overrides.clear()


def test_a_report_runs_no_script_and_has_no_part_in_airflows_origin(client: TestClient) -> None:
    answer = client.get(f"/clusters/c/reports/{SNAPSHOT}")
    assert answer.status_code == 200
    directives = {part.split()[0]: part.split()[1:] for part in answer.headers["content-security-policy"].split(";")}
    assert directives["default-src"] == ["'none'"]
    assert directives["style-src"] == ["'unsafe-inline'"]
    assert directives["img-src"] == ["data:"]
    assert directives["sandbox"] == []
    assert "script-src" not in directives
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("snapshot", ["20261121T083001Z", "latest2", "..%2f..%2fetc"])
def test_what_is_no_snapshot_is_not_found(client: TestClient, snapshot: str) -> None:
    assert client.get(f"/clusters/c/reports/{snapshot}").status_code == 404
