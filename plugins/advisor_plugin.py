"""The only file in this folder that Airflow loads: adds the advisor's reports to Airflow's web server."""

from __future__ import annotations

from typing import Any, ClassVar

from airflow.plugins_manager import AirflowPlugin

from pulsar_advisor_airflow.configuration import PAGES_PREFIX


async def pages(scope: Any, receive: Any, send: Any) -> None:
    """The ASGI application of the pages, imported on the first request, as every task process loads this file."""
    from pulsar_advisor_airflow.report_page import app

    await app(scope, receive, send)


class PulsarAdvisorPlugin(AirflowPlugin):
    """Reports under `/pulsar-advisor/clusters/<cluster>/reports/<snapshot>`."""

    name = "pulsar_advisor"
    fastapi_apps: ClassVar = [{"app": pages, "url_prefix": PAGES_PREFIX, "name": "pulsar-advisor"}]
