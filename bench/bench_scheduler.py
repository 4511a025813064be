"""Whether an operator's run waits behind those of all clusters: `bench_scheduler.py [CLUSTERS QUARTERS]`.

Airflow's own scheduler, with its own database (SQLite) and our DAGs for CLUSTERS clusters, which are all captured at
the same minutes, every quarter of an hour; 96 quarters are a day. Only the work of the tasks is doubled: each takes the
seconds of `SECONDS`. In the middle of each quarter somebody starts `pulsar_rebalance` for one of the clusters.

The clock is the processor time of this process, scheduler and database together, so other work on the machine doesn't
matter. Where the scheduler would sleep, it is advanced instead, and to the next quarter once nothing is left to do. A
wait is the time between the end of the last task upstream of a task and its start. Ends with exit code 1 if a task of
an operator waits longer than the goal.
"""

from __future__ import annotations

import heapq
import json
import os
import secrets
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

REPOSITORY: Final = Path(__file__).parents[1]
HOME: Final = tempfile.TemporaryDirectory(prefix="bench-scheduler-")
REGISTRY: Final = Path(HOME.name) / "clusters.yaml"
AT_ONCE: Final = 128
"""Tasks."""
DRIVERS: Final = 40
"""Spark stages among them."""
os.environ |= {  # Airflow reads them once, at its first import
    "AIRFLOW_HOME": HOME.name,
    "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_urlsafe(64),
    "AIRFLOW__CORE__DAGS_FOLDER": str(REPOSITORY / "dags"),
    "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": "600",
    "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
    "AIRFLOW__CORE__PARALLELISM": str(AT_ONCE),
    "AIRFLOW__CORE__PLUGINS_FOLDER": str(REPOSITORY / "plugins"),
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{HOME.name}/airflow.db",
    "AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR",
    "AIRFLOW__PULSAR_ADVISOR__CLUSTERS": str(REGISTRY),
    "AIRFLOW__PULSAR_ADVISOR__ROOT": f"{HOME.name}/root",
    "AIRFLOW__PULSAR_ADVISOR__SNAPSHOT_SCHEDULE": "0 0 29 2 *",  # `Day.begin` says when
    "AIRFLOW__PULSAR_ADVISOR__SPARK_POOL": "spark",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "86400",  # doubles have no pulse
}

from airflow.api.common.trigger_dag import trigger_dag  # noqa: E402
from airflow.dag_processing.bundles.manager import DagBundlesManager  # noqa: E402
from airflow.dag_processing.dagbag import BundleDagBag, sync_bag_to_db  # noqa: E402
from airflow.executors.base_executor import BaseExecutor  # noqa: E402
from airflow.jobs import scheduler_job_runner  # noqa: E402
from airflow.jobs.job import Job, run_job  # noqa: E402
from airflow.models.asset import AssetDagRunQueue  # noqa: E402
from airflow.models.dag import DagModel  # noqa: E402
from airflow.models.dagrun import DagRun  # noqa: E402
from airflow.models.pool import Pool  # noqa: E402
from airflow.models.taskinstance import TaskInstance  # noqa: E402
from airflow.sdk.api.datamodels._generated import AssetProfile  # noqa: E402
from airflow.utils.db import initdb  # noqa: E402
from airflow.utils.session import create_session  # noqa: E402
from airflow.utils.state import DagRunState, TaskInstanceState  # noqa: E402
from airflow.utils.types import DagRunTriggeredByType  # noqa: E402
from sqlalchemy import func, select, update  # noqa: E402

from results import RESULTS, conditions, record  # noqa: E402

DAGS: Final = ("pulsar_snapshot", "pulsar_recommend", "pulsar_rebalance", "pulsar_rolling_restart")
SECONDS: Final[Mapping[str, float]] = {
    **dict.fromkeys(("capture", "normalize", "validate", "recommend", "roll"), 10.0),
    "approve": 60.0,
    "apply": 120.0,
}
"""How long a task takes, by the last part of its id; others take two."""
BRANCHES: Final = frozenset({"plan_by_digest", "undo_plan"})
"""What `given_or_fresh` skips."""
QUARTER_S: Final = 900.0
OPERATOR_AFTER_S: Final = 60.0
"""When somebody starts a run, in each quarter: while the queue is long."""
FIRST_QUARTER: Final = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(days=2)
GOAL_S: Final = 60.0


class Over(BaseException):
    """The last quarter is over."""


@dataclass
class Clock:
    """Processor time, and what was slept through."""

    skipped_s: float = 0.0

    def now_s(self) -> float:
        return time.process_time() + self.skipped_s

    def sleep(self, seconds: float) -> None:
        self.skipped_s += seconds


