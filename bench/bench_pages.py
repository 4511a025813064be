"""Time and memory of the Airflow pages: `bench_pages.py [CLUSTERS SNAPSHOTS PLANS]`.

Airflow's web server with our plugin, in a separate process, over a root of CLUSTERS clusters with SNAPSHOTS snapshots
each, and a ledger of PLANS plans for each cluster. The first cluster is the large one: every snapshot of it was
processed, its plans have 600 steps, and it has runs of 600 steps; of the others, the newest snapshots were processed.
Each page is asked for alone, then by 16 viewers at the same time. The goals: 300 ms for any page that is asked for
alone, and 150 MB more for 16 viewers than the idle server has. Ends with exit code 1 if one is missed.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any, Final

import requests
from sqlalchemy import create_engine, insert

import documents
from harness.ports import free_port
from pulsar_advisor.documents.document import Document
from pulsar_advisor.execution.ledger.opening import open_ledger
from pulsar_advisor.execution.ledger.plan_summary import summary_of
from pulsar_advisor.execution.ledger.tables import Approval, Event, PlanRecord, PlanSummary, Proposal, Run, StepRecord
from pulsar_advisor.execution.throttle import ApplyThrottle
from pulsar_advisor.model.cluster.snapshot_id import snapshot_id
from pulsar_advisor.model.plans.sealed import Sealed, seal
from pulsar_advisor.storage.files import write_file
from pulsar_advisor.storage.index import update_index
from pulsar_advisor.storage.root import MANIFEST, RESULT, Root
from results import RESULTS, conditions, record
from unit.execution.doubles import B1, B2, make_plan, unload_step

SIZE: Final = (100, 3_000, 1_000)
STEPS: Final = 600
RUNS: Final = 50
EVENTS_A_STEP: Final = 4
PROCESSED: Final = 40
"""Snapshots of every cluster but the first that were processed."""
REPORT_BYTES: Final = 8 << 20
VIEWERS: Final = 16
ROUNDS: Final = 3

GOAL_MS: Final = 300
GOAL_MB: Final = 150

NOW: Final = datetime(2026, 11, 24, 20, 0, tzinfo=UTC)
PASSWORD: Final = secrets.token_hex(8)


def main(clusters: int, snapshots: int, plans: int) -> None:
    with tempfile.TemporaryDirectory(prefix="bench-pages-") as folder:
        names = [f"cluster-{number:03d}" for number in range(clusters)]
        began = time.monotonic()
        ids = write_root(Path(folder) / "root", names, snapshots)
        digest = write_ledger(Root(str(Path(folder) / "root"), names[0]), names, ids, plans)
        print(f"{clusters} clusters, {snapshots} snapshots and {plans} plans each, made in "
              f"{time.monotonic() - began:.0f} s; load average of the machine {os.getloadavg()[0]:.1f}\n")  # fmt: skip
        with served(Path(folder), names) as server:
            missed = measure(server, names[0], ids, digest)
    sys.exit(missed)


def measure(server: Server, cluster: str, ids: list[str], digest: str) -> int:
    """Print a line for each page, and for all viewers; the number of goals that were missed."""
    base = f"clusters/{cluster}"
    pages = {
        "all clusters": "",
        "a cluster": base,
        "its older snapshots": f"{base}?snapshots_before={ids[len(ids) // 2]}",
        "a plan": f"{base}/plans/{digest}",
        "a run": f"{base}/runs/1",
        "a report": f"{base}/reports/{ids[-1]}",
        "the tab of a DAG": f"dags/pulsar_recommend__{cluster}",
    }
    viewers = [server.viewer(number) for number in range(VIEWERS)]
    server.timed(viewers[0], "clusters/none")  # imports
    idle = server.memory_mb()
    server.forget_peak()
    missed = 0
    print("| page | first | median | processor | size |\n|---|---|---|---|---|")
    for name, path in pages.items():
        first, *others = [server.timed(viewers[0], path) for _ in range(1 + ROUNDS)]
        slowest = max(first.elapsed_ms, median(one.elapsed_ms for one in others))
        missed += slowest > GOAL_MS
        elapsed, processor = (median(getattr(one, of) for one in others) for of in ("elapsed_ms", "processor_ms"))
        times = f"{first.elapsed_ms:.0f} ms | {elapsed:.0f} ms | {processor:.0f} ms"
        print(f"| {name} | {times} | {first.bytes / 1024:.0f} KiB |", flush=True)
        figures = {"first ms": first.elapsed_ms, "median ms": elapsed, "processor ms": processor}
        row = {what: f"{figure:.0f}" for what, figure in figures.items()}
        record(RESULTS / "pages.tsv", [{"page": name, **row, **conditions()}])

    def look(viewer: requests.Session) -> list[float]:
        return [server.timed(viewer, path).elapsed_ms for _ in range(ROUNDS) for path in pages.values()]

    began, processor = time.monotonic(), server.processor_s()
    with ThreadPoolExecutor(VIEWERS) as pool:
        waits = sorted(wait for waits in pool.map(look, viewers) for wait in waits)
    grown = server.peak_mb() - idle
    missed += grown > GOAL_MB
    print(
        f"\n{VIEWERS} viewers, {len(waits)} pages in {time.monotonic() - began:.1f} s: median {median(waits):.0f} ms, "
        f"95 of 100 within {waits[len(waits) * 95 // 100]:.0f} ms, longest {waits[-1]:.0f} ms; "
        f"processor {server.processor_s() - processor:.1f} s\n"
        f"memory: {idle:.0f} MB idle, {grown:.0f} MB more at the peak; load average {os.getloadavg()[0]:.1f}"
    )
    return missed


class Answered:
    """One page: how long it took, and what it took of the server's processor."""

    def __init__(self, elapsed_ms: float, processor_ms: float, size: int) -> None:
        self.elapsed_ms, self.processor_ms, self.bytes = elapsed_ms, processor_ms, size


