"""Computes a plan again from its snapshot, to show its approver whether this release makes the same plan."""

from __future__ import annotations

from pulsar_advisor.execution.consent.origin import computed_again, listing_of, require_same
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.seals import RELEASE, seals_of_snapshot
from pulsar_advisor.execution.undo import UNDO, require_takes_back
from pulsar_advisor.model.errors import AdvisorError, DataNotFit, Refused, UsageError
from pulsar_advisor.model.plans.plan import Plan, PlanInputs
from pulsar_advisor.model.plans.sealed import digest_of
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.planning.situation import Situation
from pulsar_advisor.stages.seal import require_as_sealed
from pulsar_advisor.storage.root import Root
from pulsar_advisor.tables.judged import check_results, inputs_of, judged_state, settings_of, states_at


def why_not_computed_here(root: Root, ledger: Ledger, plan: Plan) -> str | None:
    """Why a plan can't be computed again, so that a person must judge it; None if it was, with the same result.

    Raises `Refused` if the plan isn't what was computed here: recommendations of its snapshot don't list it, a file it
    rests on isn't as the ledger sealed it, or its bytes differ; or if it is an undo of what no run did.
    """
    if plan.shedder == UNDO or "undoes" in plan.memory:  # which its title shows, and the ledger believes
        require_takes_back(plan, ledger)
        return "it takes a run back, as far as the ledger and the cluster showed when it was made"
    listing = listing_of(plan, seals_of_snapshot(ledger, root.cluster, plan.snapshot))
    if listing is None:
        return f"this ledger has no seal of a recommendation of snapshot {plan.snapshot}"
    if reason := _unsealed(root, ledger, plan):
        return reason
    if listing.release != RELEASE:
        return f"release {listing.release} computed it, and this is {RELEASE}"
    try:
        inputs = inputs_of(root.snapshot(plan.snapshot))
    except DataNotFit as error:
        raise Refused(f"{digest_of(plan)} can't have been computed from its snapshot: {error}") from error
    except UsageError as error:
        return str(error)
    if inputs != plan.inputs:
        return f"its snapshot {plan.snapshot} was captured or validated anew since"
    try:
        computed = _computed(root, plan, inputs)
    except AdvisorError as error:
        return f"it can't be computed again: {error}"
    require_same(plan, computed)
    return None


def _unsealed(root: Root, ledger: Ledger, plan: Plan) -> str | None:
    """Why the files the plan rests on can't be compared with the ledger. Raises `Refused` if one differs."""
    reasons = (
        require_as_sealed(ledger, root.snapshot(id), "capture", "normalize", "validate")
        for id in (plan.snapshot, *plan.remembered)
    )
    return next(filter(None, reasons), None)


def _computed(root: Root, plan: Plan, inputs: PlanInputs) -> Plan:
    what_if, snapshot = Request.of_plan(plan).what_if, root.snapshot(plan.snapshot)
    settings = settings_of(snapshot, what_if)
    state = judged_state(snapshot, plan.view, what_if, settings.values, inputs.validation_sha256)
    earlier = states_at(map(root.snapshot, plan.remembered), state.view, what_if)
    situation = Situation.of_fit(state, settings, earlier)
    return computed_again(plan, situation, inputs, check_results(snapshot))
