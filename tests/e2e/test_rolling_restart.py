"""A roll in a real Airflow: live brokers under traffic, restarted by the test; one is killed, and the scheduler."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import requests

from harness import standalone
from harness.airflow_api import Api, wait_for
from harness.cluster import ClusterOptions, LiveCluster
from harness.numbered_messages import numbered_messages
from live.plans import wait_until_reported
from live.restarts import BALANCED, GUARDED, Moves, broker_of, divided, overrides, owners
from live.starting import unavailable_skips
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.plans import recorded_plan
from pulsar_advisor.execution.roll.status import status_of

pytestmark = [pytest.mark.live, pytest.mark.airflow, pytest.mark.full]

DAG = "pulsar_rolling_restart"
CONSENTS = {"accept_worse": True, "accept_low_confidence": True}


@pytest.fixture(scope="module")
def cluster() -> Iterator[LiveCluster]:
    """Three brokers whose own balancer is on by dynamic configuration."""
    with unavailable_skips(), LiveCluster(ClusterOptions(settings=BALANCED)) as cluster:
        yield cluster


def test_every_broker_is_restarted_empty_though_one_and_the_scheduler_are_killed_meanwhile(
    user: Callable[[str], Api], airflow: standalone.Airflow, cluster: LiveCluster, ledger: Ledger
) -> None:
    before, topics, order = overrides(cluster), divided(cluster), list[str]()
    admin, olive = user("admin"), user("olive")
    with numbered_messages(cluster, topics) as messages:
        wait_until_reported(cluster, set(topics))
        wait_for(lambda: DAG in [dag["dag_id"] for dag in admin.get("/dags")["dags"]])
        run = user("uma").trigger(DAG, pause_s=1, canary_hold_s=3)
        olive.request(run, DAG)
        digest = olive.result(DAG, run, "propose")["digest"]
        assert olive.answer(run, "Approve", DAG, **CONSENTS) == 200
        page, moves = f"{airflow.url}/pulsar-advisor/clusters/live/rolls/{digest}", Moves(cluster)
        while (broker := wait_for(lambda: drained_or_over(admin, ledger, run, digest))) in cluster.broker_ids:
            moves.look()
            assert broker not in owners(cluster).values(), "it is empty before it stops"
            assert set(overrides(cluster)) == set(GUARDED)
            wait_for(lambda: admin.task(DAG, run, "roll")["state"] == "deferred")  # a moment after the ledger says so
            if not order:
                airflow.kill("scheduler")
                airflow.start("scheduler")
                lost = next(other for other in cluster.broker_ids if other != broker)
                cluster.restart_broker(broker_of(cluster, lost), killed=True)
                wait_until_reported(cluster, set(topics))
            cluster.restart_broker(broker_of(cluster, broker))
            order.append(broker)
            logged_in = {"Authorization": f"Bearer {olive.token}"}
            said = requests.post(f"{page}/restarted", {"broker": broker}, headers=logged_in, timeout=60)
            assert said.status_code == 200, said.text
        moves.look()
        assert admin.finished(DAG, run) == "success", admin.tasks(DAG, run)
        assert sorted(order) == sorted(cluster.broker_ids)
        assert overrides(cluster) == before
    print(f"in Airflow, one killed: {moves.figures(messages.report, killed=True)}")


def drained_or_over(admin: Api, ledger: Ledger, run: str, digest: str) -> str | None:
    """The broker that waits for its restart, or `over`; None while there is something to wait for."""
    status = status_of(ledger, recorded_plan(ledger, digest))
    is_over = status.ended is not None or admin.task(DAG, run, "roll")["state"] in ("failed", "success")
    return status.restart or ("over" if is_over else None)