class Server:
    """A process that serves the pages."""

    def __init__(self, pid: int, address: str, log: Path) -> None:
        self._log = log
        self._process = Path(f"/proc/{pid}")
        self._address = address

    def viewer(self, number: int) -> requests.Session:
        session = requests.Session()
        session.trust_env = False
        login = {"username": f"viewer{number}", "password": PASSWORD}
        token = session.post(f"{self._address}/auth/token", json=login, timeout=60).json()["access_token"]
        session.headers["Authorization"] = f"Bearer {token}"
        return session

    def timed(self, viewer: requests.Session, path: str) -> Answered:
        processor, began = self.processor_s(), time.monotonic()
        answer = viewer.get(f"{self._address}/pulsar-advisor/{path}", timeout=600, allow_redirects=False, stream=True)
        size = sum(map(len, answer.iter_content(1 << 20)))
        if answer.status_code not in (200, 303) and path != "clusters/none":
            sys.exit(f"{path}: {answer.status_code}\n{self._log.read_text()[-3000:]}")
        return Answered((time.monotonic() - began) * 1000, (self.processor_s() - processor) * 1000, size)

    def processor_s(self) -> float:
        user, system = (self._process / "stat").read_text().rpartition(") ")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def memory_mb(self) -> float:
        return self._status("VmRSS")

    def peak_mb(self) -> float:
        return self._status("VmHWM")

    def forget_peak(self) -> None:
        (self._process / "clear_refs").write_text("5")

    def _status(self, field: str) -> float:
        lines = (self._process / "status").read_text().splitlines()
        return next(int(line.split()[1]) / 1000 for line in lines if line.startswith(f"{field}:"))