@dataclass(frozen=True)
class Line:
    """A quarter of an hour."""

    runs: int
    tasks: int
    took_s: float
    waits: Mapping[str, float]
    """Of the tasks of the operator's run."""


@dataclass
class Day:
    """A number of quarters of an hour, each with a run of an operator."""

    names: list[str]
    quarters: int
    clock: Clock
    outlets: Mapping[tuple[str, str], list[AssetProfile]]
    upstream: Mapping[str, Iterable[str]]
    """The tasks before each task of `pulsar_rebalance`."""
    lines: list[Line] = field(default_factory=list)
    began_s: float = 0.0
    run: str | None = None
    """The operator's, in this quarter."""
    triggered_s: float = 0.0
    started: dict[str, float] = field(default_factory=dict)
    ended: dict[str, float] = field(default_factory=dict)

    def look(self, is_idle: bool) -> None:
        """Begin what is due; end the quarter once nothing is left, or the next one is due."""
        now = self.clock.now_s()
        if self.run is None and now >= self.began_s + OPERATOR_AFTER_S:
            self._operate()
        elif now >= self.began_s + QUARTER_S or (self.run is not None and is_idle and self._is_done()):
            self._close()
            self.begin()

    def begin(self) -> None:
        """Every cluster is due to be captured."""
        if len(self.lines) == self.quarters:
            raise Over
        self.began_s, self.run = self.clock.now_s(), None
        self.started, self.ended = {}, {}
        # Airflow schedules no run of the future: these quarters are those of two days ago.
        due = FIRST_QUARTER + len(self.lines) * timedelta(seconds=QUARTER_S)
        values = dict.fromkeys(("", "_create_after", "_data_interval_start", "_data_interval_end"), due)
        of_clusters = update(DagModel).where(DagModel.dag_id.startswith("pulsar_snapshot"))
        with create_session() as session:
            session.execute(of_clusters.values({f"next_dagrun{name}": at for name, at in values.items()}))

    def _operate(self) -> None:
        name = self.names[len(self.lines) % len(self.names)]
        # SQLite's clock has whole seconds: a run of this one would wait for the next, a hundred skipped sleeps later.
        run = trigger_dag(
            f"pulsar_rebalance__{name}",
            triggered_by=DagRunTriggeredByType.UI,
            triggering_user_name="uma",
            run_after=datetime.now(UTC) - timedelta(seconds=2),
        )
        assert run is not None
        self.run, self.triggered_s = run.run_id, self.clock.now_s()

    def _is_done(self) -> bool:
        with create_session() as session:
            active = DagRun.state.in_((DagRunState.QUEUED, DagRunState.RUNNING))
            left = select(func.count()).select_from(DagRun).where(active)
            return not session.scalar(left) and not session.scalar(select(func.count()).select_from(AssetDagRunQueue))

    def _close(self) -> None:
        waits = {}
        for task, started in self.started.items():
            before = [self.ended[each] for each in self.upstream[task] if each in self.ended]
            waits[task] = started - max(before, default=self.triggered_s)
        with create_session() as session:
            runs = session.scalar(select(func.count()).select_from(DagRun)) or 0
            tasks = session.scalar(select(func.count()).select_from(TaskInstance)) or 0
        took_s = self.clock.now_s() - self.began_s
        line = Line(
            runs - sum(one.runs for one in self.lines), tasks - sum(one.tasks for one in self.lines), took_s, waits
        )
        self.lines.append(line)
        show(len(self.lines), line)
        self.clock.skipped_s += max(0.0, QUARTER_S - took_s)


