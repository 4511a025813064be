"""Rules that every DAG of the project keeps, and the gates between a plan and the cluster."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import structlog
from airflow.callbacks.callback_requests import DagCallbackRequest
from airflow.dag_processing.processor import _execute_dag_callbacks
from airflow.providers.standard.operators.hitl import ApprovalOperator, HITLOperator
from airflow.sdk import DAG, BaseOperator

from pulsar_advisor.placement.registry import PLACEMENTS
from pulsar_advisor.shedding.registry import SHEDDERS
from pulsar_advisor_airflow import tasks
from pulsar_advisor_airflow.operators.apply import PulsarApplyOperator
from pulsar_advisor_airflow.operators.approval import PlanApprovalOperator
from pulsar_advisor_airflow.operators.capture import PulsarCaptureOperator
from pulsar_advisor_airflow.operators.roll import PulsarRollOperator
from pulsar_advisor_airflow.operators.spark_stage import PulsarSparkStageOperator

REPOSITORY = Path(__file__).parents[2]
DAG_FILES = sorted((REPOSITORY / "dags").glob("*.py"))
DAG_IDS = [file.stem for file in DAG_FILES]
WRITING = {"pulsar_rebalance", "pulsar_rolling_restart"}
HEAVY = {"altair", "great_expectations", "kazoo", "numpy", "pandas", "pulsar", "pyarrow", "pyspark", "scipy"}


def operators(dags: Mapping[str, DAG], kind: type[BaseOperator]) -> Iterator[BaseOperator]:
    yield from (task for dag in dags.values() for task in dag.tasks if isinstance(task, kind))


def test_there_is_one_dag_a_file_and_it_has_the_name_of_the_file(dags: Mapping[str, DAG]) -> None:
    assert sorted(dags) == DAG_IDS


@pytest.mark.parametrize("dag_id", DAG_IDS)
def test_a_dag_says_what_it_does_whose_it_is_and_what_it_is_about(dags: Mapping[str, DAG], dag_id: str) -> None:
    dag = dags[dag_id]
    assert dag.doc_md and dag.doc_md.startswith("# ")
    assert "pulsar" in dag.tags
    assert {task.owner for task in dag.tasks} == {"pulsar-advisor"}


@pytest.mark.parametrize("dag_id", DAG_IDS)
def test_the_documentation_of_a_dag_names_its_tasks_or_their_groups(dags: Mapping[str, DAG], dag_id: str) -> None:
    dag = dags[dag_id]
    names = {task.task_id.split(".")[0] for task in dag.tasks} - {"given_or_fresh"}
    assert {name for name in names if f"`{name}`" not in (dag.doc_md or "")} == set()


@pytest.mark.parametrize("dag_id", ["pulsar_snapshot", "pulsar_recommend", "pulsar_history", *sorted(WRITING)])
def test_the_documentation_of_a_clusters_dag_leads_to_its_page(dags: Mapping[str, DAG], dag_id: str) -> None:
    assert "(/pulsar-advisor/clusters/demo)" in (dags[dag_id].doc_md or "")


@pytest.mark.parametrize("dag_id", DAG_IDS)
def test_a_dag_runs_once_at_a_time_and_retries_what_may_pass(dags: Mapping[str, DAG], dag_id: str) -> None:
    dag = dags[dag_id]
    assert dag.max_active_runs == (50 if dag_id == "pulsar_rebalance" else 1)  # others may wait for an answer
    assert dag.catchup is False
    assert {task.retries for task in dag.tasks} == {2}
    assert all(task.retry_policy for task in dag.tasks)


@pytest.mark.parametrize("dag_id", DAG_IDS)
def test_a_dag_has_no_backfills_which_would_all_capture_the_present(dags: Mapping[str, DAG], dag_id: str) -> None:
    allowed = dags[dag_id].allowed_run_types
    assert allowed and "manual" in allowed and "backfill" not in allowed
    assert ("scheduled" in allowed) == (dag_id not in WRITING)


def test_what_hangs_ends_and_what_waits_for_a_person_does_not(dags: Mapping[str, DAG]) -> None:
    for dag_id, dag in dags.items():
        waits = [
            task for task in dag.tasks if isinstance(task, ApprovalOperator | PulsarApplyOperator | PulsarRollOperator)
        ]
        assert not [task for task in waits if task.execution_timeout]
        works = [task for task in dag.tasks if isinstance(task, PulsarSparkStageOperator | PulsarCaptureOperator)]
        assert all(task.execution_timeout for task in works)
        assert bool(dag.dagrun_timeout) == (dag_id not in WRITING)
        assert bool(dag.on_failure_callback) == bool(dag.dagrun_timeout)


@pytest.mark.parametrize(("reason", "number"), [("timed_out", 1), ("task_failure", 0)])
def test_somebody_is_called_about_a_run_that_took_too_long(
    dags: Mapping[str, DAG], reason: str, number: int, calls: list[str]
) -> None:
    """As Airflow runs the callbacks of a DAG; a task has called already about a run that failed."""
    request = DagCallbackRequest(
        filepath="", bundle_name="dags", bundle_version=None, dag_id="pulsar_history", run_id="late", msg=reason
    )
    found: Any = SimpleNamespace(dags=dags)
    _execute_dag_callbacks(found, request, structlog.get_logger())
    assert len(calls) == number
    assert all(
        message.startswith("task.failed demo pulsar_history: not finished after 4:00:00")
        and "/dags/pulsar_history/runs/late" in message
        for message in calls
    )


def test_a_run_that_a_person_waits_for_goes_first(dags: Mapping[str, DAG]) -> None:
    weights = {dag_id: [task.priority_weight for task in dag.tasks] for dag_id, dag in dags.items()}
    of_people = [weight for dag_id in WRITING for weight in weights.pop(dag_id)]
    assert min(of_people) > max(sum(of_dag) for of_dag in weights.values())  # a task's, with those after it


def test_every_form_can_be_sent_as_it_is_shown(dags: Mapping[str, DAG]) -> None:
    """Airflow's pages take an empty text for a missing one: a field that may stay empty must accept null."""
    gates = [task for dag in dags.values() for task in dag.tasks if isinstance(task, HITLOperator)]
    forms = [*(dag.params for dag in dags.values()), *(gate.params for gate in gates)]
    empty = {
        name
        for form in forms
        for name in form
        if form.get_param(name).value == "" and "null" not in form.get_param(name).schema.get("type", ())
    }
    assert empty == set()


