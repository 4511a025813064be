"""The addresses of the pages, and the forms that propose a plan or steer a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Annotated, Final

from fastapi import Depends, FastAPI, Path, Query, Request
from fastapi.responses import RedirectResponse, Response
from markupsafe import Markup

from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.plans import recorded_plan
from pulsar_advisor.execution.ledger.rolls import roll_of_plan
from pulsar_advisor.execution.ledger.tables import Run
from pulsar_advisor.execution.person import Person
from pulsar_advisor.execution.run.steering import abort, go_on, pause
from pulsar_advisor.model.bounds import DEFAULT_DAYS
from pulsar_advisor.model.cluster.snapshot_id import snapshot_moment
from pulsar_advisor.model.errors import Refused, UsageError
from pulsar_advisor.model.plans.names import short
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.model.text.some_of import lasting
from pulsar_advisor.planning.plans.consent import usage_change
from pulsar_advisor.reporting.figures import count, moment, percent
from pulsar_advisor.reporting.fleet import render_fleet
from pulsar_advisor.reporting.html import SCRIPT_SHA256
from pulsar_advisor_airflow.clusters import Cluster, labelled
from pulsar_advisor_airflow.configuration import airflow_link, page_link, report_link
from pulsar_advisor_airflow.forms import RUN
from pulsar_advisor_airflow.pages.access import ROLLING, WRITING, FormToken, MayWrite, Readable, SteeredBy, Visible
from pulsar_advisor_airflow.pages.answers import answer_errors, kept, one_of_few, page, templates, with_headers
from pulsar_advisor_airflow.pages.clusters import cluster_content, cluster_lines, fleet_rows
from pulsar_advisor_airflow.pages.dag_runs import SCHEDULED
from pulsar_advisor_airflow.pages.parts import Offsets
from pulsar_advisor_airflow.pages.places import ledger_if_any, root_of
from pulsar_advisor_airflow.pages.plans import plan_content, plan_of_report, proposed_plan, report_content
from pulsar_advisor_airflow.pages.rolls import rolls
from pulsar_advisor_airflow.pages.runs import run_content, run_of
from pulsar_advisor_airflow.pages.sparkline import sparkline
from pulsar_advisor_airflow.pages.streamed import streamed

REFRESH_S: Final = 5
"""Interval at which the page of an active run renews itself."""

REPORT_HEADERS: Final = {
    "Content-Security-Policy": (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{SCRIPT_SHA256}'; img-src data:; "
        "sandbox allow-scripts; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
    )
}
"""Anyone who can write to the root controls this page, so it runs only our script, which sorts its tables, loads
nothing, and has an opaque origin."""

pages = FastAPI(
    title="Pages of the Pulsar Rebalance Advisor",
    docs_url=None,
    redoc_url=None,
    openapi_url=None,
    dependencies=[Depends(one_of_few)],
)
pages.include_router(rolls)
answer_errors(pages)
app = with_headers(pages)


def _age(of: str | datetime) -> str:
    """How long ago something happened, or the snapshot with this id began: `12 min`, `5 h`, `3 d`.

    0 min if another machine's clock, which said when, is ahead.
    """
    began = snapshot_moment(of) if isinstance(of, str) else of
    minutes = max(0, int((datetime.now(UTC) - began).total_seconds()) // 60)
    if minutes < 120:
        return f"{minutes} min"
    return f"{minutes // 60} h" if minutes < 48 * 60 else f"{minutes // (24 * 60)} d"


def _moment(epoch_ms: int) -> Markup:
    """A moment in UTC; the pages' script adds the viewer's time. A number beyond all years stays one."""
    try:
        machine = datetime.fromtimestamp(epoch_ms // 1000, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return Markup("{}").format(moment(epoch_ms))
    return Markup('<time datetime="{}">{}</time>').format(machine, moment(epoch_ms))


def _took(milliseconds: int) -> str:
    """How long something took: `0:12:05`; 0:00:00 if the ledger's clock was set back meanwhile."""
    return str(timedelta(seconds=max(0, milliseconds) // 1000))


templates.filters |= {
    "age": _age,
    "moment": _moment,
    "short": short,
    "took": _took,
    "lasting": lasting,
    "percent": percent,
    "count": count,
    "usage_change": usage_change,
}
templates.globals |= {
    "report_link": report_link,
    "sparkline": sparkline,
    "airflow_link": airflow_link,
    "dag_of": labelled,
    "SCHEDULED": SCHEDULED,
    "ROLLING": ROLLING,
    "WRITING": WRITING,
    "RUN": RUN,
}


_Number = Annotated[int, Path(ge=1, le=2**31)]
_Offsets = Annotated[Offsets, Query()]


# A mounted application has no authentication unless it adds its own: each route names what it requires.
@pages.get("/")
def clusters_page(request: Request, seen: Visible) -> Response:
    """The clusters that the user may see."""
    return page(request, "clusters.html", lines=cluster_lines(seen))


@pages.get("/index")
def index_page(request: Request, seen: Visible) -> Response:
    """The last weeks of the clusters that the user may see: the page that `pulsar-advisor index` writes."""
    return kept(request, render_fleet(fleet_rows(seen), DEFAULT_DAYS, page_link("")))


@pages.get("/clusters/{cluster}")
def cluster_page(request: Request, cluster: Readable, offsets: _Offsets) -> Response:
    """A cluster's snapshots, plans, runs and events."""
    return page(request, "cluster.html", cluster=cluster, content=cluster_content(cluster, offsets))


@pages.get("/clusters/{cluster}/reports/{snapshot}")
def report_page(request: Request, cluster: Readable, snapshot: str, writes: MayWrite) -> Response:
    """The report of one snapshot, with the plans in it that may be proposed; 404 if there is none."""
    content = report_content(cluster, root_of(cluster).resolve(snapshot))
    return page(request, "report.html", cluster=cluster, content=content, writes=writes)


@pages.get("/clusters/{cluster}/reports/{snapshot}/report.html")
def report(request: Request, cluster: Readable, snapshot: str) -> Response:
    """The report itself, as it was written."""
    path = root_of(cluster).resolve(snapshot).folder("reports") / "report.html"
    return streamed(request, path, "text/html", REPORT_HEADERS)


@pages.get("/clusters/{cluster}/reports/{snapshot}/plans/{digest}")
def recommended_plan_page(
    request: Request, cluster: Readable, snapshot: str, digest: str, offsets: _Offsets, writes: MayWrite
) -> Response:
    """A plan of a report, proposed or not."""
    plan = plan_of_report(root_of(cluster).resolve(snapshot), digest)
    with ledger_if_any() as ledger:
        content = plan_content(ledger, cluster, plan, offsets)
    return page(request, "plan.html", cluster=cluster, content=content, writes=writes)


@pages.get("/clusters/{cluster}/plans/{digest}")
def plan_page(request: Request, cluster: Readable, digest: str, offsets: _Offsets, writes: MayWrite) -> Response:
    """A plan: its steps, who proposed and approved it, its runs, and its events in the ledger."""
    with ledger_if_any() as ledger:
        content = plan_content(ledger, cluster, proposed_plan(ledger, cluster, digest), offsets)
    return page(request, "plan.html", cluster=cluster, content=content, writes=writes)


@pages.get("/clusters/{cluster}/runs/{run}")
def run_page(
    request: Request, cluster: Readable, run: _Number, offsets: _Offsets, writes: MayWrite, token: FormToken
) -> Response:
    """A run, step by step; while it is active the page renews itself."""
    with _ledger() as ledger:
        content = run_content(ledger, cluster, run, offsets)
    headers = {"Refresh": str(REFRESH_S)} if content.run.state == "active" else {}
    return page(request, "run.html", headers, cluster=cluster, content=content, writes=writes, token=token)


@pages.post("/clusters/{cluster}/runs/{run}/pause")
def pause_run(cluster: Readable, run: _Number, person: SteeredBy) -> RedirectResponse:
    """End the run, or park it, after its steps in flight."""
    return _steer(cluster, run, person, pause)


@pages.post("/clusters/{cluster}/runs/{run}/go-on")
def let_run_go_on(cluster: Readable, run: _Number, person: SteeredBy) -> RedirectResponse:
    """Lift the pause of a run."""
    return _steer(cluster, run, person, go_on)


@pages.get("/clusters/{cluster}/runs/{run}/stop")
def ask_to_stop_run(request: Request, cluster: Readable, run: _Number, writes: MayWrite, token: FormToken) -> Response:
    """Ask once more: a tap can go astray, and a stopped run never continues."""
    with _ledger() as ledger:
        run_of(ledger, cluster, run)
    return page(
        request,
        "ask.html",
        cluster=cluster,
        writes=writes,
        token=token,
        question=f"Stop run {run} for good?",
        afterwards="It ends before its next call and never continues: what is left takes a new plan.",
        label="Stop for good",
        back=page_link("clusters", cluster.name, "runs", str(run)),
    )


@pages.post("/clusters/{cluster}/runs/{run}/stop")
def stop_run(cluster: Readable, run: _Number, person: SteeredBy) -> RedirectResponse:
    """End the run for good, before its next call."""
    return _steer(cluster, run, person, abort)


def _steer(
    cluster: Cluster, number: int, person: Person, order: Callable[[Ledger, Plan, Person], Sequence[Run]]
) -> RedirectResponse:
    with _ledger() as ledger:
        digest = run_of(ledger, cluster, number).digest
        if (roll := roll_of_plan(ledger, digest)) is not None:  # a roll, for which other people may have permission
            raise Refused(f"run {number} is a turn of the roll {roll}: pause, continue or end it on the roll's page")
        order(ledger, recorded_plan(ledger, digest), person)
    return RedirectResponse(page_link("clusters", cluster.name, "runs", str(number)), HTTPStatus.SEE_OTHER)


@contextmanager
def _ledger() -> Iterator[Ledger]:
    with ledger_if_any() as ledger:
        if ledger is None:
            raise UsageError("there is no ledger yet, so there are no runs")
        yield ledger
