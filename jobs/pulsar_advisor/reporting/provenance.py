"""Where a report is from: snapshot, cluster, plan, and who proposed it."""

from __future__ import annotations

from dataclasses import dataclass

from pulsar_advisor.documents.recommendation import Recommendation
from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.planning.proposals.limits import Limits
from pulsar_advisor.reporting.figures import count, moment


@dataclass(frozen=True)
class Fact:
    """A labelled provenance value."""

    label: str
    value: str


def _limits(plan: Plan) -> str:
    """The limits of a plan that differ from the defaults: `max unloads 1, exclude brokers broker-3:8080`."""
    usual = Limits().as_mapping()
    return ", ".join(
        f"{name.replace('_', ' ')} {' '.join(value) if isinstance(value, tuple) else value}"
        for name, value in plan.limits.items()
        if value not in (None, usual.get(name))
    )


def provenance(
    state: ClusterState,
    recommendation: Recommendation,
    reference: Plan | None,
    advised: Plan | None,
    tool_version: str,
    ledger_head: str | None,
) -> tuple[Fact, ...]:
    """What a reader needs to repeat or check the report."""
    versions = sorted(set(state.brokers.versions))
    facts = [
        Fact("Snapshot", state.snapshot),
        Fact("Captured at", moment(state.captured_at_ms)),
        Fact("Cluster", f"{state.cluster_name} (here named {state.cluster}), {count(len(state.brokers), 'broker')}"),
        Fact("Bundles and topics", f"{count(len(state.bundles), 'bundle')}, {count(len(state.topics), 'topic')}"),
        Fact("Pulsar", ", ".join(versions) or state.pulsar_version or "unknown"),
        Fact("Load manager", state.load_manager),
        Fact("View", state.view),
        Fact("Manifest SHA-256", recommendation.manifest_sha256),
    ]
    if reference:
        facts.append(Fact("Validation SHA-256", reference.inputs.validation_sha256))
        facts.append(Fact("Prediction model", reference.predicted.model))
        facts.append(Fact("Seed", str(reference.seed)))
        if limits := _limits(reference):
            facts.append(Fact("Limits", limits))
    if advised:
        facts.append(Fact("Advised plan", recommendation.advice.plan or ""))
        facts.append(Fact("Plan digest", recommendation.advice.digest or ""))
    if recommendation.proposer:
        facts.append(Fact("Proposed by", recommendation.proposer))
    if ledger_head:
        facts.append(Fact("Ledger head", ledger_head))
    facts.append(Fact("Pulsar Rebalance Advisor", tool_version))
    return tuple(facts)
