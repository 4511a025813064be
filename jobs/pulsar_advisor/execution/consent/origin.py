"""Where a plan comes from: whether it is, byte for byte, what this release computes from the snapshot that it names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.seals import RELEASE, require_as_sealed
from pulsar_advisor.execution.undo import UNDO
from pulsar_advisor.model.errors import AdvisorError, DataNotFit, Refused, UsageError
from pulsar_advisor.model.plans.plan import Plan, PlanInputs, digest_of, dump_plan
from pulsar_advisor.planning.plans.build_plan import build_plan
from pulsar_advisor.planning.plans.propose import propose, propose_splits
from pulsar_advisor.planning.plans.setting_keys import setting_keys
from pulsar_advisor.planning.proposals.proposal import Proposal
from pulsar_advisor.planning.requests.request import ALL, Request
from pulsar_advisor.storage.root import Root
from pulsar_advisor.tables.judged import check_results, inputs_of, judged_state, settings_of, states_at

_DIFFERENCES_NAMED: Final = 3
_ABSENT: Final = "nothing"


def why_not_computed_here(root: Root, ledger: Ledger, plan: Plan) -> str | None:
    """Why a plan can't be computed again, so that a person has to judge it; None if it is what is computed here.

    Raises `Refused` if it can be, and isn't: a recommendation of its snapshot doesn't list it, a file that it rests on
    isn't as the ledger sealed it, or its bytes are others.
    """
    if plan.shedder == UNDO:
        return "it takes a run back, as far as the ledger and the cluster showed when it was made"
    recommended = [seal for seal in ledger.seals(root.cluster, plan.snapshot) if seal.stage == "recommend"]
    if not recommended:
        return f"this ledger has no seal of a recommendation of snapshot {plan.snapshot}"
    listing = [seal for seal in recommended if digest_of(plan) in seal.plans.splitlines()]
    if not listing:
        raise Refused(
            f"no recommendation of snapshot {plan.snapshot} lists {digest_of(plan)}: it was not computed from that "
            "snapshot. Make the plan with `recommend`"
        )
    if reason := _unsealed(root, ledger, plan):
        return reason
    if listing[-1].release != RELEASE:
        return f"release {listing[-1].release} computed it, and this is {RELEASE}"
    try:
        inputs = inputs_of(root, plan.snapshot)
    except DataNotFit as error:
        raise Refused(f"nothing can have been computed from the snapshot of {digest_of(plan)}: {error}") from error
    except UsageError as error:
        return str(error)
    if inputs != plan.inputs:
        return f"its snapshot {plan.snapshot} was captured or validated anew since"
    try:
        computed = _computed(root, plan, inputs)
    except AdvisorError as error:
        return f"it can't be computed again: {error}"
    if (written := dump_plan(plan)) != (again := dump_plan(computed)):
        found = islice(_differences("", json.loads(written), json.loads(again)), _DIFFERENCES_NAMED)
        raise Refused(
            f"{digest_of(plan)} is not what is computed from snapshot {plan.snapshot}: {'; '.join(found)}. Make the "
            "plan again with `recommend`"
        )
    return None


def _unsealed(root: Root, ledger: Ledger, plan: Plan) -> str | None:
    """Why what the plan rests on can't be compared with the ledger. Raises `Refused` where it differs."""
    remembered = plan.memory.get("snapshots", ())
    compared = (
        require_as_sealed(ledger, root, snapshot, stage)
        for snapshot in (plan.snapshot, *remembered)
        for stage in ("capture", "normalize", "validate")
    )
    return next(filter(None, compared), None)


def _computed(root: Root, plan: Plan, inputs: PlanInputs) -> Plan:
    """The plan that is computed now from what a plan names. Needs no Spark: one plan is a matter of seconds."""
    request = Request.of_plan(plan)
    settings = settings_of(root, plan.snapshot, request.what_if)
    state = judged_state(root, plan.snapshot, plan.view, request.what_if, settings.values, inputs.validation_sha256)
    history = states_at(root, plan.memory.get("snapshots", ()), state.view, request.what_if)
    proposal: Proposal | AdvisorError | None
    if plan.goal is None and (not plan.placement or request.shedder == ALL):
        proposal = propose_splits(request, state, settings.values)
    else:
        [(_, proposal)] = propose(request, state, settings.values, history)
    if not isinstance(proposal, Proposal):
        raise proposal or DataNotFit("the snapshot lacks what a decision about splits reads")
    keys = setting_keys(proposal.shedder, proposal.placement, request)
    return build_plan(state, settings, proposal, request, inputs, keys, check_results(root, plan.snapshot), history)


def _differences(path: str, found: Any, computed: Any) -> Iterator[str]:
    """Where two JSON values differ, in depth-first order; the digest aside."""
    if isinstance(found, dict) and isinstance(computed, dict):
        for key in sorted((found.keys() | computed.keys()) - {"digest"}):
            inner = f"{path}.{key}" if path else key
            yield from _differences(inner, found.get(key, _ABSENT), computed.get(key, _ABSENT))
    elif isinstance(found, list) and isinstance(computed, list) and len(found) == len(computed):
        for position, pair in enumerate(zip(found, computed, strict=True)):
            yield from _differences(f"{path}[{position}]", *pair)
    elif isinstance(found, list) and isinstance(computed, list):
        yield f"{path} has {len(found)} entries, computed are {len(computed)}"
    elif found != computed:
        yield f"{path} is {_short(found)}, computed is {_short(computed)}"


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
