"""An Airflow connection and the fields of its form, without those left empty."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException

from pulsar_advisor.model.errors import UsageError

if TYPE_CHECKING:
    from airflow.sdk import Connection

    from pulsar_advisor.admin.profiles import Fields

T = TypeVar("T")


def connection_and_extra(conn_id: str, conn_type: str) -> tuple[Connection, Fields]:
    """A connection, and its extra. Raises `UsageError` if there is none, or its extra isn't an object."""
    try:
        connection = BaseHook.get_connection(conn_id)
    except AirflowNotFoundException as error:
        raise UsageError(f"there is no connection '{conn_id}': make one of type {conn_type}") from error
    extra = connection.extra_dejson
    if not isinstance(extra, dict):
        raise UsageError(f"the extra of connection '{conn_id}' is not a JSON object")
    return connection, extra


def text_field(extra: Fields, name: str) -> str | None:
    """A field that is a text; None if it was left empty."""
    return str(extra[name]) if filled(extra.get(name)) else None


def filled(value: object) -> bool:
    """Whether a field was filled in; a box always counts, ticked or not."""
    return value is not None and value != ""


def plain_fields(extra: Mapping[str, T], names: Iterable[str]) -> dict[str, T]:
    """Those of the named fields that were filled in."""
    return {name: extra[name] for name in names if filled(extra.get(name))}
