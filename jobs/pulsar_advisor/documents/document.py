"""What all documents have in common: a schema name with a version, frozen content, a strict reader, and their JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Annotated, ClassVar, Self

import msgspec
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import to_jsonable_python

from pulsar_advisor.model.errors import StorageError
from pulsar_advisor.model.plans.canonical_json import Json
from pulsar_advisor.model.text.problems import problems

Count = Annotated[int, Field(ge=0, le=2**53)]
"""Also of milliseconds: a number that other programs can hold exactly."""


class _Named(msgspec.Struct):
    schema: str = ""


class Part(BaseModel):
    """A part of a document."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Document(Part):
    """A document: the whole content of a file but for its field `schema`."""

    SCHEMA: ClassVar[str]
    """Kind and version of what is written."""
    MADE_BY: ClassVar[str]
    """The stage that writes it."""
    EARLIER: ClassVar[Mapping[str, Callable[[Json], Json]]] = {}
    """Schema of an earlier version -> what turns its JSON into that of this version."""

    def content(self) -> bytes:
        """The bytes of the file: sorted and indented for people."""
        text = json.dumps(as_json(self), indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
        return f"{text}\n".encode()

    @classmethod
    def parsed(cls, content: bytes, name: str) -> Self:
        """The document in these bytes, of this version or an earlier one; `name` is where they were read.

        Raises `StorageError` for another schema, and for content that violates it.
        """
        todo = f"put it back as it was, or remove it and run `{cls.MADE_BY}` again"
        try:
            schema = msgspec.json.decode(content, type=_Named).schema  # makes nothing of all else
            if (upgrade := cls.EARLIER.get(schema)) is not None:
                content = json.dumps(upgrade(json.loads(content))).encode()
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise StorageError(f"{name} is not a JSON document: {error}: {todo}") from error
        if upgrade is None and schema != cls.SCHEMA:
            known = ", ".join((cls.SCHEMA, *cls.EARLIER))
            raise StorageError(
                f"{name} has schema {schema!r}; this release reads {known}: use the release that wrote it"
            )
        try:
            return cls.model_validate_json(content, strict=True)
        except ValidationError as error:
            raise StorageError(f"{name} is not as `{cls.MADE_BY}` writes it ({problems(error)[0]}): {todo}") from error


class OfSnapshot(Document):
    """What was made of a snapshot."""

    cluster: str
    snapshot: str
    manifest_sha256: str


def as_json(document: object) -> Json:
    """A document, or a part of one, as the JSON that is written, printed and handed on: a document with its schema."""
    fields: Json = to_jsonable_python(document)
    schema = getattr(document, "SCHEMA", None)
    return fields if schema is None else {"schema": schema, **fields}
