"""docker-compose.yaml as a stranger runs it: the main job, containers lost in its middle, down and up."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

from harness.airflow_api import Api, logged_in, wait_for
from harness.errors import LiveClusterUnavailable
from harness.ports import free_ports
from stack.engine import CommandFailed, Engine, NoEngine, running_engine
from stack.images import IMAGES, REPOSITORY, build_images

pytestmark = [pytest.mark.live, pytest.mark.airflow, pytest.mark.full]

UP_LIMIT_S = 1200
RUN_LIMIT_S = 1800
EVERY_S = 5
"""Between looks at containers, each of which starts a process there."""
REBALANCE = "pulsar_rebalance"
POOL = "spark"
PORTS = ("AIRFLOW_PORT", "AIRFLOW_TLS_PORT", "PULSAR_PORT", "SPARK_PORT")
DRAINED = "broker-3:8080"
DRAIN = {
    "goal": "drain",
    "goal_brokers": [DRAINED],
    "max_unloads": 100,
    "pause_s": 10,
    "canary_hold_s": 10,
}
AUDIT = ("pulsar-advisor", "audit", "verify", "--json", "--ledger", "file:/run/secrets/ledger_url")
STRANGER = REPOSITORY / "tests" / "stack" / "stranger.py"
STRANGER_ANSWERS = REPOSITORY / "tests" / "data" / "compose" / "stranger.json"
"""What it was answered: the table of docs/compose.md."""
EPHEMERAL = 32768
"""Ports from here on are chosen anew at each start: Spark's own, which ask for its secret."""
TWINS = {"airflow-apiserver-tls", "broker-2", "broker-3"}
"""Services that run what another one runs."""
YES_TO_ALL = {"allow_splits": True, "accept_worse": True, "accept_low_confidence": True, "comment": ""}


