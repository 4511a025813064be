"""A plan's digest is that of its content, and nothing else is taken for a plan."""

import json

import pytest

from pulsar_advisor.model.errors import Refused, StorageError
from pulsar_advisor.model.plan import digest_of, dump_plan, load_plan
from unit.execution.doubles import make_plan, unload_step


def test_a_plan_reads_back_as_it_was_written() -> None:
    plan = make_plan([unload_step()])
    assert load_plan(dump_plan(plan)) == plan


def test_the_bytes_are_canonical() -> None:
    content = dump_plan(make_plan([unload_step()]))
    assert content == json.dumps(json.loads(content), sort_keys=True, separators=(",", ":")).encode()


def test_a_plan_that_was_changed_after_it_was_made_is_refused() -> None:
    content = dump_plan(make_plan([unload_step()]))
    with pytest.raises(Refused, match="it was changed after it was made"):
        load_plan(content.replace(b'"seed":0', b'"seed":1'))


def test_the_digest_covers_every_step() -> None:
    assert digest_of(make_plan([unload_step()])) != digest_of(make_plan([]))


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"schema":"pulsar-advisor/plan/1"}', b"\xff"])
def test_what_is_no_plan_is_named_as_such(content: bytes) -> None:
    with pytest.raises(StorageError, match="not a plan"):
        load_plan(content)


def test_a_plan_of_another_version_is_refused_by_name() -> None:
    content = dump_plan(make_plan([])).replace(b"pulsar-advisor/plan/1", b"pulsar-advisor/plan/9")
    with pytest.raises(StorageError, match="pulsar-advisor/plan/9"):
        load_plan(content)
