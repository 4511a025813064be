"""Airflow with a database of its own, whole DAG runs in this process, and what they touch at the edges doubled.

Airflow reads its settings once, at the first import, so they come first.
"""

from __future__ import annotations

import _thread
import asyncio
import itertools
import json
import os
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_advisor.storage.files import write_file

REPOSITORY = Path(__file__).parents[2]
_home = tempfile.TemporaryDirectory(prefix="airflow-tests-")
os.environ |= {
    "AIRFLOW_HOME": _home.name,
    "AIRFLOW__CORE__DAGS_FOLDER": str(REPOSITORY / "dags"),
    "AIRFLOW__CORE__PLUGINS_FOLDER": str(REPOSITORY / "plugins"),
    "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{_home.name}/airflow.db?timeout=60",  # seconds
    "AIRFLOW__PULSAR_ADVISOR__ROOT": f"{_home.name}/root",
    "AIRFLOW__PULSAR_ADVISOR__CLUSTER": "demo",
    "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
    "AIRFLOW_CONN_PULSAR_DEFAULT": json.dumps(
        {"conn_type": "pulsar_admin", "password": "eyJ.a.b", "extra": {"admin_urls": "http://127.0.0.1:1"}}
    ),
}

import documents  # noqa: E402
from ledgers import new_ledgers_are_copies as new_ledgers_are_copies  # noqa: E402
from pulsar_advisor.execution.apply import apply_plan  # noqa: E402
from pulsar_advisor.execution.ledger.ledger import Ledger  # noqa: E402
from pulsar_advisor.execution.ledger.opening import open_ledger  # noqa: E402
from pulsar_advisor.execution.run.end_of_run import AttemptResult  # noqa: E402
from pulsar_advisor.execution.run.options import ApplyOptions, Interruption, Work  # noqa: E402
from pulsar_advisor.model.cluster.snapshot_id import snapshot_id  # noqa: E402
from pulsar_advisor.model.errors import Refused  # noqa: E402
from pulsar_advisor.model.plans.plan import Plan  # noqa: E402
from pulsar_advisor.storage.root import MANIFEST, RESULT, Root, Snapshot  # noqa: E402
from states import BrokerRow, BundleRow, cluster_state  # noqa: E402
from unit.execution.doubles import B1, B2, B3, NAMESPACE, UPPER, FakeCluster, FakeTime, make_plan, unload_step  # noqa: E402

if TYPE_CHECKING:
    from airflow.sdk import DAG


@pytest.fixture(scope="session")
def dags() -> Mapping[str, DAG]:
    """The DAGs of the repository, by id."""
    from airflow.dag_processing.dagbag import DagBag

    bag = DagBag(REPOSITORY / "dags")
    assert bag.import_errors == {}
    return bag.dags


@pytest.fixture(scope="session")
def database() -> None:
    """Airflow's metadata database."""
    from airflow.utils.db import initdb

    initdb()


@pytest.fixture
def never_run_before(database: None) -> None:
    """Delete what other tests' runs kept: it belongs to other ledgers and clusters."""
    from airflow.models.asset_state_store import AssetStateStoreModel
    from airflow.utils.session import create_session
    from sqlalchemy import delete

    with create_session() as session:
        session.execute(delete(AssetStateStoreModel))


