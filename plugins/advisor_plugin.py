"""The only file in this folder that Airflow loads: adds the advisor's pages to Airflow's web server."""

from __future__ import annotations

from typing import Any, ClassVar

from airflow.plugins_manager import AirflowPlugin

from pulsar_advisor_airflow import listeners
from pulsar_advisor_airflow.configuration import PAGES_PREFIX, page_link


async def pages(scope: Any, receive: Any, send: Any) -> None:
    """The ASGI application of the pages, imported on the first request, as every task process loads this file."""
    from pulsar_advisor_airflow.pages.app import app

    await app(scope, receive, send)


class PulsarAdvisorPlugin(AirflowPlugin):
    """The pages under `/pulsar-advisor/`; *Browse → Pulsar clusters*, which shows the first of them; and the report as
    a tab of a DAG and of a DAG run; and a record of gates that are set by hand."""

    name = "pulsar_advisor"
    listeners: ClassVar = [listeners]
    fastapi_apps: ClassVar = [{"app": pages, "url_prefix": PAGES_PREFIX, "name": "pulsar-advisor"}]
    external_views: ClassVar = [
        {
            "name": "Pulsar clusters",
            "href": page_link(""),
            "destination": "nav",
            "category": "browse",
            "url_route": "pulsar-clusters",
        },
        {
            "name": "Pulsar report",
            "href": page_link("dags", "{DAG_ID}"),
            "destination": "dag",
            "url_route": "pulsar-report",
        },
        {
            "name": "Pulsar report",
            "href": page_link("dags", "{DAG_ID}", "runs", "{RUN_ID}"),
            "destination": "dag_run",
            "url_route": "pulsar-run-report",
        },
    ]
