"""The undo plan: moves back what a run moved, based on the ledger's confirmed steps and the current cluster."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain, pairwise
from statistics import fmean, pstdev
from typing import Final

from pulsar_advisor.execution.cluster.cluster_port import ClusterPort
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.lists import undone
from pulsar_advisor.execution.ledger.plans import readable_plan
from pulsar_advisor.execution.ledger.runs import runs_of_plan
from pulsar_advisor.execution.ledger.steps import steps_of_run
from pulsar_advisor.execution.ledger.tables import Run, StepRecord
from pulsar_advisor.execution.ledger.unfinished import ended_runs
from pulsar_advisor.execution.run.observe import find_owner, foresee, open_calls
from pulsar_advisor.execution.run.preconditions import (
    Found,
    OpenCall,
    UsageChange,
    differences,
    foreign,
    malformed,
    no_destination,
    usage_changes,
)
from pulsar_advisor.model.cluster.bundle_range import format_range, parse_range
from pulsar_advisor.model.cluster.snapshot_id import snapshot_id
from pulsar_advisor.model.errors import Refused
from pulsar_advisor.model.plans.plan import (
    BrokerForecast,
    Expectation,
    Forecast,
    Plan,
    PlanDecision,
    Prediction,
    Step,
    StepPrediction,
)
from pulsar_advisor.model.plans.sealed import digest_of

UNDO: Final = "undo"
"""Replaces the names of shedder and placement strategy in an undo plan."""
_NOT_CONFIRMED: Final = "was not confirmed"
"""Why a step that may have had an effect isn't undone."""


def propose_undo(plan: Plan, ledger: Ledger, cluster: ClusterPort) -> Plan:
    """The plan that undoes the run of a plan, based on the ledger's confirmed steps and the current cluster.

    Raises `Refused` if a run is in progress, no unload was confirmed, the cluster's unloads can't name a destination,
    or this isn't the plan's cluster, and `ClusterUnreachable`.
    """
    digest = digest_of(plan)
    records = _attempted(ledger, ended_runs(ledger, digest, "wait for its run to end"))
    if not _moved(plan, records):
        raise Refused(f"no unload of {digest} was confirmed: there is nothing to undo")
    if reason := no_destination(plan):
        raise Refused(f"{digest} can't be undone: {reason}. Capture again, and make a new plan from where bundles are")
    if reason := foreign(plan, cluster.cluster_name(), cluster.active_brokers()):
        raise Refused(reason)
    return undo_plan(plan, records, ledger, cluster)


def require_takes_back(plan: Plan, ledger: Ledger) -> None:
    """Raise `Refused` unless each step of an undo plan takes a bundle, or a part of one, back to where the ledger's
    confirmed steps had it from.
    """
    undoes = str(plan.memory.get("undoes"))
    carried_out = readable_plan(ledger, undoes)
    moved: list[Step] = []
    if carried_out is not None and carried_out.identity == plan.identity:
        moved = _moved(carried_out, _attempted(ledger, runs_of_plan(ledger, undoes)))
    origins: dict[str, str] = {}
    came_from: defaultdict[tuple[str, str | None], list[tuple[int, int]]] = defaultdict(list)
    for move in moved:
        origin = origins.setdefault(move.bundle_name, move.source)
        came_from[move.namespace, origin].append(parse_range(move.bundle))
    for step in plan.executable_steps:
        lower, upper = parse_range(step.bundle)
        ranges = came_from[step.namespace, step.destination]
        if step.action != "unload" or not any(least <= lower and upper <= most for least, most in ranges):
            raise Refused(
                f"{digest_of(plan)} is no undo of {undoes}: the ledger has no confirmed step of it that brought "
                f"{step.bundle_name} from {step.destination}. Make the plan with `undo`"
            )


