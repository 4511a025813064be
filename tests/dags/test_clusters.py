"""The registry of clusters: what it may say, which DAGs come of it, and how quickly."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from airflow.sdk.exceptions import AirflowFailException

from pulsar_advisor.model.errors import UsageError
from pulsar_advisor_airflow import tasks
from pulsar_advisor_airflow.assets import applied, recommended, snapshot_validated, verified
from pulsar_advisor_airflow.clusters import Cluster, cluster, cluster_of, clusters, dag_of, labelled
from pulsar_advisor_airflow.ledger import approval_policy

REPOSITORY = Path(__file__).parents[2]
PARSE = """
import sys
from airflow.dag_processing.dagbag import DagBag
bag = DagBag(sys.argv[1])
assert bag.import_errors == {}, bag.import_errors
for dag_id, dag in sorted(bag.dags.items()):
    known = getattr(dag.schedule, "asset_condition", None)
    assets = dag.schedule if isinstance(dag.schedule, list) else known.objects if known else []
    schedule = [asset.name for asset in assets] or [getattr(dag.schedule, "expression", dag.schedule)]
    print(dag_id, sorted(dag.tags), *schedule)
"""
TWO = """
schema: pulsar-advisor/clusters/1
clusters:
  - name: prod-eu
    pulsar_conn_id: pulsar_eu
    zookeeper_conn_id: zookeeper_eu
    schedule: "*/5 * * * *"
    shedder: TransferShedder
    approval_policy: /etc/policy.yaml
  - name: prod-us
    pulsar_conn_id: pulsar_us
    schedule: null
