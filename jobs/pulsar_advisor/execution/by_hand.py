"""A plan as a script or a list of calls that an operator reads and runs without the advisor, its executor or its token.

The calls are those of `apply`, a script's in its order: the first has to hold. Those that have no undo come last, and
only on request. A script asks the cluster which broker owns the bundle before and after each call, and stops at the
first unexpected answer. Nothing is recorded in the ledger.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from typing import Final, Literal
from urllib.parse import urlencode

from pulsar_advisor.admin.read_client import escaped
from pulsar_advisor.documents.call import Call
from pulsar_advisor.documents.document import as_json
from pulsar_advisor.documents.plan_calls import ExportedStep, PlanCalls
from pulsar_advisor.execution.consent.approval import why_not_again
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.plan_states import PlanStateName, states_of
from pulsar_advisor.execution.ledger.plans import summary_of_plan
from pulsar_advisor.execution.run.pace import sent_in_order
from pulsar_advisor.execution.run.preconditions import call_of, malformed, observed_at
from pulsar_advisor.execution.throttle import DEFAULT_THROTTLE
from pulsar_advisor.model.cluster.snapshot_id import snapshot_moment
from pulsar_advisor.model.errors import Refused
from pulsar_advisor.model.plans.plan import Plan, Step
from pulsar_advisor.model.plans.sealed import digest_of
from pulsar_advisor.model.text.plain_text import plain
from pulsar_advisor.model.text.some_of import count
from pulsar_advisor.planning.plans.by_hand import pulsar_admin
from pulsar_advisor.planning.plans.consent import needed_consents, usage_change
from pulsar_advisor.planning.plans.to_mind import to_mind

Form = Literal["pulsar-admin", "curl", "json"]

_MISSED: Final = {
    "modular": "the Modular load manager treats a destination as a request; make a new plan from there",
    "simple": "make a new plan from there",
    "extensible": "make a new plan from there",
}

_SINCE: Final[Mapping[PlanStateName, str]] = {
    "rejected": "the last request to approve it was rejected, or got no answer",
    "withdrawn": "its approval was withdrawn",
    "expired": "its approval has expired",
    "stopped": "a run of it ended early, with steps left",
}
"""State of a plan -> what the ledger says against carrying it out by hand."""


def recorded_against(ledger: Ledger, plan: Plan) -> str:
    """What the ledger says against carrying a plan out by hand; empty if nothing, as when nobody has answered yet."""
    if why := why_not_again(ledger, digest_of(plan)):
        return f"it {why}"
    summary = summary_of_plan(ledger, digest_of(plan))
    return "" if summary is None else _SINCE.get(states_of(ledger, plan.cluster, [summary])[0].state, "")


def exported(plan: Plan, form: Form, recorded: str = "") -> str:
    """The plan in this form, with what is `recorded_against` it.

    Raises `Refused` if it must not be carried out, or has nothing to carry out.
    """
    if objections := list(malformed(plan)):
        raise Refused(f"this plan must not be carried out: {'; '.join(objections)}")
    if not plan.executable_steps:
        raise Refused(f"the plan has no step that can be carried out: {plan.decision.why_nothing or plan.title}")
    return (
        json.dumps(as_json(plan_calls(plan, recorded)), indent=1) + "\n"
        if form == "json"
        else "\n".join(_script(plan, form, recorded)) + "\n"
    )


def _parts(steps: Sequence[Step]) -> tuple[list[Step], list[Step]]:
    """The unloads, and the splits with the steps that come after one, each in the order of the steps."""
    irreversible: dict[str, Step] = {}
    for step in steps:
        if step.action == "split" or any(before in irreversible for before in step.after):
            irreversible[step.id] = step
    return [step for step in steps if step.id not in irreversible], list(irreversible.values())


def _to_mind(plan: Plan, recorded: str) -> Iterator[str]:
    """What is recorded against the plan, and the warnings that an approver would see."""
    if recorded:
        yield f"according to the ledger, {recorded}"
    yield from to_mind(plan)
    for needed in needed_consents(plan):
        yield f"{needed.sentence}."


def plan_calls(plan: Plan, recorded: str = "") -> PlanCalls:
    """The calls of a plan that may be carried out; `recorded` as in `exported`."""
    unloads, splits = _parts(plan.executable_steps)
    return PlanCalls(
        cluster=plan.cluster,
        cluster_name=plan.identity.cluster_name,
        digest=digest_of(plan),
        snapshot=observed_at(plan),
        to_mind=tuple(_to_mind(plan, recorded)),
        unloads=tuple(_exported(plan, step) for step in unloads),
        splits_and_after=tuple(_exported(plan, step) for step in splits),
    )


def _exported(plan: Plan, step: Step) -> ExportedStep:
    call = call_of(step, plan.pulsar_version).request
    after = step.children if step.action == "split" else (step.bundle,)
    broker = step.source if step.action == "split" else step.destination
    return ExportedStep(
        id=step.id,
        after=step.after,
        action=step.action,
        reason=step.reason,
        owner_before={step.bundle_name: step.source},
        call=replace(call, path=escaped(call.path)),
        owner_after={f"{step.namespace}/{bundle}": broker for bundle in after},
    )


def _script(plan: Plan, form: Literal["pulsar-admin", "curl"], recorded: str) -> Iterator[str]:
    unloads, splits = _parts(list(sent_in_order(plan.executable_steps, DEFAULT_THROTTLE)))
    yield "#!/usr/bin/env bash"
    yield from (f"# {_one_line(line)}" for line in _head(plan, len(unloads), splits, recorded))
    yield "set -u"
    cluster = plan.identity.cluster_name
    yield f"CLUSTER={shlex.quote(escaped(cluster) if form == 'curl' else cluster)}"
    yield f"BROKERS=({shlex.join(plan.identity.broker_ids)})"
    yield f"STEPS={shlex.quote(''.join(f' {step.id}' for step in plan.executable_steps) + ' ')}"
    yield f"TAKEN_AT={int(snapshot_moment(observed_at(plan)).timestamp())}  # {observed_at(plan)}"
    yield f"MISSED={shlex.quote(_MISSED[plan.load_manager])}"
    yield ""
    yield _shell("checks")
    yield _shell(form.replace("-", "_"))
    yield "# Unloads"
    for step in unloads:
        yield from _step_lines(plan, step, form)
    if splits:
        yield ""
        yield "# Splits, and what comes after them. A split can't be undone: they are sent only with --splits."
        yield "case $ASKED in *' --splits '*) ;; *) say 'done, without the splits'; exit 0 ;; esac"
    for step in splits:
        yield from _step_lines(plan, step, form)
    yield "say 'done'"


def _head(plan: Plan, unloads: int, splits: list[Step], recorded: str) -> Iterator[str]:
    cuts = sum(step.action == "split" for step in splits)
    calls = f"{count(unloads + len(splits) - cuts, 'unload')}, {count(cuts, 'split')}"
    yield f"{plan.title}, cluster {plan.identity.cluster_name}, from the figures of {observed_at(plan)}"
    yield f"{digest_of(plan)}: {calls}; predicted: highest usage {usage_change(plan)}"
    yield from (f"Note: {line}" for line in _to_mind(plan, recorded))
    yield ""
    of_all = "all unloads in turn, with a check before and after each" if unloads else "nothing: all steps are splits"
    yield f"bash FILE             {of_all}"
    yield "bash FILE STEP...     only these steps"
    if splits:
        yield "bash FILE --splits    then the splits too: they can't be undone"
    if any(step.destination is None for step in plan.unloads):
        yield "It can't see whether a step without a destination is done: to go on, name the steps that are left."
    else:
        yield "Steps that are done already are skipped, so it can be run again."
    yield "It stops at the first unexpected answer."
    yield "It asks for no approval, and the ledger gets no record, so `undo` and `verify` can't be used afterwards."


def _one_line(text: str) -> str:
    """A text that can't break out of its comment."""
    return plain(text).rstrip()