def why_outdated(plan: Plan, ledger: Ledger) -> str | None:
    """Why an undo plan takes back less than was done: a run of what it undoes has gone on since it was made."""
    if (undoes := plan.memory.get("undoes")) is None:
        return None
    records = _attempted(ledger, runs_of_plan(ledger, str(undoes)))
    confirmed = {name: record for name, record in records.items() if record.is_confirmed}
    last = {record.bundle: name for name, record in confirmed.items()}  # to undo those undoes all
    named = {step.reason for step in plan.steps}
    unconfirmed = {step.reason for step in plan.steps if _NOT_CONFIRMED in (step.not_executable_because or "")}
    later = [
        name
        for name, record in confirmed.items()
        if _undoes(name) in unconfirmed or (name == last[record.bundle] and _undoes(name) not in named)
    ]
    return f"{', '.join(later)} of {undoes} came after this undo: make it again with `undo`" if later else None


def can_be_undone(plan: Plan, ledger: Ledger) -> bool:
    """Whether runs of a plan have moved anything that can be moved back, and wasn't; a split can't be undone."""
    digest = digest_of(plan)
    if no_destination(plan) is not None or digest in undone(ledger, plan.cluster):
        return False
    return bool(_moved(plan, _attempted(ledger, runs_of_plan(ledger, digest))))


def _attempted(ledger: Ledger, runs: Sequence[Run]) -> Mapping[str, StepRecord]:
    return {name: record for run in runs for name, record in steps_of_run(ledger, run.id).items() if record.attempts}


def _moved(plan: Plan, records: Mapping[str, StepRecord]) -> list[Step]:
    return [step for step in plan.unloads if _is_confirmed(records, step)]


def undo_plan(plan: Plan, records: Mapping[str, StepRecord], ledger: Ledger, cluster: ClusterPort) -> Plan:
    """The undo plan for the steps that `records` (the attempted steps by id) confirm.

    It is a plan like any other: it needs its own approval, usually one that accepts a worse outcome. Bundles return to
    where they were before the run, in reverse order of their moves; a bundle that was split since returns in parts. A
    move that can't be undone, or that `apply` would refuse as the cluster is now, becomes a step that is not
    executable, with the reason.
    """
    at_ms = ledger.now_ms()
    attempted = [step for step in plan.executable_steps if step.id in records]
    confirmed = [step for step in attempted if _is_confirmed(records, step)]
    changes = usage_changes(plan)
    moves: dict[str, list[Step]] = {}  # by bundle, in the order of the last ones: to undo these undoes all
    for step in confirmed:
        if step.action == "unload":
            moves[step.bundle_name] = [*moves.pop(step.bundle_name, ()), step]
    still_open = open_calls(ledger, plan.identity.cluster_name)
    back: dict[str, list[Step]] = {}
    back_on: dict[str, str | None] = {}
    for bundle, of_bundle in reversed(moves.items()):
        origin = of_bundle[0].source
        back[bundle] = list(_moves_back(plan, of_bundle[-1], origin, ledger, cluster, back_on, still_open))
        back_on |= {move.bundle_name: move.destination for move in back[bundle] if move.executable}
    there = [bundle for bundle, parts in back.items() if all(part.source == part.destination for part in parts)]
    still_done = {step.id for step in confirmed} - {step.id for bundle in there for step in moves[bundle]}
    before = forecast_with(plan, still_done)
    steps: list[Step] = []
    for step in reversed(attempted):
        bundle = step.bundle_name
        if not _is_confirmed(records, step):
            record = records[step.id]
            seen = f": {record.observation}" if record.observation else ""
            why = f"{step.id} {_NOT_CONFIRMED} ({record.state}){seen}. {_as_it_is(step, cluster)}"
            steps.append(_impossible(step, why))
        elif step.action == "split":
            steps.append(_impossible(step, "a split can't be undone: Pulsar has no merge"))
        elif step == moves[bundle][-1]:
            if all(part.executable for part in back[bundle]):
                still_done -= {each.id for each in moves[bundle]}
            touched = _usages_with(plan, changes, still_done, step.predicted.brokers)
            steps += [part.model_copy(update={"predicted": StepPrediction(brokers=touched)}) for part in back[bundle]]
    return plan.model_copy(
        update={
            "shedder": UNDO,
            "placement": UNDO,
            **({"goal": None} if plan.goal is not None else {}),
            "memory": {
                "undoes": digest_of(plan),
                "observed_at": snapshot_id(datetime.fromtimestamp(at_ms / 1000, UTC)),
            },
            "rests_on": {},
            "steps": tuple(steps),
            "predicted": Prediction(
                model=plan.predicted.model,
                base=plan.predicted.base,
                before=before,
                after=forecast_with(plan, still_done),
            ),
            "decision": PlanDecision(
                acts_in_cycle=None,
                why_nothing=None,
                would_pulsar_act="Pulsar itself would not act: it has no undo",
                figures={},
            ),
        }
    )