@contextmanager
def served(folder: Path, names: list[str]) -> Iterator[Server]:
    """Airflow's web server on loopback, with these clusters and sixteen viewers."""
    registry = {"schema": "pulsar-advisor/clusters/1", "clusters": [{"name": n, "pulsar_conn_id": "p"} for n in names]}
    (folder / "clusters.yaml").write_text(json.dumps(registry))
    viewers = [f"viewer{number}" for number in range(VIEWERS)]
    (folder / "passwords.json").write_text(json.dumps(dict.fromkeys(viewers, PASSWORD)))
    (folder / "empty").mkdir()
    environment = os.environ | {
        "AIRFLOW_HOME": str(folder),
        "AIRFLOW__CORE__DAGS_FOLDER": str(folder / "empty"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(Path(__file__).parents[1] / "plugins"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{folder}/airflow.db",
        "AIRFLOW__API__SECRET_KEY": secrets.token_hex(32),
        "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(64),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(f"{name}:viewer" for name in viewers),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(folder / "passwords.json"),
        "AIRFLOW__PULSAR_ADVISOR__CLUSTERS": str(folder / "clusters.yaml"),
        "AIRFLOW__PULSAR_ADVISOR__ROOT": str(folder / "root"),
    }
    port = free_port()
    log = (folder / "server.log").open("wb")
    process = subprocess.Popen([sys.executable, __file__, "serve", str(port)], env=environment, stdout=log, stderr=log)
    try:
        server = Server(process.pid, f"http://127.0.0.1:{port}", folder / "server.log")
        for _ in range(600):
            time.sleep(0.5)
            if process.poll() is not None:
                sys.exit((folder / "server.log").read_text())
            try:
                server.viewer(0)
                break
            except requests.RequestException:
                continue
        yield server
    finally:
        process.terminate()
        process.wait()
        log.close()


def serve(port: int) -> None:
    """Airflow's web server, in this process."""
    import uvicorn
    from airflow.api_fastapi.app import create_app
    from airflow.utils.db import initdb

    initdb()
    uvicorn.run(create_app(apps="core"), host="127.0.0.1", port=port, log_level="warning")


def write_root(folder: Path, names: list[str], snapshots: int) -> list[str]:
    """Snapshots a quarter of an hour apart, the results as links to one file of each kind; returns their ids."""
    ids = [snapshot_id(NOW - timedelta(minutes=15) * number) for number in reversed(range(snapshots))]
    combinations = [documents.combination(steps=12, standard_deviation_before=0.2)] * 12
    checks = [documents.check(check=f"bundles.{number}") for number in range(120)]
    sentence = "Move 12 bundles: 87 % → 61 % at most."
    recommendation = documents.recommendation(
        *combinations, plan="a.json", digest=f"sha256:{'0' * 64}", sentence=sentence
    )
    kinds: dict[str, tuple[str, Document]] = {
        "raw": (MANIFEST, documents.manifest()),
        "validation": (RESULT, documents.validation(*checks)),
        "plans": ("recommendation.json", recommendation),
    }
    one = Root(str(folder), "one")
    for stage, (file, document) in kinds.items():
        write_file(one.path / stage / file, document.content())
    (folder / "reports").mkdir()
    with (folder / "reports" / "report.html").open("wb") as report:
        report.truncate(REPORT_BYTES)
    files = {**{stage: file for stage, (file, _) in kinds.items()}, "reports": "report.html"}
    for name in names:
        for stage, file in files.items():
            made = ids if stage == "raw" or name == names[0] else ids[-PROCESSED:]
            for snapshot in made:
                target = folder / stage / f"cluster={name}" / f"snapshot={snapshot}"
                target.mkdir(parents=True)
                if snapshot == made[0]:
                    shutil.copyfile(folder / stage / file, first := target / file)
                else:
                    (target / file).hardlink_to(first)
        update_index(Root(str(folder), name))
    return ids


def write_ledger(root: Root, names: list[str], ids: list[str], plans: int) -> str:
    """The rows that proposals and runs of this many plans leave; returns the digest of a plan of the first cluster."""
    url = root.ledger_url
    with closing(open_ledger(url)):
        pass
    large = make_plan([unload_step().model_copy(update={"id": f"step-{n:03d}"}) for n in range(STEPS)])
    small = make_plan([unload_step()])
    rows: dict[type[Any], list[Mapping[str, Any]]] = {}

    def add(table: type[Any], **values: Any) -> int:
        rows.setdefault(table, []).append({"id": len(rows.get(table, ())) + 1, **values})
        return len(rows[table])

    engine = create_engine(url)

    def flush() -> None:
        with engine.begin() as connection:
            for table, added in rows.items():
                for part in range(0, len(added), 10_000):
                    connection.execute(insert(table), added[part : part + 10_000])

    at_ms = int(NOW.timestamp() * 1000)
    who = {"source": "airflow", "at_ms": at_ms}
    digest = ""
    with engine.begin() as connection:
        for name in names:
            for number in range(plans):
                plan = (large if name == names[0] else small).model_copy(
                    update={"cluster": name, "snapshot": ids[-1 - number % len(ids)], "seed": number}
                )
                sealed: Sealed = seal(plan)
                digest = sealed.digest if name == names[0] else digest
                record = {
                    "digest": sealed.digest, "cluster": name, "cluster_name": name, "snapshot": plan.snapshot,
                    "document": sealed.content.decode(), "recorded_at_ms": at_ms,
                }  # fmt: skip
                connection.execute(insert(PlanRecord), [record])
                add(Proposal, digest=sealed.digest, proposer="olive", **who)
                _event(add, sealed.digest, "proposed", at_ms)
                if name == names[0] and number >= plans - RUNS:
                    _run(add, sealed.digest, name, at_ms)
                kept = {name: record[name] for name in ("digest", "cluster", "snapshot", "recorded_at_ms")}
                summary = {**kept, **vars(summary_of(record["document"])), "last_event": len(rows[Event])}
                connection.execute(insert(PlanSummary), [summary])
    flush()
    engine.dispose()
    return digest


def _event(add: Callable[..., int], digest: str, kind: str, at_ms: int, run: int | None = None) -> None:
    add(Event, at_ms=at_ms, digest=digest, run_id=run, step_id=None, kind=kind, detail="x" * 60, rows="{}", chain="")


def _run(add: Callable[..., int], digest: str, cluster: str, at_ms: int) -> None:
    approval = add(
        Approval, digest=digest, approver="uma", source="airflow", at_ms=at_ms, expires_at_ms=at_ms, comment="",
        allows_splits=False, accepts_worse=False, accepts_low_confidence=False, withdrawn_at_ms=None,
        throttle_json=ApplyThrottle().as_json(),
    )  # fmt: skip
    run = add(
        Run, digest=digest, cluster_name=cluster, approval_id=approval, state="done", lease=1, host="h", pid=1,
        process_namespace="", process_began="", heartbeat_at_ms=at_ms, started_at_ms=at_ms, ended_at_ms=at_ms,
        sentence="600 of 600 steps confirmed",
    )  # fmt: skip
    for step in range(STEPS):
        add(
            StepRecord, run_id=run, step_id=f"step-{step:03d}", bundle=f"{B1}/{B2}", state="confirmed", attempts=1,
            sent_at_ms=at_ms, ended_at_ms=at_ms, topic=None, observation="owner is b2",
        )  # fmt: skip
        for _ in range(EVENTS_A_STEP):
            _event(add, digest, "step sent", at_ms, run)


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(int(sys.argv[2]))
    else:
        main(*([int(argument) for argument in sys.argv[1:]] or SIZE))
