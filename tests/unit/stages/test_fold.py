"""Days of a root are folded from its tables, again with what came late, and never left in part."""

import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from upath import UPath

import documents
from moments import FIRST, moment
from pulsar_advisor.documents.history_day import HistoryDay
from pulsar_advisor.documents.manifest import Manifest, Missing
from pulsar_advisor.execution.ledger.opening import open_ledger
from pulsar_advisor.execution.ledger.seals import seals_of_snapshot
from pulsar_advisor.history.columns import COLUMNS, DAY_TABLES
from pulsar_advisor.history.day import fold as fold_tables
from pulsar_advisor.history.moment import Moment
from pulsar_advisor.model.cluster.snapshot_id import snapshot_moment
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.configuration.settings import texts_of
from pulsar_advisor.model.errors import Refused, StorageError, UsageError
from pulsar_advisor.stages.fold import fold_until
from pulsar_advisor.stages.fold import run as fold
from pulsar_advisor.stages.moments import last_seen, normalized_moment
from pulsar_advisor.stages.trend import run as trend
from pulsar_advisor.stages.verify_history import run as verify
from pulsar_advisor.storage.files import write_file
from pulsar_advisor.storage.history import day_if_any, folded_days
from pulsar_advisor.storage.lease import LEASE
from pulsar_advisor.storage.removal import remove_snapshot, stage_folders
from pulsar_advisor.storage.root import RESULT, Root, Snapshot
from pulsar_advisor.tables.days import damage, write_day
from written_tables import broker, day_table, files_in, snapshot_of_one_bundle, written

DAY = "20261121"
MORNING, NOON, EVENING = (f"{DAY}T{hour:02}0000Z" for hour in (8, 12, 20))
NEXT_DAY, AT_MIDNIGHT = "20261122", "20261122T000500Z"


def without_tables(root: Root, id: str) -> None:
    """As retention leaves a snapshot whose tables it removed."""
    for table in (root.path / "tables").iterdir():
        shutil.rmtree(str(root.snapshot(id).folder(f"tables/{table.name}")))


@pytest.fixture
def moved(tmp_path: Path) -> Root:
    """A bundle that no broker had in the evening was another one's after midnight."""
    root = snapshot_of_one_bundle(tmp_path, NOON, "a:8080")
    snapshot_of_one_bundle(tmp_path, EVENING, None)
    snapshot_of_one_bundle(tmp_path, AT_MIDNIGHT, "b:8080")
    return root


def files_of(root: Root) -> dict[str, bytes]:
    return files_in(Path(root.url) / "history")


def test_a_day_is_folded_once_whatever_is_asked(tmp_path: Path) -> None:
    root = snapshot_of_one_bundle(tmp_path, MORNING)
    day = fold(root.day(DAY))
    before = files_of(root)
    assert fold(root.day(DAY)) == day
    assert files_of(root) == before
    assert {name: table.rows for name, table in day.tables.items()} == {
        "moments": 1,
        "brokers": 2,
        "hosts": 2,
        "names": 1,
        "load": 1,
        "settings": len(texts_of(resolve_settings("4.0.8", {}, {}).values)),
        "policies": 0,
        "events": 0,
        "index": 1,
    }
    assert list(damage(root, day, DAY_TABLES)) == []


def test_the_view_that_was_judged_is_kept(tmp_path: Path) -> None:
    root = snapshot_of_one_bundle(tmp_path, MORNING)
    [row] = day_table(root, fold(root.day(DAY)), "load").to_pylist()
    assert (row["msg_in"], row["owner"]) == (7.0, 0)


def test_the_usage_of_a_broker_that_did_not_report_is_not_known(tmp_path: Path) -> None:
    root = written(
        tmp_path,
        snapshot=MORNING,
        brokers=[broker("a:8080", cpu_usage=50.0, cpu_limit=100.0), broker("b:8080", reported=False)],
    ).root
    hosts = day_table(root, fold(root.day(DAY)), "hosts")
    assert [str(ratio) for ratio in hosts["usage"].to_pylist()] == ["0.5", "nan"]


