"""The example DAGs of the documentation. `tests/integration/test_wheel.py` runs `stricter_threshold` on real stages."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from airflow.dag_processing.dagbag import DagBag

from dags.conftest import RunDag, Stages
from unit.execution.doubles import B1
from unit.execution.roll.doubles import drained

pytestmark = pytest.mark.airflow

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "dags"


@pytest.fixture(autouse=True)
def prod_eu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cluster of the examples."""
    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__CLUSTER", "prod-eu")


def test_each_example_is_a_dag_that_says_what_it_does() -> None:
    bag = DagBag(EXAMPLES)
    assert bag.import_errors == {}
    assert sorted(bag.dags) == sorted(file.stem for file in EXAMPLES.glob("*.py"))
    assert all(dag.doc_md for dag in bag.dags.values())


def test_a_broker_is_restarted_in_the_namespace_of_its_own_name(tmp_path: Path) -> None:
    restart = DagBag(EXAMPLES / "restart_broker.py").dags["restart_broker"].get_task("restart")
    broker = "pulsar-broker-0.pulsar-broker.pulsar.svc.cluster.local:8080"
    variables = restart.render_template(restart.env, {"params": {"broker": broker}})
    (tmp_path / "kubectl").write_text('#!/bin/sh\necho "$@"')
    (tmp_path / "kubectl").chmod(0o755)
    command = ["bash", "-c", restart.bash_command]
    ended = subprocess.run(command, env={**variables, "PATH": f"{tmp_path}:/bin"}, stdout=subprocess.PIPE, check=True)
    assert ended.stdout == b"delete pod --namespace pulsar -- pulsar-broker-0\n"


@pytest.mark.slow
def test_whoever_restarts_a_broker_says_so_to_its_roll(stages: Stages, run_dag: RunDag) -> None:
    roll = drained(stages.ledger(), "prod-eu")
    waiting = {"cluster": "prod-eu", "digest": roll.digest, "broker": B1}
    assert run_dag("restart_broker", waiting, mark_success="restart", folder=EXAMPLES)[0] == "success"
    announced = roll.look().recorded.announced
    assert announced is not None
    assert (announced.name, announced.source) == ("restart_broker", "airflow")
