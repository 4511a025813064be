"""What goes when by age: raw files, snapshots, days; and what stays because it isn't folded, or is referred to."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pulsar_advisor.documents.prune_result import Pruned
from pulsar_advisor.execution.consent.approval import propose
from pulsar_advisor.execution.ledger.opening import open_ledger
from pulsar_advisor.model.errors import StorageError, UsageError
from pulsar_advisor.snapshots.retention import Lifetimes, Tier, lifetimes, lifetimes_of
from pulsar_advisor.stages.fold import run as fold
from pulsar_advisor.stages.thin import run as thin
from pulsar_advisor.storage import removal
from pulsar_advisor.storage.files import write_file
from pulsar_advisor.storage.history import folded_days, remove_day
from pulsar_advisor.storage.lease import held
from pulsar_advisor.storage.root import Root, names_in
from unit.execution.actors import ALICE
from unit.execution.doubles import make_plan, unload_step
from written_tables import snapshot_of_one_bundle

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
DAYS = ("20261101", "20261102")
MORNING, NOON, EVENING, NEXT = (f"{DAYS[0]}T080000Z", f"{DAYS[0]}T120000Z", f"{DAYS[0]}T200000Z", f"{DAYS[1]}T080000Z")
NEWEST = "20261121T110000Z"


def snapshot(root: Root, id: str, *brokers: str, owner: str = "a:8080", **manifest: object) -> None:
    """A normalized snapshot of brokers, by default two, and one bundle, with a raw file."""
    snapshot_of_one_bundle(Path(root.url), id, owner, brokers=brokers or ("a:8080", "b:8080"), **manifest)
    write_file(root.snapshot(id).folder("raw") / "topic_stats" / "0.jsonl.zst", b"")


@pytest.fixture
def root(tmp_path: Path) -> Root:
    """Snapshots of two folded days and one of today."""
    root = Root(str(tmp_path), "test")
    for id in (MORNING, NOON, EVENING, NEXT, NEWEST):
        snapshot(root, id)
    for day in DAYS:
        fold(root.day(day))
    return root


def thinned(root: Root, *, dry_run: bool = False, **ages: str) -> Pruned:
    return thin(root, lifetimes(**ages), None, NOW, dry_run=dry_run)


def has_raw(root: Root, id: str) -> bool:
    return (root.snapshot(id).folder("raw") / "topic_stats").exists()


def snapshots_from(first_day: int, days: int, hours: Sequence[int]) -> list[str]:
    return [f"202610{first_day + day:02}T{hour:02}0000Z" for day in range(days) for hour in hours]


def test_of_an_interval_the_first_fit_snapshot_stays() -> None:
    rule = Lifetimes(tables_s=86_400, thin=(Tier(12 * 3600, 100 * 86_400),))
    ids = snapshots_from(1, 2, (0, 6, 12, 18))
    kept = {ids[1], ids[2], ids[4], ids[6]}
    assert rule.outdated([*ids, NEWEST], {ids[1]}, NOW) == [id for id in ids if id not in kept]


def test_what_a_later_tier_keeps_an_earlier_one_kept() -> None:
    ids = snapshots_from(1, 5, range(0, 24, 3))
    day, half = (Lifetimes(tables_s=0, thin=(Tier(every_h * 3600, 100 * 86_400),)) for every_h in (24, 6))
    left = [set(ids).difference(rule.outdated([*ids, NEWEST], {ids[2]}, NOW)) for rule in (day, half)]
    assert left[0] < left[1]


def test_ages_are_written_as_people_do() -> None:
    read = lifetimes("3d", "14d", "1h:30d,1d:1y", "400d")
    day = 86_400
    assert read == Lifetimes(3 * day, 14 * day, (Tier(3600, 30 * day), Tier(day, 365 * day)), 400 * day)


@pytest.mark.parametrize(
    ("ages", "reason"),
    [
        ({"raw": "3d", "tables": "2d"}, "--tables of 2d is less than --raw of 3d"),
        ({"tables": "3d", "thin": "1h:2d"}, "--thin 1h of 2d is less than --tables of 3d"),
        ({"tables": "3d", "thin": "1h:30d,1d:20d"}, "--thin 1d of 20d is less than --thin 1h of 30d"),
        ({"tables": "3d", "history": "2d"}, "--history of 2d is less than --tables of 3d"),
        ({"thin": "1h:30d"}, "--thin is for snapshots older than --tables"),
        ({"tables": "3d", "thin": "1h"}, "'1h' has no age"),
        ({"tables": "3d", "thin": "0h:9d"}, "an interval must be at least a second"),
        ({"tables": "101y"}, "--tables 36865d is out of bounds"),
    ],
)
def test_ages_that_make_no_sense_are_refused(ages: dict[str, str], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        lifetimes(**ages)


def test_snapshots_go_once_their_day_holds_them(root: Root) -> None:
    late = f"{DAYS[0]}T220000Z"
    snapshot(root, late)
    pruned = thinned(root, tables="14d")
    assert (pruned.removed, pruned.unfolded) == ((MORNING, NOON, EVENING, NEXT), (late,))
    assert root.snapshots() == [late, NEWEST]
    fold(root.day(DAYS[0]))
    assert thinned(root, tables="14d").removed == (late,)
    assert [len(day.snapshots) for day in folded_days(root)[0]] == [4, 1]


def test_what_keeps_a_snapshot_that_was_never_normalized_is_said(root: Root) -> None:
    alone = "20261001T080000Z"
    snapshot(root, alone)
    shutil.rmtree(str(root.snapshot(alone).folder("tables/result")))
    kept = f"kept {alone}: no folded day that is over holds it: once normalized, run `history fold --all`"
    assert kept in list(thinned(root, tables="14d").lines())


def test_a_snapshot_that_was_validated_since_its_day_was_folded_stays(root: Root) -> None:
    write_file(root.snapshot(NOON).folder("validation") / "result.json", b"{}")
    assert thinned(root, tables="14d").unfolded == (NOON,)


def test_a_snapshot_that_can_not_be_read_stays_and_keeps_no_other(root: Root) -> None:
    broken = f"{DAYS[0]}T220000Z"
    snapshot(root, broken)
    write_file(root.snapshot(broken).folder("raw") / "manifest.json", b"{")
    pruned = thinned(root, tables="14d", raw="3d")
    assert (pruned.removed, pruned.unfolded) == ((MORNING, NOON, EVENING, NEXT), (broken,))


def test_snapshots_of_a_damaged_day_stay_until_it_is_folded_again(root: Root) -> None:
    [file] = root.day(DAYS[0]).folder("load").iterdir()
    file.unlink()
    pruned = thinned(root, tables="14d")
    assert (pruned.removed, pruned.unfolded) == ((NEXT,), (MORNING, NOON, EVENING))
    fold(root.day(DAYS[0]))
    assert thinned(root, tables="14d").removed == (MORNING, NOON, EVENING)


def test_today_holds_nothing_for_good(root: Root) -> None:
    fold(root.day(NEWEST[:8]))
    snapshot(root, "20261121T113000Z")
    fold(root.day(NEWEST[:8]))
    assert thinned(root, tables="0s").unfolded == (NEWEST,)


def test_a_snapshot_without_tables_goes_with_its_day(root: Root) -> None:
    never = f"{DAYS[0]}T090000Z"
    write_file(root.snapshot(never).folder("raw") / "manifest.json", b"{}")
    assert never in thinned(root, tables="14d").removed


def test_a_snapshot_of_the_cluster_that_had_this_name_before_goes_with_its_day(root: Root) -> None:
    snapshot(root, other := f"{DAYS[0]}T220000Z", identity={"cluster_name": "another", "broker_ids": []})
    fold(root.day(DAYS[0]))
    assert other in thinned(root, tables="14d").removed


def test_raw_files_go_first_and_the_snapshot_stays(root: Root) -> None:
    pruned = thinned(root, raw="3d", tables="30d")
    assert (pruned.raw_of_days, pruned.removed) == (DAYS, ())
    assert [has_raw(root, id) for id in (MORNING, NEXT, NEWEST)] == [False, False, True]
    assert MORNING in root.snapshots()
    assert list(thinned(root, raw="3d", tables="30d").lines()) == ["nothing to prune"]


def test_raw_files_are_found_without_a_listing_of_each_snapshot(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    listed: list[str] = []
    monkeypatch.setattr(removal, "names_in", lambda folder: listed.append(folder.name) or names_in(folder))
    assert thinned(root, raw="3d", dry_run=True).raw_of_days == DAYS
    assert not [name for name in listed if name.startswith("snapshot=")]


def test_raw_files_that_a_link_leads_to_stay(root: Root, tmp_path: Path) -> None:
    folder, elsewhere = Path(str(root.snapshot(NOON).folder("raw"))), tmp_path / "precious"
    folder.rename(elsewhere)
    folder.symlink_to(elsewhere)
    for days in (DAYS, ()):
        assert thinned(root, raw="3d", tables="30d").raw_of_days == days
    assert [has_raw(root, id) for id in (MORNING, NOON)] == [False, True]


def test_raw_files_that_an_interrupted_run_left_go_with_the_next(root: Root) -> None:
    thinned(root, raw="3d")
    write_file(root.snapshot(NOON).folder("raw") / "topic_stats" / "0.jsonl.zst", b"")
    assert thinned(root, raw="3d").raw_of_days == DAYS[:1]
    assert not has_raw(root, NOON)


def test_raw_files_of_a_snapshot_that_came_late_go_too(root: Root) -> None:
    thinned(root, raw="3d")
    snapshot(root, late := f"{DAYS[0]}T100000Z")
    assert thinned(root, raw="3d").raw_of_days == ()
    fold(root.day(DAYS[0]))
    assert thinned(root, raw="3d").raw_of_days == DAYS[:1]
    assert not has_raw(root, late)


def test_snapshots_that_an_event_refers_to_stay_as_long_as_their_day(root: Root) -> None:
    for hour, brokers in ((9, ()), (10, ("a:8080",)), (11, ("a:8080",))):
        snapshot(root, f"{DAYS[1]}T{hour:02}0000Z", *brokers)
    fold(root.day(DAYS[1]))
    pruned = thinned(root, raw="3d", tables="14d", history="19d")
    around = (f"{DAYS[1]}T090000Z", f"{DAYS[1]}T100000Z")
    assert (pruned.of_events, pruned.days) == (around, DAYS[:1])
    assert root.snapshots() == [*around, NEWEST]
    assert has_raw(root, around[0])
    assert thinned(root, raw="3d", tables="14d", history="18d").days == DAYS[1:]
    assert root.snapshots() == [NEWEST]


def test_an_event_across_midnight_refers_to_the_day_before(root: Root) -> None:
    snapshot(root, "20261103T000000Z", "a:8080")
    fold(root.day("20261103"))
    assert thinned(root, tables="14d").of_events == (NEXT, "20261103T000000Z")


def test_a_move_that_any_cycle_makes_keeps_nothing(root: Root) -> None:
    snapshot(root, f"{DAYS[1]}T090000Z", owner="b:8080")
    day = fold(root.day(DAYS[1]))
    assert day.summary is not None
    assert day.summary.moves == {"unknown": 1}
    assert thinned(root, tables="14d").of_events == ()


def test_events_that_can_not_be_read_keep_what_they_might_refer_to(root: Root) -> None:
    for file in root.day(DAYS[0]).folder("events").iterdir():
        file.write_bytes(b"rotten")
    assert thinned(root, tables="14d").of_events == (MORNING, NOON, EVENING)


def test_what_the_ledger_refers_to_stays_with_its_raw_files_and_its_day(root: Root) -> None:
    with closing(open_ledger(root.ledger_url)) as ledger:
        propose(ledger, make_plan([unload_step()], cluster=root.cluster, snapshot=NOON), ALICE)
    pruned = thinned(root, raw="3d", tables="14d", history="15d")
    assert (pruned.referred_to, pruned.days) == ((NOON,), DAYS[1:])
    assert has_raw(root, NOON)


def test_a_day_goes_after_its_snapshots_and_leaves_nothing(root: Root) -> None:
    pruned = thinned(root, tables="14d", history="15d")
    assert pruned.days == DAYS
    assert not list((Path(root.url) / "history").rglob("day=*"))


def test_what_an_interrupted_run_left_of_a_day_goes_with_the_next(root: Root) -> None:
    thinned(root, tables="14d")
    root.day(DAYS[0]).result_file.unlink()
    assert thinned(root, tables="14d", history="15d").days == DAYS


def test_a_day_that_is_being_folded_stays(root: Root) -> None:
    with held(root.day(DAYS[0]).folder("result"), DAYS[0], "it is being folded"):
        assert thinned(root, tables="14d", history="15d").days == DAYS[1:]
    remove_day(root.day(DAYS[0]))


def test_a_dry_run_says_the_same_and_touches_nothing(root: Root) -> None:
    ages = {"raw": "1d", "tables": "14d", "history": "15d"}
    before = sorted(Path(root.url).rglob("*"))
    said = thinned(root, dry_run=True, **ages)
    assert sorted(Path(root.url).rglob("*")) == before
    done = thinned(root, **ages)
    assert (said.removed, said.days, said.unfolded) == (done.removed, done.days, done.unfolded)


def test_days_are_said_not_snapshots(root: Root) -> None:
    assert list(thinned(root, tables="14d", history="15d", dry_run=True).lines()) == [
        "would remove 3 snapshots of 20261101",
        f"would remove {NEXT}",
        "would remove folded day 20261101",
        "would remove folded day 20261102",
    ]


def test_options_are_read_from_a_line() -> None:
    assert lifetimes_of("--tables 14d  --thin 1h:30d") == lifetimes(tables="14d", thin="1h:30d")


@pytest.mark.parametrize("line", ["30d", "--tables", "--tables 30d --days 3d", "--tables 1d --tables 2d"])
def test_a_line_that_says_something_else_is_refused(line: str) -> None:
    with pytest.raises(UsageError, match="is not a list of ages"):
        lifetimes_of(line)


def test_no_day_is_removed_behind_a_link(root: Root, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("precious") / "bundles"
    shutil.copytree(Path(root.url, "history/result"), elsewhere)
    Path(root.url, "history/planted").symlink_to(elsewhere)
    before = sorted(elsewhere.rglob("*"))
    with pytest.raises(StorageError, match="history/planted is a link"):
        remove_day(root.day(DAYS[0]))
    assert sorted(elsewhere.rglob("*")) == before
    assert len(folded_days(root)[0]) == 2
