"""Approved plans on real brokers: what the brokers show afterwards, and what never reaches them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from harness.cluster import LiveCluster
from harness.configuration import CLUSTER_NAME
from pulsar_advisor.admin.transport import AdminConnection, AdminTransport
from pulsar_advisor.execution.apply import ApplyResult, apply_plan
from pulsar_advisor.execution.approval import ApprovalPolicy, approve, propose
from pulsar_advisor.execution.cluster_writes import AdminCluster
from pulsar_advisor.execution.executor import ApplyOptions
from pulsar_advisor.execution.ledger import Ledger, Person, open_ledger
from pulsar_advisor.model.plan import Plan, Step, digest_of
from pulsar_advisor.storage import snapshot_id
from unit.execution.doubles import forecast, make_plan, split_step, unload_step

pytestmark = pytest.mark.live

UNLOADED = "retail/payments/0x40000000_0x80000000"
SPLIT = "retail/orders/0x00000000_0x40000000"
ALICE, BOB = Person("alice", "airflow"), Person("bob", "airflow")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    opened = open_ledger(f"sqlite:///{tmp_path}/ledger.sqlite")
    yield opened
    opened.close()


@pytest.fixture
def cluster_port(loaded_cluster: LiveCluster) -> Iterator[AdminCluster]:
    with AdminTransport(AdminConnection(admin_urls=tuple(loaded_cluster.admin_urls))) as transport:
        yield AdminCluster(transport)


def boundaries(cluster: LiveCluster, namespace: str) -> tuple[str, ...]:
    return tuple(cluster.admin.read(f"/namespaces/{namespace}/bundles")["boundaries"])


def at(step: Step, cluster: LiveCluster, bundle: str, **changes: object) -> Step:
    """The step, for this bundle as the brokers show it now."""
    namespace, _, text = bundle.rpartition("/")
    owner = cluster.admin.owners(CLUSTER_NAME)[bundle]
    expect = step.expect.model_copy(update={"owner": owner, "boundaries": boundaries(cluster, namespace)})
    return step.model_copy(
        update={"namespace": namespace, "bundle": text, "source": owner, "expect": expect, **changes}
    )


def plan_of(cluster: LiveCluster, *steps: Step, **changes: object) -> Plan:
    plan = make_plan(steps, snapshot=snapshot_id(datetime.now(UTC)), **changes)
    ids = tuple(sorted(cluster.broker_ids))
    usage = forecast(dict.fromkeys(ids, 0.1))
    return plan.model_copy(
        update={
            "identity": plan.identity.model_copy(update={"cluster_name": CLUSTER_NAME, "broker_ids": ids}),
            "predicted": plan.predicted.model_copy(update={"before": usage, "after": usage}),
        }
    )


def other_broker(cluster: LiveCluster, bundle: str) -> str:
    owner = cluster.admin.owners(CLUSTER_NAME)[bundle]
    return next(broker for broker in cluster.broker_ids if broker != owner)


def move_and_split(cluster: LiveCluster) -> Plan:
    return plan_of(
        cluster,
        at(unload_step(1), cluster, UNLOADED, destination=other_broker(cluster, UNLOADED)),
        at(
            split_step(2),
            cluster,
            SPLIT,
            boundaries=("0x20000000",),
            children=("0x00000000_0x20000000", "0x20000000_0x40000000"),
        ),
    )


def approved(ledger: Ledger, plan: Plan) -> Plan:
    propose(ledger, plan, ALICE)
    approve(
        ledger,
        plan,
        digest=digest_of(plan),
        approver=BOB,
        policy=ApprovalPolicy(),
        allows_splits=True,
        accepts_worse=True,
    )
    return plan


def run(plan: Plan, ledger: Ledger, cluster: AdminCluster, **options: object) -> ApplyResult:
    quick = {"pause_s": 1.0, "canary_hold_s": 3.0, **options}
    return apply_plan(plan, ledger, cluster, ApplyOptions(**quick), print)  # type: ignore[arg-type]


def test_the_brokers_show_the_new_owner_and_the_new_boundaries_and_a_second_apply_does_nothing(
    loaded_cluster: LiveCluster, cluster_port: AdminCluster, ledger: Ledger
) -> None:
    plan = approved(ledger, move_and_split(loaded_cluster))

    result = run(plan, ledger, cluster_port)

    assert (result.outcome, [step.state for step in result.steps]) == ("done", ["confirmed", "confirmed"]), result
    owners = loaded_cluster.admin.owners(CLUSTER_NAME)
    assert owners[UNLOADED] == plan.steps[0].destination
    assert "0x20000000" in boundaries(loaded_cluster, "retail/orders")
    assert {owners[f"retail/orders/{child}"] for child in plan.steps[1].children} == {plan.steps[1].source}

    before = loaded_cluster.write_requests()
    again = run(plan, ledger, cluster_port)
    assert (again.outcome, again.exit_code) == ("nothing_to_do", 0)
    assert loaded_cluster.write_requests() == before
