"""The verdict: what to do, in one sentence that is clear at 3 a.m., with its confidence and the commands to do it."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pulsar_advisor.documents.recommendation import Foresight, Recommendation
from pulsar_advisor.model.plans.goal import ROLL
from pulsar_advisor.model.plans.names import short
from pulsar_advisor.model.plans.plan import CONFIDENCES, Confidence, Plan, Step
from pulsar_advisor.model.plans.sealed import digest_of
from pulsar_advisor.planning.kinds.goal_outcome import outcome_sentence
from pulsar_advisor.planning.plans.consent import ALONE, NeededConsent, approve_words, needed_consents
from pulsar_advisor.planning.plans.own_balancer import ACTS, ACTS_ALIKE, DOES_NOT_ACT, DOES_NOTHING_EITHER
from pulsar_advisor.reporting.accuracy import accuracy
from pulsar_advisor.reporting.figures import count, sentence
from pulsar_advisor.reporting.trust import Trust

_CHECKS_NAMED: Final = 3


@dataclass(frozen=True)
class Tally:
    """A text and how often it applies."""

    text: str
    number: int


@dataclass(frozen=True)
class Command:
    """A command on one or more lines, and its purpose. Words in capitals are placeholders for the reader to fill in."""

    purpose: str
    lines: tuple[str, ...]

    @property
    def continued(self) -> str:
        """The lines, joined with shell continuations."""
        return " \\\n  ".join(self.lines)


@dataclass(frozen=True)
class Verdict:
    """What to do.

    Kinds: act, nothing, not_executable (Pulsar would, we may not), not_fit (a critical check failed, or too little
    could be judged).
    """

    kind: Literal["act", "nothing", "not_executable", "not_fit"]
    headline: str
    goal: str
    """How far a plan falls short of its goal; empty if it doesn't, or has none."""
    strategy: str
    """Shedder and placement strategy behind the advice; empty if nothing is advised."""
    confidence: Confidence | None
    """Confidence of the least certain executable step."""
    confidences: tuple[Tally, ...]
    doubts: tuple[Tally, ...]
    """Doubts about steps, gravest first, with the number of steps."""
    pulsar: str
    """What Pulsar itself would do, given its switches."""
    accuracy: str
    """How often such predictions were right for this strategy; empty for a strategy that Pulsar doesn't have."""
    acts_in_cycle: int | None
    executable: int
    not_executable: tuple[Tally, ...]
    """Reasons why steps can't be carried out, with the number of steps."""
    warnings: tuple[str, ...]
    """What the approver must accept: a maximum that doesn't fall, a broker lifted over the overload threshold."""
    commands: tuple[Command, ...]


@dataclass(frozen=True)
class Reader:
    """Where a report is read, and what can be done about its plan there."""

    root_url: str
    """The root, for commands."""
    dag: str | None = None
    """The Airflow DAG that carries plans out, in place of commands; None for a shell."""
    why_not_again: str = ""
    """Why the plan can't be approved again; empty if it can."""


def verdict_of(
    advised: Plan | None, reference: Plan | None, recommendation: Recommendation, trust: Trust, reader: Reader
) -> Verdict:
    """The verdict on a recommendation; `reference` is the plan whose wording is used if none is advised."""
    plan = advised or reference
    steps = plan.steps if plan else ()
    executable = [step for step in steps if step.executable]
    obstacles = Counter(step.not_executable_because or "no reason was given" for step in steps if not step.executable)
    kind = _kind(advised, executable, obstacles, recommendation, trust)
    acting = advised if kind == "act" else None
    needed = needed_consents(acting) if acting else ()
    grades = Counter(step.confidence for step in executable) if acting else Counter()
    commands: tuple[Command, ...] = ()
    if acting is not None and reader.why_not_again:
        commands = _afterwards(acting, reader)
    elif acting is not None and reader.dag:
        commands = _in_airflow(acting, reader.dag, needed)
    elif acting is not None:
        commands = _commands(acting, reader.root_url, recommendation.proposer)
    return Verdict(
        kind=kind,
        headline=_headline(kind, plan, obstacles, recommendation, trust),
        goal=outcome_sentence(recommendation.goal_outcome, plan.title if plan and plan.goal else ""),
        strategy=acting.title if acting else "",
        confidence=next((grade for grade in CONFIDENCES if grades[grade]), None),
        confidences=tuple(Tally(grade, grades[grade]) for grade in reversed(CONFIDENCES) if grades[grade]),
        doubts=_doubts(executable) if acting else (),
        pulsar=_by_itself(plan, kind, recommendation.foresight) if plan else "",
        accuracy=accuracy(plan.shedder, plan.load_manager, plan.pulsar_version) if plan else "",
        acts_in_cycle=plan.decision.acts_in_cycle if plan else None,
        executable=len(executable) if acting else 0,
        not_executable=tuple(Tally(reason, number) for reason, number in obstacles.most_common()),
        warnings=tuple(sentence(why) for each in needed if each.consent.name == "worse" for why in each.reasons),
        commands=commands,
    )


def _doubts(executable: Sequence[Step]) -> tuple[Tally, ...]:
    doubts = Counter((doubt.confidence, doubt.sentence) for step in executable for doubt in step.doubts)
    # "low" sorts before "medium".
    ranked = sorted(doubts.items(), key=lambda item: (item[0][0], -item[1], item[0][1]))
    return tuple(Tally(sentence, number) for (_, sentence), number in ranked)