def test_policies_are_read_from_the_tables_and_a_change_is_an_event(tmp_path: Path) -> None:
    def at(id: str, manifest: dict[str, object] | None = None, **of_policy: object) -> Root:
        policy = {
            "position": 0,
            "name": "shop",
            "namespaces": ["t/.*"],
            "primary": ["a.*"],
            "secondary": [],
            **of_policy,
        }
        namespace = {"namespace": "t/n", "replication_clusters": ["us", "eu"], "anti_affinity_group": None}
        rows = {"brokers": [broker("a:8080")], "namespaces": [namespace], "policies": [policy]}
        return written(tmp_path, manifest, snapshot=id, **rows).root

    at(MORNING)
    root = at(NOON, secondary=["b.*"])
    at(EVENING, {"missing": [Missing(surface="isolation_policies", broker=None, reason="refused")]}, primary=[])
    day = fold(root.day(DAY))
    rows = day_table(root, day, "policies").to_pylist()
    assert [(row["t"], row["subject"]) for row in rows if row["value"]] == [(0, "shop"), (0, "t/n"), (1, "shop")]
    assert rows[1]["value"] == "us,eu"
    [event] = day_table(root, day, "events").to_pylist()
    assert (event["kind"], event["subject"], event["cause"]) == ("isolation_policy", "shop", "operator")
    assert '"secondary":[]' in event["before"]
    assert '"secondary":["b.*"]' in event["after"]


def test_a_late_snapshot_does_not_make_policies_known_that_were_not(tmp_path: Path) -> None:
    def at(folder: Path, id: str, primary: str | None) -> Root:
        known = {"position": 0, "name": "shop", "namespaces": ["t/.*"], "primary": [primary], "secondary": []}
        missing = Missing(surface="isolation_policies", broker=None, reason="refused")
        manifest = {} if primary else {"missing": [missing]}
        policies = [known] if primary else []
        return written(folder, manifest, snapshot=id, brokers=[broker("a:8080")], policies=policies).root

    late, whole = tmp_path / "late", tmp_path / "whole"
    for folder, order in ((late, (MORNING, EVENING, NOON)), (whole, (MORNING, NOON, EVENING))):
        for id in order:
            root = at(folder, id, {MORNING: "a.*", NOON: "b.*", EVENING: None}[id])
            if folder == late or id == EVENING:
                day = fold(root.day(DAY))
        assert [event["t"] for event in day_table(root, day, "events").to_pylist()] == [1]


def test_a_snapshot_is_fit_only_if_it_was_validated_and_passed(tmp_path: Path) -> None:
    root = snapshot_of_one_bundle(tmp_path, MORNING)
    snapshot_of_one_bundle(tmp_path, NOON)
    write_file(root.snapshot(NOON).folder("validation") / RESULT, documents.validation(snapshot=NOON).content())
    assert [one.fit for one in fold(root.day(DAY)).snapshots] == [False, True]


def test_a_late_snapshot_joins_a_day_whose_tables_are_gone_as_if_it_had_been_there(tmp_path: Path) -> None:
    whole = snapshot_of_one_bundle(tmp_path / "whole", MORNING)
    for id, owner in ((NOON, "b:8080"), (EVENING, "a:8080")):
        snapshot_of_one_bundle(tmp_path / "whole", id, owner)
    fold(whole.day(DAY))
    late = snapshot_of_one_bundle(tmp_path / "late", MORNING)
    snapshot_of_one_bundle(tmp_path / "late", EVENING)
    fold(late.day(DAY))
    for id in (MORNING, EVENING):
        without_tables(late, id)
    snapshot_of_one_bundle(tmp_path / "late", NOON, "b:8080")
    fold(late.day(DAY))
    assert files_of(late) == files_of(whole)


def test_what_was_folded_before_is_not_read_from_its_tables_again(tmp_path: Path) -> None:
    root = snapshot_of_one_bundle(tmp_path, MORNING)
    fold(root.day(DAY))
    next(root.snapshot(MORNING).folder("tables/bundles").iterdir()).write_bytes(b"no parquet")
    snapshot_of_one_bundle(tmp_path, NOON, "b:8080")
    assert [one.id for one in fold(root.day(DAY)).snapshots] == [MORNING, NOON]


