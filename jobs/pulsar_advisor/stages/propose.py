"""After `recommend`: records in the ledger who proposes the plans that it made."""

from __future__ import annotations

from pulsar_advisor.documents.recommendation import Recommendation
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.proposals import record_proposal
from pulsar_advisor.execution.ledger.runs import runs_of_plan
from pulsar_advisor.execution.person import Person
from pulsar_advisor.storage.plans import PlanReference
from pulsar_advisor.storage.root import Root


def run(root: Root, recommendation: Recommendation, ledger: Ledger, proposer: Person) -> None:
    """Record in the ledger who proposes those plans of a recommendation just computed that have steps to carry out.

    One that has had a run is left out: whoever means to carry out the rest of it proposes it.
    """
    for row in recommendation.combinations:
        if row.plan is not None and row.digest is not None and row.steps and not runs_of_plan(ledger, row.digest):
            plan = PlanReference(recommendation.snapshot, row.plan, row.digest)
            record_proposal(ledger, plan.sealed(root), proposer, not_computed_here="")