def _kind(
    advised: Plan | None,
    executable: Sequence[Step],
    obstacles: Counter[str],
    recommendation: Recommendation,
    trust: Trust,
) -> Literal["act", "nothing", "not_executable", "not_fit"]:
    if not trust.success or recommendation.is_unjudged:
        return "not_fit"
    if advised and executable:
        return "act"
    return "not_executable" if obstacles and not executable else "nothing"


def _by_itself(plan: Plan, kind: str, foresight: Foresight | None) -> str:
    """What Pulsar itself would do; "the same way" only where a page says what that is.

    Nothing that contradicts the foresight: of splits alone only that Pulsar doesn't split, of a goal only that it
    wouldn't do that, and nothing where it acts later than a plan sees.
    """
    if kind == "not_fit" or (plan.goal is not None and not plan.steps):
        return ""
    says = plan.decision.would_pulsar_act
    if plan.goal is not None:
        return says.replace(DOES_NOT_ACT, "Pulsar itself would not do this")
    if plan.steps and not any(step.action == "unload" for step in plan.steps):
        says = says.replace(DOES_NOT_ACT, "Pulsar itself would not split")
    own = foresight.own if foresight is not None and not foresight.switched_off_by else None
    if says == DOES_NOTHING_EITHER and own is not None and own.happens:
        return ""
    return ACTS if kind == "nothing" and says == ACTS_ALIKE else says


def _headline(
    kind: str, plan: Plan | None, obstacles: Counter[str], recommendation: Recommendation, trust: Trust
) -> str:
    advice = recommendation.advice.sentence
    if kind == "not_fit" and not trust.success:
        # A title says what is true when the check passes.
        failed = [check.title for check in (*trust.not_evaluated, *trust.failed) if check.severity == "critical"]
        more = len(failed) - _CHECKS_NAMED
        shown = [*failed[:_CHECKS_NAMED], *([count(more, "more check")] if more > 0 else [])]
        return f"No advice: the data must not be used. Did not pass: {sentence('; '.join(shown))}"
    if plan is None or plan.goal is not None or kind in ("act", "not_fit"):
        return advice
    if kind == "nothing":
        why = plan.decision.why_nothing
        if why is None or why in advice:
            return advice
        who = "" if why.startswith(plan.shedder) else f"{plan.shedder}: "
        return f"{advice} {who}{sentence(why)}"
    unloads = [step for step in plan.steps if step.action == "unload"]
    wishes = [f"unload {count(len(unloads), 'bundle')}"] if unloads else []
    wishes += [f"split {count(number, 'bundle')}"] if (number := len(plan.steps) - len(unloads)) else []
    reason, _ = obstacles.most_common(1)[0]
    return f"Nothing can be done: {plan.shedder} would {' and '.join(wishes)}, but {sentence(reason)}"


def _afterwards(plan: Plan, reader: Reader) -> tuple[Command, ...]:
    """The commands that remain for a plan that can't be approved again."""
    what = f"This plan {reader.why_not_again}"
    if reader.dag:
        return (Command(f"{what}. Its page shows what happened", ()),)
    verb = ("pulsar-advisor", "runs", short(digest_of(plan)))
    return (_place(plan, reader.root_url), Command(f"{what}. To see what happened", (shlex.join(verb),)))


def _place(plan: Plan, root_url: str) -> Command:
    place = {"PULSAR_ADVISOR_ROOT": root_url, "PULSAR_ADVISOR_CLUSTER": plan.cluster}
    export = " ".join(f"{name}={shlex.quote(value)}" for name, value in place.items())
    return Command("Once per shell, unless a profile names the cluster", (f"export {export}",))


def _in_airflow(plan: Plan, dag: str, needed: Sequence[NeededConsent]) -> tuple[Command, ...]:
    ticks = " and ".join(each.consent.title for each in needed)
    how = "Trigger" if plan.shedder == ROLL else "Press Propose this above, or trigger"
    return (
        Command(f"{how} {dag} with this digest", (digest_of(plan),)),
        Command(f"Somebody else then approves it in Airflow's required actions{ticks and f', and ticks {ticks}'}", ()),
    )


def _commands(plan: Plan, root_url: str, proposer: str | None) -> tuple[Command, ...]:
    digits = short(digest_of(plan))

    def line(*words: str) -> tuple[str, ...]:
        return (shlex.join(("pulsar-advisor", *words)),)

    reach = " (needs a profile or --admin-url)"
    to_approve = (
        _place(plan, root_url),
        Command(
            f"Approve exactly this plan, as somebody other than {proposer or 'its proposer'}, from another account",
            line(*approve_words(plan)),
        ),
        Command("If you work alone on a test cluster, before approve and apply", ALONE),
    )
    if plan.shedder == ROLL:
        return (
            *to_approve,
            Command(f"Drain the first broker, once the roll is approved{reach}", line("roll", "continue", digits)),
            Command("See which broker to restart, and how to go on then", line("roll", "status", digits)),
        )
    return (
        *to_approve,
        Command(f"Preview the calls{reach}", line("apply", digits, "--dry-run")),
        Command(f"Apply the plan, once it is approved{reach}", line("apply", digits)),
        Command(
            "Compare with the prediction: --profile NAME captures anew, otherwise name a later --snapshot",
            line("verify", digits),
        ),
    )