def test_a_day_with_a_damaged_file_is_folded_again_from_the_tables_of_its_snapshots(tmp_path: Path) -> None:
    root = snapshot_of_one_bundle(tmp_path, MORNING)
    day = fold(root.day(DAY))
    before = files_of(root)
    (root.day(DAY).folder("load") / day.tables["load"].file).write_bytes(b"")
    assert fold(root.day(DAY)) == day
    assert files_of(root) == before


def test_a_damaged_day_whose_snapshots_are_gone_is_not_to_be_folded_again_but_put_back(tmp_path: Path) -> None:
    root = snapshot_of_one_bundle(tmp_path, MORNING)
    day = fold(root.day(DAY))
    (root.day(DAY).folder("load") / day.tables["load"].file).write_bytes(b"")
    without_tables(root, MORNING)
    with pytest.raises(StorageError, match=r"result\.json is of a damaged day, and 1 snapshot in it has no") as why:
        fold(root.day(DAY))
    assert "fold the day again" not in str(why.value)
    assert str(why.value).endswith("restore them from a backup, or remove this one to fold the remaining snapshots")


def test_a_day_whose_snapshot_is_pruned_while_it_is_folded_is_to_be_folded_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot_of_one_bundle(tmp_path, MORNING)
    root = snapshot_of_one_bundle(tmp_path, NOON)

    def pruned_and_read(snapshot: Snapshot, manifest: Manifest) -> Moment:
        remove_snapshot(root.snapshot(MORNING), stage_folders(root), is_remainder=False)
        return normalized_moment(snapshot, manifest)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr("pulsar_advisor.stages.fold.normalized_moment", pruned_and_read)
        with pytest.raises(StorageError, match=f"snapshot {MORNING} of cluster .* removed.* fold the day again"):
            fold(root.day(DAY))
    assert [one.id for one in fold(root.day(DAY)).snapshots] == [NOON]


def test_a_day_whose_snapshot_has_begun_to_be_removed_is_to_be_folded_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = snapshot_of_one_bundle(tmp_path, MORNING)

    def begun_and_read(snapshot: Snapshot, manifest: Manifest) -> Moment:
        root.snapshot(MORNING).result_file("capture").unlink()
        return normalized_moment(snapshot, manifest)

    monkeypatch.setattr("pulsar_advisor.stages.fold.normalized_moment", begun_and_read)
    with pytest.raises(StorageError, match=f"snapshot {MORNING} of cluster .* removed.* fold the day again"):
        fold(root.day(DAY))


@pytest.mark.parametrize(
    ("gone", "read"),
    [(MORNING, normalized_moment), ("20261120T230000Z", last_seen)],
    ids=["of the day itself", "of the day before"],
)
def test_a_day_is_to_be_folded_again_too_if_only_tables_are_pruned_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gone: str, read: Callable[..., object]
) -> None:
    snapshot_of_one_bundle(tmp_path, "20261120T230000Z")
    root = snapshot_of_one_bundle(tmp_path, MORNING)

    def pruned_and_read(*what: object) -> object:
        without_tables(root, gone)
        return read(*what)

    monkeypatch.setattr(f"pulsar_advisor.stages.fold.{read.__name__}", pruned_and_read)
    with pytest.raises(StorageError, match=f"snapshot {gone} of cluster .* removed.* fold the day again"):
        fold(root.day(DAY))


def test_a_validation_that_came_later_is_taken_in(tmp_path: Path) -> None:
    root = snapshot_of_one_bundle(tmp_path, MORNING)
    fold(root.day(DAY))
    write_file(root.snapshot(MORNING).folder("validation") / RESULT, documents.validation(snapshot=MORNING).content())
    assert fold(root.day(DAY)).snapshots[0].fit


def test_another_cluster_of_the_same_name_in_paths_is_not_mixed_in(tmp_path: Path) -> None:
    root = snapshot_of_one_bundle(tmp_path, MORNING)
    fold(root.day(DAY))
    snapshot_of_one_bundle(tmp_path, NOON, identity={"cluster_name": "another", "broker_ids": []})
    assert [one.id for one in fold(root.day(DAY)).snapshots] == [MORNING]


def test_a_move_across_midnight_is_one_of_the_day_that_shows_it(tmp_path: Path) -> None:
    root = snapshot_of_one_bundle(tmp_path, EVENING)
    snapshot_of_one_bundle(tmp_path, AT_MIDNIGHT, "b:8080")
    [event] = day_table(root, fold(root.day(NEXT_DAY)), "events").to_pylist()
    assert (event["t"], event["kind"], event["before"], event["after"]) == (0, "move", "a:8080", "b:8080")


