"""The addresses of the pages, and the forms that steer a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final

from fastapi import Depends, FastAPI, HTTPException, Path, Query, Request
from fastapi.responses import RedirectResponse, Response

from pulsar_advisor.execution.apply import abort, go_on, pause
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.plans import plan_record
from pulsar_advisor.execution.ledger.tables import Run
from pulsar_advisor.execution.person import Person
from pulsar_advisor.model.cluster.snapshot_id import snapshot_moment
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.model.plans.plan import Plan, load_plan, short
from pulsar_advisor.reporting.figures import moment
from pulsar_advisor.storage.index import has_report
from pulsar_advisor_airflow.clusters import Cluster
from pulsar_advisor_airflow.configuration import page_link, report_link
from pulsar_advisor_airflow.pages.access import (
    form_token,
    may_write,
    readable,
    readable_dag,
    steered_by,
    visible,
)
from pulsar_advisor_airflow.pages.answers import answer_errors, one_of_few, page, templates, with_headers
from pulsar_advisor_airflow.pages.content import (
    Place,
    cluster_content,
    cluster_lines,
    ledger_if_any,
    newest_report,
    plan_content,
    root_of,
    run_content,
    run_of,
)
from pulsar_advisor_airflow.pages.dag_runs import REBALANCE, cluster_of, subject_of
from pulsar_advisor_airflow.pages.sparkline import sparkline
from pulsar_advisor_airflow.pages.streamed import streamed

REFRESH_S: Final = 5
"""How often the page of an active run is read again."""

REPORT_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'self'"
    ),
}
"""Anyone who can write the root controls this page, so it runs no script, loads nothing, and has an opaque origin."""

SEE_OTHER: Final = 303

pages = FastAPI(
    title="Pages of the Pulsar Rebalance Advisor",
    docs_url=None,
    redoc_url=None,
    openapi_url=None,
    dependencies=[Depends(one_of_few)],
)
answer_errors(pages)
app = with_headers(pages)


def _age(of: str | datetime) -> str:
    """How long ago something happened, or the snapshot of this id was begun: `12 min`, `5 h`, `3 d`."""
    began = snapshot_moment(of) if isinstance(of, str) else of
    minutes = int((datetime.now(UTC) - began).total_seconds()) // 60
    if minutes < 120:
        return f"{minutes} min"
    return f"{minutes // 60} h" if minutes < 48 * 60 else f"{minutes // (24 * 60)} d"


templates.filters |= {
    "age": _age,
    "moment": moment,
    "short": short,
    "took": lambda milliseconds: str(timedelta(seconds=milliseconds // 1000)),
    "percent": lambda ratio: f"{ratio:.0%}",
}
templates.globals |= {"report_link": report_link, "sparkline": sparkline}


_Number = Annotated[int, Path(ge=1, le=2**31)]
_Offset = Annotated[int, Query(ge=0, le=2**31)]


def _place(
    snapshots_before: Annotated[str | None, Query(pattern=r"^[0-9]{8}T[0-9]{6}Z$")] = None,
    plans_from: _Offset = 0,
    runs_from: _Offset = 0,
    steps_from: _Offset = 0,
    events_before: _Offset | None = None,
) -> Place:
    """The parts of lists that an address asks for."""
    return Place(snapshots_before, plans_from, runs_from, steps_from, events_before)


# A mounted application has no authentication unless it adds it: each route names what it requires.
@pages.get("/")
def clusters_page(request: Request, seen: Annotated[list[Cluster], Depends(visible)]) -> Response:
    """The clusters that the user may see."""
    return page(request, "clusters.html", lines=cluster_lines(seen))


@pages.get("/clusters/{cluster}")
def cluster_page(
    request: Request, cluster: Annotated[Cluster, Depends(readable)], place: Annotated[Place, Depends(_place)]
) -> Response:
    """A cluster's snapshots, plans, runs and events."""
    return page(request, "cluster.html", cluster=cluster, content=cluster_content(cluster, place))


@pages.get("/clusters/{cluster}/reports/{snapshot}")
def report(request: Request, cluster: Annotated[Cluster, Depends(readable)], snapshot: str) -> Response:
    """The report of one snapshot; 404 if there is none."""
    root = root_of(cluster)
    path = root.folder("reports", root.resolve(snapshot)) / "report.html"
    return streamed(request, path, "text/html", REPORT_HEADERS)