def _as_it_is(step: Step, cluster: ClusterPort) -> str:
    """What the cluster shows now of a step without a confirmed effect, as a sentence."""
    if step.action == "split":
        is_split = {*step.boundaries} <= {*cluster.boundaries(step.namespace)}
        return f"The namespace {'has' if is_split else 'does not have'} the new boundaries now"
    likely = [broker for broker in (step.destination, step.source) if broker]
    owner = find_owner(cluster, step.namespace, step.bundle, likely)
    return f"Its bundle is on {owner or 'no broker'} now"


def _is_confirmed(records: Mapping[str, StepRecord], step: Step) -> bool:
    return step.id in records and records[step.id].is_confirmed


def _parts(step: Step, boundaries: Sequence[str]) -> Iterator[str]:
    """The current bundles that make up a step's bundle; none if its namespace is gone or was created again."""
    lower, upper = parse_range(step.bundle)
    bounds = [bound for bound in (int(text, 16) for text in boundaries) if lower <= bound <= upper]
    if not {lower, upper} <= {*bounds}:  # splits only add boundaries
        return iter(())
    return (format_range(*pair) for pair in pairwise(bounds))


def _moves_back(
    plan: Plan,
    step: Step,
    origin: str,
    ledger: Ledger,
    cluster: ClusterPort,
    back_on: Mapping[str, str | None],
    still_open: tuple[OpenCall, ...],
) -> Iterator[Step]:
    """The moves that undo a step; `back_on` says where the moves before them bring bundles (by full name)."""
    boundaries = cluster.boundaries(step.namespace)
    parts = list(_parts(step, boundaries))
    if not parts:
        again = ", but was created again, with other bundles" if boundaries else ""
        yield _impossible(step, f"namespace {step.namespace} does not exist any more{again}")
    for number, part in enumerate(parts, start=1):
        whole = part == step.bundle
        at = find_owner(cluster, step.namespace, part, filter(None, (step.destination, step.source)))
        move = _undoing(
            step,
            id=f"undo-{step.id}" if whole else f"undo-{step.id}-{number}",
            bundle=part,
            source=at or "",
            destination=origin,
            expect=Expectation(
                owner=at or "",
                boundaries=boundaries,
                topics=step.expect.topics,
                msg_rate_per_s=step.expect.msg_rate_per_s if whole else None,
                throughput_bytes_per_s=step.expect.throughput_bytes_per_s if whole else None,
            ),
        )
        alone = plan.model_copy(update={"steps": (move,)})
        found = foresee(cluster, ledger, alone, move, back_on, still_open)
        obstacle = _obstacle(alone, move, step.destination, found)
        yield move.model_copy(update={"executable": obstacle is None, "not_executable_because": obstacle})


def _obstacle(alone: Plan, move: Step, brought_to: str | None, found: Found) -> str | None:
    """Why a move can't be carried out, the only step of the plan `alone`; None if it can."""
    at = found.owner
    if at is None:
        return "no broker owns the bundle now"
    if at == move.destination:
        return f"the bundle is on {at} already"
    if brought_to is not None and at != brought_to:
        return f"the bundle is on {at} now, and the run brought it to {brought_to}: it was moved since"
    if move.destination not in found.active_brokers:
        return f"{move.destination}, where the bundle was, is not an active broker"
    return next(chain(malformed(alone), differences(move, move.expect.boundaries, at, found)), None)


