"""A plan's file: canonical JSON, sealed by a digest, of this release or an earlier one.

Canonical JSON is RFC 8785; the digest is SHA-256 of it without the digest field, so the same snapshot and inputs give
the same bytes on any machine.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypedDict, get_args

import msgspec
from pydantic import JsonValue, ValidationError

from pulsar_advisor.model.errors import Refused, StorageError
from pulsar_advisor.model.plans.canonical_json import CanonicalizationError, Json, joined, members
from pulsar_advisor.model.plans.plan import Plan, Schema
from pulsar_advisor.model.text.problems import problems

_SCHEMAS: Final[tuple[Schema, ...]] = get_args(Schema)
_WITH_ALL_BOUNDARIES: Final = _SCHEMAS[:3]

_EXPECTED: Final = "name a plan file that `recommend` wrote"


class Sealed(NamedTuple):
    """A plan as it is written and recorded."""

    content: bytes
    """Its canonical JSON with its digest."""
    digest: str
    """`sha256:` and that of the JSON without it."""
    cluster: str
    cluster_name: str
    snapshot: str


def file_name(plan: Plan, digest: str) -> str:
    """`<shedder>--<placement>--<first 12 digits of the digest>.json`; without a placement strategy, without it."""
    digits = digest.removeprefix("sha256:")[:12]
    return f"{'--'.join(part for part in (plan.shedder, plan.placement, digits) if part)}.json"


class _ExpectDocument(TypedDict):
    boundaries: list[str] | int


class _StepDocument(TypedDict):
    """The part of a step's JSON that is written in another form."""

    expect: _ExpectDocument


def _document(plan: Plan) -> Json:
    """The plan as JSON. Fields that an earlier release did not write are omitted, so that its digest stays valid."""
    document = plan.model_dump(mode="json", exclude_unset=True)
    if plan.schema_name not in _WITH_ALL_BOUNDARIES:
        document["boundaries"] = _boundaries_taken_out(document["steps"])
    if (goal := document.get("goal")) and not goal["bundles"]:
        del goal["bundles"]
    return {"schema": document.pop("schema_name"), **document}


def _boundaries_taken_out(steps: Sequence[_StepDocument]) -> list[list[str]]:
    """The distinct lists of boundaries that the steps expect; each step keeps only the position of its list.

    A namespace has hundreds of boundaries, and a large plan thousands of steps.
    """
    positions: dict[tuple[str, ...], int] = {}
    for step in steps:
        expect = step["expect"]
        assert isinstance(expect["boundaries"], list), "as a plan has them"
        expect["boundaries"] = positions.setdefault(tuple(expect["boundaries"]), len(positions))
    return list(map(list, positions))


def _boundaries_put_back(steps: Sequence[_StepDocument], lists: Sequence[list[str]]) -> list[_StepDocument]:
    """The reverse. Raises `LookupError` or `TypeError` if a step's position isn't that of a list."""

    def own(position: list[str] | int) -> list[str]:
        if not isinstance(position, int):
            raise TypeError(f"{position} is no position")
        return lists[position]

    return [{**step, "expect": {**step["expect"], "boundaries": own(step["expect"]["boundaries"])}} for step in steps]


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _sealed(document: Mapping[str, JsonValue]) -> tuple[bytes, str]:
    """The canonical JSON of a plan with its digest, and the digest."""
    content = members(document)
    digest = _digest(joined(content))
    return joined({**content, **members({"digest": digest})}), digest


def seal(plan: Plan) -> Sealed:
    """The plan as it is written. A thousand steps take a tenth of a second."""
    return Sealed(*_sealed(_document(plan)), plan.cluster, plan.identity.cluster_name, plan.snapshot)


class _NamedCluster(msgspec.Struct):
    cluster_name: str


class _Head(msgspec.Struct):
    cluster: str
    identity: _NamedCluster
    snapshot: str