def test_the_day_before_is_known_from_its_tables_or_folded_alike(tmp_path: Path) -> None:
    root = snapshot_of_one_bundle(tmp_path, EVENING)
    snapshot_of_one_bundle(tmp_path, AT_MIDNIGHT, "b:8080")
    fold(root.day(DAY))
    from_tables = fold(root.day(NEXT_DAY))
    shutil.rmtree(str(root.day(NEXT_DAY).folder("result")))
    without_tables(root, EVENING)
    assert fold(root.day(NEXT_DAY)) == from_tables


def test_a_bundle_that_no_broker_had_at_midnight_moved_from_its_last_owner(moved: Root) -> None:
    from_tables = fold(moved.day(NEXT_DAY))
    [event] = day_table(moved, from_tables, "events").to_pylist()
    assert (event["kind"], event["before"], event["after"]) == ("move", "a:8080", "b:8080")
    shutil.rmtree(str(moved.day(NEXT_DAY).folder("result")))
    fold(moved.day(DAY))
    for id in (NOON, EVENING):
        without_tables(moved, id)
    assert fold(moved.day(NEXT_DAY)) == from_tables


def test_a_damaged_day_does_not_keep_the_next_one_from_being_folded(moved: Root) -> None:
    [file] = moved.day(fold(moved.day(DAY)).day).folder("load").iterdir()
    file.write_bytes(b"")
    day = fold(moved.day(NEXT_DAY))
    assert day.summary is not None
    assert day.summary.moves == {"unknown": 1}


def test_a_snapshot_that_can_not_be_read_does_not_keep_the_next_day_from_being_folded(moved: Root) -> None:
    [file] = moved.snapshot(NOON).folder("tables/bundles").iterdir()
    file.write_bytes(b"rotten")
    day = fold(moved.day(NEXT_DAY))
    assert day.summary is not None
    assert day.summary.moves == {}


def test_a_leader_that_was_not_known_at_midnight_is_compared_with_the_last_known_one(tmp_path: Path) -> None:
    root = snapshot_of_one_bundle(tmp_path, NOON, leader="a:8080")
    snapshot_of_one_bundle(tmp_path, EVENING, leader=None)
    snapshot_of_one_bundle(tmp_path, AT_MIDNIGHT, leader="b:8080")
    [event] = day_table(root, fold(root.day(NEXT_DAY)), "events").to_pylist()
    assert (event["kind"], event["before"], event["after"]) == ("leader", "a:8080", "b:8080")


def test_a_day_is_folded_again_once_the_one_before_has_a_later_snapshot(tmp_path: Path) -> None:
    root = snapshot_of_one_bundle(tmp_path, AT_MIDNIGHT, "b:8080")
    assert fold(root.day(NEXT_DAY)).follows is None
    snapshot_of_one_bundle(tmp_path, EVENING)
    assert fold(root.day(NEXT_DAY)).follows == EVENING


def test_a_snapshot_that_came_late_is_not_compared_with_twice(tmp_path: Path) -> None:
    snapshot_of_one_bundle(tmp_path, MORNING, "a:8080")
    root = snapshot_of_one_bundle(tmp_path, AT_MIDNIGHT, "b:8080")
    for day in (DAY, NEXT_DAY):
        fold(root.day(day))
    snapshot_of_one_bundle(tmp_path, EVENING, "b:8080")
    fold(root.day(DAY))
    assert [one.follows for one in folded_days(root)[0]] == [None, EVENING]
    assert trend(root, 28)[1].moves == 1


def test_a_late_snapshot_that_is_not_the_last_shows_the_next_day_what_no_later_one_knows(tmp_path: Path) -> None:
    root = snapshot_of_one_bundle(tmp_path, EVENING, None)
    snapshot_of_one_bundle(tmp_path, AT_MIDNIGHT, "b:8080")
    for day in (DAY, NEXT_DAY):
        fold(root.day(day))
    snapshot_of_one_bundle(tmp_path, NOON, "a:8080")
    fold(root.day(DAY))
    [event] = day_table(root, folded_days(root, 1)[0][0], "events").to_pylist()
    assert (event["kind"], event["before"], event["after"]) == ("move", "a:8080", "b:8080")


