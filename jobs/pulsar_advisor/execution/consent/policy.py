"""The approval policy of an organisation, a YAML file: who may approve what, and which plans need no person."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal
from zoneinfo import ZoneInfo

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from pulsar_advisor.admin.home import with_home
from pulsar_advisor.admin.strict_yaml import NOT_YAML, StrictLoader
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.model.plans.goal import ROLL
from pulsar_advisor.model.plans.plan import CONFIDENCES, Plan, Step
from pulsar_advisor.model.text.problems import problems
from pulsar_advisor.model.text.some_of import count, points
from pulsar_advisor.planning.plans.consent import needed_consents

POLICY_SCHEMA: Final = "pulsar-advisor/approval-policy/1"

POLICY: Final = "policy:"
"""Prefix of the source of an approval given by a policy."""

Weekday = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
_WEEKDAYS: Final[tuple[Weekday, ...]] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def _quoted(value: object) -> object:
    if not isinstance(value, (str, time)):  # YAML reads 22:00 as the number 1320
        raise ValueError("write the time of day in quotes, for example '22:00'")
    return value


def _local(value: time) -> time:
    if value.tzinfo is not None:
        raise ValueError(f"'{value}' has an offset: write the time of day alone, and name the zone in timezone")
    return value


TimeOfDay = Annotated[time, BeforeValidator(_quoted), AfterValidator(_local)]


class Window(_Part):
    """When plans may be approved without a person. The window excludes `to`, which may be on the next day."""

    days: Annotated[tuple[Weekday, ...], Field(min_length=1)]
    begins: Annotated[TimeOfDay, Field(alias="from")]
    ends: Annotated[TimeOfDay, Field(alias="to")]
    timezone: str = "UTC"

    @field_validator("timezone")
    @classmethod
    def _known(cls, name: str) -> str:
        try:
            ZoneInfo(name)
        except (KeyError, ValueError, OSError) as error:
            raise ValueError(f"'{name}' is not a time zone; expected a name like Europe/Berlin") from error
        return name

    def local(self, now: datetime) -> datetime:
        """Convert a time to the window's time zone."""
        return now.astimezone(ZoneInfo(self.timezone))

    def holds(self, now: datetime) -> bool:
        """Whether a time is in the window. Hours after midnight belong to the day on which the window began."""
        local = self.local(now)
        clock, today = local.time(), local.weekday()
        if self.begins < self.ends:
            return _WEEKDAYS[today] in self.days and self.begins <= clock < self.ends
        if clock >= self.begins:
            return _WEEKDAYS[today] in self.days
        return _WEEKDAYS[today - 1] in self.days and clock < self.ends


class Freeze(_Part):
    """A range of days, both ends included, on which every plan needs a person's approval."""

    first: Annotated[date, Field(alias="from")]
    last: Annotated[date, Field(alias="to")]

    @model_validator(mode="after")
    def _ordered(self) -> Freeze:
        if self.last < self.first:
            raise ValueError(f"a freeze from {self.first} to {self.last} ends before it begins")
        return self


