"""A plan's digest is that of its content, and nothing else is taken for a plan."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest

from pulsar_advisor.model.errors import Refused, StorageError
from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.model.plans.plan import Plan, Schema
from pulsar_advisor.model.plans.sealed import digest_of, dump_plan, file_name, load_plan, seal, sealed_before
from unit.execution.doubles import make_plan, unload_step

EARLIER = tuple(sorted((Path(__file__).parents[3] / "data" / "plans").glob("*.json")))
"""Plans that `recommend` wrote before plans named the checks that a step rests on, before they had a goal, before
they had each list of boundaries once, and before they had the busiest broker's range: with all lists and then, the
plan of 309bd7e3 for the recorded Modular cluster, with each once."""


PLAN_7 = make_plan([unload_step()], seed=7)


def sealed(document: dict[str, Any]) -> bytes:
    """A plan's file with the digest of its content, made without the package; every number in it is an integer."""
    content = {name: value for name, value in document.items() if name != "digest"}
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
    document = {**content, "digest": f"sha256:{hashlib.sha256(canonical).hexdigest()}"}
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def test_every_version_that_is_read_has_a_file() -> None:
    found = {json.loads(file.read_bytes())["schema"] for file in EARLIER}
    assert found == {*get_args(Schema)} - {Plan.SCHEMA}


def test_a_plan_reads_back_as_it_was_written() -> None:
    plan = make_plan([unload_step()])
    assert load_plan(dump_plan(plan)) == plan


def test_a_sealed_plan_is_known_again_by_its_digest() -> None:
    written = seal(make_plan([unload_step()]))
    assert sealed_before(written.content, written.digest) == written


def test_what_was_changed_since_it_was_sealed_is_refused() -> None:
    written = seal(make_plan([unload_step()]))
    changed = written.content.replace(b'"seed":0', b'"seed":1')
    repeated = written.content[:-1] + f',"digest":"{written.digest}"}}'.encode()
    for content, digest in (
        (changed, written.digest),
        (repeated, written.digest),
        (written.content, digest_of(PLAN_7)),
    ):
        with pytest.raises(Refused, match="does not hold the plan"):
            sealed_before(content, digest)


@pytest.mark.parametrize("content", [b"{}", b'{"cluster":"\xff"}', b'{"x":' + b"[" * 100_000])
def test_what_is_no_plan_is_none_whatever_its_digest(content: bytes) -> None:
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    with pytest.raises(StorageError, match="holds no plan"):
        sealed_before(content, digest)


def test_the_bytes_are_canonical() -> None:
    content = dump_plan(make_plan([unload_step()]))
    assert content == json.dumps(json.loads(content), sort_keys=True, separators=(",", ":")).encode()


def test_a_plan_that_was_changed_after_it_was_made_is_refused() -> None:
    content = dump_plan(make_plan([unload_step()]))
    with pytest.raises(Refused, match="it was changed after it was made"):
        load_plan(content.replace(b'"seed":0', b'"seed":1'))


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content[:1] + b'"seed":7,' + content[1:],
        lambda content: content[:-1] + b',"schema":"pulsar-advisor/plan/5"}',
        lambda content: content.replace(b'"shop/orders"', b'"shop\\/orders"'),
        lambda content: json.dumps(json.loads(content), indent=1).encode(),
        lambda content: content + b"\n",
    ],
    ids=["a key twice", "a key again", "escaped", "indented", "a line more"],
)
def test_a_plan_in_another_than_the_canonical_form_is_refused(change: Callable[[bytes], bytes]) -> None:
    content = change(dump_plan(make_plan([unload_step()])))
    with pytest.raises(Refused, match="not in canonical form"):
        load_plan(content)


def test_a_plan_nested_without_end_is_no_plan() -> None:
    with pytest.raises(StorageError, match="not a plan"):
        load_plan(b"[" * 100_000)


@pytest.mark.parametrize("depth", [300, 600])
def test_a_plan_nested_deeper_than_it_can_be_written_is_not_read(depth: int) -> None:
    nested: list[Any] = []
    for _ in range(depth):
        nested = [nested]
    document = {**json.loads(dump_plan(make_plan([unload_step()]))), "memory": {"history": nested}}
    with pytest.raises(StorageError, match="this plan can't be read: it is nested too deeply"):
        load_plan(sealed(document))


