"""Two clusters of a registry, one of them down: each has its own DAGs, so the other's report comes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dags.conftest import RunDag, Stages
from pulsar_advisor.model.errors import ClusterUnreachable
from pulsar_advisor.storage.root import Root, Snapshot
from pulsar_advisor_airflow.clusters import clusters

pytestmark = pytest.mark.airflow


@pytest.mark.slow
def test_while_one_cluster_is_down_the_report_of_the_other_comes(
    stages: Stages, run_dag: RunDag, monkeypatch: pytest.MonkeyPatch, registered: Callable[..., None]
) -> None:
    from pulsar_advisor_airflow.pages.clusters import cluster_lines

    registered("demo", "down", pulsar_conn_id="pulsar_default")

    def capture(options: Any, root: Root, earlier: Any) -> Snapshot:
        if root.cluster == "down":
            raise ClusterUnreachable("http://127.0.0.1:1: connection refused")
        return stages.capture(options, root, earlier)

    monkeypatch.setattr("pulsar_advisor.stages.capture.run", capture)
    state, tasks = run_dag("pulsar_snapshot__down")
    assert (state, tasks["capture"], tasks["require_trusted_snapshot"]) == ("failed", "failed", "upstream_failed")
    assert run_dag("pulsar_snapshot__demo")[0] == "success"
    [snapshot] = stages.root.snapshots()
    state, tasks = run_dag("pulsar_recommend__demo", {"snapshot": snapshot})
    assert (state, tasks["report"]) == ("success", "success")
    down, demo = cluster_lines(list(clusters().values()))
    assert down.dag_run and down.dag_run.failed and demo.dag_run
    assert (down.cluster.name, down.dag_run.failed.problem) == ("down", "http://127.0.0.1:1: connection refused")
    assert (demo.last and demo.last.sentence, demo.dag_run.failed) == ("Move one bundle.", None)
