"""Who may see and do what, on which cluster: pages and Airflow's own API, for every role."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from dags.pages.conftest import LogIn, page_of, page_of_roll, started, token_in, write_report
from pulsar_advisor.execution.ledger.held_run import HeldRun
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.runs import run_by_id
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.storage.root import Root
from pulsar_advisor_airflow.pages.access import _signer
from unit.execution.doubles import B1, SNAPSHOT
from unit.execution.roll.doubles import drained

pytestmark = pytest.mark.airflow

YES, SEE_OTHER, LOG_IN, NO, NOT_STORED = 200, 303, 401, 403, 404
"""Airflow answers 404 to whoever may trigger a DAG, or answer for it, as no DAG is stored in the tests' database."""


@dataclass(frozen=True)
class May:
    """What a user's requests about one cluster are answered with."""

    see: int
    steer: int
    propose: int
    answer: int


EVERYTHING = May(YES, SEE_OTHER, NOT_STORED, NOT_STORED)
SEE_ONLY = May(YES, NO, NO, NO)
NOTHING = May(NO, NO, NO, NO)
STRANGER = May(LOG_IN, LOG_IN, LOG_IN, LOG_IN)

TABLE = {
    ("", "prod-eu"): STRANGER,
    ("", "prod-us"): STRANGER,
    ("vic", "prod-eu"): SEE_ONLY,
    ("vic", "prod-us"): SEE_ONLY,
    ("olive", "prod-eu"): EVERYTHING,
    ("olive", "prod-us"): EVERYTHING,
    ("admin", "prod-eu"): EVERYTHING,
    ("admin", "prod-us"): EVERYTHING,
    ("eve", "prod-eu"): EVERYTHING,
    ("eve", "prod-us"): SEE_ONLY,
    ("una", "prod-eu"): NOTHING,
    ("una", "prod-us"): SEE_ONLY,
}


@pytest.fixture
def runs(root: Root, ledger: Ledger, plan: Plan) -> dict[str, HeldRun]:
    """An active run on each cluster, both of which have a report."""
    write_report(Root(root.url, "prod-us"))
    identity = plan.identity.model_copy(update={"cluster_name": "live-us"})
    of_us = plan.model_copy(update={"cluster": "prod-us", "identity": identity})
    return {"prod-eu": started(ledger, plan), "prod-us": started(ledger, of_us)}


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(("user", "cluster"), TABLE)
def test_each_user_may_do_on_each_cluster_what_the_table_says(
    server: LogIn, runs: dict[str, HeldRun], user: str, cluster: str
) -> None:
    client, run, may = server(user), runs[cluster], TABLE[user, cluster]
    of_cluster = f"/pulsar-advisor/clusters/{cluster}"
    seen = [
        client.get(f"{of_cluster}{page}").status_code
        for page in (
            "",
            f"/plans/{run.digest}",
            f"/runs/{run.id}",
            f"/reports/{SNAPSHOT}",
            f"/reports/{SNAPSHOT}/report.html",
        )
    ]
    assert set(seen) == {may.see}
    dag = f"/api/v2/dags/pulsar_rebalance__{cluster}/dagRuns"
    assert client.post(dag, json={"logical_date": None, "conf": {"digest": run.digest}}).status_code == may.propose
    response = {"chosen_options": ["Approve"], "params_input": {}}
    request = f"{dag}/manual__1/taskInstances/approve/-1/hitlDetails"
    assert client.patch(request, json=response).status_code == may.answer
    asking = client.get(f"{page_of(run, cluster)}/stop").text
    assert ("Stop for good" in asking) == (may.steer == SEE_OTHER)
    for order in ("pause", "go-on", "stop"):
        token = token_in(client.get(page_of(run, cluster)).text)
        sent = client.post(f"{page_of(run, cluster)}/{order}", data={"token": token})
        assert sent.status_code == may.steer


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(("user", "cluster"), TABLE)
def test_each_user_may_do_with_each_clusters_roll_what_the_table_says(
    server: LogIn, root: Root, ledger: Ledger, user: str, cluster: str
) -> None:
    client, may, roll = server(user), TABLE[user, cluster], drained(ledger, cluster)
    assert client.get(page_of_roll(roll)).status_code == may.see
    asking = client.get(f"{page_of_roll(roll)}/end").text
    assert ("End for good" in asking) == (may.steer == SEE_OTHER)
    for order in ("restarted", "pause", "go-on", "end"):
        token = token_in(client.get(page_of_roll(roll)).text)
        sent = client.post(f"{page_of_roll(roll)}/{order}", data={"token": token, "broker": B1})
        assert sent.status_code == may.steer
    seen = roll.look().recorded
    changed = may.steer == SEE_OTHER
    assert (seen.announced is not None, seen.ended is not None) == (changed, changed)


@pytest.mark.parametrize(
    ("user", "see", "steer_runs", "steer_rolls"),
    [("rita", YES, SEE_OTHER, NO), ("rolf", YES, NO, SEE_OTHER), ("nora", NO, NO, NO)],
)
def test_the_permission_on_one_dag_of_a_cluster_is_none_on_another(
    server: LogIn, ledger: Ledger, runs: dict[str, HeldRun], user: str, see: int, steer_runs: int, steer_rolls: int
) -> None:
    client, roll = server(user), drained(ledger, "prod-eu")
    orders = {
        page_of(runs["prod-eu"]): (steer_runs, ("pause", "go-on", "stop")),
        page_of_roll(roll): (steer_rolls, ("restarted", "pause", "go-on", "end")),
    }
    for page, (steer, verbs) in orders.items():
        shown = client.get(page)
        assert (shown.status_code, "<button" in shown.text) == (see, steer == SEE_OTHER)
        token = _signer().dumps([user, page])
        sent = [client.post(f"{page}/{verb}", data={"token": token, "broker": B1}).status_code for verb in verbs]
        assert set(sent) == {steer}


@pytest.mark.parametrize("user", ["eve", "una"])
def test_the_form_that_one_cluster_showed_steers_no_other(
    server: LogIn, ledger: Ledger, runs: dict[str, HeldRun], user: str
) -> None:
    shown = token_in(server("eve").get(page_of(runs["prod-eu"])).text)
    for cluster, run in (("prod-us", runs["prod-us"]), ("prod-us", runs["prod-eu"])):
        assert server(user).post(f"{page_of(run, cluster)}/stop", data={"token": shown}).status_code == NO
    assert [run_by_id(ledger, run.id).state for run in runs.values()] == ["active", "active"]


def test_a_run_is_steered_on_its_own_clusters_pages_alone(
    server: LogIn, ledger: Ledger, runs: dict[str, HeldRun]
) -> None:
    page = page_of(runs["prod-us"], "prod-eu")
    sent = server("eve").post(f"{page}/stop", data={"token": _signer().dumps(["eve", page])})
    assert (sent.status_code, run_by_id(ledger, runs["prod-us"].id).state) == (404, "active")


def test_the_lists_have_the_clusters_that_a_user_may_see(server: LogIn, runs: dict[str, Any]) -> None:
    for path in ("", "index"):
        page = server("una").get(f"/pulsar-advisor/{path}").text
        assert "prod-us" in page
        assert "prod-eu" not in page
    assert server("").get("/pulsar-advisor/index").status_code == LOG_IN


def test_buttons_are_shown_to_those_who_may_press_them(server: LogIn, runs: dict[str, HeldRun]) -> None:
    shown = {cluster: "<button" in server("eve").get(page_of(run, cluster)).text for cluster, run in runs.items()}
    assert shown == {"prod-eu": True, "prod-us": False}
