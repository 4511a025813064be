from __future__ import annotations

from pulsar_advisor.execution.apply import ApplyResult, apply_plan
from pulsar_advisor.execution.approval import ApprovalPolicy, approve, propose
from pulsar_advisor.execution.cluster_port import Split, Unload
from pulsar_advisor.execution.executor import ApplyOptions
from pulsar_advisor.execution.ledger import Ledger, Person
from pulsar_advisor.model.plan import Plan, digest_of
from unit.execution.doubles import (
    B2,
    LOWER,
    NAMESPACE,
    FakeCluster,
    make_plan,
    split_step,
    unload_step,
)

ALICE, BOB = Person("alice", "airflow"), Person("bob", "airflow")


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


def run(plan: Plan, ledger: Ledger, cluster: FakeCluster, **options: object) -> ApplyResult:
    return apply_plan(plan, ledger, cluster, ApplyOptions(**options), lambda _line: None, cluster.time.clock)  # type: ignore[arg-type]


def test_an_unload_and_a_split_are_carried_out_and_confirmed(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, make_plan([unload_step(), split_step()]))
    result = run(plan, ledger, cluster)
    assert (result.outcome, result.exit_code) == ("done", 0)
    assert [step.state for step in result.steps] == ["confirmed", "confirmed"]
    assert cluster.writes == [Unload(NAMESPACE, LOWER, B2), Split(NAMESPACE, "0x80000000_0xffffffff", (0xBFFFFFFF,))]
    assert cluster.owners[f"{NAMESPACE}/{LOWER}"] == B2
    assert cluster.boundaries(NAMESPACE) == ("0x00000000", "0x80000000", "0xbfffffff", "0xffffffff")
