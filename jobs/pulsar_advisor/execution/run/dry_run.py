"""`apply --dry-run`: the calls that a run would send, each with what speaks against it."""

from __future__ import annotations

from dataclasses import replace

from pulsar_advisor.documents.apply_result import AppliedStep
from pulsar_advisor.execution.ledger.steps import steps_of_run
from pulsar_advisor.execution.ledger.tables import Run
from pulsar_advisor.execution.run.end_of_run import EndOfRun, applied_step
from pulsar_advisor.execution.run.observe import foresee, open_calls
from pulsar_advisor.execution.run.options import Attempt
from pulsar_advisor.execution.run.pace import sent_in_order
from pulsar_advisor.execution.run.preconditions import (
    boundaries_after,
    differences,
    expected_boundaries,
    malformed,
    overload,
)
from pulsar_advisor.execution.run.refusals import approved
from pulsar_advisor.model.plans.plan import Step
from pulsar_advisor.model.plans.sealed import digest_of
from pulsar_advisor.model.text.some_of import count


def dry_run(attempt: Attempt, refusals: tuple[str, ...], unfinished: Run | None) -> EndOfRun:
    """The calls a run would send, in order, with objections; each is checked as if the ones before it were done.

    Steps of an `unfinished` run that have ended are left out.
    """
    plan, ledger, cluster = attempt.plan, attempt.ledger, attempt.cluster
    results: list[AppliedStep] = []
    changes: list[str] = []
    done: list[Step] = []
    owners: dict[str, str | None] = {}
    others = open_calls(ledger, plan.identity.cluster_name, except_of=digest_of(plan))
    allowed = approved(attempt)
    records = {} if unfinished is None else steps_of_run(ledger, unfinished.id)
    left_out = {name for name, record in records.items() if record.is_left_out}
    steps = () if any(malformed(plan)) else sent_in_order(plan.executable_steps, allowed.throttle)
    for step in steps:
        state = records[step.id].state if step.id in records else "pending"
        if state == "confirmed":
            done.append(step)
        if state in ("confirmed", "failed", "skipped"):
            continue
        found = foresee(cluster, ledger, plan, step, owners, others)
        found = replace(found, boundaries=boundaries_after(found.boundaries, step.namespace, done))
        reasons: list[str] = []
        if lost := [name for name in step.after if name in left_out]:
            reasons.append(f"it comes after {', '.join(lost)}, which was not confirmed")
        elif state == "pending":
            reasons += differences(step, expected_boundaries(step, done), step.source, found)
            if "worse" not in allowed.consents:
                moved = [earlier.id for earlier in done]
                foreseen = [name for name in moved if name not in records or records[name].state == "pending"]
                reasons += overload(plan, step, found.destination_usage_ratio, moved, foreseen)
        changed = "; ".join(reasons)
        if changed and (lost or allowed.throttle.on_drift == "skip"):
            left_out.add(step.id)
        elif changed:
            changes.append(f"{step.id}, {step.bundle_name}: {changed}")
        detail = changed or ("would be sent" if state == "pending" else f"{state}: would be looked at first")
        results.append(applied_step(plan, step, "skipped" if changed else "pending", detail))
        if step.id in left_out:
            continue
        done.append(step)
        if step.action == "unload":
            owners[step.bundle_name] = step.destination or found.owner
        else:
            owners.update({f"{step.namespace}/{child}": found.owner for child in step.children})
    against = (*refusals, *changes)
    calls = sum(one.state == "pending" for one in results)
    summary = f"{count(calls, 'call')}, {count(len(against), 'reason')} to refuse"
    sentence = f"dry run: {summary}; nothing was sent"
    return EndOfRun("dry_run", None, sentence, tuple(results), against)
