"""A plan as a list of calls, for tools that make them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pulsar_advisor.documents.call import Call
from pulsar_advisor.documents.document import Document, Part
from pulsar_advisor.model.plans.plan import Action


class ExportedStep(Part):
    """One call of a plan, and who owns what before and after it."""

    id: str
    after: tuple[str, ...]
    """The steps that must be done before it."""
    action: Action
    reason: str
    owner_before: Mapping[str, str]
    """Bundle -> broker."""
    call: Call
    owner_after: Mapping[str, str | None]
    """Bundle -> broker; null where Pulsar chooses."""


class PlanCalls(Document):
    """A plan as a list of calls, in the order of the plan."""

    SCHEMA: ClassVar = "pulsar-advisor/plan-calls/1"
    MADE_BY: ClassVar = "export"

    cluster: str
    cluster_name: str
    digest: str
    snapshot: str
    to_mind: tuple[str, ...]
    """What the ledger says against carrying it out, and what an approver would be shown."""
    unloads: tuple[ExportedStep, ...]
    splits_and_after: tuple[ExportedStep, ...]
    """What can't be undone."""
