"""`make up`: Airflow on loopback, with the local cluster connected."""

from __future__ import annotations

import argparse
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Final

from harness.ports import free_port

USERS: Final = {"admin": "op", "olive": "user", "uma": "user", "vic": "viewer"}
"""Name to role of Airflow's simple auth manager. Two may write at least: who proposes a plan can't approve it."""

PREFERRED_PORT: Final = 8080
START_LIMIT_S: Final = 180
STOP_LIMIT_S: Final = 30

PARTS: Final[Mapping[str, Sequence[str]]] = {
    "scheduler": ("--skip-serve-logs",),
    "dag-processor": (),
    "api-server": (),
    "triggerer": ("--skip-serve-logs",),
}
"""What `airflow standalone` runs, too, with its options: logs are read from the disk, and their servers would listen
beyond this machine."""

_AIRFLOW: Final = str(Path(sys.executable).parent / "airflow")
_DIRECTLY: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))
_PASSWORDS: Final = "simple_auth_manager_passwords.json"
_CLUSTER_STATE: Final = Path(".cache/cluster/state.json")  # what `make cluster-up` leaves


SPARK_DEFAULTS: Final = {
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.shuffle.partitions": "8",
    "spark.ui.enabled": "false",
}
"""Spark in one process on little data: quick to start, and not 200 tasks an exchange."""


SPARK_POOL: Final = "spark"
SPARK_STAGES_AT_ONCE: Final = "1"
"""Each takes two processors and more than 2 GB."""


class DidNotStart(Exception):
    """Airflow ended early, or was not healthy in time; the message names its log."""


@dataclass(frozen=True)
class Airflow:
    """A running Airflow: its address, the password of each user, and its parts, each in a process of its own."""

    url: str
    passwords: Mapping[str, str]
    log: Path
    environment: Mapping[str, str] = field(repr=False)
    started: dict[str, list[subprocess.Popen[bytes]]] = field(default_factory=dict, repr=False)
    """The processes of each part, the newest last."""

    def start(self, part: str) -> None:
        """Start one of `PARTS`."""
        self.started.setdefault(part, []).append(self._run(part, *PARTS[part]))

    def kill(self, part: str) -> None:
        """Kill the process of a part without notice; tasks that it runs lose only their parent."""
        self.started[part][-1].kill()
        self.started[part][-1].wait()

    def is_healthy(self) -> bool:
        """Whether the API server answers, and finds the database, the scheduler and the DAG processor healthy."""
        try:
            with _DIRECTLY.open(f"{self.url}/api/v2/monitor/health", timeout=5) as answer:
                health = json.load(answer)
        except (OSError, ValueError):
            return False
        return all(health[part]["status"] == "healthy" for part in ("metadatabase", "scheduler", "dag_processor"))

    def errors_of_tasks(self) -> dict[tuple[str, str, str], list[str]]:
        """What tasks logged as errors, by DAG, DAG run and task."""
        logs = self.log.parent / "logs"
        found: dict[tuple[str, str, str], list[str]] = {}
        for log in logs.glob("dag_id=*/run_id=*/task_id=*/**/*.log"):
            lines = [line for line in log.read_text(encoding="utf-8").splitlines() if line.startswith("{")]
            errors = [line for line in lines if json.loads(line).get("level") in ("error", "critical")]
            if errors:
                dag, run, task = (
                    part.partition("=")[2] for part in log.relative_to(self.log.parent / "logs").parts[:3]
                )
                found.setdefault((dag, run, task), []).extend(errors)
        return found

    def set_up(self) -> None:
        """Make the metadata database, or bring it to this release, and the pool of the Spark stages."""
        for command in (
            ("db", "migrate"),
            ("pools", "set", SPARK_POOL, SPARK_STAGES_AT_ONCE, "Spark stages of all clusters"),
        ):
            process = self._run(*command)
            try:
                code = process.wait(START_LIMIT_S)
            finally:
                _stop([process])
            if code:
                raise _ended(self, code)

    def _run(self, *command: str) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as output:
            return subprocess.Popen(
                [_AIRFLOW, *command],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # so that all it starts can be stopped as one group
            )


@contextmanager
def running(
    repository: Path, home: Path, root: Path, *, port: int = 0, environment: Mapping[str, str] | None = None
) -> Iterator[Airflow]:
    """Airflow's scheduler, DAG processor, triggerer and API server, stopped with the block.

    `home` is AIRFLOW_HOME, `root` the advisor's root; port 0 takes a free one. `environment` goes on top of the rest.
    Raises `DidNotStart`.
    """
    home.mkdir(parents=True, exist_ok=True)
    (home / "spark-defaults.conf").write_text("".join(f"{key} {value}\n" for key, value in SPARK_DEFAULTS.items()))
    port = port or free_port()
    airflow = Airflow(
        f"http://127.0.0.1:{port}",
        _passwords(home / _PASSWORDS),
        home / "standalone.log",
        _environment(repository, home, root, port) | dict(environment or {}),
    )
    airflow.log.write_bytes(b"")
    try:
        airflow.set_up()
        for part in PARTS:
            airflow.start(part)
        _wait_until_healthy(airflow)
        yield airflow
    finally:
        _stop([process for processes in airflow.started.values() for process in processes])