@dataclass(frozen=True)
class Stack:
    """The containers of one project, in a folder with the compose file and its secrets."""

    engine: Engine
    folder: Path
    environment: dict[str, str]

    def compose(self, *arguments: str) -> str:
        command = ("--profile", "pulsar", "--profile", "tls", *arguments)
        return self.engine.run_compose(*command, folder=self.folder, environment=self.environment, limit_s=UP_LIMIT_S)

    def up(self) -> None:
        self.compose("up", "--detach", "--no-build")

    def url(self, port: str = "AIRFLOW_PORT", scheme: str = "http") -> str:
        return f"{scheme}://127.0.0.1:{self.environment[port]}"

    def speaks_https(self) -> bool:
        """Whether Airflow answers on its TLS port, with the certificate in secrets/."""
        certificate = str(self.folder / "secrets" / "airflow_tls_certificate")
        url = f"{self.url('AIRFLOW_TLS_PORT', 'https')}/api/v2/version"
        try:
            return requests.get(url, verify=certificate, timeout=60).ok
        except requests.ConnectionError:
            return False

    def user(self, name: str) -> Api:
        """A person with a login of the stack's Airflow."""
        password = (self.folder / "secrets" / f"airflow_{name}_password").read_text()
        return logged_in(self.url(), name, password, RUN_LIMIT_S)

    def in_container(self, service: str, *command: str) -> str:
        return self.compose("exec", "-T", service, *command)

    def in_ledger(self, query: str) -> list[list[str]]:
        """The rows that a query of the ledger's database returns."""
        psql = ("psql", "--username=postgres", "--dbname=ledger", "--csv", "--tuples-only", "--command", query)
        return [line.split(",") for line in self.in_container("ledger-database", *psql).splitlines()]

    def steps(self) -> dict[str, tuple[str, int]]:
        """State and number of calls of every step that was ever carried out."""
        rows = self.in_ledger("SELECT step_id, state, attempts FROM steps")
        return {step: (state, int(attempts)) for step, state, attempts in rows}

    def confirmed(self) -> dict[str, int]:
        """Number of calls of every confirmed step."""
        return {step: attempts for step, (state, attempts) in self.steps().items() if state == "confirmed"}

    def containers(self) -> dict[str, dict[str, Any]]:
        """What `docker inspect` says of each running container, by service; of two workers, one."""
        found = [json.loads(self.engine.run("inspect", each))[0] for each in self.compose("ps", "--quiet").split()]
        return {
            facts["Config"]["Labels"]["com.docker.compose.service"]: facts
            for facts in found
            if facts["State"]["Running"]
        }

    def listening(self, container: str) -> list[int]:
        """Ports that a container's processes listen on, not on loopback alone."""
        table = self.engine.run("exec", container, "cat", "/proc/net/tcp", "/proc/net/tcp6")
        sockets = [line.split()[1:4] for line in table.splitlines() if " 0A " in line]
        own = [local.split(":") for local, _, _ in sockets]
        return sorted({int(port, 16) for address, port in own if not address.endswith(("00007F", "01000000"))})

    def ask_as_stranger(self, *command: str) -> str:
        """What a command prints in one more container of the stack's network, which has no secret."""
        network = f"{self.environment['COMPOSE_PROJECT_NAME']}_default"
        mount = f"{STRANGER.parent}:/stranger:ro"
        image = self.environment["ADVISOR_IMAGE"]
        return self.engine.run("run", "--rm", "--network", network, "--volume", mount, image, *command)

    def bundles_of(self, broker: str) -> set[str]:
        """Bundles of the load that a broker owns."""
        program = (
            "from harness.admin_api import AdminApi; import json;"
            "api = AdminApi(['http://broker-1:8080', 'http://broker-2:8080', 'http://broker-3:8080'], None);"
            "print(json.dumps(api.owners('live')))"
        )
        owners: dict[str, str] = json.loads(self.in_container("load", "python", "-c", program).splitlines()[-1])
        return {bundle for bundle, owner in owners.items() if owner == broker and not bundle.startswith("pulsar/")}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """All profiles, up, from a folder with nothing but what the compose file names."""
    folder = tmp_path_factory.mktemp("stranger")
    for name in ("docker-compose.yaml", "Makefile", "Dockerfile"):
        shutil.copy(REPOSITORY / name, folder)
    shutil.copytree(REPOSITORY / "docs" / "compose", folder / "docs" / "compose")
    shutil.copytree(REPOSITORY / "tests", folder / "tests", ignore=shutil.ignore_patterns("__pycache__", "data"))
    subprocess.run(["make", "secrets"], cwd=folder, check=True, capture_output=True)
    project = {"COMPOSE_PROJECT_NAME": "pulsar-advisor-test", **dict(zip(PORTS, map(str, free_ports()), strict=False))}
    with ExitStack() as running:
        try:
            engine = running.enter_context(running_engine())
            build_images(engine)
        except (NoEngine, LiveClusterUnavailable) as missing:
            pytest.skip(str(missing))
        stack = Stack(engine, folder, {**project, **IMAGES})
        running.callback(stack.compose, "down", "--volumes", "--timeout", "5")
        stack.up()
        yield stack


@pytest.fixture(scope="module")
def moved(stack: Stack) -> dict[str, Any]:
    """A drain of one broker, proposed by one user and approved by another, whose containers are lost on the way."""
    admin, operator = stack.user("admin"), stack.user("operator")
    wait_for(lambda: any(dag["dag_id"] == REBALANCE for dag in admin.get("/dags")["dags"]), UP_LIMIT_S, EVERY_S)
    bundles = wait_for(lambda: len(found := stack.bundles_of(DRAINED)) > 2 and found, UP_LIMIT_S, EVERY_S)
    run = admin.trigger(REBALANCE, **DRAIN)
    admin.request(run)
    assert stack.steps() == {}
    assert operator.answer(run, "Approve", **YES_TO_ALL) == 200

    wait_for(lambda: len(stack.confirmed()) >= 2, RUN_LIMIT_S, EVERY_S)
    assert admin.task(REBALANCE, run, "apply")["state"] in ("running", "deferred")
    lost = ("airflow-worker", "airflow-scheduler", "airflow-triggerer")
    stack.compose("up", "--detach", "--no-build", "--no-deps", "--force-recreate", "--timeout", "0", *lost)
    confirmed = stack.confirmed()

    admin.finished(REBALANCE, run)
    return {"run": run, "bundles": bundles, "confirmed_before": confirmed}