def test_parsing_the_dags_imports_nothing_heavy() -> None:
    """In a process of its own, where nothing else has imported anything."""
    program = (
        "import sys; from airflow.dag_processing.dagbag import DagBag; "
        f"assert len(DagBag({str(REPOSITORY / 'dags')!r}).dags) == {len(DAG_IDS)}; "
        f"print('heavy:', *({HEAVY!r} & sys.modules.keys()))"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[-1] == "heavy:"


def test_the_plugin_loads_nothing_of_a_ledger() -> None:
    """Every task process loads it, those of other people's DAGs too."""
    program = "import sys, advisor_plugin; print(*(name for name in sys.modules if name.startswith('pulsar_advisor.')))"
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=REPOSITORY / "plugins", capture_output=True, text=True, check=True
    )
    assert "execution" not in ended.stdout.splitlines()[-1]


@pytest.mark.parametrize("dag_id", ["pulsar_recommend", "pulsar_rebalance"])
def test_a_form_offers_what_the_registries_hold(dags: Mapping[str, DAG], dag_id: str) -> None:
    params = dags[dag_id].params
    assert params.get_param("shedder").schema["enum"] == ["configured", "all", *(shedder.name for shedder in SHEDDERS)]
    assert params.get_param("placement").schema["enum"] == [
        "configured",
        "all",
        *(placement.name for placement in PLACEMENTS),
    ]


def test_tasks_carry_no_copy_of_a_form_that_each_cluster_has(dags: Mapping[str, DAG]) -> None:
    """Airflow would serialize and check every copy of every cluster's form whenever it reads the file."""
    for dag_id in ("pulsar_recommend", *WRITING):
        assert dags[dag_id].params
        copies = [task for task in dags[dag_id].tasks if not isinstance(task, ApprovalOperator) and task.params]
        assert copies == []


def test_only_a_person_can_start_what_writes_to_a_cluster(dags: Mapping[str, DAG]) -> None:
    writing = {task.dag_id for kind in (PulsarApplyOperator, PulsarRollOperator) for task in operators(dags, kind)}
    assert writing == WRITING
    for dag_id in writing:
        assert dags[dag_id].schedule is None
        assert dags[dag_id].allowed_run_types == {"manual"}


def test_every_gate_rejects_when_nobody_answers(dags: Mapping[str, DAG]) -> None:
    gates = list(operators(dags, ApprovalOperator))
    assert gates
    for gate in gates:
        assert isinstance(gate, PlanApprovalOperator)
        assert gate.defaults == ["Reject"]
        assert gate.response_timeout
        assert gate.retries == 2
        assert gate.ignore_downstream_trigger_rules


@pytest.mark.parametrize("kind", [PulsarApplyOperator, PulsarRollOperator])
def test_no_way_leads_to_the_cluster_around_a_gate(dags: Mapping[str, DAG], kind: type[BaseOperator]) -> None:
    for task in operators(dags, kind):
        assert task.trigger_rule == "all_success"
        assert any(isinstance(upstream, PlanApprovalOperator) for upstream in task.upstream_list)
        gates = [upstream for upstream in task.upstream_list if isinstance(upstream, PlanApprovalOperator)]
        assert [gate.plan.operator.task_id for gate in gates] == [task.plan.operator.task_id]


def test_everything_below_apply_waits_for_it_but_what_cleans_up_or_takes_it_back(dags: Mapping[str, DAG]) -> None:
    rebalance = dags["pulsar_rebalance"]
    below = {each.task_id: each.trigger_rule for each in rebalance.get_task("apply").get_flat_relatives(upstream=False)}
    others = {task: rule for task, rule in below.items() if rule != "all_success"}
    assert {others.pop("restore_guard"), others.pop("as_predicted")} == {"all_done_setup_success"}
    assert others == {"undo.offer": "all_done", "undo.restore_guard": "none_skipped"}


