"""Compares all combinations and advises one of their plans."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from pulsar_advisor.model.plan import Plan, digest_of
from pulsar_advisor.model.some_of import some_of
from pulsar_advisor.planning.fitness import Refusal


@dataclass(frozen=True)
class Score:
    """What a plan does and costs; ratios are weighted maximum usage 0..1. `error` says why there is no plan."""

    shedder: str
    placement: str
    plan: str | None
    digest: str | None
    steps: int
    unloads: int
    splits: int
    not_executable: int
    maximum_before: float | None
    maximum_after: float | None
    standard_deviation_before: float | None
    standard_deviation_after: float | None
    moved_throughput_bytes_per_s: float
    acts_in_cycle: int | None
    why_nothing: str | None
    error: str | None

    def document(self) -> dict[str, object]:
        """The score as `recommendation.json` holds it."""
        return asdict(self)


def score(plan: Plan) -> Score:
    """The score of a plan."""
    executable = [step for step in plan.steps if step.executable]
    unloads = [step for step in executable if step.action == "unload"]
    before, after = plan.predicted.before, plan.predicted.after
    return Score(
        shedder=plan.shedder,
        placement=plan.placement,
        plan=plan.file_name,
        digest=digest_of(plan),
        steps=len(executable),
        unloads=len(unloads),
        splits=len(executable) - len(unloads),
        not_executable=len(plan.steps) - len(executable),
        maximum_before=before.maximum_ratio,
        maximum_after=after.maximum_ratio,
        standard_deviation_before=before.standard_deviation_ratio,
        standard_deviation_after=after.standard_deviation_ratio,
        moved_throughput_bytes_per_s=sum(step.expect.throughput_bytes_per_s or 0.0 for step in unloads),
        acts_in_cycle=plan.decision.acts_in_cycle,
        why_nothing=plan.decision.why_nothing,
        error=None,
    )


def no_score(shedder: str, placement: str, error: str) -> Score:
    """The row of a combination that could not be judged."""
    return Score(
        shedder=shedder, placement=placement, plan=None, digest=None, steps=0, unloads=0, splits=0, not_executable=0,
        maximum_before=None, maximum_after=None, standard_deviation_before=None, standard_deviation_after=None,
        moved_throughput_bytes_per_s=0.0, acts_in_cycle=None, why_nothing=None, error=error,
    )  # fmt: skip


def advise(scores: Sequence[Score], configured: tuple[str, str]) -> Score | None:
    """The combination to advise; None if nothing is worth doing.

    Plans that lower the busiest broker come first: lowest predicted maximum (to a tenth of a percent), then lowest
    spread, then fewest unloads, then the cluster's own choice (`configured`: shedder, placement), then by name. If no
    plan lowers it, one that only splits.
    """
    done = [row for row in scores if row.plan is not None and row.steps > 0]
    better = [
        row
        for row in done
        if row.maximum_before is not None and row.maximum_after is not None and row.maximum_after < row.maximum_before
    ]
    splitting = [row for row in done if row.unloads == 0 and row.splits > 0]

    def rank(row: Score) -> tuple[float, float, int, bool, bool, str, str]:
        spread = row.standard_deviation_after if row.standard_deviation_after is not None else float("inf")
        maximum = row.maximum_after if row.maximum_after is not None else float("inf")
        own_shedder, own_placement = row.shedder == configured[0], row.placement == configured[1]
        by_choice = (not own_shedder, not own_placement, row.shedder, row.placement)
        return (round(maximum, 3), round(spread, 3), row.unloads, *by_choice)

    return min(better or splitting, key=rank, default=None)


def dominating(row: Score, others: Iterable[Score]) -> Score | None:
    """The first of the others that is no worse than `row` in any figure and better in one; None if there is none.

    The figures are the highest usage and the spread afterwards, the number of unloads, and the throughput they move.
    """
    own = _figures(row)
    if own is None:
        return None
    for other in others:
        theirs = _figures(other)
        if theirs is not None and theirs != own and all(one <= two for one, two in zip(theirs, own, strict=True)):
            return other
    return None


def _figures(row: Score) -> tuple[float, ...] | None:
    """None for a combination that unloads nothing, or whose effect is not known."""
    if not row.unloads or row.maximum_after is None or row.standard_deviation_after is None:
        return None
    return (row.maximum_after, row.standard_deviation_after, row.unloads, row.moved_throughput_bytes_per_s)


def goal_sentence(plan: Plan) -> str:
    """What a plan with a goal does, as one sentence for an operator."""
    unloads = [step for step in plan.steps if step.executable]
    if not unloads:
        return f"Do nothing: {plan.decision.why_nothing or f'{plan.title}: no bundle can be moved'}."
    brokers = {step.destination for step in unloads if step.destination is not None}
    stay = len(plan.steps) - len(unloads)
    what = f"move {_count(len(unloads), 'bundle')} to {_count(len(brokers), 'broker')}"
    if stay:
        what += f", and leave {stay} that can't move"
    return f"To {plan.title}, {what}{_effect(plan.predicted.before.maximum_ratio, plan.predicted.after.maximum_ratio)}."


def _effect(before: float | None, after: float | None) -> str:
    if before is None or after is None:
        return ""
    if f"{before:.1%}" == f"{after:.1%}":
        return f": the busiest broker stays at {before:.1%}"
    return f": the busiest broker goes from {before:.1%} to {after:.1%}"


def all_refused(why_nothing: Iterable[str | None], refused: Collection[str]) -> bool:
    """Whether no combination could be judged: each does nothing, for a reason among the refusals' sentences."""
    reasons = list(why_nothing)
    return bool(reasons) and all(reason in refused for reason in reasons)


def advice_sentence(
    advised: Score | None, scores: Sequence[Score], plans: Mapping[str, Plan], refusals: Sequence[Refusal] = ()
) -> str:
    """The advice as one sentence for an operator."""
    if advised is None or advised.plan is None:
        if all_refused((row.why_nothing for row in scores), [refusal.sentence for refusal in refusals]):
            return f"No unload can be judged: {refusals[0].missing} is missing ({refusals[0].reason})."
        reasons = {row.why_nothing or row.error for row in scores} - {None}
        if any(row.steps for row in scores):
            return "Do nothing: no strategy finds a move that lowers the busiest broker."
        only = f" {next(iter(reasons))}" if len(reasons) == 1 else ""
        return f"Do nothing: no strategy would act on these figures.{only}"
    steps = [step for step in plans[advised.plan].steps if step.executable]
    sources = {step.source for step in steps if step.action == "unload"}
    parts = []
    if advised.unloads:
        parts.append(f"unload {_count(advised.unloads, 'bundle')} from {some_of(sources)}")
    if advised.splits:
        parts.append(f"split {_count(advised.splits, 'bundle')}")
    sentence = " and ".join(parts)
    effect = ""
    if advised.unloads and advised.maximum_before is not None and advised.maximum_after is not None:
        effect = f": the busiest broker should fall from {advised.maximum_before:.1%} to {advised.maximum_after:.1%}"
    return f"{sentence[0].upper()}{sentence[1:]}{effect}."


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
