"""The three DAGs in a real Airflow against real brokers, driven over Airflow's REST API by named users."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

from harness import standalone
from harness.cluster import ClusterOptions, LiveCluster
from harness.configuration import CLUSTER_NAME
from harness.errors import LiveClusterUnavailable
from harness.load import running_load
from harness.skew import wait_for_skew
from pulsar_advisor.execution.ledger import Ledger, default_ledger_url, open_ledger
from pulsar_advisor.storage.root import Root

pytestmark = [pytest.mark.live, pytest.mark.airflow, pytest.mark.full]

REPOSITORY = Path(__file__).parents[2]
RUN_LIMIT_S = 600
PARKED_S = 3
"""Between `awaiting_input` and the answer: an answer within the same second can meet the scheduler half-way
(apache/airflow#66374)."""
YES_TO_ALL = {
    "allow_splits": True,
    "accept_worse": True,
    "accept_low_confidence": True,
    "comment": "agreed by telephone",
}


@dataclass(frozen=True)
class Api:
    """Airflow's public API as one user sees it."""

    url: str
    token: str

    def call(self, method: str, path: str, body: Any = None) -> requests.Response:
        headers = {"Authorization": f"Bearer {self.token}"}
        return requests.request(method, f"{self.url}/api/v2{path}", headers=headers, json=body, timeout=30)

    def get(self, path: str) -> Any:
        answer = self.call("GET", path)
        answer.raise_for_status()
        return answer.json()

    def trigger(self, dag: str, **conf: Any) -> str:
        if dag == "pulsar_rebalance":
            conf.setdefault("offer_undo_h", 0)  # a busy machine's load may drift from what was predicted
        answer = self.call("POST", f"/dags/{dag}/dagRuns", {"logical_date": None, "conf": conf})
        assert answer.ok, answer.text
        return str(answer.json()["dag_run_id"])

    def tasks(self, dag: str, run: str) -> dict[str, str | None]:
        return {
            task["task_id"]: task["state"]
            for task in self.get(f"/dags/{dag}/dagRuns/{run}/taskInstances")["task_instances"]
        }

    def result(self, dag: str, run: str, task: str) -> Any:
        path = f"/dags/{dag}/dagRuns/{run}/taskInstances/{task}/xcomEntries/return_value?deserialize=true"
        return self.get(path)["value"]

    def finished(self, dag: str, run: str) -> str:
        """The state a DAG run ends in."""
        return wait_for(
            lambda: (state := self.get(f"/dags/{dag}/dagRuns/{run}")["state"]) in ("success", "failed") and state
        )

    def request(self, run: str) -> dict[str, Any]:
        """The open request for approval of a run, once the task has been parked for a while."""
        path = f"/dags/pulsar_rebalance/dagRuns/{run}/taskInstances/approve"

        def parked() -> bool:
            state = self.get(path)["state"]
            assert state not in ("failed", "upstream_failed", "skipped"), self.tasks("pulsar_rebalance", run)
            return state == "awaiting_input"

        wait_for(parked)
        time.sleep(PARKED_S)
        detail: dict[str, Any] = self.get(f"{path}/-1/hitlDetails")
        return detail

    def answer(self, run: str, option: str, **form: Any) -> int:
        path = f"/dags/pulsar_rebalance/dagRuns/{run}/taskInstances/approve/-1/hitlDetails"
        return self.call("PATCH", path, {"chosen_options": [option], "params_input": form}).status_code


def wait_for(condition: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + RUN_LIMIT_S
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {RUN_LIMIT_S} s"
        time.sleep(1)
    return found


@pytest.fixture(scope="module")
def cluster() -> Iterator[LiveCluster]:
    with ExitStack() as running:
        cluster = LiveCluster(ClusterOptions())
        try:
            running.enter_context(cluster)
        except LiveClusterUnavailable as error:
            if os.environ.get("PULSAR_ADVISOR_REQUIRE_LIVE") == "1":
                raise
            pytest.skip(str(error))
        if not cluster.has_cpu_skew:
            pytest.skip("this machine doesn't permit mount namespaces, so all brokers report the host's CPU")
        running.enter_context(running_load(cluster))
        wait_for_skew(cluster.admin)
        yield cluster


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Root:
    return Root(str(tmp_path_factory.mktemp("root")), "live")


@pytest.fixture(scope="module")
def airflow(cluster: LiveCluster, root: Root, tmp_path_factory: pytest.TempPathFactory) -> Iterator[standalone.Airflow]:
    connection = {
        "conn_type": "pulsar_admin",
        "extra": {"admin_urls": ",".join(cluster.admin_urls), "zookeeper": cluster.zookeeper},
    }
    environment = {
        "AIRFLOW_CONN_PULSAR_DEFAULT": json.dumps(connection),
        "AIRFLOW__PULSAR_ADVISOR__SNAPSHOT_SCHEDULE": "0 0 29 2 *",
        "AIRFLOW__SCHEDULER__TRIGGER_TIMEOUT_CHECK_INTERVAL": "2",
    }
    home = tmp_path_factory.mktemp("airflow")
    with standalone.running(REPOSITORY, home, Path(root.url), environment=environment) as airflow:
        yield airflow


@pytest.fixture(scope="module")
def user(airflow: standalone.Airflow) -> Callable[[str], Api]:
    """The API with the login of a user."""

    def log_in(name: str) -> Api:
        login = {"username": name, "password": airflow.passwords[name]}
        answer = requests.post(f"{airflow.url}/auth/token", json=login, timeout=30)
        answer.raise_for_status()
        return Api(airflow.url, answer.json()["access_token"])

    return log_in


@pytest.fixture(scope="module")
def recommended(user: Callable[[str], Api]) -> dict[str, str]:
    """What `pulsar_snapshot`, and `pulsar_recommend` after it, leave behind: snapshot id and path of the report."""
    admin = user("admin")
    wait_for(lambda: len(admin.get("/dags")["dags"]) == 4)
    admin.call("PATCH", "/dags/pulsar_snapshot", {"is_paused": False}).raise_for_status()
    run = admin.trigger("pulsar_snapshot")
    assert admin.finished("pulsar_snapshot", run) == "success", admin.tasks("pulsar_snapshot", run)
    followed = wait_for(lambda: admin.get("/dags/pulsar_recommend/dagRuns")["dag_runs"])[0]["dag_run_id"]
    assert admin.finished("pulsar_recommend", followed) == "success", admin.tasks("pulsar_recommend", followed)
    return {
        "snapshot": admin.result("pulsar_snapshot", run, "require_trusted_snapshot"),
        "recommended_on": admin.result("pulsar_recommend", followed, "snapshot"),
        "report": admin.result("pulsar_recommend", followed, "report"),
    }


@pytest.fixture
def advice(recommended: dict[str, str], root: Root) -> dict[str, Any]:
    path = root.folder("plans", recommended["snapshot"]) / "recommendation.json"
    advice: dict[str, Any] = json.loads(path.read_bytes())["advice"]
    assert advice["digest"], advice["sentence"]
    return advice


@pytest.fixture
def ledger(root: Root) -> Iterator[Ledger]:
    with closing(open_ledger(default_ledger_url(root))) as ledger:
        yield ledger


def moves(cluster: LiveCluster) -> list[str]:
    """Unloads and splits that any broker was asked for."""
    return [request for request in cluster.write_requests() if "/unload" in request or "/split" in request]


def test_a_snapshot_leads_to_a_recommendation_on_exactly_that_snapshot(recommended: dict[str, str], root: Root) -> None:
    assert root.snapshots() == [recommended["snapshot"]]
    assert recommended["recommended_on"] == recommended["snapshot"]
    assert "<html" in Path(recommended["report"]).read_text()


def test_the_report_is_shown_to_those_who_may_see_the_dag(
    user: Callable[[str], Api], airflow: standalone.Airflow, recommended: dict[str, str]
) -> None:
    page = f"{airflow.url}/pulsar-advisor/clusters/live/reports/{recommended['snapshot']}"
    logged_in = {"Authorization": f"Bearer {user('vic').token}"}
    assert requests.get(page, timeout=30).status_code == 401
    shown = requests.get(page, headers=logged_in, timeout=30)
    assert (shown.status_code, shown.text) == (200, Path(recommended["report"]).read_text())
    for other in ("20200101T000000Z", "..%2f..%2fledger.sqlite"):
        assert requests.get(f"{page.rpartition('/')[0]}/{other}", headers=logged_in, timeout=30).status_code == 404


def test_a_form_with_a_strategy_that_does_not_exist_is_refused(user: Callable[[str], Api], recommended: object) -> None:
    answer = user("uma").call(
        "POST", "/dags/pulsar_rebalance/dagRuns", {"logical_date": None, "conf": {"shedder": "RandomShedder"}}
    )
    assert answer.status_code == 400


def test_after_a_rejection_nothing_was_written(
    user: Callable[[str], Api], advice: dict[str, Any], cluster: LiveCluster, ledger: Ledger
) -> None:
    before = moves(cluster)
    run = user("uma").trigger("pulsar_rebalance", digest=advice["digest"])
    request = user("olive").request(run)
    assert advice["digest"] in request["subject"]
    assert user("vic").answer(run, "Approve", **YES_TO_ALL) == 403
    assert user("olive").answer(run, "Reject") == 200
    assert user("uma").finished("pulsar_rebalance", run) == "success"
    assert user("uma").tasks("pulsar_rebalance", run)["apply"] == "skipped"
    assert moves(cluster) == before
    assert ledger.approvals(advice["digest"]) == []
    assert "rejected by olive" in ledger.events(advice["digest"])[-1].detail


def test_after_a_time_out_nothing_was_written(
    user: Callable[[str], Api], advice: dict[str, Any], cluster: LiveCluster, ledger: Ledger
) -> None:
    before = moves(cluster)
    run = user("uma").trigger("pulsar_rebalance", digest=advice["digest"], answer_within_h=10 / 3600)
    assert user("uma").finished("pulsar_rebalance", run) == "success"
    assert user("uma").tasks("pulsar_rebalance", run)["apply"] == "skipped"
    assert moves(cluster) == before
    assert "no answer in time" in ledger.events(advice["digest"])[-1].detail


def test_whoever_proposed_a_plan_cannot_approve_it(
    user: Callable[[str], Api], advice: dict[str, Any], cluster: LiveCluster, ledger: Ledger
) -> None:
    before = moves(cluster)
    run = user("uma").trigger("pulsar_rebalance", digest=advice["digest"])
    user("uma").request(run)
    assert user("uma").answer(run, "Approve", **YES_TO_ALL) == 200
    assert user("uma").finished("pulsar_rebalance", run) == "failed"
    assert user("uma").tasks("pulsar_rebalance", run)["apply"] == "upstream_failed"
    assert moves(cluster) == before
    assert ledger.approvals(advice["digest"]) == []


def test_only_those_who_were_asked_may_answer(user: Callable[[str], Api], advice: dict[str, Any]) -> None:
    run = user("uma").trigger("pulsar_rebalance", digest=advice["digest"], approvers=["olive"])
    user("olive").request(run)
    assert user("admin").answer(run, "Approve", **YES_TO_ALL) == 403
    assert user("olive").answer(run, "Reject") == 200
    assert user("uma").finished("pulsar_rebalance", run) == "success"


def test_a_plan_made_on_a_fresh_snapshot_is_carried_out_after_a_named_user_approved_it(
    user: Callable[[str], Api], recommended: object, cluster: LiveCluster, ledger: Ledger, root: Root
) -> None:
    run = user("uma").trigger("pulsar_rebalance", max_unloads=1, max_splits=1, pause_s=0, canary_hold_s=3)
    user("olive").request(run)
    plan = user("olive").result("pulsar_rebalance", run, "propose")
    assert user("olive").answer(run, "Approve", **YES_TO_ALL) == 200
    assert user("uma").finished("pulsar_rebalance", run) == "success", user("uma").tasks("pulsar_rebalance", run)

    steps = json.loads((root.folder("plans", plan["snapshot"]) / plan["file"]).read_bytes())["steps"]
    sent = {step["action"]: step for step in steps if step["executable"]}
    unload, split = sent["unload"], sent["split"]
    owners = cluster.admin.owners(CLUSTER_NAME)
    assert owners[f"{unload['namespace']}/{unload['bundle']}"] == unload["destination"]
    boundaries = cluster.admin.read(f"/namespaces/{split['namespace']}/bundles")["boundaries"]
    assert set(split["boundaries"]) <= set(boundaries)

    [approval] = ledger.approvals(plan["digest"])
    assert (approval.approver, approval.source, approval.comment) == ("olive", "airflow", YES_TO_ALL["comment"])
    [proposal] = ledger.proposals(plan["digest"])
    assert (proposal.proposer, proposal.source) == ("uma", "airflow")
    assert user("uma").result("pulsar_rebalance", run, "verify")["deviations"] == []

    written = moves(cluster)
    again = user("uma").trigger("pulsar_rebalance", digest=plan["digest"])
    user("olive").request(again)
    user("olive").answer(again, "Approve", **YES_TO_ALL)
    # Not "success": by now `verify` judges usage too, and the load of a busy machine may have drifted.
    user("uma").finished("pulsar_rebalance", again)
    assert user("uma").tasks("pulsar_rebalance", again)["apply"] == "success"
    assert user("uma").result("pulsar_rebalance", again, "apply")["outcome"] == "nothing_to_do"
    assert moves(cluster) == written
