"""What lists say of a plan: a small row of the ledger, made from the plan's document when the plan is recorded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

import msgspec


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What its document says of a plan."""

    shedder: str
    placement: str
    executable_steps: int
    maximum_before: float | None
    """Predicted usage of the busiest broker, 0..1."""
    maximum_after: float | None
    steps_sha256: str
    """Equal for plans whose executable steps do the same."""
    undoes: str | None
    """The digest of the plan that it undoes."""
    problem: str = ""
    """Why the document can't be read, so that there are no figures; empty if it can."""


class _Step(msgspec.Struct):
    action: str
    namespace: str
    bundle: str
    destination: str | None
    boundaries: list[str]
    executable: bool


class _Figures(msgspec.Struct):
    maximum_ratio: float | None


class _Predicted(msgspec.Struct):
    before: _Figures
    after: _Figures


class _Memory(msgspec.Struct):
    undoes: str | None = None


class _Plan(msgspec.Struct):
    """The part of a plan's document that is decoded: the reasons and forecasts of up to 600 steps are skipped."""

    shedder: str
    placement: str
    steps: list[_Step]
    predicted: _Predicted
    memory: _Memory


def summary_of(document: str) -> Summary:
    """The summary of a plan's canonical JSON, of any version; `problem` says why it can't be read, if so."""
    try:
        plan = msgspec.json.decode(document, type=_Plan)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        plan = _Plan("", "", [], _Predicted(_Figures(None), _Figures(None)), _Memory())
        problem = f"its document can't be read: {error}"
    else:
        problem = ""
    return Summary(
        shedder=plan.shedder,
        placement=plan.placement,
        executable_steps=sum(step.executable for step in plan.steps),
        maximum_before=plan.predicted.before.maximum_ratio,
        maximum_after=plan.predicted.after.maximum_ratio,
        steps_sha256=_sha256(plan.steps),
        undoes=plan.memory.undoes,
        problem=problem,
    )


def _sha256(steps: Iterable[_Step]) -> str:
    """Hash of what the executable steps do, regardless of what proposed them."""
    done = sorted(
        (step.action, step.namespace, step.bundle, step.destination or "", *step.boundaries)
        for step in steps
        if step.executable
    )
    return sha256(repr(done).encode()).hexdigest()