def test_no_policy_takes_a_run_back(dags: Mapping[str, DAG]) -> None:
    rebalance = {"pulsar_rebalance": dags["pulsar_rebalance"]}
    gates = {gate.task_id: gate.asks_policy for gate in operators(rebalance, PlanApprovalOperator)}
    assert gates == {"approve": True, "undo.approve": False}


def restoring(dags: Mapping[str, DAG]) -> Iterator[Any]:
    """The tasks that switch a cluster's own balancer on again."""
    every = (task for dag in dags.values() for task in dag.tasks)
    yield from (task for task in every if getattr(task, "python_callable", None) is tasks.restore_guard)


def test_whoever_is_on_call_hears_of_every_balancer_that_can_not_be_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.dag_processing.dagbag import DagBag

    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__GUARD_NOTIFIERS", "dags.notifiers.noting_the_guard")
    called = {
        (task.dag_id, task.task_id): [type(each).__name__ for each in task.on_failure_callback]
        for task in restoring(DagBag(REPOSITORY / "dags").dags)
    }
    assert list(called.values()) == [["Noting", "Call"]] * 4


def test_what_fails_after_the_work_fails_the_dag_run(dags: Mapping[str, DAG]) -> None:
    last = {(dag_id, task.task_id): task for dag_id, dag in dags.items() for task in dag.tasks if task.is_teardown}
    assert {place for place, task in last.items() if task.on_failure_fail_dagrun} == {
        ("pulsar_rebalance", "restore_guard"),
        ("pulsar_rebalance", "as_predicted"),
        ("pulsar_rolling_restart", "restore_guard"),
        ("pulsar_rolling_restart", "all_restarted"),
    }


@pytest.mark.parametrize(
    ("dag_id", "chooses_a_branch"), [("pulsar_rebalance", {"undo"}), ("pulsar_rolling_restart", set())]
)
def test_no_field_of_a_form_that_writes_is_left_unread(
    dags: Mapping[str, DAG], dag_id: str, chooses_a_branch: set[str]
) -> None:
    tasks = dags[dag_id].tasks
    templates = " ".join(str(getattr(task, name)) for task in tasks for name in task.template_fields)
    assert set(dags[dag_id].params) - set(re.findall(r"params\.(\w+)", templates)) == chooses_a_branch


def test_nothing_else_can_write_but_what_restores_a_clusters_balancer(dags: Mapping[str, DAG]) -> None:
    """The stages `apply` and `roll` open a connection that can write; their approval covers the restoring.

    `why_balancer_is_on` only reads.
    """
    plugin = REPOSITORY / "plugins" / "pulsar_advisor_airflow"
    importing = {
        (str(file.relative_to(plugin)), line.split(" import ")[1])
        for file in plugin.rglob("*.py")
        for line in file.read_text().splitlines()
        if "import" in line and any(module in line for module in ("stages.apply", "stages.roll", "cluster_writes"))
    }
    assert importing == {
        ("operators/apply.py", "run"),
        ("operators/roll.py", "reached"),
        ("tasks/maintenance.py", "restore_balancer"),
        ("triggers/roll.py", "why_balancer_is_on"),
    }
    assert {(task.dag_id, task.task_id) for task in restoring(dags)} == {
        ("pulsar_rebalance", "restore_guard"),
        ("pulsar_rebalance", "undo.restore_guard"),
        ("pulsar_rolling_restart", "restore_guard"),
        ("pulsar_maintenance", "restore_guard"),
    }


def test_the_spark_stages_and_nothing_else_wait_in_the_configured_pool(
    dags: Mapping[str, DAG], monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.dag_processing.dagbag import DagBag

    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__SPARK_POOL", "spark")
    configured = DagBag(REPOSITORY / "dags").dags
    for pool, parsed in (("default_pool", dags), ("spark", configured)):
        assert {stage.pool for stage in operators(parsed, PulsarSparkStageOperator)} == {pool}
    waiting = {(task.dag_id, task.task_id) for dag in configured.values() for task in dag.tasks if task.pool == "spark"}
    assert waiting == {
        ("pulsar_snapshot", "normalize"),
        ("pulsar_snapshot", "validate"),
        ("pulsar_recommend", "recommend"),
        ("pulsar_rebalance", "fresh.normalize"),
        ("pulsar_rebalance", "fresh.validate"),
        ("pulsar_rebalance", "fresh.recommend"),
        ("pulsar_rebalance", "after.normalize"),
        ("pulsar_rolling_restart", "fresh.normalize"),
        ("pulsar_rolling_restart", "fresh.validate"),
        ("pulsar_rolling_restart", "fresh.roll"),
    }


def test_the_ids_that_spark_stages_get_come_from_the_tasks_before_them(dags: Mapping[str, DAG]) -> None:
    stages = [task for dag in dags.values() for task in dag.tasks if hasattr(task, "application_args")]
    assert stages
    for stage in stages:
        arguments = stage.application_args
        snapshot = arguments[arguments.index("--snapshot") + 1]
        assert snapshot.operator.task_id in {task.task_id for task in stage.upstream_list}
