"""The people of the tests, and the two steps most tests begin with: have a plan approved, and apply it."""

from __future__ import annotations

from pulsar_advisor.execution.apply import ApplyResult, apply_plan
from pulsar_advisor.execution.approval import ApprovalPolicy, approve, propose
from pulsar_advisor.execution.executor import ApplyOptions
from pulsar_advisor.execution.ledger import Ledger, Person
from pulsar_advisor.model.plan import Plan, digest_of
from unit.execution.doubles import FakeCluster

ALICE, BOB = Person("alice", "airflow"), Person("bob", "airflow")
FOUR_EYES = ApprovalPolicy()


def approved(ledger: Ledger, plan: Plan, **changes: bool) -> Plan:
    """Proposed by Alice and approved by Bob, with everything an approval can allow unless said otherwise."""
    allowed = {"allows_splits": True, "accepts_worse": True, "accepts_low_confidence": True, **changes}
    propose(ledger, plan, ALICE)
    approve(ledger, plan, digest=digest_of(plan), approver=BOB, policy=FOUR_EYES, **allowed)
    return plan


def run(plan: Plan, ledger: Ledger, cluster: FakeCluster, **options: object) -> ApplyResult:
    return apply_plan(plan, ledger, cluster, ApplyOptions(**options), lambda _line: None, cluster.time.clock)  # type: ignore[arg-type]