@dataclass
class Stages:
    """The stages as the DAGs see them: calls are noted, and each leaves the result file that the next task reads."""

    root: Root
    cluster: FakeCluster
    plan: Plan
    calls: list[str] = field(default_factory=list)
    arguments: list[list[str]] = field(default_factory=list)
    """Each stage on Spark, with its arguments."""
    captured_with: list[Any] = field(default_factory=list)
    fit_for_use: bool = True
    nothing_to_do: bool = False
    """Whether the advice is to do nothing, though there is a plan."""
    applied_with: ApplyOptions | None = None
    not_computed_here: str | Refused | None = None
    """The answer when a plan is computed again."""

    def capture(self, options: Any, root: Root, earlier: Any = None) -> Snapshot:
        assert options.admin.authorization() == "Bearer eyJ.a.b"
        assert root == self.root
        self.calls.append("capture")
        self.captured_with.append(options)
        return self.root.snapshot(self.snapshot())

    def snapshot(self) -> str:
        taken = len(self.root.snapshots())
        snapshot = snapshot_id(datetime.now(UTC) + timedelta(seconds=taken))
        write_file(self.root.snapshot(snapshot).folder("raw") / MANIFEST, b"{}")
        return snapshot

    def validated(self) -> str:
        """A new snapshot that was validated."""
        snapshot = self.snapshot()
        self._validate(snapshot)
        return snapshot

    def write_plan(self, snapshot: str | None = None) -> str:
        """Write the plan, of this or of a new snapshot, where DAGs find it; its digest."""
        from pulsar_advisor.storage.plans import write_plan

        self.plan = self.plan.model_copy(update={"snapshot": snapshot or self.snapshot()})
        return write_plan(self.root, self.plan).digest

    def submit(self, hook: Any, application: str) -> None:
        stage = Path(application).stem
        arguments = hook._application_args
        snapshot = arguments[arguments.index("--snapshot") + 1]
        assert arguments[:2] == [f"--root={self.root.url}", f"--cluster={self.root.cluster}"]
        self.arguments.append([stage, *arguments])
        self.calls.append(" ".join([stage, *arguments[4:]]))
        getattr(self, f"_{stage}", lambda _snapshot: None)(snapshot)

    def _validate(self, snapshot: str) -> None:
        check = documents.check(severity="critical", success=self.fit_for_use, title="Ranges tile")
        document = documents.validation(check, success=self.fit_for_use)
        write_file(self.root.snapshot(snapshot).folder("validation") / RESULT, document.content())

    _snapshot = _validate
    """The job that normalizes and validates."""

    def _recommend(self, snapshot: str) -> None:
        from pulsar_advisor.storage.plans import write_plan

        self.plan = self.plan.model_copy(update={"snapshot": snapshot})
        written = write_plan(self.root, self.plan)
        plan = {"plan": written.file, "digest": written.digest}
        advice = {} if self.nothing_to_do else {**plan, "sentence": "Move one bundle."}
        combination = documents.combination(**plan, steps=1)
        document = documents.recommendation(combination, **advice)
        write_file(self.root.snapshot(snapshot).folder("plans") / "recommendation.json", document.content())

    def report(self, _snapshot: Snapshot, ledger_url: str | None, dag: str | None) -> tuple[None, str]:
        self.calls.append("report")
        return None, f"{_snapshot.root.url}/report.html"

    def apply(
        self, plan: Plan, ledger: Ledger, _admin: Any, options: ApplyOptions, progress: Any, interruption: Interruption
    ) -> AttemptResult:
        self.applied_with = options
        self.cluster.time.ms = max(self.cluster.time.ms, time.time_ns() // 1_000_000)
        return apply_plan(plan, options, Work(ledger, self.cluster, progress, self.cluster.time.clock, interruption))

    def state(self, snapshot: Snapshot, _view: str) -> Any:
        """What `normalize` would have made of the cluster now."""
        owners = sorted(self.cluster.owners.items())
        bundles = [BundleRow(NAMESPACE, bundle.rpartition("/")[2], owner) for bundle, owner in owners]
        state = cluster_state([BrokerRow(broker) for broker in (B1, B2, B3)], bundles)
        return replace(state, snapshot=snapshot.id, captured_at_ms=time.time_ns() // 1_000_000)

    def computed_again(self, *_: Any) -> str | None:
        if isinstance(self.not_computed_here, Refused):
            raise self.not_computed_here
        return self.not_computed_here

    def ledger(self) -> Ledger:
        return open_ledger(self.root.ledger_url)


@pytest.fixture
def stages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, never_run_before: None) -> Stages:
    """A cluster of plain data, a root of its own, and doubles for what needs Spark or a network."""
    root = Root(str(tmp_path / "root"), "demo")
    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__ROOT", root.url)
    plan = make_plan([unload_step()], snapshot=snapshot_id(datetime.now(UTC)))
    fake_time = FakeTime()
    fake_time.ms = time.time_ns() // 1_000_000  # the ledger and the gate have the real time
    stages = Stages(root, FakeCluster(fake_time), plan)
    monkeypatch.setattr("pulsar_advisor.stages.capture.run", stages.capture)
    monkeypatch.setattr("pulsar_advisor.stages.report.run", stages.report)
    monkeypatch.setattr("pulsar_advisor.stages.apply.run", stages.apply)
    monkeypatch.setattr("pulsar_advisor.stages.derive.why_not_computed_here", stages.computed_again)
    monkeypatch.setattr("pulsar_advisor.stages.undo.AdminCluster", lambda _transport, **_options: stages.cluster)
    monkeypatch.setattr("pulsar_advisor.stages.undo.SYSTEM_CLOCK", fake_time.clock)
    monkeypatch.setattr("pulsar_advisor.stages.verify.cluster_state", stages.state)
    monkeypatch.setattr("pulsar_advisor.stages.verify.settings_inputs", lambda _snapshot: ("4.0.8", {}, {}))
    monkeypatch.setattr("pulsar_advisor.stages.verify.settle_s", lambda _settings: 0)
    hook = "airflow.providers.apache.spark.hooks.spark_submit.SparkSubmitHook.submit"
    monkeypatch.setattr(hook, lambda self, application: stages.submit(self, application))  # noqa: PLW0108  # a method
    return stages


@pytest.fixture
def registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Writes the registry of the clusters: of each its name or its entry, by default with a connection of its own."""

    def write(*clusters: str | dict[str, Any], **common: str) -> None:
        named = [{"name": cluster} if isinstance(cluster, str) else cluster for cluster in clusters]
        entries = [{"pulsar_conn_id": f"pulsar_{entry['name']}", **common, **entry} for entry in named]
        registry = tmp_path / "clusters.yaml"
        registry.write_text(json.dumps({"schema": "pulsar-advisor/clusters/1", "clusters": entries}))
        monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__CLUSTERS", str(registry))

    return write


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the notifiers of `dags.notifiers` say."""
    from dags import notifiers

    messages: list[str] = []
    monkeypatch.setattr(notifiers.Noting, "messages", messages)
    return messages


@pytest.fixture
def calls(noted: list[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What whoever is called hears."""
    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__CALL_NOTIFIERS", "dags.notifiers.noting_calls")
    return noted


RunDag = Callable[..., tuple[str, dict[str, str]]]
LOOK_S = 0.1
"""How often a DAG run, and whoever answers its requests, look for news."""


@dataclass(frozen=True)
class Answer:
    """What a person (None: the time-out) does with a request."""

    option: str
    person: str | None = "olive"
    form: Mapping[str, Any] = field(default_factory=dict)
    again: Mapping[str, Any] | None = None
    """The form when asked again; without one the second answer is Reject."""
    undo: str = "Reject"
    """The same for an offer to undo the run."""
    meanwhile: Callable[[str, Any], None] = lambda _run_id, _session: None
    """What somebody does to the DAG run (by its id, in a database session) while it waits."""


@pytest.fixture
def run_dag(stages: Stages, monkeypatch: pytest.MonkeyPatch) -> RunDag:
    """Run a whole DAG in this process; a request for approval is answered through the metadata database, as the API
    server does it. Gives the DAG run's state and each task's."""
    from airflow.dag_processing.dagbag import BundleDagBag, DagBag

    sleep = time.sleep
    monkeypatch.setattr(time, "sleep", lambda seconds: sleep(min(seconds, LOOK_S)))  # `dag.test()` looks once a second

    def run(
        dag_id: str,
        conf: Mapping[str, Any] | None = None,
        answer: Answer | None = None,
        mark_success: str | None = None,
        folder: Path = REPOSITORY / "dags",
        *,
        has_logical_date: bool = True,
    ) -> tuple[str, dict[str, str]]:
        file = folder / f"{dag_id.partition('__')[0]}.py"
        dag = DagBag(file).dags[dag_id]
        # `dag.test()` would parse and store all other DAGs, too, each time.
        only_this = lambda dag_folder, **of: BundleDagBag(dag_folder=file, **(of | {"bundle_path": folder}))  # noqa: E731
        monkeypatch.setattr("airflow.dag_processing.dagbag.BundleDagBag", only_this)
        # A run writes its conf into these, and the next test's DAG would have it: the fields of the form are shared.
        dag.params = deepcopy(dag.params)
        for task in dag.tasks:
            task.retry_delay = timedelta(0)
            task.retry_policy = None  # its delays are longer
        done = threading.Event()
        responder = threading.Thread(target=_respond_or_interrupt, args=(dag_id, answer, done))
        responder.start()
        try:
            at = datetime.now(UTC) if has_logical_date else None
            dag_run = dag.test(logical_date=at, run_conf=dict(conf or {}), mark_success_pattern=mark_success)
        finally:
            done.set()
            responder.join()
        return str(dag_run.state), {ti.task_id: str(ti.state) for ti in dag_run.get_task_instances()}

    return run


def _respond_or_interrupt(dag_id: str, answer: Answer | None, done: threading.Event) -> None:
    """Without an answer `dag.test()` would wait for ever: a failure here ends it."""
    try:
        _respond(dag_id, answer, done)
    except BaseException:
        _thread.interrupt_main()
        raise


def _respond(dag_id: str, answer: Answer | None, done: threading.Event) -> None:
    """Answer whatever waits for a person; a question that no test expected fails instead of waiting for ever."""
    from airflow.models.hitl import HITLDetail
    from airflow.models.taskinstance import TaskInstance
    from airflow.models.trigger import handle_event_submit
    from airflow.triggers.base import TriggerEvent
    from airflow.utils.session import create_session
    from sqlalchemy import select

    waiting = (
        select(HITLDetail, TaskInstance)
        .join(TaskInstance, TaskInstance.id == HITLDetail.ti_id)
        .where(TaskInstance.dag_id == dag_id, TaskInstance.state == "awaiting_input")
    )
    with create_session() as session:
        left_by_others = {ti.id for _, ti in session.execute(waiting)}
    asked: Counter[str] = Counter()
    while not done.wait(LOOK_S):
        with create_session() as session:
            for detail, ti in session.execute(waiting):
                if ti.id in left_by_others:
                    continue
                if answer is None:
                    ti.state = "failed"
                    continue
                if detail.responded_at is None:  # `dag.test()` can write a parked task's state after an early answer
                    answer.meanwhile(ti.run_id, session)
                    asked[ti.task_id] += 1
                detail.responded_by = answer.person and {"id": answer.person, "name": answer.person}
                detail.responded_at = datetime.now(UTC)
                option, form = answer.undo if ti.task_id == "undo.approve" else answer.option, answer.form
                if asked[ti.task_id] > 1:
                    option, form = ("Reject", {}) if answer.again is None else (option, answer.again)
                detail.chosen_options, detail.params_input = [option], dict(form)
                payload = detail.as_resume_event_payload(timedout=answer.person is None)
                handle_event_submit(TriggerEvent(payload), task_instance=ti, session=session)


def announced(count: int = 1) -> list[Any]:
    """The extras of the last events of assets, the newest last."""
    from airflow.models.asset import AssetEvent
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        return session.scalars(select(AssetEvent.extra).order_by(AssetEvent.id)).all()[-count:]


def cancel(trigger: Any, monkeypatch: pytest.MonkeyPatch, state: str) -> None:
    """As the triggerer does once a trigger isn't its own any more; the state that the task is in by then."""
    trigger.task_instance = SimpleNamespace(dag_id="pulsar_rebalance", run_id="r", task_id="apply", map_index=-1)
    count = "airflow.sdk.execution_time.task_runner.RuntimeTaskInstance.get_ti_count"
    monkeypatch.setattr(count, lambda states, **_: int(state in states))
    asyncio.run(trigger.on_kill())


def pass_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task waits in no time: each of its looks at the clock is 100 s after the one before."""
    from pulsar_advisor_airflow.tasks import runs

    monkeypatch.setattr(runs, "monotonic", itertools.count(0, 100).__next__)
    monkeypatch.setattr(runs, "sleep", lambda _s: None)


@pytest.fixture
def half_done(stages: Stages) -> Stages:
    """A plan whose second step no longer matches the cluster once its run has begun."""
    plan = make_plan([unload_step(1), unload_step(2, bundle=UPPER, source=B1)], snapshot=stages.plan.snapshot)
    stages.plan = plan
    stages.cluster.on_event = lambda what: (
        stages.cluster.owners.update({f"{NAMESPACE}/{UPPER}": B3}) if what == "after the call" else None
    )
    return stages
