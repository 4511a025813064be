"""Whether a run may go on: approval, snapshot's age, brokers, metadata store, moved bundles, guard, publish probe."""

from __future__ import annotations

from pulsar_advisor.execution.ledger.approvals import approvals_of_plan
from pulsar_advisor.execution.run.observe import find_owner
from pulsar_advisor.execution.run.ongoing_run import DeadEnd, OngoingRun, Stop
from pulsar_advisor.execution.run.preconditions import destinations_after, stale


def check_health(run: OngoingRun, brokers: frozenset[str]) -> None:
    """Raises `Stop` unless the next wave may be sent; `brokers` are those that were active at the start."""
    check_approval(run)
    if gone := brokers - run.cluster.active_brokers():
        raise Stop(f"{', '.join(sorted(gone))} went away while the run was under way")
    if phase := run.cluster.migrating():
        raise Stop(f"the metadata store is being migrated ({phase}): resume when that is over")
    _check_owners(run)
    if reason := run.options.probe():
        raise Stop(f"the publish probe: {reason}")


def check_approval(run: OngoingRun, after_s: float = 0.0) -> None:
    """Raises `Stop` unless, after a pause, the run's approval still allows a call for a snapshot of that age.

    A pause that outlasts the approval isn't waited for: it would keep the cluster's own balancer off for nothing.
    """
    by_then = f"the next call has to wait {after_s:g} s, and by then " if after_s else ""
    pause_ms = round(1000 * after_s)
    approvals = approvals_of_plan(run.ledger, run.held.digest)
    if any(row.id == run.approval.id and row.withdrawn_at_ms is not None for row in approvals):
        raise Stop(f"the approval of {run.approval.approver} was withdrawn")
    next_call_at_ms = run.ledger.now_ms() + pause_ms
    if next_call_at_ms >= run.approval.expires_at_ms:
        raise Stop(f"{by_then}the approval of {run.approval.approver} has expired")
    if too_old := stale(run.plan, run.throttle.max_age_s, run.clock.now_ms() + pause_ms, next_call_at_ms):
        raise Stop(f"{by_then}{too_old}")


def check_guard(run: OngoingRun) -> None:
    """Raises `Stop` if the cluster's own balancer isn't kept off any more."""
    if run.guard is not None and (reason := run.guard.gone()):
        raise Stop(reason)


def _check_owners(run: OngoingRun) -> None:
    """Check that moved bundles are still in place: if others move bundles too, the plan's forecasts are void."""
    records = run.held.steps()
    done = [step for step in run.plan.executable_steps if records[step.id].is_confirmed]
    expected = destinations_after(done)
    owned = {broker: run.cluster.owned_bundles(broker) for broker in sorted({*expected.values()})}
    for bundle, destination in expected.items():
        if bundle not in owned[destination]:
            namespace, _, text = bundle.rpartition("/")
            owner = find_owner(run.cluster, namespace, text, ())
            if owner not in (None, destination):
                also, guarded = "someone else moves bundles too, or an isolation policy was changed", ""
                if run.guard is None:
                    also = "the cluster's own balancer or someone else moves bundles too"
                    guarded = ", and apply with a guard"
                what = f"{bundle} was moved to {destination} by this run and is on {owner} now"
                raise DeadEnd(f"{what}: {also}", f"make a new plan{guarded}")