@pages.get("/clusters/{cluster}/plans/{digest}")
def plan_page(
    request: Request,
    cluster: Annotated[Cluster, Depends(readable)],
    digest: str,
    place: Annotated[Place, Depends(_place)],
) -> Response:
    """A plan: its steps, who proposed and approved it, its runs, and its events in the ledger."""
    with _ledger() as ledger:
        content = plan_content(ledger, cluster, digest, place)
    return page(request, "plan.html", cluster=cluster, content=content)


@pages.get("/dags/{dag}")
def dag_tab(
    request: Request,
    dag: Annotated[str, Depends(readable_dag)],
    seen: Annotated[list[Cluster], Depends(visible)],
) -> Response:
    """The tab of a DAG: the newest report of its cluster; for the DAG of all clusters, their list."""
    if dag == REBALANCE:
        return RedirectResponse(page_link(""), SEE_OTHER)
    cluster = _one_of(seen, cluster_of(dag))
    return _report_or_wait(request, cluster, newest_report(cluster))


@pages.get("/dags/{dag}/runs/{run:path}")
def dag_run_tab(
    request: Request,
    dag: Annotated[str, Depends(readable_dag)],
    run: str,
    seen: Annotated[list[Cluster], Depends(visible)],
) -> Response:
    """The tab of a DAG run: the report of the snapshot that it is about."""
    subject = subject_of(dag, run)
    cluster = _one_of(seen, subject.cluster if subject else None)
    snapshot = subject.snapshot if subject else None
    root = root_of(cluster)
    known = snapshot is not None and has_report(root, root.resolve(snapshot))
    return _report_or_wait(request, cluster, snapshot if known else None)


@pages.get("/clusters/{cluster}/runs/{run}")
def run_page(
    request: Request,
    cluster: Annotated[Cluster, Depends(readable)],
    run: _Number,
    place: Annotated[Place, Depends(_place)],
    writes: Annotated[bool, Depends(may_write)],
    token: Annotated[str, Depends(form_token)],
) -> Response:
    """A run, step by step; while it is active the page renews itself."""
    with _ledger() as ledger:
        content = run_content(ledger, cluster, run, place)
    headers = {"Refresh": str(REFRESH_S)} if content.run.state == "active" else {}
    return page(request, "run.html", headers, cluster=cluster, content=content, writes=writes, token=token)


@pages.post("/clusters/{cluster}/runs/{run}/pause")
def pause_run(
    cluster: Annotated[Cluster, Depends(readable)], run: _Number, person: Annotated[Person, Depends(steered_by)]
) -> RedirectResponse:
    """End the run, or park it, after its steps in flight."""
    return _steer(cluster, run, person, pause)


@pages.post("/clusters/{cluster}/runs/{run}/go-on")
def let_run_go_on(
    cluster: Annotated[Cluster, Depends(readable)], run: _Number, person: Annotated[Person, Depends(steered_by)]
) -> RedirectResponse:
    """Lift the pause of a run."""
    return _steer(cluster, run, person, go_on)


@pages.post("/clusters/{cluster}/runs/{run}/stop")
def stop_run(
    cluster: Annotated[Cluster, Depends(readable)], run: _Number, person: Annotated[Person, Depends(steered_by)]
) -> RedirectResponse:
    """End the run for good, before its next call."""
    return _steer(cluster, run, person, abort)


def _one_of(seen: Sequence[Cluster], cluster: Cluster | None) -> Cluster:
    if cluster is None:
        raise UsageError("this is not a DAG of the Pulsar Rebalance Advisor that has reports")
    if cluster not in seen:
        raise HTTPException(403, "you need permission to view the cluster's DAG pulsar_recommend")
    return cluster


def _report_or_wait(request: Request, cluster: Cluster, snapshot: str | None) -> Response:
    """The report; without one, a page that looks for it again by itself."""
    if snapshot is None:
        return page(request, "no_report.html", {"Refresh": str(REFRESH_S)}, cluster=cluster)
    return RedirectResponse(report_link(cluster.name, snapshot), SEE_OTHER)


def _steer(
    cluster: Cluster, number: int, person: Person, order: Callable[[Ledger, Plan, Person], Sequence[Run]]
) -> RedirectResponse:
    with _ledger() as ledger:
        digest = run_of(ledger, cluster, number).digest
        plan = plan_record(ledger, digest)
        if plan is None:
            raise UsageError(f"no plan {digest} was proposed for cluster '{cluster.name}'")
        order(ledger, load_plan(plan.document.encode()), person)
    return RedirectResponse(page_link("clusters", cluster.name, "runs", str(number)), SEE_OTHER)


@contextmanager
def _ledger() -> Iterator[Ledger]:
    with ledger_if_any() as ledger:
        if ledger is None:
            raise UsageError("there is no ledger yet, so there are no runs")
        yield ledger
