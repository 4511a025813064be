"""Serves the HTML reports inside Airflow to users who may view the DAG that makes them.

`airflow.api_fastapi.core_api.security` is internal to Airflow's core, though its providers use it: only here.
"""

from __future__ import annotations

from typing import Final

from airflow.api_fastapi.core_api.security import requires_access_dag
from fastapi import Depends, FastAPI, HTTPException
from fastapi.responses import HTMLResponse

from pulsar_advisor.model.errors import AdvisorError, StorageError
from pulsar_advisor.storage.files import read_file
from pulsar_advisor.storage.root import Root
from pulsar_advisor_airflow.configuration import option

RECOMMENDING_DAG: Final = "pulsar_recommend"

HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'self'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
"""Anyone who can write the root controls this page, so it runs no script, loads nothing, and has an opaque origin."""

app = FastAPI(title="Reports of the Pulsar Rebalance Advisor", docs_url=None, redoc_url=None, openapi_url=None)


# A mounted application has no authentication unless it adds it.
@app.get("/{snapshot}", dependencies=[Depends(requires_access_dag(method="GET", param_dag_id=RECOMMENDING_DAG))])
def report(snapshot: str) -> HTMLResponse:
    """The report of one snapshot of the configured cluster; 404 if there is none."""
    root = Root(option("root"), option("cluster"))
    try:
        page = read_file(root.folder("reports", root.resolve(snapshot)) / "report.html", "report")
    except AdvisorError as error:
        raise HTTPException(500 if isinstance(error, StorageError) else 404, str(error)) from error
    return HTMLResponse(page, headers=HEADERS)