def test_the_digest_covers_every_step() -> None:
    assert digest_of(make_plan([unload_step()])) != digest_of(make_plan([]))


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"schema":"pulsar-advisor/plan/1"}', b"\xff"])
def test_what_is_no_plan_is_named_as_such(content: bytes) -> None:
    with pytest.raises(StorageError, match="not a plan"):
        load_plan(content)


def test_a_plan_of_another_version_is_refused_by_name() -> None:
    content = dump_plan(make_plan([])).replace(b"pulsar-advisor/plan/5", b"pulsar-advisor/plan/9")
    with pytest.raises(StorageError, match=r"pulsar-advisor/plan/9'.*: use the release that made the plan"):
        load_plan(content)


@pytest.mark.parametrize("earlier", EARLIER, ids=lambda path: path.stem)
def test_a_plan_of_an_earlier_release_is_read_and_written_unchanged(earlier: Path) -> None:
    content = earlier.read_bytes()
    plan = load_plan(content)
    assert dump_plan(plan) == content
    assert digest_of(plan) == json.loads(content)["digest"]


def test_steps_that_expect_the_same_boundaries_share_one_list_in_the_file() -> None:
    moves = [unload_step(number) for number in (1, 2)]
    later = unload_step(3)
    later = later.model_copy(update={"expect": later.expect.model_copy(update={"boundaries": ("0x00000000",)})})
    document = json.loads(dump_plan(make_plan([*moves, later])))
    assert document["boundaries"] == [list(moves[0].expect.boundaries), ["0x00000000"]]
    assert [step["expect"]["boundaries"] for step in document["steps"]] == [0, 0, 1]


@pytest.mark.parametrize("position", [1, -2, "0", None, [0]])
def test_a_step_whose_boundaries_are_not_in_the_plan_is_refused(position: object) -> None:
    document = json.loads(dump_plan(make_plan([unload_step()])))
    document["steps"][0]["expect"]["boundaries"] = position
    with pytest.raises(StorageError, match="a step names boundaries that it doesn't hold"):
        load_plan(sealed(document))


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document["boundaries"].append(["0x00000000"]),
        lambda document: document["steps"][0]["expect"].update(boundaries=-1),
        lambda document: document["steps"][0]["expect"].update(boundaries=False),
    ],
    ids=["a list that no step names", "counted from the end", "no number"],
)
def test_boundaries_in_another_form_are_refused(change: Callable[[dict[str, Any]], None]) -> None:
    document = json.loads(dump_plan(make_plan([unload_step()])))
    change(document)
    with pytest.raises(StorageError, match="can't be read"):
        load_plan(sealed(document))


def test_a_goal_is_read_back_and_an_unknown_part_of_it_is_refused() -> None:
    goal = Goal("drain", ("b1:8080",))
    plan = make_plan([], goal=goal, shedder="drain", placement="")
    assert load_plan(dump_plan(plan)) == plan
    assert (plan.title, file_name(plan, digest_of(plan)).count("--")) == ("drain b1:8080", 1)
    document = json.loads(dump_plan(plan))
    with pytest.raises(StorageError, match="later"):
        load_plan(sealed({**document, "goal": {**document["goal"], "later": True}}))


def test_a_field_that_an_earlier_release_did_not_write_is_not_made_up_for_the_digest() -> None:
    document = json.loads(dump_plan(make_plan([])))
    document["decision"].pop("figures", None)
    plan = load_plan(sealed(document))
    assert plan.decision.figures == {}
    assert "figures" not in json.loads(dump_plan(plan))["decision"]


def test_a_value_of_another_type_is_not_taken_for_what_it_looks_like() -> None:
    document = json.loads(dump_plan(make_plan([])))
    with pytest.raises(StorageError, match="of another type"):
        load_plan(sealed({**document, "seed": "0"}))


def test_a_field_that_only_a_later_release_knows_is_refused_by_name() -> None:
    document = json.loads(dump_plan(make_plan([])))
    with pytest.raises(StorageError, match="postpone: Extra inputs"):
        load_plan(sealed({**document, "postpone": True}))


def test_a_number_without_a_canonical_form_is_named() -> None:
    document = json.loads(dump_plan(make_plan([])))
    with pytest.raises(StorageError, match="no canonical form"):
        load_plan(sealed({**document, "seed": 2**60}))
