"""What goes and what stays: by age, by count, by what plans refer to, and after an interruption."""

from __future__ import annotations

import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from upath import UPath

from pulsar_advisor.documents.prune_result import Pruned
from pulsar_advisor.execution.consent.approval import propose
from pulsar_advisor.execution.ledger.opening import open_ledger
from pulsar_advisor.model.errors import StorageError, UsageError
from pulsar_advisor.snapshots.retention import Retention
from pulsar_advisor.stages import prune as verb
from pulsar_advisor.stages.prune import run as prune
from pulsar_advisor.storage import removal
from pulsar_advisor.storage.files import write_file
from pulsar_advisor.storage.lease import held
from pulsar_advisor.storage.plans import write_plan
from pulsar_advisor.storage.root import MANIFEST, Root, Snapshot, names_in
from unit.execution.actors import ALICE
from unit.execution.doubles import make_plan, unload_step

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
OLD, MIDDLE, NEW = "20260101T000000Z", "20261101T000000Z", "20261121T000000Z"
SNAPSHOTS = (OLD, MIDDLE, NEW)
STAGES = ("raw", "tables/bundles", "tables/result", "validation", "outcomes", "plans", "reports")


def make(root: Root, *snapshots: str) -> None:
    """Every stage writes something about each snapshot."""
    for snapshot in snapshots:
        for stage in STAGES:
            write_file(root.snapshot(snapshot).folder(stage) / (MANIFEST if stage == "raw" else "part"), b"{}")


def proposed(url: str, snapshot: str, **changes: object) -> None:
    """Somebody proposes a plan that was made from a snapshot."""
    with closing(open_ledger(url)) as ledger:
        propose(ledger, make_plan([unload_step()], **{"cluster": "test", "snapshot": snapshot, **changes}), ALICE)


@pytest.fixture(autouse=True)
def snapshots(root: Root) -> None:
    make(root, *SNAPSHOTS)
    for snapshot in SNAPSHOTS:
        write_file(root.snapshot(snapshot).folder("raw") / "topic_stats" / "0.jsonl.zst", b"")
    open_ledger(root.ledger_url).close()


def outcome(
    removed: tuple[str, ...] = (),
    referred_to: tuple[str, ...] = (),
    at_work: tuple[str, ...] = (),
    *,
    dry_run: bool = False,
) -> Pruned:
    return Pruned(removed=removed, referred_to=referred_to, at_work=at_work, remainders=(), dry_run=dry_run)


def pruned(root: Root, *, days: int | None = None, count: int | None = None, dry_run: bool = False) -> Pruned:
    return prune(root, Retention(days, count), None, NOW, dry_run=dry_run)


def stages_with(snapshot: Snapshot) -> set[str]:
    return {stage for stage in STAGES if snapshot.folder(stage).exists()}


@pytest.mark.parametrize(
    ("rule", "outdated"),
    [
        (Retention(keep_days=30), [OLD]),
        (Retention(keep_days=1), [OLD, MIDDLE]),
        (Retention(keep_count=1), [OLD, MIDDLE]),
        (Retention(keep_count=3), []),
        (Retention(keep_days=1, keep_count=2), [OLD]),  # what either rule keeps stays
    ],
)
def test_the_rules(rule: Retention, outdated: Collection[str]) -> None:
    assert rule.outdated(SNAPSHOTS, NOW) == outdated


def test_the_newest_snapshot_stays_however_old() -> None:
    assert Retention(keep_days=1).outdated([OLD], NOW) == []


@pytest.mark.parametrize(("days", "count"), [(None, None), (0, None), (None, 0), (3, -1)])
def test_a_rule_that_keeps_nothing_is_refused(days: int | None, count: int | None) -> None:
    with pytest.raises(UsageError, match="--keep-"):
        Retention(days, count)


