"""The only file in this folder that Airflow loads: adds the advisor's pages to Airflow's web server."""

from __future__ import annotations

from typing import Any, ClassVar

from airflow.plugins_manager import AirflowPlugin

from pulsar_advisor_airflow import listeners
from pulsar_advisor_airflow.configuration import PAGES_PREFIX, page_link
from pulsar_advisor_airflow.release import require_release

require_release("0.1.0", __file__)


async def pages(scope: Any, receive: Any, send: Any) -> None:
    """The ASGI application of the pages, imported on the first request, as every task process loads this file."""
    from pulsar_advisor_airflow.pages.app import app

    await app(scope, receive, send)


class PulsarAdvisorPlugin(AirflowPlugin):
    """The pages under `/pulsar-advisor/`; *Browse → Pulsar clusters*, which opens the first of them; and a record of
    gates that are set by hand. Nothing is added to DAGs: Airflow would add it to those of other teams, too."""

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
    ]