class Criteria(_Part):
    """What a plan must meet to be approved without a person; a plan that needs consent never is."""

    name: str | None = None
    """What people call this policy."""
    approved_by: str | None = None
    """Who decided that plans within it need no person."""
    kinds: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    """Shedders and plan kinds that may have made the plan; None: any."""
    max_moves: Annotated[int, Field(ge=1)]
    min_gain_ratio: Annotated[float, Field(gt=0, le=1)]
    """Minimum decrease of the highest predicted usage (0..1), which must not rise at its worse end either."""
    min_confidence: Literal["medium", "high"] = "high"
    namespaces: Annotated[tuple[str, ...], Field(min_length=1)]
    """Patterns (`shop/*`); each namespace must match one."""
    window: Window
    freezes: tuple[Freeze, ...] = ()

    def unmet(self, plan: Plan, now: datetime) -> Iterator[str]:
        """Each criterion that the plan doesn't meet now, as a clause for the person who must decide instead."""
        steps = plan.executable_steps
        moves = sum(step.action == "unload" for step in steps)
        if not 1 <= moves <= self.max_moves:
            yield f"it moves {count(moves, 'bundle')}, and max_moves is {self.max_moves}"
        if plan.shedder == ROLL:
            yield "it is a roll, whose later turns are not among its steps"
        if self.kinds is not None and plan.shedder not in self.kinds:
            yield f"it was made by {plan.shedder}, and kinds are {', '.join(self.kinds)}"
        if plan.what_if:
            yield f"its figures assume {', '.join(map('='.join, plan.what_if.items()))}"
        for needed in needed_consents(plan):
            yield f"it needs a person's consent: {needed.sentence}"
        before, after = plan.predicted.before.maximum_ratio, plan.predicted.after.maximum_ratio
        if before is None or after is None:
            yield "its gain can't be predicted"
        elif before - after < self.min_gain_ratio:
            falls = f"falls by {points(before - after)}" if after < before else "doesn't fall"
            yield f"the highest usage {falls}, and min_gain_ratio is {points(self.min_gain_ratio)}"
        worst = plan.predicted.after.highest_maximum_ratio
        if before is not None and worst is not None and round(worst, 3) > round(before, 3):
            yield f"at worst the highest usage rises from {before:.1%} to {worst:.1%}"
        least = CONFIDENCES.index(self.min_confidence)
        unsure = [step.id for step in steps if CONFIDENCES.index(step.confidence) < least]
        if unsure:
            verb = "is" if len(unsure) == 1 else "are"
            yield f"{count(len(unsure), 'step')} {verb} less certain than {self.min_confidence}, {unsure[0]} first"
        yield from self._other_namespaces(steps)
        local = self.window.local(now)
        if not self.window.holds(now):
            days = ", ".join(self.window.days)
            window = f"{days} {self.window.begins:%H:%M} to {self.window.ends:%H:%M} {self.window.timezone}"
            yield f"it is {local:%a %H:%M}, outside the window {window}"
        for freeze in self.freezes:
            if freeze.first <= local.date() <= freeze.last:
                yield f"changes are frozen from {freeze.first} to {freeze.last}"

    @property
    def sentence(self) -> str:
        """The policy's name, who decided on it, and its criteria in full: what the ledger keeps of it."""
        named = f"policy '{self.name}'" if self.name else "the policy"
        decided = f", decided by {self.approved_by}," if self.approved_by else ""
        criteria = self.model_dump_json(by_alias=True, exclude_none=True, exclude={"name", "approved_by"})
        return f"every criterion of {named}{decided} is met: {criteria}"

    def _other_namespaces(self, steps: Sequence[Step]) -> Iterator[str]:
        for namespace in sorted({step.namespace for step in steps}):
            if not any(fnmatchcase(namespace, pattern) for pattern in self.namespaces):
                yield f"namespace {namespace} matches none of {', '.join(self.namespaces)}"


class ApprovalPolicy(_Part):
    """What an organisation requires of an approval."""

    SCHEMA: ClassVar = POLICY_SCHEMA

    schema_name: Annotated[Literal["pulsar-advisor/approval-policy/1"], Field(alias="schema")] = POLICY_SCHEMA
    separate_approver: bool = True
    """The proposer of a plan may not approve it; a plan without a recorded proposer can't be approved."""
    separate_system_user: bool = True
    """One user can't propose under one name and approve under another: neither by typing one, nor once in Airflow."""
    require_authenticated: bool = False
    """An approval counts only if a system, or this policy itself, vouches for the approver."""
    automatic: Criteria | None = None
    """Without criteria, every plan needs a person's approval."""

    @property
    def source(self) -> str:
        """What vouches for an approval given by this policy: the policy itself, by the first digits of its SHA-256."""
        content = self.model_dump_json(by_alias=True, exclude_none=True).encode()
        return f"{POLICY}{hashlib.sha256(content).hexdigest()[:16]}"


def read_policy(path: Path) -> ApprovalPolicy:
    """Read the policy in a YAML file. Raises `UsageError` with the position if it is invalid."""
    path = with_home(path)
    try:
        document = yaml.load(path.read_bytes(), Loader=StrictLoader)
    except OSError as error:
        raise UsageError(f"can't read the approval policy {path}: {error.strerror or error}") from error
    except NOT_YAML as error:
        raise UsageError(f"the approval policy {path} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(document, dict) or document.get("schema") != POLICY_SCHEMA:
        raise UsageError(f"the approval policy {path} must begin with 'schema: {POLICY_SCHEMA}'")
    try:
        return ApprovalPolicy.model_validate(document)
    except ValidationError as error:
        raise UsageError(f"the approval policy {path} is not valid: {problems(error)[0]}") from error
