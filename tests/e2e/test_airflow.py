"""The three DAGs in a real Airflow against real brokers, driven over Airflow's REST API by named users."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests

from harness import standalone
from harness.airflow_api import Api, wait_for
from harness.cluster import LiveCluster
from harness.configuration import CLUSTER_NAME
from pulsar_advisor.execution.ledger.approvals import approvals_of_plan
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.proposals import proposals_of_plan
from pulsar_advisor.storage.root import Root

pytestmark = [pytest.mark.live, pytest.mark.airflow, pytest.mark.full]

YES_TO_ALL = {
    "allow_splits": True,
    "accept_worse": True,
    "accept_low_confidence": True,
    "comment": "agreed by telephone",
}


@pytest.fixture(scope="module")
def recommended(user: Callable[[str], Api]) -> dict[str, str]:
    """What `pulsar_snapshot`, and `pulsar_recommend` after it, leave behind: snapshot id and path of the report."""
    admin = user("admin")
    wait_for(lambda: {dag["dag_id"] for dag in admin.get("/dags")["dags"]} >= {"pulsar_snapshot", "pulsar_rebalance"})
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
    path = root.snapshot(recommended["snapshot"]).folder("plans") / "recommendation.json"
    advice: dict[str, Any] = json.loads(path.read_bytes())["advice"]
    assert advice["digest"], advice["sentence"]
    return advice


def test_a_snapshot_leads_to_a_recommendation_on_exactly_that_snapshot(recommended: dict[str, str], root: Root) -> None:
    assert root.snapshots() == [recommended["snapshot"]]
    assert recommended["recommended_on"] == recommended["snapshot"]
    assert "<html" in Path(recommended["report"]).read_text()


def test_the_report_is_shown_to_those_who_may_see_the_dag(
    user: Callable[[str], Api], airflow: standalone.Airflow, recommended: dict[str, str]
) -> None:
    page = f"{airflow.url}/pulsar-advisor/clusters/live/reports/{recommended['snapshot']}/report.html"
    logged_in = {"Authorization": f"Bearer {user('vic').token}"}
    assert requests.get(page, timeout=30).status_code == 401
    shown = requests.get(page, headers=logged_in, timeout=30)
    assert (shown.status_code, shown.text) == (200, Path(recommended["report"]).read_text())
    for other in ("20200101T000000Z", "..%2f..%2fledger.sqlite"):
        elsewhere = page.replace(recommended["snapshot"], other)
        assert requests.get(elsewhere, headers=logged_in, timeout=30).status_code == 404


def test_a_form_with_a_strategy_that_does_not_exist_is_refused(user: Callable[[str], Api], recommended: object) -> None:
    answer = user("uma").call(
        "POST", "/dags/pulsar_rebalance/dagRuns", {"logical_date": None, "conf": {"shedder": "RandomShedder"}}
    )
    assert answer.status_code == 400


def test_after_a_rejection_nothing_was_written(
    user: Callable[[str], Api], advice: dict[str, Any], cluster: LiveCluster, ledger: Ledger
) -> None:
    before = cluster.moves()
    run = user("uma").trigger("pulsar_rebalance", digest=advice["digest"])
    request = user("olive").request(run)
    assert advice["digest"] in request["subject"]
    assert user("vic").answer(run, "Approve", **YES_TO_ALL) == 403
    assert user("olive").answer(run, "Reject") == 200
    assert user("uma").finished("pulsar_rebalance", run) == "failed"
    assert user("uma").tasks("pulsar_rebalance", run)["apply"] == "upstream_failed"
    assert cluster.moves() == before
    assert approvals_of_plan(ledger, advice["digest"]) == []
    rejection = ledger.events(advice["digest"])[-1]
    assert (rejection.kind, rejection.detail[:8]) == ("rejected", "by olive")


def test_after_a_time_out_nothing_was_written(
    user: Callable[[str], Api], advice: dict[str, Any], cluster: LiveCluster, ledger: Ledger
) -> None:
    before = cluster.moves()
    run = user("uma").trigger("pulsar_rebalance", digest=advice["digest"], answer_within_h=10 / 3600)
    assert user("uma").finished("pulsar_rebalance", run) == "failed"
    assert user("uma").tasks("pulsar_rebalance", run)["apply"] == "upstream_failed"
    assert cluster.moves() == before
    rejection = ledger.events(advice["digest"])[-1]
    assert (rejection.kind, rejection.detail[:17]) == ("rejected", "no answer in time")


def test_whoever_proposed_a_plan_cannot_approve_it(
    user: Callable[[str], Api], advice: dict[str, Any], cluster: LiveCluster, ledger: Ledger
) -> None:
    before = cluster.moves()
    run = user("uma").trigger("pulsar_rebalance", digest=advice["digest"])
    user("uma").request(run)
    assert user("uma").answer(run, "Approve", **YES_TO_ALL) == 200
    assert user("uma").finished("pulsar_rebalance", run) == "failed"
    assert user("uma").tasks("pulsar_rebalance", run)["apply"] == "upstream_failed"
    assert cluster.moves() == before
    assert approvals_of_plan(ledger, advice["digest"]) == []


def test_only_those_who_were_asked_may_answer(user: Callable[[str], Api], advice: dict[str, Any]) -> None:
    run = user("uma").trigger("pulsar_rebalance", digest=advice["digest"], approvers=["olive"])
    user("olive").request(run)
    assert user("admin").answer(run, "Approve", **YES_TO_ALL) == 403
    assert user("olive").answer(run, "Reject") == 200
    assert user("uma").finished("pulsar_rebalance", run) == "failed"


def test_a_plan_made_on_a_fresh_snapshot_is_carried_out_after_a_named_user_approved_it(
    user: Callable[[str], Api], recommended: object, cluster: LiveCluster, ledger: Ledger, root: Root
) -> None:
    run = user("uma").trigger("pulsar_rebalance", max_unloads=1, max_splits=1, pause_s=0, canary_hold_s=3)
    user("olive").request(run)
    plan = user("olive").result("pulsar_rebalance", run, "propose")
    assert user("olive").answer(run, "Approve", **YES_TO_ALL) == 200
    assert user("uma").finished("pulsar_rebalance", run) == "success", user("uma").tasks("pulsar_rebalance", run)

    steps = json.loads((root.snapshot(plan["snapshot"]).folder("plans") / plan["file"]).read_bytes())["steps"]
    [unload] = [step for step in steps if step["executable"]]
    owners = cluster.admin.owners(CLUSTER_NAME)
    assert owners[f"{unload['namespace']}/{unload['bundle']}"] == unload["destination"]

    [approval] = approvals_of_plan(ledger, plan["digest"])
    assert (approval.approver, approval.source, approval.comment) == ("olive", "airflow", YES_TO_ALL["comment"])
    [proposal] = proposals_of_plan(ledger, plan["digest"])
    assert (proposal.proposer, proposal.source) == ("uma", "airflow")
    assert user("uma").result("pulsar_rebalance", run, "verify")["as_predicted"]

    written = cluster.moves()
    again = user("uma").trigger("pulsar_rebalance", digest=plan["digest"])
    assert user("uma").finished("pulsar_rebalance", again) == "failed"
    assert user("uma").tasks("pulsar_rebalance", again)["propose"] == "failed"
    assert cluster.moves() == written
