"""`approve`: computes one plan again, and records its approval by a named person or the policy."""

from __future__ import annotations

from pulsar_advisor.execution.consent.approval import approve, approve_automatically, require_digest
from pulsar_advisor.execution.consent.policy import ApprovalPolicy
from pulsar_advisor.execution.ledger.approvals import Terms
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.tables import Approval
from pulsar_advisor.execution.person import Person
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.stages.derive import why_not_computed_here
from pulsar_advisor.storage.root import Root


def run(
    root: Root,
    ledger: Ledger,
    plan: Plan,
    *,
    digest: str,
    approver: Person | None,
    policy: ApprovalPolicy,
    terms: Terms,
) -> tuple[Approval, str | None]:
    """The approval, and why the plan can't be computed here, if it can't. Without an approver, the policy decides.

    Raises `Refused` if the plan isn't what is computed from its snapshot, and as `approve` and `approve_automatically`.
    """
    not_computed_here = why_not_computed_here(root, ledger, plan)
    if approver is None:
        require_digest(plan, digest)
        approval = approve_automatically(ledger, plan, policy=policy, not_computed_here=not_computed_here, terms=terms)
    else:
        approval = approve(
            ledger,
            plan,
            digest=digest,
            approver=approver,
            policy=policy,
            terms=terms,
            not_computed_here=not_computed_here,
        )
    return approval, not_computed_here