def test_a_day_without_a_snapshot_has_nothing_to_fold_and_leaves_no_trace(tmp_path: Path) -> None:
    root = snapshot_of_one_bundle(tmp_path, MORNING)
    fold(root.day(DAY))
    before = files_of(root)
    with pytest.raises(UsageError, match="no normalized snapshot of 20261122"):
        fold(root.day(NEXT_DAY))
    assert files_of(root) == before
    assert not root.day(NEXT_DAY).folder("result").exists()


def test_the_last_days_are_those_that_were_folded(tmp_path: Path) -> None:
    root = snapshot_of_one_bundle(tmp_path, MORNING)
    fold(root.day(DAY))
    root.day("20261231").folder("result").mkdir(parents=True)
    assert [one.day for one in folded_days(root, 1)[0]] == [DAY]


def test_a_day_that_is_sealed_is_not_folded_without_its_ledger(tmp_path: Path) -> None:
    root, central = snapshot_of_one_bundle(tmp_path, MORNING), f"sqlite:///{tmp_path / 'central.sqlite'}"
    open_ledger(central).close()
    assert fold(root.day(DAY), central).is_sealed
    snapshot_of_one_bundle(tmp_path, NOON)
    with pytest.raises(Refused, match="is sealed in a ledger, which also has the causes of its moves: give --ledger"):
        fold(root.day(DAY))
    assert len(fold(root.day(DAY), central).snapshots) == 2


def test_a_day_that_is_sealed_is_not_folded_with_another_ledger(tmp_path: Path) -> None:
    root = snapshot_of_one_bundle(tmp_path, MORNING)
    central, other = (f"sqlite:///{tmp_path / name}.sqlite" for name in ("central", "other"))
    for address in (central, other):
        open_ledger(address).close()
    fold(root.day(DAY), central)
    snapshot_of_one_bundle(tmp_path, NOON)
    with pytest.raises(Refused, match="is sealed in a ledger, which also has the causes of its moves: give --ledger"):
        fold(root.day(DAY), other)
    assert len(fold(root.day(DAY), central).snapshots) == 2


def test_steps_that_only_the_last_snapshot_of_a_day_can_show_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, until_ms = snapshot_of_one_bundle(tmp_path, f"{DAY}T235800Z"), list[int]()
    open_ledger(root.ledger_url).close()
    monkeypatch.setattr("pulsar_advisor.stages.fold.confirmed_steps", lambda *of: until_ms.append(of[-1]) or [])
    fold(root.day(DAY))
    assert until_ms == [int(snapshot_moment(AT_MIDNIGHT).timestamp() * 1000)]


def test_steps_since_a_bundle_may_have_had_its_last_owner_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, since_ms = snapshot_of_one_bundle(tmp_path, EVENING), list[int]()
    snapshot_of_one_bundle(tmp_path, AT_MIDNIGHT)
    open_ledger(root.ledger_url).close()
    monkeypatch.setattr("pulsar_advisor.stages.fold.confirmed_steps", lambda *of: since_ms.append(of[-2]) or [])
    fold(root.day(NEXT_DAY))
    assert since_ms == [int(snapshot_moment(f"{DAY}T000000Z").timestamp() * 1000)]


def test_a_writer_that_dies_before_the_result_leaves_the_day_of_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = snapshot_of_one_bundle(tmp_path, MORNING)
    before = fold(root.day(DAY))
    snapshot_of_one_bundle(tmp_path, NOON)

    def dies(*_: object) -> None:
        raise StorageError("disk full")

    monkeypatch.setattr("pulsar_advisor.documents.history_day.HistoryDay.content", dies)
    with pytest.raises(StorageError):
        fold(root.day(DAY))
    monkeypatch.undo()
    assert day_if_any(root.day(DAY)) == before
    assert list(damage(root, before, DAY_TABLES)) == []
    assert len(fold(root.day(DAY)).snapshots) == 2


def test_a_day_that_is_folded_while_it_is_verified_is_as_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = snapshot_of_one_bundle(tmp_path, MORNING)
    open_ledger(root.ledger_url).close()
    before = fold(root.day(DAY))
    snapshot_of_one_bundle(tmp_path, NOON)
    fold(root.day(DAY))
    monkeypatch.setattr("pulsar_advisor.stages.verify_history.folded_days", lambda _: ([before], []))
    assert verify(root) == (1, [])