def is_sealed_as(content: bytes, digest: str) -> bool:
    """Whether these are the bytes of the plan with this digest; they are not parsed."""
    # No text can hold its own digest, so this is the member.
    return _digest(content.replace(f',"digest":"{digest}"'.encode(), b"", 1)) == digest


def sealed_before(content: bytes, digest: str) -> Sealed:
    """A plan that was sealed, from its file; its steps, often many megabytes, are not read.

    Raises `Refused` unless its digest is this one, `StorageError` if it holds no plan.
    """
    if not is_sealed_as(content, digest):
        raise Refused(f"the file does not hold the plan {digest}: it was changed; make it again with `recommend`")
    try:
        head = msgspec.json.decode(content, type=_Head)
    except (ValueError, RecursionError) as error:
        raise StorageError(f"the file with the digest {digest} holds no plan: {error}") from error
    return Sealed(content, digest, head.cluster, head.identity.cluster_name, head.snapshot)


def digest_of(plan: Plan) -> str:
    """The plan's digest."""
    return seal(plan).digest


def dump_plan(plan: Plan) -> bytes:
    """Canonical JSON of the plan with its digest."""
    return seal(plan).content


_TOO_DEEP: Final = "it is nested too deeply"


def load_plan(content: bytes) -> Plan:
    """Parse a plan file of this release or an earlier one.

    Raises `StorageError` if it isn't a plan of a known version, `Refused` if its digest doesn't match its content or
    its bytes aren't canonical: a duplicate key could show people another plan than the one applied.
    """
    try:
        document = json.loads(content)
        digest = document.pop("digest")
        schema = document["schema"]
    except (ValueError, RecursionError) as error:
        raise StorageError(f"this is not a plan: it is not JSON ({error}); {_EXPECTED}") from error
    except KeyError as error:
        raise StorageError(f"this is not a plan: it has no {error}; {_EXPECTED}") from error
    except (AttributeError, TypeError) as error:
        raise StorageError(f"this is not a plan: it is not a JSON object; {_EXPECTED}") from error
    if schema not in _SCHEMAS:
        raise StorageError(
            f"plan schema '{schema}' is not known here; this release reads {', '.join(_SCHEMAS)}: use the release that "
            "made the plan, or make it again with `recommend`"
        )
    fields = {name: value for name, value in document.items() if name != "schema"}
    try:
        if schema not in _WITH_ALL_BOUNDARIES:
            fields["steps"] = _boundaries_put_back(fields["steps"], fields.pop("boundaries"))
        plan = Plan.model_validate({"schema_name": schema, **fields})
        # The same bytes have the same digest, and are canonical.
        if dump_plan(plan) == content:
            return plan
        reason = "a value in it is of another type than its field"
    except (LookupError, TypeError):
        reason = "a step names boundaries that it doesn't hold"
    except ValidationError as error:
        too_deep = any(each["type"].startswith("recursion_") for each in error.errors(include_input=False))
        reason = _TOO_DEEP if too_deep else problems(error)[0]
    except CanonicalizationError as error:
        reason = f"it has no canonical form: {error}"
    except (RecursionError, ValueError):  # pydantic's limit of depth is a plain ValueError
        reason = _TOO_DEEP
    _refuse_changed(content, document, digest)
    raise StorageError(f"this plan can't be read: {reason}")


def _refuse_changed(content: bytes, document: Mapping[str, JsonValue], digest: str) -> None:
    """Raise `Refused` if a file isn't what was written, whatever else is wrong with it."""
    try:
        canonical, found = _sealed(document)
    except CanonicalizationError:
        return  # that is what is wrong with it
    if found != digest:
        raise Refused(
            f"the plan's content has digest {found}, but it claims {digest}: it was changed after it was made; "
            "make it again with `recommend`"
        )
    if content != canonical:
        raise Refused(
            "the plan's file is not in canonical form (RFC 8785): it was written again, or holds a key twice; make it "
            "again with `recommend`"
        )
