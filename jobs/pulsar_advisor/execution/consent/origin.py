"""Where a plan comes from: whether this release computes the same bytes from the plan's snapshot."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice, takewhile
from typing import Any, Final

from pulsar_advisor.execution.ledger.tables import Seal
from pulsar_advisor.model.errors import AdvisorError, DataNotFit, Refused
from pulsar_advisor.model.plans.plan import Plan, PlanInputs
from pulsar_advisor.model.plans.sealed import digest_of, dump_plan
from pulsar_advisor.planning.plans.build_plan import build_plan
from pulsar_advisor.planning.plans.confidence import StepCheck
from pulsar_advisor.planning.plans.propose import propose, propose_splits
from pulsar_advisor.planning.proposals.proposal import Proposal
from pulsar_advisor.planning.requests.request import ALL, Request
from pulsar_advisor.planning.situation import Situation

_DIFFERENCES_NAMED: Final = 3
_ABSENT: Final = "nothing"
_SHOWN: Final = 60
"""Characters of a value."""


def listing_of(plan: Plan, seals: Sequence[Seal]) -> Seal | None:
    """The newest seal of a recommendation that lists the plan; None if no recommendation of its snapshot was sealed.

    `seals` are those of the plan's snapshot. Raises `Refused` if recommendations were sealed but don't list the plan.
    """
    recommended = [seal for seal in seals if seal.stage == "recommend"]
    listing = [seal for seal in recommended if digest_of(plan) in seal.plans.splitlines()]
    if recommended and not listing:
        raise Refused(
            f"no recommendation of snapshot {plan.snapshot} lists {digest_of(plan)}: it was not computed from that "
            "snapshot. Make the plan with `recommend`"
        )
    return listing[-1] if listing else None


def computed_again(plan: Plan, situation: Situation, inputs: PlanInputs, checks: Sequence[StepCheck]) -> Plan:
    """The plan computed anew from the inputs a plan names: its snapshot's judged state, and the snapshots it remembers.

    Needs no Spark: one plan is a matter of seconds. Raises `AdvisorError` if nothing can be computed.
    """
    request = Request.of_plan(plan)
    proposal: Proposal | AdvisorError | None
    if plan.goal is None and (not plan.placement or request.shedder == ALL):
        proposal = propose_splits(request, situation)
    else:
        [(_, proposal)] = propose(request, situation)
    if not isinstance(proposal, Proposal):
        raise proposal or DataNotFit("the snapshot lacks what a decision about splits reads")
    return build_plan(situation, proposal, request, inputs, checks)


def require_same(plan: Plan, computed: Plan) -> None:
    """Raise `Refused`, with what differs, unless both are the same bytes."""
    if (written := dump_plan(plan)) != (again := dump_plan(computed)):
        found = islice(_differences("", json.loads(written), json.loads(again)), _DIFFERENCES_NAMED)
        raise Refused(
            f"{digest_of(plan)} is not what is computed from snapshot {plan.snapshot}: {'; '.join(found)}. Make the "
            "plan again with `recommend`"
        )


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
        yield f"{path} has {len(found)} entries, but {len(computed)} in the computed plan"
    elif found != computed:
        texts = (json.dumps(found), json.dumps(computed))
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(*texts, strict=False)))
        one, other = (_around(same, text) for text in texts)
        yield f"{path} is {one}, but {other} in the computed plan"


def _around(place: int, text: str) -> str:
    """The text; of a long one what is around the place, as two cut elsewhere could look the same."""
    start = max(0, place - _SHOWN // 3) if len(text) > _SHOWN else 0
    end = start + _SHOWN
    before, after = "…" if start > 0 else "", "…" if end < len(text) else ""
    return f"{before}{text[start:end]}{after}"