def test_a_changed_or_missing_file_is_found(tmp_path: Path) -> None:
    root = snapshot_of_one_bundle(tmp_path, MORNING)
    day = fold(root.day(DAY))
    load, hosts = (root.day(DAY).folder(table) / day.tables[table].file for table in ("load", "hosts"))
    load.write_bytes(b"")
    hosts.unlink()
    days, found = verify(root)
    assert (days, [line.split(" ", 1)[1] for line in found]) == (
        1,
        ["can't be read: No such file or directory", "was changed since it was written"],
    )


def test_a_table_that_the_result_does_not_name_is_found(tmp_path: Path) -> None:
    root = snapshot_of_one_bundle(tmp_path, MORNING)
    day = fold(root.day(DAY))
    fewer = {name: table for name, table in day.tables.items() if name != "events"}
    write_file(root.day(DAY).result_file, day.model_copy(update={"tables": fewer}).content())
    assert [line.split(" ", 1)[1] for line in verify(root)[1]] == [
        "names no file of table 'events': fold the day again"
    ]


def test_a_table_that_was_changed_is_not_read(tmp_path: Path) -> None:
    root = snapshot_of_one_bundle(tmp_path, MORNING)
    day = fold(root.day(DAY))
    file = root.day(DAY).folder("index") / day.tables["index"].file
    pq.write_table(pq.read_table(str(file)), str(file), compression="none")
    with pytest.raises(StorageError, match="was changed since it was written: fold the day again"):
        trend(root, 28)


def test_a_day_that_was_rewritten_with_its_result_is_found_and_not_folded_on(tmp_path: Path) -> None:
    root = snapshot_of_one_bundle(tmp_path, MORNING)
    open_ledger(root.ledger_url).close()
    day = fold(root.day(DAY))
    assert verify(root) == (1, [])
    without_tables(root, MORNING)
    rewritten = fold_tables([moment(30, {FIRST: "b:8080"})])
    write_day(root.day(DAY), rewritten, lambda files: day.model_copy(update={"tables": files}), lambda: None)
    snapshot_of_one_bundle(tmp_path, NOON)
    [found] = verify(root)[1]
    assert found.endswith("the ledger has seals of this day, but none of this file")
    with pytest.raises(Refused, match="restore the day from a backup"):
        fold(root.day(DAY))


@pytest.mark.parametrize("has_result", [False, True], ids=["before its result", "after its result"])
def test_whoever_was_overtaken_leaves_the_day_of_the_new_writer_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_result: bool
) -> None:
    day = snapshot_of_one_bundle(tmp_path, MORNING).day(DAY)
    ledger = open_ledger(day.root.ledger_url)
    theirs: list[HistoryDay] = []

    def suspended_after_it(path: UPath, content: bytes) -> None:
        write_file(path, content)
        if (path == day.result_file) == has_result:
            monkeypatch.undo()
            (day.folder("result") / LEASE).unlink()
            snapshot_of_one_bundle(tmp_path, NOON)
            theirs.append(fold(day))

    monkeypatch.setattr("pulsar_advisor.tables.days.write_file", suspended_after_it)
    with pytest.raises(Refused, match="was taken over by another process"):
        fold(day)
    assert [day_if_any(day)] == theirs
    assert list(damage(day.root, theirs[0], DAY_TABLES)) == []
    with closing(ledger):
        assert len(seals_of_snapshot(ledger, day.root.cluster, DAY)) == (2 if has_result else 1)