def _shell(name: str) -> str:
    return (files("pulsar_advisor.execution") / "scripts" / f"{name}.sh").read_text(encoding="utf-8")


def _step_lines(plan: Plan, step: Step, form: str) -> Iterator[str]:
    name, bundle, source = map(shlex.quote, (step.id, step.bundle_name, step.source))
    if step.action == "split":
        there = shlex.join((step.source, *(f"{step.namespace}/{child}" for child in step.children)))
        check = f"are_at {there}"
    else:
        there = shlex.quote(step.destination or "")
        check = f"arrives {bundle} {there}"
    yield ""
    yield f"# {_one_line(step.id)}: {_one_line(step.reason)}"
    yield f"if begin {name} {bundle} {there}; then"
    yield f"  expect_owner {bundle} {source}"
    yield f"  {_command(plan, step, form)} || refused {name}"
    yield f"  {check}"
    yield "fi"


def _command(plan: Plan, step: Step, form: str) -> str:
    if form == "pulsar-admin":
        return pulsar_admin(step, plan.pulsar_version)
    return _curl(call_of(step, plan.pulsar_version).request)


def _curl(call: Call) -> str:
    query = f"?{urlencode(call.query)}" if call.query else ""
    body = [] if call.body is None else [json.dumps(call.body)]
    return shlex.join(["call", call.method, f"{escaped(call.path)}{query}", *body])