def local_cluster(state_file: Path = _CLUSTER_STATE) -> dict[str, Any] | None:
    """The connection, as JSON data, of the cluster that `make cluster-up` started; None if it isn't running."""
    try:
        state = json.loads(state_file.read_text(encoding="utf-8"))
        os.kill(state["process"]["pid"], 0)
    except (FileNotFoundError, ProcessLookupError):
        return None
    return {
        "conn_type": "pulsar_admin",
        "password": Path(state["token_file"]).read_text(encoding="utf-8").strip() if state["token_file"] else None,
        "extra": {"admin_urls": ",".join(state["admin_urls"]), "zookeeper": state["zookeeper"]},
    }


def _environment(repository: Path, home: Path, root: Path, port: int) -> dict[str, str]:
    binaries = str(Path(sys.executable).parent)
    address = f"http://127.0.0.1:{port}"
    return {
        **os.environ,
        "PATH": f"{binaries}{os.pathsep}{os.environ.get('PATH', os.defpath)}",  # spark-submit lies there
        "NO_PROXY": "127.0.0.1,localhost",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_CONF_DIR": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__API__BASE_URL": address,
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__SECRET_KEY": secrets.token_urlsafe(64),
        "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_urlsafe(64),
        "AIRFLOW__CORE__DAGS_FOLDER": str(repository / "dags"),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{address}/execution/",
        "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(repository / "plugins"),
        "AIRFLOW__CORE__PARALLELISM": "4",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(home / _PASSWORDS),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(f"{name}:{role}" for name, role in USERS.items()),
        "AIRFLOW__CORE__TEST_CONNECTION": "Enabled",
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "600",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home / 'airflow.db'}",
        "AIRFLOW__PULSAR_ADVISOR__CLUSTER": "live",
        "AIRFLOW__PULSAR_ADVISOR__ROOT": str(root),
        "AIRFLOW__PULSAR_ADVISOR__SPARK_POOL": SPARK_POOL,
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
    }


def _passwords(file: Path) -> dict[str, str]:
    """Passwords of the users, generated once and kept beside the database."""
    known = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    passwords = {name: known.get(name) or secrets.token_urlsafe(9) for name in USERS}
    file.touch(mode=0o600)
    file.write_text(json.dumps(passwords) + "\n", encoding="utf-8")
    return passwords


def _wait_until_healthy(airflow: Airflow) -> None:
    deadline = time.monotonic() + START_LIMIT_S
    while not airflow.is_healthy():
        for *_, process in airflow.started.values():
            if process.poll() is not None:
                raise _ended(airflow, process.returncode)
        if time.monotonic() > deadline:
            raise DidNotStart(f"Airflow was not healthy within {START_LIMIT_S} s; see {airflow.log}")
        time.sleep(0.5)


def _ended(airflow: Airflow, code: int) -> DidNotStart:
    return DidNotStart(f"Airflow ended with code {code}; {airflow.log} says why")


def _stop(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """End the groups of these processes: what they started outlives them."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + STOP_LIMIT_S
        left = [process for process in processes if _signal(process, number)]
        while left and time.monotonic() < deadline:
            time.sleep(0.1)
            left = [process for process in left if _signal(process, 0)]


def _signal(process: subprocess.Popen[bytes], number: int) -> bool:
    """Send a signal to a process's group; whether there is one."""
    process.poll()
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return False
    return True


def _is_free(port: int) -> bool:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def main(arguments: Sequence[str] | None = None) -> int:
    """Run Airflow until interrupted; prints the address and the logins."""
    parser = argparse.ArgumentParser(prog="harness.standalone", description=__doc__)
    parser.add_argument("--port", type=int, help=f"port on loopback; default: {PREFERRED_PORT}, or a free one")
    options = parser.parse_args(arguments)
    port = options.port or (PREFERRED_PORT if _is_free(PREFERRED_PORT) else 0)
    repository = Path.cwd()
    cluster = local_cluster()
    connections = {"AIRFLOW_CONN_PULSAR_DEFAULT": json.dumps(cluster)} if cluster else {}

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
    try:
        with running(
            repository, repository / "airflow-home", repository / "data", port=port, environment=connections
        ) as airflow:
            _say(f"Airflow: {airflow.url}\n")
            for name, password in airflow.passwords.items():
                _say(f"  {name:<6} {password}   ({USERS[name]})")
            _say("\nThe user who triggers pulsar_rebalance can't approve it: log in as two people.")
            where = (
                cluster["extra"]["admin_urls"] if cluster else "none: no local cluster is running (`make cluster-up`)"
            )
            _say(f"Connection pulsar_default: {where}")
            _say(f"Log: {airflow.log}\nCtrl-C stops it.")
            signal.pause()
    except DidNotStart as error:
        _say(str(error))
        return 1
    except KeyboardInterrupt:
        _say("stopped")
    return 0


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
