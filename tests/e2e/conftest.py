"""A live cluster, an Airflow connected to it, and its users: over the REST API and in a browser."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from harness import standalone
from harness.airflow_api import Api, logged_in
from harness.cluster import ClusterOptions, LiveCluster
from harness.load import running_load
from harness.pages import logged_in_page
from harness.skew import wait_for_skew
from live.starting import unavailable_skips, with_cpu_skew
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.opening import open_ledger
from pulsar_advisor.storage.root import Root

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def cluster() -> Iterator[LiveCluster]:
    with unavailable_skips(), LiveCluster(ClusterOptions()) as cluster, running_load(with_cpu_skew(cluster)):
        wait_for_skew(cluster.admin)
        yield cluster


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Root:
    return Root(str(tmp_path_factory.mktemp("root")), "live")


@pytest.fixture(scope="module")
def schedule() -> str:
    """When snapshots are taken: never by itself."""
    return "0 0 29 2 *"


@pytest.fixture(scope="module")
def settings(cluster: LiveCluster) -> Mapping[str, str]:
    """Airflow's environment, on top of the harness's."""
    connection = {
        "conn_type": "pulsar_admin",
        "extra": {"admin_urls": ",".join(cluster.admin_urls), "zookeeper": cluster.zookeeper},
    }
    return {
        "AIRFLOW_CONN_PULSAR_DEFAULT": json.dumps(connection),
        "AIRFLOW__SCHEDULER__TRIGGER_TIMEOUT_CHECK_INTERVAL": "2",
    }


@pytest.fixture(scope="module")
def airflow(
    settings: Mapping[str, str], schedule: str, root: Root, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[standalone.Airflow]:
    environment = {**settings, "AIRFLOW__PULSAR_ADVISOR__SNAPSHOT_SCHEDULE": schedule}
    home = tmp_path_factory.mktemp("airflow")
    with standalone.running(REPOSITORY, home, Path(root.url), environment=environment) as airflow:
        yield airflow


@pytest.fixture(scope="module")
def user(airflow: standalone.Airflow) -> Callable[[str], Api]:
    """The API with the login of a user."""
    return lambda name: logged_in(airflow.url, name, airflow.passwords[name])


@pytest.fixture
def ledger(root: Root) -> Iterator[Ledger]:
    with closing(open_ledger(root.ledger_url)) as ledger:
        yield ledger


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium isn't installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def person(browser: Browser, airflow: standalone.Airflow) -> Callable[[str], Page]:
    """The browser of a user, logged in through Airflow's form."""
    pages: dict[str, Page] = {}

    def log_in(name: str) -> Page:
        if name not in pages:
            pages[name] = logged_in_page(browser, airflow, name)
        return pages[name]

    return log_in
