"""Results as lines for a terminal: plans, runs, results of `apply` and `verify`, failed checks, violated rules."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from pulsar_advisor.execution.throttle import DEFAULT_THROTTLE, ApplyThrottle
from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.model.text.some_of import NAMED, count, lasting, points, some_of
from pulsar_advisor.reporting.figures import moment, percent, throughput

if TYPE_CHECKING:
    from pulsar_advisor.documents.apply_result import ApplyResult
    from pulsar_advisor.documents.explanation import ExplanationOfSnapshot
    from pulsar_advisor.documents.roll_status import RollStatus
    from pulsar_advisor.documents.runs import RecordedEvent, RecordedRun
    from pulsar_advisor.documents.validation import CatalogueEntry, CheckResult, Validation
    from pulsar_advisor.documents.verify_result import VerifyResult
    from pulsar_advisor.execution.consent.approval import Before
    from pulsar_advisor.execution.ledger.plan_states import PlanState
    from pulsar_advisor.history.difference import Difference, Growth
    from pulsar_advisor.history.events import Event
    from pulsar_advisor.lint.judge import FindingWithEffect
    from pulsar_advisor.model.plans.plan import Plan
    from pulsar_advisor.planning.kinds.restarting import Restart
    from pulsar_advisor.planning.questions.restart_order import RestartOrder
    from pulsar_advisor.planning.questions.roll_order import RollOrder
    from pulsar_advisor.planning.questions.scale import Scale

STEPS_SHOWN: Final = 20
DIFFERENCES_SHOWN: Final = 10
"""Maximum per kind."""


def plan_lines(plan: Plan, throttle: ApplyThrottle, before: Before) -> Iterator[str]:
    """A plan for its approver: effect, steps left in the order in which they are sent, digest."""
    from pulsar_advisor.execution.run.pace import sent_in_order
    from pulsar_advisor.model.plans.names import short
    from pulsar_advisor.model.plans.sealed import digest_of
    from pulsar_advisor.planning.plans.consent import usage_change
    from pulsar_advisor.planning.plans.to_mind import to_mind

    steps = [step for step in sent_in_order(plan.executable_steps, throttle) if step.id not in before.ended]
    unloads = sum(step.action == "unload" for step in steps)
    yield f"{plan.title}, cluster {plan.cluster}, snapshot {plan.snapshot}"
    what = f"{count(unloads, 'unload')}, {count(len(steps) - unloads, 'split')}"
    yield f"{what}; highest usage {usage_change(plan)}"
    for step in steps[:STEPS_SHOWN]:
        where = f"{step.source} → {step.destination or 'chosen by Pulsar'}" if step.action == "unload" else step.source
        yield f"  {step.id} {step.action:<6} {step.bundle_name} {where}"
    if len(steps) > STEPS_SHOWN:
        yield f"  and {len(steps) - STEPS_SHOWN:,} more: see `pulsar-advisor plans export {short(digest_of(plan))}`"
    if before.runs:
        yield f"carried out in part, in run {', '.join(map(str, before.runs))}: only what is left is sent"
    if left_out := [step for step in plan.steps if not step.executable]:
        first = left_out[0]
        yield f"left out: {count(len(left_out), 'step')}; {first.id} because {first.not_executable_because}"
    yield from to_mind(plan)
    yield f"digest: {digest_of(plan)}"


def plan_table(states: Iterable[PlanState], *, each: bool) -> Iterator[str]:
    """One line per plan: short digest, state, predicted effect. Plans that do the same share one, unless `each`."""
    from pulsar_advisor.model.plans.names import SHORT, short

    def rank(one: PlanState) -> tuple[bool, bool, float, int]:
        after = float("inf") if one.maximum_after is None else one.maximum_after
        return (not one.advised, one.state == "proposed", after, one.executable_steps)

    newest_first = sorted(states, key=lambda one: one.snapshot, reverse=True)
    groups: dict[tuple[str, ...], list[PlanState]] = {}
    for one in sorted(newest_first, key=rank):
        same = (one.snapshot, one.state, one.steps_sha256, one.digest if each or one.problem else "")
        groups.setdefault(same, []).append(one)
    yield f"{'plan':<{SHORT}}  {'state':<9}  {'snapshot':<16}  {'steps':>6}  {'highest usage':<17}  strategy"
    for one, *others in groups.values():
        usage = f"{percent(one.maximum_before)} → {percent(one.maximum_after)}"
        mark = "advised: " if one.advised else ""
        alike = f" and {count(len(others), 'other')} alike" if others else ""
        yield (
            f"{short(one.digest)}  {one.state:<9}  {one.snapshot}  {one.executable_steps:>6,}  {usage:<17}  "
            f"{mark}{one.problem or one.title}{alike}"
        )


def run_table(runs: Iterable[RecordedRun]) -> Iterator[str]:
    """One line per run: number, plan, state, start, approver, and how it ended."""
    from pulsar_advisor.model.plans.names import SHORT, short

    yield f"{'run':>5}  {'plan':<{SHORT}}  {'state':<8}  {'started (UTC)':<19}  approved by"
    for run in runs:
        started = moment(run.started_at_ms).removesuffix(" UTC")
        ended = f": {run.sentence}" if run.sentence else ""
        ended = f", balancer still off{ended}" if run.still_off else ended
        yield f"{run.run:>5}  {short(run.digest)}  {run.state:<8}  {started}  {run.approver}{ended}"


def event_table(events: Iterable[RecordedEvent]) -> Iterator[str]:
    """One line per event of a plan: when, in which run, what; below an approval, what was approved with the plan."""
    yield f"{'time (UTC)':<19}  {'run':>5}  what"
    for event in events:
        at = moment(event.at_ms).removesuffix(" UTC")
        step = f"{event.step} " if event.step else ""
        detail = f": {event.detail}" if event.detail else ""
        yield f"{at}  {event.run or '':>5}  {step}{event.kind}{detail}"
        yield from (f"{'':<19}  {'':>5}  - {term}" for term in event.terms)


def entry_lines(entry: CatalogueEntry) -> Iterator[str]:
    """What a check asserts, from its entry in the catalogue."""
    yield f"{entry.check}: {entry.title}"
    for field, text in entry:
        if field not in ("check", "title"):
            yield f"  {field:<10}  {text}"


def lint_lines(findings: Sequence[FindingWithEffect]) -> Iterator[str]:
    """The violated rules, each with its figures, reason, remedy, and what the cluster would do with it."""
    from pulsar_advisor.reporting.futures import effect_sentence

    if not findings:
        yield "no rule is violated"
    for finding in findings:
        yield f"{finding.severity:<8} {finding.rule}: {finding.sentence}"
        yield f"         expected  {finding.title}. {finding.why}"
        yield f"         remedy    {finding.remedy}"
        if finding.change:
            options = [word for setting in finding.change.items() for word in ("--set", "=".join(setting))]
            yield f"         try       {shlex.join(('pulsar-advisor', 'recommend', *options))}"
        if finding.change and finding.effect is None:
            yield "         effect    not simulated, so not compared with today"
        if finding.effect is not None:
            yield f"         effect    {effect_sentence(finding.effect)}"


def explanation_lines(explanation: ExplanationOfSnapshot) -> Iterator[str]:
    """Caveats, what happens with the subject, every answer behind it, and the changes that would alter it.

    If Pulsar itself would do something else, that comes before what the strategies do.
    """
    from pulsar_advisor.planning.plans.own_balancer import ACTS_ALIKE, DOES_NOTHING_EITHER

    acts = explanation.acts_in_cycle if explanation.acts else None
    what = f"{explanation.sentence.removesuffix('.')} in cycle {acts}." if acts else explanation.sentence
    pulsar = f"{explanation.pulsar}."
    yield from explanation.caveats
    yield from (what, pulsar) if explanation.pulsar in (ACTS_ALIKE, DOES_NOTHING_EITHER) else (pulsar, what)
    if explanation.capacity is not None:
        yield f"Moving bundles gains nothing: {explanation.capacity}. To see what the load needs: pulsar-advisor scale"
    for link in explanation.chain:
        about = f", for {link.about}" if link.about else ""
        yield ""
        yield f"{link.strategy} as {link.role}, {link.subject}s{about}:"
        for answer in link.answers:
            last_digit = " (decided by the last digit)" if answer.last_digit else ""
            yield f"  {'yes' if answer.chosen else 'no ':<3} {answer.object}: {answer.sentence}{last_digit}"
        if link.number > len(link.answers):
            yield f"      and {link.number - len(link.answers):,} more"
    yield ""
    if not explanation.flips:
        yield f"No single setting changes this; tried: {', '.join(explanation.tried)}"
        return
    for number, flip in enumerate(explanation.flips):
        change = flip.change
        label = "Smallest change" if number == 0 else "Or"
        yield f"{label}: {change.key}={change.after} instead of {change.before or 'none'}. {flip.sentence}"


def restart_lines(order: RestartOrder, ceiling_ratio: float | None = None) -> Iterator[str]:
    """The brokers in turn, each with the command that drains it under the ceiling, and how many moves that takes."""
    if order.balance_first is not None:
        yield order.balance_first
    for number, restart in enumerate(order.restarts, start=1):
        lasting = number > 1 and not restart.will_move_again
        drain = Goal("drain", (restart.broker,), None, ceiling_ratio, tuple(restart.onto) if lasting else ())
        yield f"{number:>3}. pulsar-advisor {drain.command}"
        yield f"     {_turn_of(restart)}"
    all_leave = not any(restart.stay for restart in order.restarts)
    bound = f"; no order needs fewer than {order.moves_bound:,}" if all_leave else ""
    yield f"{count(order.moves, 'move')} in all{bound}"


def roll_lines(order: RollOrder) -> Iterator[str]:
    """The turns of a roll, what each moves, and how long that takes at the default pace."""
    if order.balance_first is not None:
        yield order.balance_first
    for number, turn in enumerate(order.turns, start=1):
        leader = " (the leader)" if turn.broker == order.leader else ""
        yield f"{number:>3}. {turn.broker}{leader}{_destinations(turn.onto)}"
        yield f"     {_turn_of(turn)}"
    moves = sum(turn.bundles for turn in order.turns)
    takes_s = sum(DEFAULT_THROTTLE.takes_s(turn.bundles) for turn in order.turns)
    pace = f", about {lasting(takes_s)} at the pace that is approved by default," if moves else ""
    yield f"{count(moves, 'move')}{pace} and {count(len(order.turns), 'restart')}"


def _destinations(onto: Mapping[str, int]) -> str:
    """The brokers that take the most bundles, the rest counted; empty if none takes any."""
    most = sorted(onto.items(), key=lambda each: -each[1])
    named = ", ".join(f"{broker} {bundles:,}" for broker, bundles in most[:NAMED])
    rest = [bundles for _, bundles in most[NAMED:]]
    return f" → {named}{f' and {sum(rest):,} to {len(rest):,} more' if rest else ''}" if named else ""


def _turn_of(turn: Restart) -> str:
    moves = f"{count(turn.bundles, 'bundle')}, {count(turn.clients, 'client')}"
    again = f", {turn.will_move_again:,} of them again later" if turn.will_move_again else ""
    stay = f", {turn.stay:,} {'stays' if turn.stay == 1 else 'stay'}" if turn.stay else ""
    # Where no other broker has any load, as where there is none, nothing is worth saying about it.
    others, ratio = "; the busiest other broker is then at", turn.highest_usage_ratio
    return f"{moves}{again}{stay}{f'{others} {ratio:.1%}' if ratio else ''}"


def roll_status_lines(status: RollStatus, restore: str) -> Iterator[str]:
    """The brokers of a roll, what is left, and what has to be done next; `restore` as for `apply_lines`."""
    for number, turn in enumerate(status.turns, start=1):
        moved = f", {count(turn.moved, 'bundle')} moved" if turn.moved else ""
        yield f"{number:>3}. {turn.broker} {turn.state}{moved}"
    if status.ended is None:
        takes = f" (about {lasting(status.moves_take_s)})" if status.moves_left else ""
        restarts = sum(turn.state != "restarted" for turn in status.turns)
        left = f"{count(status.moves_left, 'move')}{takes} and {count(restarts, 'restart')} left"
        yield f"{count(status.moves, 'move')} so far, {left}"
        if status.balancer_off:
            yield f"off until the roll ends: {' and '.join(status.balancer_off)}"
        if status.approved_until_ms is not None:
            yield f"approved until {moment(status.approved_until_ms)}"
    if status.still_off:
        yield f"balancer still off: {' and '.join(status.still_off)}; `{restore}` restores it"
    yield status.sentence


def scale_lines(found: Scale) -> Iterator[str]:
    """What the load needs, the sizes around it, and what a division into bundles adds to that."""
    from pulsar_advisor.planning.questions.scale import usage_range

    yield f"{found.sentence} Verdict: {found.verdict}, confidence: {found.confidence}."
    if found.sizes:
        yield "usage of the busiest broker, if the load were divided evenly:"
    for size in found.sizes:
        which = f"{size.change:+d} with {size.machine}" if size.change and len(found.machines) > 1 else ""
        mark = which if size.change else "now"
        yield f"{count(size.brokers, 'broker'):>15}: {usage_range(size):<17} {mark}".rstrip()
    if found.base_ratio > 0:
        yield f"up to {found.base_ratio:.0%} of the CPU usage may not follow messages"
    if found.largest_bundle_ratio > 0:
        share = f"{found.largest_bundle_ratio:.1%} of a broker"
        beyond = ""
        if found.largest_bundle_ratio > found.target_ratio:
            to_do = "split it, or give its topics more partitions"
            beyond = f", above {found.target_ratio:.0%}, which no number of brokers mends: {to_do}"
        yield f"the largest bundle, {found.largest_bundle}, needs up to {share} alone{beyond}"
    if found.losses_that_do_not_fit:
        yield f"if one of these fails, the others have no room for its bundles: {some_of(found.losses_that_do_not_fit)}"
    else:
        yield "whichever broker fails, the others have room for its bundles"


def apply_lines(result: ApplyResult, restore: str) -> Iterator[str]:
    """The result of each step, or the call it would send; the objections; and a summary sentence.

    `restore` is the command that switches the cluster's own balancer on again.
    """
    for step in result.steps:
        yield f"{step.id} {step.action:<6} {step.bundle} {step.state} {step.detail}".rstrip()
        if result.outcome == "dry_run" and step.state == "pending":
            yield f"         {step.request}"
    for refusal in result.refusals:
        yield f"refused: {refusal}"
    yield result.sentence
    if result.still_off:
        off = " and ".join(result.still_off)
        yield f"{result.outcome}, balancer still off: {off}; `{restore}` restores it"


def verify_lines(result: VerifyResult) -> Iterator[str]:
    """What was compared, each bundle and broker of a plan that is as predicted, then every deviation."""
    yield f"run {result.run}, compared with snapshot {result.snapshot}"
    yield from (f"as predicted {one.bundle} on {one.actual}" for one in result.bundles if one.as_predicted)
    yield from (f"meanwhile    {change}" for change in result.segment_changes)
    if not result.usage_judged:
        yield "usage is not judged: brokers may still report figures from before the run"
    elif result.brokers:
        yield f"a usage within {points(result.usage_tolerance_ratio)} of the prediction counts as predicted"
    for usage in (one for one in result.brokers if result.usage_judged and one.as_predicted):
        judgement = "not judged  " if None in (usage.predicted, usage.actual) else "as predicted"
        yield f"{judgement} {usage.broker} {percent(usage.actual)}, predicted {percent(usage.predicted)}"
    yield from (f"DEVIATES     {deviation}" for deviation in result.deviations)


def check_lines(result: Validation) -> Iterator[str]:
    """Failed checks of a validation result, unevaluated ones by table and error, and the number that passed."""
    failed = [check for check in result.results if not check.success]
    for check in failed:
        if check.error is None:
            yield f"{check.severity:<9} {check.check} failed for {count(check.failed_rows, 'row')}: {check.title}"
    for (table, error), number in not_evaluated(failed).items():
        yield f"critical  {table}: {count(number, 'check')} could not be evaluated: {error}"
    yield f"{len(result.results) - len(failed)} of {len(result.results)} checks passed"


def not_evaluated(failed: Iterable[CheckResult]) -> Counter[tuple[str, str]]:
    """Table and error -> number of the table's checks that the error prevented."""
    return Counter((check.check.partition(".")[0], check.error) for check in failed if check.error is not None)


