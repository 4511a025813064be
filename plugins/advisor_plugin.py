"""The only file in this folder that Airflow loads: adds the advisor's reports to Airflow's web server."""

from __future__ import annotations

from typing import Any, ClassVar

from airflow.plugins_manager import AirflowPlugin

from pulsar_advisor_airflow.configuration import REPORTS_PREFIX


async def reports(scope: Any, receive: Any, send: Any) -> None:
    """The ASGI application for the reports, imported on the first request, as every task process loads this file."""
    from pulsar_advisor_airflow.report_page import app

    await app(scope, receive, send)


class PulsarAdvisorPlugin(AirflowPlugin):
    """Reports under `/pulsar-advisor/reports/<snapshot>`."""

    name = "pulsar_advisor"
    fastapi_apps: ClassVar = [{"app": reports, "url_prefix": REPORTS_PREFIX, "name": "pulsar-advisor-reports"}]
