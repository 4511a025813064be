"""A plan is found by its path or by the first digits of its digest."""

from __future__ import annotations

from pathlib import Path

import pytest

from pulsar_advisor.model.errors import Refused, StorageError, UsageError
from pulsar_advisor.model.plans.names import short
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.model.plans.sealed import digest_of, dump_plan
from pulsar_advisor.storage.plans import PlanReference, find_plan, open_plan, plan_files, write_plan
from pulsar_advisor.storage.root import PLANS, Root
from unit.execution.doubles import make_plan, unload_step


@pytest.fixture
def root(tmp_path: Path) -> Root:
    return Root(str(tmp_path), "demo")


def digits(plan: Plan) -> str:
    return digest_of(plan).removeprefix("sha256:")


def plans_beginning_alike() -> tuple[Plan, Plan]:
    """Two plans whose digests begin with the same digit."""
    by_digit: dict[str, Plan] = {}
    for seed in range(17):
        plan = make_plan([unload_step()]).model_copy(update={"seed": seed})
        if (first := digits(plan)[0]) in by_digit:
            return by_digit[first], plan
        by_digit[first] = plan
    raise AssertionError("seventeen digests begin with sixteen digits")


def test_a_plan_is_named_by_any_prefix_of_its_digest_or_by_its_path(root: Root, tmp_path: Path) -> None:
    plan = make_plan([unload_step()])
    file = write_plan(root, plan).file
    path = str(root.snapshot(plan.snapshot).folder(PLANS) / file)
    whole = digest_of(plan)
    for name in (path, digits(plan)[:1], short(whole), digits(plan)[:13], digits(plan), whole):
        assert open_plan(root, name) == plan
    assert find_plan(root, short(whole)) == PlanReference(plan.snapshot, file, whole)


def test_a_changed_plan_is_named_by_its_path(root: Root, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_bytes(dump_plan(make_plan([unload_step()])).replace(b'"seed":0', b'"seed":1'))
    with pytest.raises(Refused, match=f"{file}: the plan's content has digest"):
        open_plan(root, str(file))


def test_a_file_that_was_changed_is_not_taken_for_the_plan_that_is_made_again(root: Root) -> None:
    plan = make_plan([unload_step()])
    path = root.snapshot(plan.snapshot).folder(PLANS) / write_plan(root, plan).file
    path.write_bytes(path.read_bytes().replace(b"made by hand", b"made by them"))
    with pytest.raises(StorageError, match="doesn't match the digest in its name: it was changed; remove it"):
        write_plan(root, plan)


@pytest.mark.parametrize("name", ["0" * 8, "0" * 64, f"sha256:{'0' * 64}"])
def test_an_unknown_digest_is_answered_with_where_to_look(root: Root, name: str) -> None:
    write_plan(root, make_plan([unload_step()]))
    with pytest.raises(UsageError, match=r"no plan of cluster 'demo' .* begins with 0+: `pulsar-advisor plans`"):
        open_plan(root, name)


@pytest.mark.parametrize("name", ["665033a7z", "665033A7", " 665033a7"])
def test_what_is_neither_a_digest_nor_a_file_is_answered_with_where_to_look(root: Root, name: str) -> None:
    with pytest.raises(
        UsageError, match=r"no digest begins with it \(0 to 9, a to f\): `pulsar-advisor plans` lists them"
    ):
        open_plan(root, name)


@pytest.mark.parametrize("name", ["", ".", "/"])
def test_a_folder_is_no_plan(root: Root, name: str) -> None:
    with pytest.raises(UsageError, match="no digest begins with it"):
        open_plan(root, name)


def test_digits_that_go_on_otherwise_than_the_digest_find_nothing(root: Root) -> None:
    plan = make_plan([unload_step()])
    write_plan(root, plan)
    other = digits(plan)[:12] + ("0" if digits(plan)[12] != "0" else "1")
    with pytest.raises(UsageError, match="no plan of cluster"):
        open_plan(root, other)


def test_another_plan_under_a_plans_name_is_not_found_by_that_plans_digits(root: Root) -> None:
    plan, other = make_plan([unload_step()]), make_plan([])
    path = root.snapshot(plan.snapshot).folder(PLANS) / write_plan(root, plan).file
    path.write_bytes(dump_plan(other))
    with pytest.raises(UsageError, match="no plan of cluster 'demo'"):
        open_plan(root, short(digest_of(plan)))


def test_a_copy_of_a_plan_in_another_snapshots_folder_does_not_make_its_digits_ambiguous(root: Root) -> None:
    plan = make_plan([unload_step()])
    file = write_plan(root, plan).file
    elsewhere = root.snapshot("20991231T000000Z").folder(PLANS)
    elsewhere.mkdir(parents=True)
    (elsewhere / file).write_bytes(dump_plan(plan))
    for name in (digest_of(plan), short(digest_of(plan))):
        assert find_plan(root, name).snapshot == plan.snapshot


def test_digits_of_several_plans_are_answered_with_the_candidates(root: Root) -> None:
    both = plans_beginning_alike()
    for plan in both:
        write_plan(root, plan)
    with pytest.raises(UsageError, match=r"2 plans have a digest that begins with \w: give more digits of") as error:
        open_plan(root, digits(both[0])[0])
    assert all(digits(plan)[:12] in str(error.value) for plan in both)


def test_the_newest_snapshots_plans_come_first_and_other_files_are_none(root: Root) -> None:
    plan = make_plan([unload_step()])
    old, new = (plan.model_copy(update={"snapshot": f"2026010{day}T000000Z"}) for day in (1, 2))
    for plan in (old, new):
        write_plan(root, plan)
    (root.snapshot(new.snapshot).folder(PLANS) / "recommendation.json").write_text("{}")
    assert [path.parent.name for path in plan_files(root)] == [f"snapshot={new.snapshot}", f"snapshot={old.snapshot}"]


def test_a_file_that_holds_another_plan_is_refused(root: Root) -> None:
    plan, other = make_plan([unload_step()]), make_plan([])
    file = write_plan(root, plan).file
    reference = find_plan(root, digits(plan))
    (root.snapshot(plan.snapshot).folder(PLANS) / file).write_bytes(dump_plan(other))
    with pytest.raises(Refused, match="is plan sha256:"):
        reference.load(root)


@pytest.mark.parametrize("of", [{"cluster": "other"}, {"snapshot": "20260101T000000Z"}])
def test_a_plan_of_another_cluster_or_snapshot_is_none_of_this_ones(root: Root, of: dict[str, str]) -> None:
    plan = make_plan([unload_step()], **of)
    other = Root(root.url, plan.cluster)
    theirs = other.snapshot(plan.snapshot).folder(PLANS) / write_plan(other, plan).file
    ours = root.snapshot(make_plan([]).snapshot).folder(PLANS) / theirs.name
    ours.parent.mkdir(parents=True, exist_ok=True)
    ours.write_bytes(theirs.read_bytes())
    with pytest.raises(Refused, match="is in the folder of another"):
        PlanReference(make_plan([]).snapshot, ours.name, digest_of(plan)).load(root)


@pytest.mark.parametrize("file", ["/dev/zero", "../snapshot=x/a--0123456789ab.json", "/x/a--0123456789ab.json"])
def test_no_reference_leads_out_of_the_folder_of_plans(root: Root, file: str) -> None:
    with pytest.raises(Refused, match="not the name of a plan's file"):
        PlanReference("20260101T000000Z", file, "sha256:0").load(root)