class Doubles(BaseExecutor):
    """Every task succeeds after its seconds; its assets have events."""

    def __init__(self, day: Day) -> None:
        super().__init__(parallelism=AT_ONCE)
        self.day = day
        self._ends: list[tuple[float, int, Any]] = []
        self._number = 0

    def start(self) -> None:
        self.day.begin()

    def end(self) -> None:
        pass

    def _process_workloads(self, workload_items: Any) -> None:
        now = self.day.clock.now_s()
        for workload in workload_items:
            ti = workload.ti
            del self.queued_tasks[ti.key]
            self.running.add(ti.key)
            self._number += 1
            heapq.heappush(self._ends, (now + SECONDS.get(ti.task_id.split(".")[-1], 2.0), self._number, ti))
            if ti.run_id == self.day.run:
                self.day.started[ti.task_id] = now
        begun = [workload.ti.id for workload in workload_items]
        values = {"state": TaskInstanceState.RUNNING, "start_date": datetime.now(UTC)}
        with create_session() as session:
            session.execute(update(TaskInstance).where(TaskInstance.id.in_(begun)).values(**values))

    def sync(self) -> None:
        now, over = self.day.clock.now_s(), {}
        while self._ends and self._ends[0][0] <= now:
            _, _, ti = heapq.heappop(self._ends)
            over[ti.id] = ti
        with create_session() as session:
            for ti in session.scalars(select(TaskInstance).where(TaskInstance.id.in_(over))):
                ti.state, ti.end_date = TaskInstanceState.SUCCESS, datetime.now(UTC)
                if ti.task_id == "given_or_fresh":
                    skipped = TaskInstance.run_id == ti.run_id, TaskInstance.task_id.in_(BRANCHES)
                    session.execute(update(TaskInstance).where(*skipped).values(state=TaskInstanceState.SKIPPED))
                TaskInstance.register_asset_changes_in_db(
                    ti, self.day.outlets.get((ti.dag_id, ti.task_id), []), [], session=session
                )
        for ti in over.values():
            self.success(ti.key)
            if ti.run_id == self.day.run:
                self.day.ended[ti.task_id] = now
        self.day.look(is_idle=not self._ends and not self.queued_tasks)


def main(clusters: int = 500, quarters: int = 96) -> int:
    """Print a line for each quarter; the exit code."""
    names = [f"cluster-{number:03d}" for number in range(clusters)]
    entries = [{"name": name, "pulsar_conn_id": "p"} for name in names]
    REGISTRY.write_text(json.dumps({"schema": "pulsar-advisor/clusters/1", "clusters": entries}))
    initdb()
    Pool.create_or_update_pool("spark", slots=DRIVERS, description="", include_deferred=False)
    dags = {dag_id: dag for base in DAGS for dag_id, dag in parsed(base).items()}
    outlets = defaultdict(list)
    for dag_id, dag in dags.items():
        for task in dag.tasks:
            for asset in task.outlets:
                outlets[dag_id, task.task_id].append(AssetProfile(name=asset.name, uri=asset.uri, type="Asset"))
    rebalance = dags[f"pulsar_rebalance__{names[0]}"]
    clock = Clock()
    day = Day(names, quarters, clock, outlets, {task.task_id: task.upstream_task_ids for task in rebalance.tasks})
    scheduler_job_runner.time = SimpleNamespace(sleep=clock.sleep)  # type: ignore[assignment]
    runner = scheduler_job_runner.SchedulerJobRunner(Job(), executors=[Doubles(day)])
    print(f"\n{clusters} clusters, {AT_ONCE} tasks at once, {DRIVERS} of them Spark stages\n")
    with suppress(Over):
        run_job(runner.job, runner._execute)
    return report(clusters, day.lines)


def parsed(base: str) -> Mapping[str, Any]:
    """The DAGs of a file, in the database and switched on."""
    before = time.process_time()
    DagBundlesManager().sync_bundles_to_db()
    bag = BundleDagBag(REPOSITORY / "dags" / f"{base}.py", bundle_path=REPOSITORY / "dags", bundle_name="dags-folder")
    assert not bag.import_errors, bag.import_errors
    sync_bag_to_db(bag, "dags-folder", None)
    with create_session() as session:
        session.execute(update(DagModel).values(is_paused=False))
    print(
        f"{base}.py: {len(bag.dags)} DAGs parsed and stored in {time.process_time() - before:.0f} s of processor time"
    )
    return bag.dags


def show(quarter: int, line: Line) -> None:
    longest = max(line.waits, key=line.waits.__getitem__, default="none")
    print(
        f"quarter {quarter}: {line.runs} runs, {line.tasks} tasks in {line.took_s:.0f} s; the operator's "
        f"{len(line.waits)} tasks waited {sum(line.waits.values()):.1f} s in all, at most "
        f"{line.waits.get(longest, 0.0):.1f} s ({longest})",
        flush=True,
    )


def report(clusters: int, lines: list[Line]) -> int:
    waits = [wait for line in lines for wait in line.waits.values()]
    row = {
        "clusters": str(clusters),
        "quarters of an hour": str(len(lines)),
        "runs": f"{sum(line.runs for line in lines):,}",
        "tasks": f"{sum(line.tasks for line in lines):,}",
        "a quarter's runs take s": f"{max(line.took_s for line in lines):.0f}",
        "longest wait of an operator's task s": f"{max(waits):.1f}",
        "all waits of a run s": f"{max(sum(line.waits.values()) for line in lines):.1f}",
    }
    print(row)
    record(RESULTS / "scheduler.tsv", [{**row, **conditions()}])
    return int(max(waits) > GOAL_S)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
