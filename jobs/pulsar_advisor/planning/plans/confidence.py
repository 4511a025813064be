"""How sure a step is: the checks it rests on, and the rule that turns them into a grade.

**low**: the decision depends on the last digits, or a failed warning casts doubt on what the step reads: on the rows
that the step touches, or on some that can't be named. **medium**: a failed check of severity info casts such doubt, or
a substitute replaces a measurement, or the leader's averages have samples that no snapshot shows. **high**: all other
steps. A check that sets its failing rows aside leaves no step to grade.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, Self

from pulsar_advisor.model.cluster.cluster_state import AVERAGES_ORIGINS, NO_ROW, ClusterState
from pulsar_advisor.model.cluster.inputs import INPUTS, Input
from pulsar_advisor.model.plans.plan import Confidence, Doubt

_MEASURED_AVERAGES: Final = ("bundle_data", "folded")


@dataclass(frozen=True)
class StepCheck:
    """One check of a validation, reduced to what concerns steps."""

    name: str
    title: str
    severity: Literal["critical", "warning", "info"]
    scope: Literal["cluster", "broker", "namespace", "bundle"]
    about: frozenset[Input] | None
    """Inputs it is about; None: the snapshot as a whole."""
    success: bool
    failing: frozenset[str] | None
    """Brokers, namespaces or bundles of its failing rows; None: unknown, so it may be any of them."""


@dataclass(frozen=True)
class Grade:
    """A step's confidence, why it isn't higher, and which of the checks it rests on failed for it."""

    confidence: Confidence
    doubts: tuple[Doubt, ...]
    failed_checks: tuple[str, ...]

    def with_doubts(self, doubts: Iterable[Doubt]) -> Self:
        """The grade that these doubts leave."""
        every = sorted((*self.doubts, *doubts), key=lambda doubt: doubt.confidence)
        grades = {doubt.confidence for doubt in every}
        confidence: Confidence = next((grade for grade in ("low", "medium") if grade in grades), "high")
        return replace(self, confidence=confidence, doubts=tuple(every))


class Grading:
    """Grades the steps of one plan that read the same inputs; `rests_on` names the checks about these."""

    def __init__(
        self, state: ClusterState, checks: Iterable[StepCheck], reads: frozenset[Input], derived: str = ""
    ) -> None:
        """`derived` names a strategy whose figures the cluster's load manager doesn't report; empty if it does."""
        self._state = state
        about = sorted((check for check in checks if check.about is None or check.about & reads), key=lambda c: c.name)
        self.rests_on = tuple(check.name for check in about)
        self._failed = [check for check in about if not check.success]
        self._reads_averages = bool(reads & {"short_term_averages", "long_term_averages"})
        self._substitutes = tuple(
            f"{name} is missing ({state.missing[name]}); used instead: {described.substitute}."
            for name, described in INPUTS.items()
            if name in reads and name in state.missing and described.substitute is not None
        )
        if derived:
            self._substitutes += (
                f"This load manager doesn't report what {derived} reads; it was derived by Pulsar's rules.",
            )

    def grade(self, bundle: int, brokers: Sequence[int], *, near_tie: bool) -> Grade:
        """The grade of a step on a bundle (row) that touches these brokers (rows, NO_ROW among them).

        `near_tie`: the last digits decided.
        """
        state = self._state
        touched = {
            "broker": {state.brokers.ids[broker] for broker in brokers if broker != NO_ROW},
            "namespace": {state.namespace_of(bundle)},
            "bundle": {state.bundle_name(bundle)},
        }
        failed = [
            check
            for check in self._failed
            if check.scope == "cluster" or check.failing is None or touched[check.scope] & check.failing
        ]
        doubts = [
            *([Doubt(confidence="low", sentence="A near-tie decided.")] if near_tie else []),
            *(
                Doubt(
                    confidence="medium" if check.severity == "info" else "low",
                    sentence=f"By check {check.name} this does not hold: {check.title}",
                )
                for check in failed
            ),
            *(Doubt(confidence="medium", sentence=sentence) for sentence in self._substitutes),
        ]
        if self._reads_averages and AVERAGES_ORIGINS[state.bundles.averages_origin[bundle]] not in _MEASURED_AVERAGES:
            doubts.append(Doubt(confidence="medium", sentence="Its averages come from this snapshot alone."))
        unknown = int(state.bundles.unknown_samples[bundle])
        if self._reads_averages and unknown:
            samples = "one sample" if unknown == 1 else f"{unknown} samples"
            sentence = f"The figures of {samples} in its averages are assumed: no snapshot shows them."
            doubts.append(Doubt(confidence="medium", sentence=sentence))
        return Grade("high", (), tuple(check.name for check in failed)).with_doubts(doubts)