def test_the_login_is_asked_for(stack: Stack) -> None:
    assert requests.get(f"{stack.url()}/api/v2/dags", timeout=60).status_code == 401
    wrong = {"username": "admin", "password": "admin"}
    assert requests.post(f"{stack.url()}/auth/token", json=wrong, timeout=60).status_code == 401


def test_only_the_administrator_edits_connections(stack: Stack) -> None:
    """Whoever does can have the ledger's address sent to a server of theirs, as a token, and then approve alone."""
    change = {"connection_id": "pulsar_default", "conn_type": "pulsar_admin", "description": "edited"}
    path = "/connections/pulsar_default?update_mask=description"
    assert stack.user("operator").call("PATCH", path, change).status_code == 403
    answer = stack.user("admin").call("PATCH", path, change)
    assert answer.ok, answer.text
    assert stack.user("admin").get("/connections/pulsar_default")["description"] == "edited"


def test_the_profile_tls_speaks_https_with_the_certificate_in_secrets(stack: Stack) -> None:
    wait_for(stack.speaks_https, UP_LIMIT_S, EVERY_S)


def test_no_container_runs_as_root_writes_to_its_image_or_has_a_capability_and_each_has_limits(stack: Stack) -> None:
    for name, facts in stack.containers().items():
        host = facts["HostConfig"]
        assert facts["Config"]["User"] not in ("", "0", "root"), name
        assert (host["ReadonlyRootfs"], host["CapDrop"], host["CapAdd"]) == (True, ["ALL"], None), name
        assert host["SecurityOpt"] == ["no-new-privileges:true"], name
        assert (host["Privileged"], host["PidMode"], host["IpcMode"]) == (False, "", "private"), name
        assert host["Memory"] > 0
        assert host["NanoCpus"] > 0


def test_one_more_container_of_the_network_is_answered_what_the_page_says(stack: Stack) -> None:
    wait_for(stack.speaks_https, UP_LIMIT_S, EVERY_S)
    asked = {
        name: (network["IPAddress"], ports)
        for name, facts in stack.containers().items()
        for network in facts["NetworkSettings"]["Networks"].values()
        if name not in TWINS and (ports := [port for port in stack.listening(facts["Id"]) if port < EPHEMERAL])
    }
    answers = json.loads(stack.ask_as_stranger("python", "/stranger/stranger.py", json.dumps(asked)).splitlines()[-1])
    assert answers == json.loads(STRANGER_ANSWERS.read_text())


def test_one_more_container_of_the_network_gets_no_work_out_of_spark(stack: Stack) -> None:
    job = "from pyspark.sql import SparkSession as S; S.builder.master('spark://spark-master:7077').getOrCreate()"
    with pytest.raises(CommandFailed) as refused:
        stack.ask_as_stranger("timeout", "300", "python", "-c", f"{job}.range(1).show(); print('it', 'ran')")
    assert "it ran" not in str(refused.value)
    apps = requests.get(f"http://127.0.0.1:{stack.environment['SPARK_PORT']}/json/", timeout=60).json()
    assert not [app for app in (*apps["activeapps"], *apps["completedapps"]) if app["name"] == "pyspark-shell"]


def test_two_spark_workers_run_the_stages_and_drivers_run_in_the_worker(stack: Stack, moved: dict[str, Any]) -> None:
    spark = requests.get(f"http://127.0.0.1:{stack.environment['SPARK_PORT']}/json/", timeout=60).json()
    assert [worker["state"] for worker in spark["workers"]] == ["ALIVE", "ALIVE"]
    assert {app["name"] for app in spark["completedapps"]} >= {"pulsar-advisor normalize", "pulsar-advisor recommend"}
    assert {app["state"] for app in spark["completedapps"]} == {"FINISHED"}


