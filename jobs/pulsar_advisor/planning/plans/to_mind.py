"""The warnings in a plan, for whoever approves it or carries it out by hand."""

from __future__ import annotations

from collections.abc import Iterator

from pulsar_advisor.model.configuration.defaults import newer_than_known
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.planning.kinds.goal_outcome import foretold_outcome, outcome_sentence


def to_mind(plan: Plan) -> Iterator[str]:
    """That its goal is missed, its caveats, the settings that it only assumes, and that the release isn't known."""
    if short := outcome_sentence(foretold_outcome(plan), plan.title):
        yield short
    yield from plan.decision.caveats
    if plan.what_if:
        yield f"assumes other settings than the cluster's: {', '.join(map('='.join, plan.what_if.items()))}"
    yield from newer_than_known(plan.pulsar_version)