def difference_lines(found: Difference, of: str) -> list[str]:
    """The difference for a reader; `of` names the cluster. What reads the same before and after isn't listed."""
    from pulsar_advisor.history.events import UNKNOWN
    from pulsar_advisor.history.policies import KINDS
    from pulsar_advisor.history.trend import moves_text

    moves = [event for event in found.events if event.kind == "move"]
    lines = [f"{of}: {found.earlier} to {found.later}"]
    lines += _some("namespaces, by traffic", _grown(found.namespaces, throughput))
    lines += _some("brokers, by usage", _grown(found.brokers, percent))
    lines.append(f"  moves {moves_text(len(moves), Counter(event.cause or UNKNOWN for event in moves))}")
    lines += _some("", [f"{one.subject}: {one.before} -> {one.after} ({_why(one)})" for one in moves])
    settings = [event for event in found.events if event.kind == "setting"]
    lines += _some("settings", [f"{one.subject}: {one.before} -> {one.after}" for one in settings])
    policies = [event for event in found.events if event.kind in KINDS]
    lines += _some("policies", [f"{one.kind} {one.subject}: {one.before} -> {one.after}" for one in policies])
    others = [event for event in found.events if event.kind not in ("move", "setting", *KINDS)]
    lines += _some("also", [_other(one) for one in others])
    return lines


def _why(move: Event) -> str:
    """The cause of a move, in the words in which all of them are counted."""
    from pulsar_advisor.history.events import UNKNOWN
    from pulsar_advisor.history.trend import IN_WORDS

    cause = move.cause or UNKNOWN
    return IN_WORDS.get(cause, cause)


def _some(title: str, lines: Sequence[str]) -> list[str]:
    head = [f"  {title}"] if title and lines else []
    left = (
        [f"    and {count(len(lines) - DIFFERENCES_SHOWN, 'other')}: see --json"]
        if len(lines) > DIFFERENCES_SHOWN
        else []
    )
    return [*head, *(f"    {line}" for line in lines[:DIFFERENCES_SHOWN]), *left]


def _grown(found: Iterable[Growth], text: Callable[[float], str]) -> list[str]:
    shown = ((one.of, text(one.before), text(one.after)) for one in found)
    return [f"{of}: {before} -> {after}" for of, before, after in shown if before != after]


def _other(event: Event) -> str:
    if event.kind == "leader":  # its subject isn't a name
        return f"leader: {event.before} -> {event.after}"
    return f"{event.kind.replace('_', ' ')} {event.subject}"