@pytest.mark.parametrize("other", [True, False], ids=["another ledger", "no ledger"])
def test_a_sealed_day_is_not_as_written_unless_its_ledger_says_so(tmp_path: Path, other: bool) -> None:
    root, central = snapshot_of_one_bundle(tmp_path, MORNING), f"sqlite:///{tmp_path / 'central.sqlite'}"
    open_ledger(central).close()
    fold(root.day(DAY), central)
    if other:
        open_ledger(root.ledger_url).close()
    [found] = verify(root)[1]
    assert "can't be compared: the day is sealed in a ledger" in found
    assert verify(root, central) == (1, [])


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("written_before", range(len(DAY_TABLES) + 1))
def test_a_fold_that_dies_at_any_write_leaves_the_day_of_before_whole_and_sealed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written_before: int
) -> None:
    root = snapshot_of_one_bundle(tmp_path, MORNING)
    open_ledger(root.ledger_url).close()
    before = fold(root.day(DAY))
    snapshot_of_one_bundle(tmp_path, NOON, "b:8080")
    left = iter(range(written_before))

    def dies(path: UPath, content: bytes) -> None:
        if next(left, None) is None:
            raise StorageError("disk full")
        write_file(path, content)

    monkeypatch.setattr("pulsar_advisor.tables.days.write_file", dies)
    with pytest.raises(StorageError, match="disk full"):
        fold(root.day(DAY))
    monkeypatch.undo()
    assert (day_if_any(root.day(DAY)), verify(root)) == (before, (1, []))
    assert len(fold(root.day(DAY)).snapshots) == 2
    assert verify(root) == (1, [])


def test_a_day_of_before_the_ledger_is_no_changed_one_if_its_first_seal_is_all_that_a_fold_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = snapshot_of_one_bundle(tmp_path, MORNING)
    before = fold(root.day(DAY))
    open_ledger(root.ledger_url).close()
    snapshot_of_one_bundle(tmp_path, NOON)

    def dies_at_the_result(path: UPath, content: bytes) -> None:
        if path.name == RESULT:
            raise StorageError("disk full")
        write_file(path, content)

    monkeypatch.setattr("pulsar_advisor.tables.days.write_file", dies_at_the_result)
    with pytest.raises(StorageError, match="disk full"):
        fold(root.day(DAY))
    monkeypatch.undo()
    assert (day_if_any(root.day(DAY)), verify(root)) == (before, (1, []))
    assert fold(root.day(DAY)).is_sealed


def test_a_trend_is_read_from_folded_days(tmp_path: Path) -> None:
    root = snapshot_of_one_bundle(tmp_path, MORNING)
    with pytest.raises(UsageError, match="run `history fold`"):
        trend(root, 28)
    fold(root.day(DAY))
    days, found = trend(root, 28)
    assert (days, found.snapshots, found.brokers, found.bundles) == (1, 1, (2, 2), (1, 1))


def test_the_document_can_be_read_again(tmp_path: Path) -> None:
    day = fold(snapshot_of_one_bundle(tmp_path, MORNING).day(DAY))
    assert HistoryDay.parsed(day.content(), "a file") == day


def test_days_of_an_earlier_release_are_folded_again_although_their_snapshots_are_gone(tmp_path: Path) -> None:
    root = snapshot_of_one_bundle(tmp_path, MORNING)
    day = fold(root.day(DAY))
    earlier = {"columns": COLUMNS - 1, "summary": None}
    write_file(root.day(DAY).result_file, day.model_copy(update=earlier).content())
    for folder in ("raw", "tables"):
        shutil.rmtree(str(root.path / folder))
    assert fold_until(root, NEXT_DAY) == [day]


def test_a_day_of_a_newer_release_is_left_as_it_is(tmp_path: Path) -> None:
    root = snapshot_of_one_bundle(tmp_path, MORNING)
    newer = fold(root.day(DAY)).model_copy(update={"columns": COLUMNS + 1})
    write_file(root.day(DAY).result_file, newer.content())
    assert fold(root.day(DAY)) == newer
    snapshot_of_one_bundle(tmp_path, NOON)
    before = files_of(root)
    with pytest.raises(StorageError, match=f"day {DAY} was written by a newer release"):
        fold(root.day(DAY))
    assert files_of(root) == before


def test_days_before_today_are_folded_although_one_of_them_can_not_be(tmp_path: Path) -> None:
    for day in ("20261118", "20261119", "20261120", DAY):
        root = snapshot_of_one_bundle(tmp_path, f"{day}T080000Z")
    broken = root.snapshot("20261118T080000Z").folder("tables/bundles")
    for file in broken.iterdir():  # what follows it can't be compared
        file.write_bytes(b"rotten")
    with pytest.raises(StorageError):
        fold_until(root, DAY)
    assert [day.day for day in folded_days(root)[0]] == ["20261120"]