def _impossible(step: Step, why: str) -> Step:
    return _undoing(step, executable=False, not_executable_because=why)


def _undoing(step: Step, **values: object) -> Step:
    """The step that undoes another, with these values. Its bundle's owner before is known, whatever moved it then."""
    own = {"id": f"undo-{step.id}", "after": (), "reason": _undoes(step.id)}
    return step.model_copy(update={**own, "confidence": "high", "doubts": (), "failed_checks": (), **values})


def _undoes(step_id: str) -> str:
    """The reason of each step that undoes this one, or says why it doesn't."""
    return f"undoes {step_id}"


def forecast_with(plan: Plan, done: Collection[str]) -> Forecast:
    """The plan's forecast if only these steps (by id) are done: each adds what it adds in the plan."""
    if (planned := _planned(plan, done)) is not None:
        return planned
    brokers, changes = dict(plan.predicted.before.brokers), usage_changes(plan)
    for broker, reached in _usages_with(plan, changes, done, brokers).items():
        if any(change.step in done for change in changes.get(broker, ())):
            brokers[broker] = brokers[broker].model_copy(update=_usage(reached))
    for step in plan.executable_steps:
        if step.id in done and step.action == "unload":
            _carry(brokers, step, step.source, -1)
            _carry(brokers, step, step.destination, 1)
    usages = [row.usage_ratio for row in brokers.values() if row.usage_ratio is not None]
    return Forecast(
        brokers=brokers,
        maximum_ratio=max(usages, default=None),
        mean_ratio=fmean(usages) if usages else None,
        standard_deviation_ratio=pstdev(usages) if usages else None,
    )


def _usages_with(
    plan: Plan, changes: Mapping[str, Sequence[UsageChange]], done: Collection[str], brokers: Iterable[str]
) -> dict[str, float | None]:
    """As `forecast_with`, but only the usage of these brokers, if the plan forecasts theirs."""
    planned = _planned(plan, done)
    rows = (planned or plan.predicted.before).brokers
    usages = {broker: rows[broker].usage_ratio for broker in brokers if broker in rows}
    if planned is not None:
        return usages
    return {broker: _reached(usage, changes.get(broker, ()), done) for broker, usage in usages.items()}


def _reached(usage: float | None, changes: Iterable[UsageChange], done: Collection[str]) -> float | None:
    for change in changes:
        if change.step in done:
            if usage is None or change.before is None or change.afterwards is None:
                return None
            usage = usage + change.afterwards - change.before
    return usage


def _planned(plan: Plan, done: Collection[str]) -> Forecast | None:
    """The plan's own forecast for none or all of its steps; None for some of them."""
    if not done:
        return plan.predicted.before
    return plan.predicted.after if all(step.id in done for step in plan.executable_steps) else None


def _usage(ratio: float | None) -> dict[str, float | None]:
    """A usage without a predicted range."""
    return {"usage_ratio": ratio, "lowest_usage_ratio": None, "highest_usage_ratio": None}


def _carry(brokers: dict[str, BrokerForecast], step: Step, broker: str | None, sign: int) -> None:
    if broker is None or broker not in brokers:
        return
    row = brokers[broker]
    brokers[broker] = row.model_copy(
        update={
            "msg_rate_per_s": _sum(row.msg_rate_per_s, step.expect.msg_rate_per_s, sign),
            "throughput_bytes_per_s": _sum(row.throughput_bytes_per_s, step.expect.throughput_bytes_per_s, sign),
            "bundles": row.bundles + sign,
        }
    )


def _sum(figure: float | None, part: float | None, sign: int) -> float | None:
    return None if figure is None or part is None else figure + sign * part
