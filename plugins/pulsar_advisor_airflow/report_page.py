"""Serves the HTML reports inside Airflow to users who may view the DAG that makes them.

`airflow.api_fastapi.core_api.security` is internal to Airflow's core, though its providers use it: only here.
"""

from __future__ import annotations

from typing import Annotated, Final

from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_dag
from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import HTMLResponse

from pulsar_advisor.model.errors import AdvisorError, StorageError
from pulsar_advisor.storage.files import read_file
from pulsar_advisor.storage.root import Root
from pulsar_advisor_airflow.clusters import Cluster, clusters, labelled
from pulsar_advisor_airflow.configuration import option

HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'self'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
"""Anyone who can write the root controls this page, so it runs no script, loads nothing, and has an opaque origin."""

app = FastAPI(title="Pages of the Pulsar Rebalance Advisor", docs_url=None, redoc_url=None, openapi_url=None)


# A mounted application has no authentication unless it adds it.
def readable(cluster: str, request: Request, user: GetUserDep) -> Cluster:
    """The cluster of an address, for users who may see the DAG that recommends on it; otherwise 401, 403 or 404."""
    found = clusters().get(cluster)
    if found is None:
        raise HTTPException(404, "there is no such cluster")
    requires_access_dag(method="GET", param_dag_id=labelled("pulsar_recommend", found))(request, user)
    return found


@app.get("/clusters/{cluster}/reports/{snapshot}")
def report(cluster: Annotated[Cluster, Depends(readable)], snapshot: str) -> HTMLResponse:
    """The report of one snapshot; 404 if there is none."""
    root = Root(option("root"), cluster.name)
    try:
        page = read_file(root.folder("reports", root.resolve(snapshot)) / "report.html", "report")
    except AdvisorError as error:
        raise HTTPException(500 if isinstance(error, StorageError) else 404, str(error)) from error
    return HTMLResponse(page, headers=HEADERS)