def test_the_spark_stages_ran_in_a_pool_whose_slots_can_be_edited(stack: Stack, moved: dict[str, Any]) -> None:
    tasks = stack.user("admin").get(f"/dags/{REBALANCE}/dagRuns/{moved['run']}/taskInstances")["task_instances"]
    assert {task["task_id"] for task in tasks if task["pool"] == POOL} == {
        "fresh.normalize",
        "fresh.validate",
        "fresh.recommend",
        "after.normalize",
    }
    assert stack.user("admin").get(f"/pools/{POOL}")["slots"] == 1
    change = {"pool": POOL, "slots": 2, "include_deferred": False}
    answer = stack.user("admin").call("PATCH", f"/pools/{POOL}?update_mask=slots", change)
    assert answer.ok, answer.text


def test_a_run_whose_containers_were_lost_is_finished_without_a_repeated_step(
    stack: Stack, moved: dict[str, Any]
) -> None:
    admin = stack.user("admin")
    states = admin.tasks(REBALANCE, moved["run"])
    assert states["apply"] == "success", stack.in_ledger("SELECT state, sentence FROM runs")
    assert admin.task(REBALANCE, moved["run"], "apply")["try_number"] > 1
    confirmed = stack.confirmed()
    assert confirmed.keys() == stack.steps().keys() > moved["confirmed_before"].keys()
    assert confirmed | moved["confirmed_before"] == confirmed
    assert stack.bundles_of(DRAINED) == set()
    # Not "success": it judges usage too, and the load of a busy machine may have drifted.
    assert states["verify"] in ("success", "failed"), states


def test_no_secret_is_in_what_containers_and_a_run_show(stack: Stack, moved: dict[str, Any]) -> None:
    """In `docker inspect`, process lists, both databases (rendered templates and XCom among their rows), logs, root."""
    secrets = {path.name: path.read_text().strip() for path in (stack.folder / "secrets").iterdir()}
    del secrets["airflow_tls_certificate"]
    shown = {f"inspect {name}": json.dumps(facts) for name, facts in stack.containers().items()}
    for name in stack.containers():
        shown[f"processes of {name}"] = stack.in_container(name, "sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
    for database in ("airflow", "ledger"):
        dump = ("pg_dump", "--username=postgres", database)
        shown[f"database {database}"] = stack.in_container(f"{database}-database", *dump)
    for folder in ("/opt/airflow/logs", "/var/lib/pulsar-advisor"):
        shown[folder] = stack.in_container(
            "airflow-worker", "sh", "-c", f"find {folder} -type f -exec cat {{}} + | tr -cd '\\11\\12\\40-\\176'"
        )
    leaks = [(secret, where) for secret, value in secrets.items() for where, text in shown.items() if value in text]
    assert leaks == []


def test_the_ledger_in_postgresql_names_both_people_and_is_whole(stack: Stack, moved: dict[str, Any]) -> None:
    assert stack.in_ledger("SELECT proposer, source FROM proposals") == [["admin", "airflow"]]
    assert stack.in_ledger("SELECT approver, source FROM approvals") == [["operator", "airflow"]]
    audited = stack.in_container("airflow-worker", *AUDIT)
    assert json.loads(audited)["findings"] == []


def test_down_and_up_keep_everything(stack: Stack, moved: dict[str, Any]) -> None:
    admin = stack.user("admin")
    path = f"/dags/{REBALANCE}/dagRuns"

    def kept() -> dict[str, Any]:
        audited = stack.in_container("airflow-worker", *AUDIT)
        return {
            "runs": [(run["dag_run_id"], run["state"]) for run in admin.get(path)["dag_runs"]],
            "connection": admin.get("/connections/pulsar_default"),
            "slots": admin.get(f"/pools/{POOL}")["slots"],
            "ledger": json.loads(audited),
            "snapshots": stack.in_container("airflow-worker", "ls", "/var/lib/pulsar-advisor/raw/cluster=live"),
        }

    before = kept()
    stack.compose("down", "--timeout", "10")
    stack.up()
    assert kept() == before
    wait_for(lambda: len(stack.bundles_of("broker-1:8080")) > 2, UP_LIMIT_S, EVERY_S)