def test_everything_made_of_an_outdated_snapshot_goes_and_nothing_else(root: Root) -> None:
    other = Root(root.url, "other").snapshot(OLD)
    write_file(other.folder("tables/bundles") / "part", b"")
    assert pruned(root, days=30) == outcome((OLD,))
    assert stages_with(root.snapshot(OLD)) == set()
    assert stages_with(root.snapshot(MIDDLE)) == stages_with(root.snapshot(NEW)) == set(STAGES)
    assert other.folder("tables/bundles").exists()


@pytest.mark.parametrize("place", ["lost+found", ".snapshot"])
def test_a_folder_that_a_file_system_keeps_for_itself_is_not_looked_into(
    root: Root, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Path(root.url, place)
    own.mkdir()

    def names_unless_refused(folder: UPath) -> list[str]:
        if own in (Path(folder), *Path(folder).parents):
            raise StorageError(f"can't list {folder}: Permission denied")
        return names_in(folder)

    monkeypatch.setattr(removal, "names_in", names_unless_refused)
    assert pruned(root, days=30) == outcome((OLD,))


@pytest.mark.parametrize("stage", ["raw", "reports"])
def test_of_a_link_only_the_link_goes(stage: str, root: Root, tmp_path: Path) -> None:
    folder, elsewhere = Path(str(root.snapshot(OLD).folder(stage))), tmp_path / "precious"
    folder.rename(elsewhere)
    folder.symlink_to(elsewhere)
    before = sorted(elsewhere.rglob("*"))
    assert pruned(root, days=30) == outcome((OLD,))
    assert not folder.is_symlink()
    assert sorted(elsewhere.rglob("*")) == before


@pytest.mark.parametrize("place", ["raw", "raw/cluster=test", "tables/bundles", "planted"])
def test_nothing_is_removed_behind_a_link(place: str, root: Root, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere, link = tmp_path_factory.mktemp("precious") / "folder", Path(root.url, place)
    shutil.copytree(link if link.exists() else Path(root.url, "reports"), elsewhere)
    shutil.rmtree(link, ignore_errors=True)
    link.symlink_to(elsewhere)
    before = sorted(elsewhere.rglob("*"))
    with pytest.raises(StorageError, match=f"{place} is a link, and its target is not removed"):
        pruned(root, days=30)
    assert sorted(elsewhere.rglob("*")) == before


def test_a_dry_run_says_the_same_and_touches_nothing(root: Root) -> None:
    before = sorted(Path(root.url).rglob("*"))
    assert pruned(root, days=30, dry_run=True).removed == (OLD,)
    assert sorted(Path(root.url).rglob("*")) == before


def test_a_snapshot_that_a_plan_in_the_ledger_refers_to_stays(root: Root) -> None:
    proposed(root.ledger_url, OLD)
    assert pruned(root, count=1) == outcome((MIDDLE,), (OLD,))
    assert stages_with(root.snapshot(OLD)) == set(STAGES)


def test_a_snapshot_that_a_plans_strategies_learnt_from_stays(root: Root) -> None:
    proposed(root.ledger_url, NEW, memory={"snapshots": [OLD]})
    assert pruned(root, count=1).referred_to == (OLD,)


def test_a_ledger_named_by_a_reference_is_read(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEDGER", root.ledger_url)
    proposed("env:LEDGER", OLD)
    assert prune(root, Retention(keep_count=1), "env:LEDGER", NOW, dry_run=True).referred_to == (OLD,)


def test_a_ledger_that_can_not_be_read_is_named_in_one_line_without_its_options(root: Root) -> None:
    with closing(sqlite3.connect(Path(root.url) / "ledger.sqlite")) as database:
        database.execute("DROP TABLE plans")
    url = root.ledger_url
    with pytest.raises(StorageError) as failure:
        prune(root, Retention(keep_count=1), f"{url}?timeout=5", NOW, dry_run=True)
    assert str(failure.value).startswith(f"ledger {url} can't be used: no such table: plans: ")
    assert "\n" not in str(failure.value)


def test_a_snapshot_of_a_plan_file_stays_though_this_ledger_does_not_know_it(root: Root) -> None:
    write_plan(root, make_plan([unload_step()], cluster=root.cluster, snapshot=OLD))
    write_plan(root, make_plan([unload_step(executable=False)], cluster=root.cluster, snapshot=MIDDLE))
    assert pruned(root, count=1) == outcome((MIDDLE,), (OLD,))
    assert stages_with(root.snapshot(OLD)) == set(STAGES)


def test_a_plan_file_that_can_not_be_read_keeps_its_snapshot_and_is_named(root: Root) -> None:
    file = root.snapshot(OLD).folder("plans") / "a--b--0.json"
    write_file(file, b"{")
    result = pruned(root, count=1)
    assert OLD in result.referred_to
    assert result.unreadable == (str(file),)
    assert f"can't be read: {file}; the snapshot it was made from is kept" in result.lines()


def test_a_plan_of_another_cluster_keeps_nothing(root: Root) -> None:
    proposed(root.ledger_url, OLD, cluster="other")
    assert pruned(root, days=30).removed == (OLD,)


def test_where_the_ledger_can_not_be_known_nothing_is_removed(root: Root) -> None:
    (Path(root.url) / "ledger.sqlite").unlink()
    with pytest.raises(UsageError, match="holds plans but no ledger"):
        pruned(root, days=30)
    assert root.snapshots() == list(SNAPSHOTS)
    with pytest.raises(UsageError, match="there is no ledger at sqlite:///typo"):
        prune(root, Retention(1), "sqlite:///typo", NOW, dry_run=False)
    with pytest.raises(UsageError, match="name one with --ledger URL"):
        prune(Root("memory://prune", "test"), Retention(1), None, NOW, dry_run=False)


def test_an_interrupted_prune_leaves_no_half_snapshot_and_the_next_one_ends_it(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_stop(folder: object) -> None:
        raise StorageError("disk gone")

    with monkeypatch.context() as interrupted:
        interrupted.setattr(removal, "remove_folder", full_stop)
        with pytest.raises(StorageError, match="disk gone"):
            pruned(root, days=30)
    assert root.snapshots() == [MIDDLE, NEW]
    assert stages_with(root.snapshot(OLD)) == set(STAGES)
    assert pruned(root, days=30).remainders == (OLD,)
    assert stages_with(root.snapshot(OLD)) == {"raw"}  # without a manifest: the next capture removes it


LATER = "20261121T115900Z"


@pytest.mark.parametrize("listing", ["manifests", "folders"])
def test_a_snapshot_that_is_made_between_the_listings_stays(
    root: Root, monkeypatch: pytest.MonkeyPatch, listing: str
) -> None:
    def first(list_them: Callable[..., object]) -> Callable[..., object]:
        def listed(*arguments: object) -> object:
            found = list_them(*arguments)
            make(root, LATER)
            return found

        return listed

    if listing == "manifests":
        monkeypatch.setattr(Root, "snapshots", first(Root.snapshots))
    else:
        monkeypatch.setattr(verb, "made_of", first(verb.made_of))
    assert pruned(root, days=30).removed == (OLD,)
    assert stages_with(root.snapshot(LATER)) == set(STAGES)


def filed(snapshot: Snapshot) -> None:
    """A plan to carry out lies with a snapshot, unknown to the ledger."""
    write_plan(snapshot.root, make_plan([unload_step()], cluster="test", snapshot=snapshot.id))


@pytest.mark.parametrize(
    "refer", [lambda root: proposed(root.ledger_url, MIDDLE), lambda root: filed(root.snapshot(MIDDLE))]
)
def test_a_snapshot_that_a_plan_comes_to_refer_to_meanwhile_stays(
    root: Root, monkeypatch: pytest.MonkeyPatch, refer: Callable[[Root], None]
) -> None:
    remove = removal.remove_folder
    monkeypatch.setattr(removal, "remove_folder", lambda folder: (refer(root), remove(folder)))
    assert pruned(root, count=1) == outcome((OLD,), (MIDDLE,))
    assert stages_with(root.snapshot(MIDDLE)) == set(STAGES)


def test_the_plans_of_a_snapshot_are_not_listed_for_each_other_one(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    listed: Counter[str] = Counter()
    local = type(root.path)
    glob = local.glob
    monkeypatch.setattr(local, "glob", lambda folder, pattern: listed.update([str(folder)]) or glob(folder, pattern))
    make(root, *(f"202602{day:02}T000000Z" for day in range(1, 9)))
    assert len(pruned(root, count=1).removed) == 10
    assert max(listed.values()) == 2


def test_the_plans_of_the_ledger_are_listed_again_only_once_it_has_changed(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    listings: list[str] = []
    list_plans = verb.new_plans
    monkeypatch.setattr(verb, "new_plans", lambda *args: listings.append("plans") or list_plans(*args))
    make(root, *(f"202602{day:02}T000000Z" for day in range(1, 9)))
    proposed(root.ledger_url, NEW)
    assert len(pruned(root, count=1).removed) == 10
    assert len(listings) == 1


def test_the_folders_of_a_stage_are_listed_and_not_looked_at_one_by_one(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at: list[str] = []
    local = type(root.path)
    is_dir = local.is_dir
    monkeypatch.setattr(local, "is_dir", lambda path: looked_at.append(str(path)) or is_dir(path))
    assert pruned(root, days=30, dry_run=True).removed == (OLD,)
    assert not [path for path in looked_at if "/tables/" in path and "snapshot=" in path]


@pytest.mark.parametrize("stage", STAGES)
def test_a_snapshot_that_a_stage_is_at_work_on_stays(root: Root, stage: str) -> None:
    with held(root.snapshot(OLD).folder(stage), OLD, "work"):
        assert pruned(root, days=30).at_work == (OLD,)
        assert stages_with(root.snapshot(OLD)) == set(STAGES)
    assert pruned(root, days=30).removed == (OLD,)


def test_a_remainder_that_a_stage_is_at_work_on_stays(root: Root) -> None:
    (Path(str(root.snapshot(OLD).folder("raw"))) / MANIFEST).unlink()
    with held(root.snapshot(OLD).folder("raw"), OLD, "it is being imported"):
        assert pruned(root, days=30) == outcome()
    assert stages_with(root.snapshot(OLD)) == set(STAGES)


def test_an_object_store_is_pruned_with_the_ledger_that_is_named(tmp_path: Path) -> None:
    store, url = Root("memory://prune-named", "test"), f"sqlite:///{tmp_path}/ledger.sqlite"
    make(store, *SNAPSHOTS)
    proposed(url, OLD)
    assert prune(store, Retention(keep_count=1), url, NOW, dry_run=False) == outcome((MIDDLE,), (OLD,))
    assert store.snapshots() == [OLD, NEW]
    assert stages_with(store.snapshot(MIDDLE)) == set()
    write_plan(store, make_plan([unload_step()], cluster="test", snapshot=NEW, memory={"snapshots": [OLD]}))
    open_ledger(f"{url}.other").close()
    assert prune(store, Retention(keep_count=1), f"{url}.other", NOW, dry_run=False).referred_to == (OLD,)


def test_without_plans_no_ledger_is_needed_and_none_is_made(tmp_path: Path) -> None:
    captured_only = Root(str(tmp_path / "other root"), "test")
    for snapshot in SNAPSHOTS:
        write_file(captured_only.snapshot(snapshot).folder("raw") / MANIFEST, b"{}")
    assert pruned(captured_only, days=30).removed == (OLD,)
    assert {path.name for path in Path(captured_only.url).iterdir()} == {"raw", "index"}


def test_what_is_said() -> None:
    assert list(outcome((OLD,), (MIDDLE,), (NEW,), dry_run=True).lines()) == [
        f"would remove {OLD}",
        f"kept {MIDDLE}: a plan refers to it",
        f"kept {NEW}: a stage is working on it",
    ]
    assert list(outcome().lines()) == ["nothing to prune"]
