"""What one shedder answers with each placement strategy, and the plans that follow from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pulsar_advisor.model.errors import AdvisorError
from pulsar_advisor.model.plans.plan import Plan, PlanInputs
from pulsar_advisor.planning.advice.compare import Score, no_score
from pulsar_advisor.planning.plans.build_plan import build_plan
from pulsar_advisor.planning.plans.confidence import StepCheck
from pulsar_advisor.planning.plans.propose import propose, propose_splits
from pulsar_advisor.planning.proposals.proposal import Proposal
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.planning.situation import Situation


@dataclass(frozen=True)
class ShedderAnswers:
    """The answers of the one shedder of a request. Those about splits, which depend on no shedder, come with one of a
    request's only."""

    request: Request
    situation: Situation
    combinations: Sequence[tuple[str, Proposal | AdvisorError]]
    """Each placement strategy, and what is proposed with it; the error that keeps the shedder from judging."""
    splits: Proposal | None

    @classmethod
    def of(cls, request: Request, situation: Situation, *, with_splits: bool) -> ShedderAnswers:
        """Ask the shedder."""
        combinations: Sequence[tuple[str, Proposal | AdvisorError]]
        try:
            combinations = list(propose(request, situation))
        except AdvisorError as error:
            combinations = [(name, error) for name in request.placements]
        return cls(request, situation, combinations, propose_splits(request, situation) if with_splits else None)

    @property
    def proposals(self) -> Sequence[tuple[str, Proposal | AdvisorError]]:
        """All of them, the one about splits last."""
        return [*self.combinations, *([] if self.splits is None else [(self.splits.placement, self.splits)])]

    def plans(self, inputs: PlanInputs, checks: Sequence[StepCheck]) -> Iterator[Plan | Score]:
        """A plan for each proposal, unless it is for no split; one at a time, since a large one takes many megabytes.

        In place of an error, the score of a combination without a plan.
        """
        for placement, proposal in self.proposals:
            if isinstance(proposal, AdvisorError):
                yield no_score(self.request.shedder, placement, str(proposal))
            elif proposal is not self.splits or proposal.splits:
                yield build_plan(self.situation, proposal, self.request, inputs, checks)
