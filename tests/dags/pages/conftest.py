"""Airflow's web server with our plugin, its users, and two clusters to show them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager
from fastapi.testclient import TestClient

import documents
from pulsar_advisor.execution.ledger.held_run import HeldRun
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.opening import open_ledger
from pulsar_advisor.execution.roll.conduct import Roll
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.storage.files import write_file
from pulsar_advisor.storage.root import MANIFEST, RESULT, Root
from unit.execution import actors
from unit.execution.doubles import SNAPSHOT, make_plan, unload_step

OF_DAGS: Final[Mapping[str, Callable[[str, str, str], bool]]] = {
    "eve": lambda method, _dag, cluster: method == "GET" or cluster == "prod-eu",
    "una": lambda method, _dag, cluster: method == "GET" and cluster == "prod-us",
    "rita": lambda method, dag, _cluster: method == "GET" or dag == "pulsar_rebalance",
    "rolf": lambda method, dag, _cluster: method == "GET" or dag == "pulsar_rolling_restart",
    "nora": lambda _method, dag, _cluster: dag != "pulsar_recommend",
}
"""What those users may do whose permissions differ from DAG to DAG, as in an Airflow with roles of its own."""
USERS: Final = {"admin": "admin", "olive": "user", "vic": "viewer", **dict.fromkeys(OF_DAGS, "user")}
"""Name to role."""
HOSTILE = "<script>alert(1)</script>"
DECEPTIVE = "\u202e\x1b[2J\u3164"
"""Reverses the direction, clears a terminal, shows nothing."""


class PerDag(SimpleAuthManager):
    """Airflow's simple one, which knows no permissions on single DAGs, with some for a few users."""

    def is_authorized_dag(self, *, method: Any, user: Any, details: Any = None, **others: Any) -> bool:
        """Whether a user may read or edit a DAG, whose name ends with that of its cluster."""
        if user.username in OF_DAGS and details is not None and details.id:
            dag, _, cluster = details.id.partition("__")
            return OF_DAGS[user.username](method, dag, cluster)
        return bool(super().is_authorized_dag(method=method, user=user, details=details, **others))


LogIn = Callable[[str], TestClient]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, database: None) -> Iterator[LogIn]:
    """Airflow's web server with our plugin; gives a client with the login of a user, or without one."""
    from airflow.api_fastapi.app import create_app, purge_cached_app

    passwords = tmp_path_factory.mktemp("passwords") / "passwords.json"
    passwords.write_text(json.dumps({name: f"password of {name}" for name in USERS}))
    with pytest.MonkeyPatch.context() as patch:
        roles = ",".join(f"{name}:{role}" for name, role in USERS.items())
        patch.setenv("AIRFLOW__CORE__AUTH_MANAGER", f"{PerDag.__module__}.{PerDag.__qualname__}")
        patch.setenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS", roles)
        patch.setenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE", str(passwords))
        purge_cached_app()
        app = create_app(apps="core")

        def log_in(name: str) -> TestClient:
            client = TestClient(app, base_url="http://127.0.0.1", follow_redirects=False)
            if name:
                login = {"username": name, "password": f"password of {name}"}
                client.headers["Authorization"] = (
                    f"Bearer {client.post('/auth/token', json=login).json()['access_token']}"
                )
            return client

        yield log_in
        purge_cached_app()


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, registered: Callable[..., None]) -> Root:
    """Two clusters in one root: one with a report, one that was never captured."""
    registered("prod-eu", "prod-us")
    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__ROOT", str(tmp_path / "root"))
    root = Root(str(tmp_path / "root"), "prod-eu")
    write_report(root)
    return root


def write_report(root: Root) -> None:
    """A snapshot with advice and a report."""
    write_file(root.snapshot(SNAPSHOT).folder("raw") / MANIFEST, documents.manifest().content())
    failed = documents.check(success=False, title="Ranges tile")
    write_file(root.snapshot(SNAPSHOT).folder("validation") / RESULT, documents.validation(failed).content())
    sentence = f"Move one bundle {HOSTILE}{DECEPTIVE}."
    document = documents.recommendation(plan="a.json", digest="sha256:0", sentence=sentence)
    write_file(root.snapshot(SNAPSHOT).folder("plans") / "recommendation.json", document.content())
    report = root.snapshot(SNAPSHOT).folder("reports") / "report.html"
    report.parent.mkdir(parents=True)
    report.write_text(f"<html>{HOSTILE}</html>")


@pytest.fixture
def plan() -> Plan:
    return make_plan([unload_step()], cluster="prod-eu")


@pytest.fixture
def ledger(root: Root) -> Iterator[Ledger]:
    ledger = open_ledger(root.ledger_url)
    yield ledger
    ledger.close()


@pytest.fixture
def held(ledger: Ledger, plan: Plan) -> HeldRun:
    """A run that has sent its first step."""
    return started(ledger, plan)


def started(ledger: Ledger, plan: Plan) -> HeldRun:
    """A run of a plan that alice proposed and bob approved, and that has sent its first step."""
    held = actors.started(ledger, plan)
    held.sent("step-001", "PUT /unload", None)
    return held


def page_of_roll(roll: Roll) -> str:
    """The address of a roll's page."""
    return f"/pulsar-advisor/clusters/{roll.plan.cluster}/rolls/{roll.digest}"


def page_of(held: HeldRun, cluster: str = "prod-eu") -> str:
    """The address of a run's page."""
    return f"/pulsar-advisor/clusters/{cluster}/runs/{held.id}"


def token_in(page: str) -> str:
    """The token in the forms of a page; empty without one."""
    return next(iter(re.findall(r'name="token" value="([^"]+)"', page)), "")
