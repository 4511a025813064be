"""After `recommend`: records in the ledger who proposes its plans."""

from __future__ import annotations

from pulsar_advisor.documents.recommendation import Recommendation
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.proposals import add_proposal
from pulsar_advisor.execution.ledger.runs import plans_with_runs
from pulsar_advisor.execution.person import Person
from pulsar_advisor.storage.plans import PlanReference
from pulsar_advisor.storage.root import Root


def run(root: Root, recommendation: Recommendation, ledger: Ledger, proposer: Person) -> None:
    """Record in the ledger who proposes the plans with executable steps of a recommendation just computed.

    A plan that has had a run is left out: whoever wants to carry out the rest proposes it.
    """
    plans = [
        PlanReference(recommendation.snapshot, row.plan, row.digest)
        for row in recommendation.combinations
        if row.plan is not None and row.digest is not None and row.steps
    ]
    begun = plans_with_runs(ledger, [plan.digest for plan in plans])
    sealed = [plan.sealed(root) for plan in plans if plan.digest not in begun]
    with ledger.writing() as session:
        for plan in sealed:
            add_proposal(ledger, session, plan, proposer, not_computed_here="")