"""

Registry = Callable[[str], Path]


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    """Write a registry and configure it; gives its path."""

    def write(text: str) -> Path:
        file = tmp_path / "clusters.yaml"
        file.write_text(text)
        monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__CLUSTERS", str(file))
        return file

    return write


def parsed(*, dag: str | None = None) -> list[str]:
    """The DAGs of the repository as a process of its own sees them, a line each; in a task, with the DAG it runs."""
    environment = {**os.environ, **({"_AIRFLOW_PARSING_CONTEXT_DAG_ID": dag} if dag else {})}
    command = [sys.executable, "-c", PARSE, str(REPOSITORY / "dags")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert ended.returncode == 0, ended.stderr
    return [line for line in ended.stdout.splitlines() if line.startswith("pulsar_")]


def test_without_a_registry_there_is_the_one_cluster_of_the_configuration() -> None:
    [only] = clusters().values()
    assert (only.name, only.pulsar_conn_id, only.zookeeper_conn_id) == ("demo", "pulsar_default", None)
    assert labelled("pulsar_snapshot", only) == "pulsar_snapshot"


def test_an_entry_says_how_a_cluster_is_reached_and_judged(registry: Registry) -> None:
    registry(TWO)
    europe, america = clusters().values()
    assert (europe.pulsar_conn_id, europe.zookeeper_conn_id) == ("pulsar_eu", "zookeeper_eu")
    assert (europe.schedule, europe.shedder, europe.placement) == ("*/5 * * * *", "TransferShedder", "all")
    assert europe.approval_policy == "/etc/policy.yaml"
    assert (america.schedule, america.shedder) == (None, "all")
    assert labelled("pulsar_snapshot", europe) == "pulsar_snapshot__prod-eu"


def test_what_an_entry_leaves_out_the_configuration_says(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__SNAPSHOT_SCHEDULE", "@daily")
    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__APPROVAL_POLICY", "/etc/of-all.yaml")
    registry("schema: pulsar-advisor/clusters/1\nclusters: [{name: c, pulsar_conn_id: p}]")
    assert (cluster("c").schedule, cluster("c").approval_policy) == ("0 0 * * *", "/etc/of-all.yaml")


@pytest.mark.parametrize(
    ("written", "required"),
    [("", True), ("separate_approver: false\n", True), ("require_authenticated: false\n", False)],
)
def test_approvers_must_be_authenticated_unless_the_policy_says_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str, required: bool
) -> None:
    assert approval_policy("demo").require_authenticated
    (tmp_path / "policy.yaml").write_text(f"schema: pulsar-advisor/approval-policy/1\n{written}")
    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__APPROVAL_POLICY", str(tmp_path / "policy.yaml"))
    assert approval_policy("demo").require_authenticated is required


def test_a_schedule_of_the_configuration_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__SNAPSHOT_SCHEDULE", "every day")
    with pytest.raises(UsageError, match="'every day' is not a cron expression"):
        clusters()


def test_an_entry_may_take_over_another_one(registry: Registry) -> None:
    registry(
        "schema: pulsar-advisor/clusters/1\nclusters:\n"
        "  - &eu {name: eu, pulsar_conn_id: p, zookeeper_conn_id: z}\n  - {<<: *eu, name: us}"
    )
    assert (cluster("us").pulsar_conn_id, cluster("us").zookeeper_conn_id) == ("p", "z")
    assert list(clusters()) == ["eu", "us"]


def test_a_registry_in_a_variable_is_refused_as_reading_it_would_slow_down_every_parse(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__CLUSTERS", "variable:pulsar_clusters")
    with pytest.raises(UsageError, match="put the registry into a file"):
        clusters()


def test_readers_are_sent_to_the_dag_of_their_cluster_as_far_as_it_is_known(registry: Registry) -> None:
    assert dag_of("pulsar_rebalance", "demo") == "pulsar_rebalance"
    file = registry(TWO)
    assert dag_of("pulsar_rebalance", "prod-us") == "pulsar_rebalance__prod-us"
    assert dag_of("pulsar_rebalance", "elsewhere") == "pulsar_rebalance"
    file.write_text("[")
    assert dag_of("pulsar_rebalance", "prod-us") == "pulsar_rebalance"


def test_an_unknown_cluster_is_refused_with_the_known_ones(registry: Registry) -> None:
    registry(TWO)
    with pytest.raises(UsageError, match="there is no cluster 'prod-asia'; there are: prod-eu, prod-us"):
        cluster("prod-asia")


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("{name: ../c, pulsar_conn_id: p}", "clusters.0.name: String should match"),
        ("{name: '2024', pulsar_conn_id: p}", "clusters.0.name: '2024' would become a value of Python"),
        ("{name: 'None', pulsar_conn_id: p}", "clusters.0.name: 'None' would become a value of Python"),
        ("{name: c, pulsar_conn_id: '12'}", "clusters.0.pulsar_conn_id: '12' would become a value of Python"),
        ("{name: c, pulsar_conn_id: p, zookeeper_conn_id: '1'}", "clusters.0.zookeeper_conn_id: '1' would become"),
        ("{name: c, pulsar_conn_id: p, schedule: 0 0 30 2 *}", "'0 0 30 2 *' never comes"),
        ("{name: c}", "clusters.0.pulsar_conn_id: Field required"),
        ("{name: c, pulsar_conn_id: p, token: t}", "clusters.0.token: Extra inputs"),
        ("{name: c, pulsar_conn_id: p, schedule: every day}", "'every day' is not a cron expression"),
        ("{name: c, pulsar_conn_id: p, shedder: TresholdShedder}", "there is no shedder 'TresholdShedder'"),
        ("{name: c, pulsar_conn_id: p, placement: Best}", "there is no placement strategy 'Best'"),
        ("{name: c, pulsar_conn_id: p}, {name: c, pulsar_conn_id: q}", "more than one is named c"),
    ],
)
def test_an_entry_that_cannot_be_used_is_named(registry: Registry, entry: str, said: str) -> None:
    registry(f"schema: pulsar-advisor/clusters/1\nclusters: [{entry}]")
    with pytest.raises(UsageError, match=r"the registry of clusters .*clusters\.yaml is not valid") as refusal:
        clusters()
    assert said in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[", "is not YAML"),
        ("[" * 50_000, "nested more than 10 levels deep"),  # which ends the process in libyaml, if it is built
        ("schedule: 2026-13-45", "is not YAML"),
        ("clusters: !!bool maybe", "is not YAML"),
        ("clusters: [{name: a, pulsar_conn_id: p, pulsar_conn_id: q}]", "key 'pulsar_conn_id' appears twice"),
        ("clusters: []", "must begin with 'schema: pulsar-advisor/clusters/1'"),
    ],
)
def test_a_registry_that_is_none_is_refused(registry: Registry, text: str, said: str) -> None:
    registry(text)
    with pytest.raises(UsageError, match=said):
        clusters()


def test_a_registry_that_is_not_there_is_refused(registry: Registry) -> None:
    registry(TWO).unlink()
    with pytest.raises(UsageError, match="can't read the registry of clusters"):
        clusters()


def test_a_task_that_reads_an_invalid_registry_is_not_tried_again(registry: Registry) -> None:
    registry("[")
    with pytest.raises(AirflowFailException, match="is not YAML"):
        tasks.clusters_to_restore()


def test_each_cluster_has_its_dags_and_its_asset(registry: Registry) -> None:
    registry(TWO)
    lines = parsed()
    shared = [line for line in lines if "__" not in line.split()[0]]
    assert [line.split()[0] for line in shared] == ["pulsar_maintenance", "pulsar_watch"]
    assert [line for line in lines if "__" in line.split()[0]] == [
        "pulsar_history__prod-eu ['history', 'prod-eu', 'pulsar'] pulsar-snapshot-validated__prod-eu",
        "pulsar_history__prod-us ['history', 'prod-us', 'pulsar'] pulsar-snapshot-validated__prod-us",
        "pulsar_rebalance__prod-eu ['prod-eu', 'pulsar', 'writes-to-cluster'] None",
        "pulsar_rebalance__prod-us ['prod-us', 'pulsar', 'writes-to-cluster'] None",
        "pulsar_recommend__prod-eu ['prod-eu', 'pulsar', 'recommendation'] pulsar-snapshot-validated__prod-eu",
        "pulsar_recommend__prod-us ['prod-us', 'pulsar', 'recommendation'] pulsar-snapshot-validated__prod-us",
        "pulsar_rolling_restart__prod-eu ['prod-eu', 'pulsar', 'writes-to-cluster'] None",
        "pulsar_rolling_restart__prod-us ['prod-us', 'pulsar', 'writes-to-cluster'] None",
        "pulsar_snapshot__prod-eu ['prod-eu', 'pulsar', 'snapshot'] */5 * * * *",
        "pulsar_snapshot__prod-us ['prod-us', 'pulsar', 'snapshot'] None",
    ]


def test_the_cluster_of_a_dag_is_one_of_the_registry(registry: Registry) -> None:
    registry(TWO)
    named = [cluster_of(dag) for dag in ("pulsar_snapshot__prod-eu", "their__own", "pulsar_watch")]
    assert named == ["prod-eu", "", ""]


def test_a_cluster_that_comes_into_a_registry_shares_no_uri_with_its_assets_of_before(registry: Registry) -> None:
    of_a_cluster = snapshot_validated, recommended, applied, verified
    eu = Cluster(name="prod-eu", pulsar_conn_id="pulsar_eu")
    alone = {made(eu).uri for made in of_a_cluster}
    registry(TWO)
    assert alone.isdisjoint(made(eu).uri for made in of_a_cluster)


@pytest.mark.slow
def test_a_task_builds_only_the_dag_it_runs(registry: Registry) -> None:
    registry(TWO)
    lines = parsed(dag="pulsar_snapshot__prod-us")
    assert [line.split()[0] for line in lines] == ["pulsar_maintenance", "pulsar_snapshot__prod-us", "pulsar_watch"]
