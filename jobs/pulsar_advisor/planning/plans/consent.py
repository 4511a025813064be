"""Which consents a plan needs besides its approval, and why; approval, report, command line and form all ask here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from pulsar_advisor.model.configuration.resolved_settings import setting_value
from pulsar_advisor.model.plans.goal import ROLL
from pulsar_advisor.model.plans.names import short
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.model.plans.sealed import digest_of
from pulsar_advisor.model.text.reader import reader
from pulsar_advisor.model.text.some_of import count

ConsentName = Literal["splits", "worse", "low_confidence"]

OVERLOADED_KEY: Final = "loadBalancerBrokerOverloadedThresholdPercentage"

_STEPS_NAMED: Final = 3
_ROUNDING: Final = 1e-9


@dataclass(frozen=True)
class Consent:
    """Something an approver may agree to besides the plan itself."""

    name: ConsentName
    flag: str
    """The option of `approve` that gives it."""
    title: str
    """Its label in a form."""

    @property
    def known_as(self) -> str:
        """Its flag or its title: the name that the reader knows."""
        return self.flag if reader().knows_consents_by == "flag" else self.title


CONSENTS: Final = (
    Consent("splits", "--splits", "Allow the splits"),
    Consent("worse", "--accept-worse", "Accept a worse outcome"),
    Consent("low_confidence", "--accept-low-confidence", "Accept steps of low confidence"),
)


ALONE: Final = (
    "printf '%s\\n' 'schema: pulsar-advisor/approval-policy/1'",
    "'separate_approver: false' 'separate_system_user: false' >alone.yaml",
    '&& export PULSAR_ADVISOR_POLICY="$PWD/alone.yaml"',
)
"""A shell command, in parts, for a cluster to play with: a policy under which one person may propose and approve."""


@dataclass(frozen=True)
class NeededConsent:
    """A consent that a plan can't be carried out without, and why: one clause for each reason."""

    consent: Consent
    reasons: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """All reasons in one text."""
        return "; ".join(self.reasons)


def needed_consents(plan: Plan) -> tuple[NeededConsent, ...]:
    """The consents this plan needs, in the order of `CONSENTS`; none for a plan that helps, is sure and can be undone.

    Only executable steps count. A plan that moves nothing (splits only) can't make things worse. One that moves must
    lower the predicted maximum and must not lift a broker over the overload threshold; a prediction that is missing
    counts as worse.
    """
    reasons = {"splits": _splits, "worse": _worse, "low_confidence": _unsure}
    found = ((consent, tuple(reasons[consent.name](plan))) for consent in CONSENTS)
    return tuple(NeededConsent(consent, because) for consent, because in found if because)


def approve_words(plan: Plan) -> tuple[str, ...]:
    """Verb and options that approve this plan; NAME is to be replaced."""
    flags = (needed.consent.flag for needed in needed_consents(plan))
    return ("approve", short(digest_of(plan)), "--as", "NAME", *flags)


def usage_change(plan: Plan) -> str:
    """`92.5% → 70.9%, at worst 89.0%`: the highest usage of all brokers before and after, for whoever consents.

    As in a report, the worse end is that of a move, and said if it is higher by more than noise.
    """
    from pulsar_advisor.planning.usage.noise import DEFAULT_RATIO  # loads numpy, which lists of plans don't need

    before, after = plan.predicted.before.maximum_ratio, _highest_ratio_after(plan)
    worst = plan.predicted.after.highest_maximum_ratio
    now, then = ("unknown" if ratio is None else f"{ratio:.1%}" for ratio in (before, after))
    change = f"stays at {now}" if before is not None and now == then else f"{now} → {then}"
    if after is None or worst is None or worst - after <= DEFAULT_RATIO + _ROUNDING or not plan.unloads:
        return change
    return f"{change}, at worst {worst:.1%}"


def overloaded_ratio(plan: Plan) -> float:
    """Usage (0..1) above which a broker is overloaded: as the plan's settings say, else the release's default.

    A setting that a proposer only assumed doesn't make any consent unnecessary.
    """
    planned = {key: setting.value for key, setting in plan.settings.items() if key not in plan.what_if}
    return float(setting_value(OVERLOADED_KEY, plan.pulsar_version, planned)) / 100


def _splits(plan: Plan) -> Iterator[str]:
    if splits := sum(step.action == "split" for step in plan.executable_steps):
        yield f"it splits {count(splits, 'bundle')}, which can't be undone"


def _worse(plan: Plan) -> Iterator[str]:
    if not plan.unloads:
        return
    before, after = plan.predicted.before, plan.predicted.after
    highest = _highest_ratio_after(plan)
    if before.maximum_ratio is None or highest is None:
        yield "the highest usage of all brokers can't be predicted"
    elif highest >= before.maximum_ratio:
        yield f"the highest predicted usage of all brokers {_change(before.maximum_ratio, highest)}"
    threshold = overloaded_ratio(plan)
    for broker, forecast in after.brokers.items():
        was = before.brokers[broker].usage_ratio if broker in before.brokers else None
        now = forecast.usage_ratio
        if now is not None and now > threshold and (was is None or was <= threshold):
            usage = f"its usage is {now:.1%} afterwards" if was is None else f"its usage {_change(was, now)}"
            yield f"{broker} would rise above the overload threshold of {threshold:.0%}: {usage}"


def _highest_ratio_after(plan: Plan) -> float | None:
    """The highest usage (0..1) that a plan leads to, a roll in any of its turns; None if it can't be predicted."""
    after = plan.predicted.after.maximum_ratio
    later = plan.decision.figures.get("highest_usage_ratio") if plan.shedder == ROLL else None
    # A plan's file has 1 for 1.0.
    return max(after, later) if after is not None and isinstance(later, int | float) else after


def _change(before: float, after: float) -> str:
    if f"{before:.1%}" == f"{after:.1%}":
        return f"stays at {before:.1%}"
    return f"rises from {before:.1%} to {after:.1%}"


def _unsure(plan: Plan) -> Iterator[str]:
    """The first few steps of low confidence with their doubts; the rest as a number."""
    unsure = [step for step in plan.executable_steps if step.confidence == "low"]
    for step in unsure[:_STEPS_NAMED]:
        why = " ".join(doubt.sentence for doubt in step.doubts if doubt.confidence == "low")
        yield f"{step.id}: {why.removesuffix('.') or 'the plan does not say why'}"
    if (more := len(unsure) - _STEPS_NAMED) > 0:
        yield count(more, "more step")
