"""A new version of a document is a new `SCHEMA` and a line in `EARLIER`."""

from __future__ import annotations

import json
from typing import ClassVar

import pytest

from pulsar_advisor.documents.document import Document, as_json
from pulsar_advisor.model.errors import StorageError
from pulsar_advisor.model.plans.canonical_json import Json


def _in_ratios(document: Json) -> Json:
    """The first version had percentages."""
    return {"usage_ratio": document["usage_percent"] / 100}  # type: ignore[operator]


class Load(Document):
    """The second version of a document."""

    SCHEMA = "pulsar-advisor/load/2"
    MADE_BY = "measure"
    EARLIER: ClassVar = {"pulsar-advisor/load/1": _in_ratios}

    usage_ratio: float
    note: str = ""
    """Added later, within the version."""


def test_it_is_written_with_its_version_and_read_back() -> None:
    load = Load(usage_ratio=0.5, note="by hand")
    assert as_json(load) == {"schema": "pulsar-advisor/load/2", "usage_ratio": 0.5, "note": "by hand"}
    assert Load.parsed(load.content(), "load.json") == load


@pytest.mark.parametrize(
    "written",
    [
        {"schema": "pulsar-advisor/load/1", "usage_percent": 50},
        {"schema": "pulsar-advisor/load/2", "usage_ratio": 0.5},
        {"schema": "pulsar-advisor/load/2", "usage_ratio": 0.5, "of_a_later_release": True},
    ],
    ids=["of the first version", "before a field was added", "with a field that is added later"],
)
def test_what_other_releases_wrote_is_read(written: Json) -> None:
    assert Load.parsed(json.dumps(written).encode(), "load.json") == Load(usage_ratio=0.5)


def test_another_version_is_refused_with_those_that_are_read() -> None:
    with pytest.raises(StorageError, match=r"reads pulsar-advisor/load/2, pulsar-advisor/load/1: use the release that"):
        Load.parsed(b'{"schema": "pulsar-advisor/load/3"}', "load.json")


def test_a_file_that_was_cut_off_is_named_with_what_to_do() -> None:
    with pytest.raises(
        StorageError, match=r"load\.json is not a JSON document: .*: put it back as it was, or remove it"
    ):
        Load.parsed(b'{"schema": "pulsar-advisor/load/2", "usage', "load.json")


def test_an_earlier_version_that_lacks_what_it_should_have_is_refused() -> None:
    with pytest.raises(StorageError, match="is not a JSON document: 'usage_percent'"):
        Load.parsed(b'{"schema": "pulsar-advisor/load/1"}', "load.json")
