"""The result of `verify`: whether the cluster is as a plan predicted."""

from __future__ import annotations

from typing import ClassVar

from pulsar_advisor.documents.document import Document, Part
from pulsar_advisor.model.errors import Deviates


class BundleCheck(Part):
    """A bundle's expected owner (None: any but its old one) and actual owner (None: no owner, or no such bundle)."""

    bundle: str
    predicted: str | None
    actual: str | None
    as_predicted: bool


class UsageCheck(Part):
    """Predicted and captured usage ratio of a broker (0..1); None if unknown."""

    broker: str
    predicted: float | None
    actual: float | None
    as_predicted: bool
    """Whether the two are within the tolerance. It counts only if usage is judged."""


class VerifyResult(Document):
    """Whether the cluster is as the plan predicted."""

    SCHEMA: ClassVar = "pulsar-advisor/verify-result/1"
    MADE_BY: ClassVar = "verify"

    digest: str
    run: int
    snapshot: str
    as_predicted: bool
    deviations: tuple[str, ...]
    """What is not as predicted, in words."""
    steps_not_confirmed: tuple[str, ...]
    usage_judged: bool
    """False if the capture is too close to the run: brokers may still report figures from before it."""
    usage_tolerance_ratio: float
    bundles: tuple[BundleCheck, ...]
    brokers: tuple[UsageCheck, ...]
    segment_changes: tuple[str, ...] = ()
    """What controllers of scalable topics split or merged since the plan's snapshot, and where that moved load."""
    ledger_head: str = ""
    """The ledger's last event, `NUMBER:HASH`; this result is in it."""

    @property
    def exit_code(self) -> int:
        """0: as predicted. 5: deviates."""
        return 0 if self.as_predicted else Deviates.exit_code
