"""Remains of dead captures go, folders of living ones stay."""

from __future__ import annotations

import errno
import json
import os
import stat
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pulsar_advisor.model.errors import StorageError, UsageError
from pulsar_advisor.storage.claim import LEASE, claimed, claimed_as, remove_remainders
from pulsar_advisor.storage.files import write_file
from pulsar_advisor.storage.process import Process, this_process
from pulsar_advisor.storage.root import MANIFEST, Root, Snapshot

NOW = datetime(2026, 11, 21, 8, 30, tzinfo=UTC)


ELSEWHERE = Process("elsewhere", 1)


def begun(snapshot: Snapshot, process: Process, silent_for: timedelta = timedelta()) -> Path:
    folder = Path(str(snapshot.folder("raw")))
    folder.mkdir(parents=True)
    writer = {"process": process.id, "host": process.host, "namespace": process.namespace, "began": process.began}
    (folder / LEASE).write_text(json.dumps({**writer, "nonce": "another"}))
    aged(folder / LEASE, silent_for)
    (folder / "tenants.jsonl.zst").write_bytes(b"half")
    return folder


def aged(path: Path, age: timedelta) -> None:
    """A file or folder that was last written this long ago."""
    written_at_s = time.time() - age.total_seconds()
    os.utime(path, (written_at_s, written_at_s))


def test_the_folder_of_a_killed_process_goes(root: Root, dead_process: Process) -> None:
    folder = begun(root.snapshot("20261121T082900Z"), dead_process)
    assert remove_remainders(root) == ["20261121T082900Z"]
    assert not folder.exists()


def test_finished_snapshots_are_not_asked_one_after_the_other(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    write_file(root.snapshot("20261121T080000Z").folder("raw") / MANIFEST, b"{}")
    asked: list[str] = []
    local = type(root.path)
    exists = local.exists
    monkeypatch.setattr(local, "exists", lambda path: asked.append(path.parent.name) or exists(path))
    assert remove_remainders(root) == []
    assert "snapshot=20261121T080000Z" not in asked


def test_the_folder_of_a_living_process_stays(root: Root) -> None:
    folder = begun(root.snapshot("20261121T082900Z"), this_process())
    assert remove_remainders(root) == []
    assert folder.exists()


def test_another_host_has_a_quarter_of_an_hour_to_renew(root: Root) -> None:
    begun(root.snapshot("20261121T080000Z"), ELSEWHERE, timedelta(minutes=14))
    begun(root.snapshot("20261121T080001Z"), ELSEWHERE, timedelta(minutes=16))
    assert remove_remainders(root) == ["20261121T080001Z"]


def test_a_folder_without_lease_is_judged_by_its_newest_file(root: Root) -> None:
    for snapshot, age, file_age in (("20261121T080000Z", 16, 14), ("20261121T080001Z", 16, 16)):
        folder = Path(str(root.snapshot(snapshot).folder("raw")))
        folder.mkdir(parents=True)
        (folder / "tenants.jsonl.zst").touch()
        aged(folder / "tenants.jsonl.zst", timedelta(minutes=file_age))
        aged(folder, timedelta(minutes=age))
    empty = Path(str(root.snapshot("20261121T080002Z").folder("raw")))
    empty.mkdir()
    assert remove_remainders(root) == ["20261121T080001Z"]
    aged(empty, timedelta(minutes=16))
    assert remove_remainders(root) == ["20261121T080002Z"]


def test_a_pipe_in_the_place_of_a_lease_is_not_waited_for(root: Root) -> None:
    folder = root.snapshot("20261121T083000Z").folder("raw")
    folder.mkdir(parents=True)
    os.mkfifo(f"{folder}/{LEASE}")
    assert remove_remainders(root) == []
    aged(Path(f"{folder}/{LEASE}"), timedelta(minutes=16))
    assert remove_remainders(root) == [folder.name.partition("=")[2]]


@pytest.mark.parametrize("dated", [timedelta(minutes=16), timedelta(days=-365)], ids=["silent", "in the future"])
def test_a_remainder_whose_lease_leads_nowhere_goes(root: Root, dated: timedelta) -> None:
    folder = Path(str(root.snapshot("20261121T083000Z").folder("raw")))
    folder.mkdir(parents=True)
    (folder / LEASE).symlink_to("nowhere")
    (folder / "tenants.jsonl.zst").touch()
    aged(folder / "tenants.jsonl.zst", dated)
    assert remove_remainders(root) == ["20261121T083000Z"]


def test_a_remainder_that_another_capture_removes_at_the_same_time_is_gone(
    root: Root, dead_process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = begun(root.snapshot("20261121T082900Z"), dead_process)
    remove = os.rmdir

    def remove_after_the_other(path: str) -> None:
        remove(path)
        remove(path)

    monkeypatch.setattr(os, "rmdir", remove_after_the_other)
    assert remove_remainders(root) == ["20261121T082900Z"]
    assert not folder.exists()


@pytest.mark.parametrize("refused", ["tempfile.TemporaryFile", "pulsar_advisor.storage.claim.age", "os.unlink"])
def test_a_remainder_that_another_user_left_does_not_keep_this_one_from_capturing(
    root: Root, dead_process: Process, refused: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = begun(root.snapshot("20261121T082900Z"), dead_process)

    def refuse(*_path: object, **_options: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(folder))

    monkeypatch.setattr(refused, refuse)
    assert remove_remainders(root) == []
    assert (folder / LEASE).exists()
    assert str(folder) in caplog.text


@pytest.mark.parametrize("name", ["lost+found", "snapshot=20261121T082900Z_$folder$"])
def test_what_is_no_snapshots_folder_stays(root: Root, name: str, caplog: pytest.LogCaptureFixture) -> None:
    other = Path(str(root.of_cluster("raw"))) / name
    other.mkdir(parents=True)
    aged(other, timedelta(days=9))
    assert remove_remainders(root) == []
    assert other.exists()
    assert caplog.text == ""


def test_a_snapshot_is_never_removed(root: Root) -> None:
    folder = begun(root.snapshot("20261121T082900Z"), ELSEWHERE, timedelta(days=9))
    (folder / MANIFEST).write_text("{}")
    assert remove_remainders(root) == []
    assert (folder / "tenants.jsonl.zst").exists()


def test_a_snapshot_that_is_finished_after_the_others_were_listed_is_not_removed(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = begun(root.snapshot("20261121T082900Z"), ELSEWHERE, timedelta(days=9))
    (folder / MANIFEST).write_text("{}")
    monkeypatch.setattr(Root, "snapshots", lambda _root: [])
    assert remove_remainders(root) == []
    assert (folder / "tenants.jsonl.zst").exists()


def test_a_link_in_a_remainder_is_not_followed(root: Root, dead_process: Process, tmp_path: Path) -> None:
    elsewhere = tmp_path / "precious"
    elsewhere.mkdir()
    (elsewhere / "file").write_text("stays")
    folder = begun(root.snapshot("20261121T082900Z"), dead_process)
    (folder / "topic_stats").symlink_to(elsewhere)
    remove_remainders(root)
    assert not folder.exists()
    assert (elsewhere / "file").read_text() == "stays"


def test_a_remainder_that_is_a_link_goes_and_what_it_leads_to_stays(root: Root, tmp_path: Path) -> None:
    elsewhere = tmp_path / "precious"
    elsewhere.mkdir()
    (elsewhere / "file").write_text("stays")
    aged(elsewhere / "file", timedelta(days=9))
    link = Path(str(root.snapshot("20261121T082900Z").folder("raw")))
    link.parent.mkdir(parents=True)
    link.symlink_to(elsewhere)
    assert remove_remainders(root) == ["20261121T082900Z"]
    assert not link.is_symlink()
    assert (elsewhere / "file").read_text() == "stays"


def test_a_remainder_behind_a_link_stays(root: Root, tmp_path: Path) -> None:
    folder = begun(root.snapshot("20261121T082900Z"), ELSEWHERE, timedelta(days=9))
    raw, elsewhere = folder.parent.parent, tmp_path / "precious"
    raw.rename(elsewhere)
    raw.symlink_to(elsewhere)
    assert remove_remainders(root) == []
    assert (folder / "tenants.jsonl.zst").exists()


def test_two_captures_in_one_second_get_two_folders(root: Root) -> None:
    with claimed(root, NOW) as first, claimed(root, NOW) as second:
        assert (first.snapshot, second.snapshot) == ("20261121T083000Z", "20261121T083001Z")


def test_a_finished_capture_leaves_no_lease(root: Root) -> None:
    with claimed(root, NOW) as lease:
        assert (lease.folder / LEASE).exists()
        (lease.folder / MANIFEST).write_text("{}")
    assert [path.name for path in lease.folder.iterdir()] == [MANIFEST]


def test_an_interruption_while_the_name_of_the_lease_is_synced_takes_the_folder_with_it(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync = os.fsync

    def interrupted(number: int) -> None:
        if stat.S_ISDIR(os.fstat(number).st_mode):
            raise KeyboardInterrupt
        sync(number)

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt), claimed(root, NOW):
        pytest.fail("it was not claimed")
    assert not root.snapshot("20261121T083000Z").folder("raw").exists()


def test_a_failure_takes_the_folder_with_it(root: Root) -> None:
    with pytest.raises(KeyboardInterrupt), claimed(root, NOW) as lease:
        (lease.folder / "tenants.jsonl.zst").write_text("half")
        raise KeyboardInterrupt
    assert not lease.folder.exists()


def test_a_snapshot_from_elsewhere_never_takes_a_place_that_is_taken(root: Root) -> None:
    with claimed(root, NOW) as lease:
        (lease.folder / MANIFEST).write_text("{}")
    with pytest.raises(UsageError, match="already exists"), claimed_as(root.snapshot(lease.snapshot)):
        pass


def test_a_snapshot_from_elsewhere_waits_for_whoever_is_writing_it(root: Root) -> None:
    said = "is being written to .* by another process now: wait until it ends or, if it was killed, 15 minutes"
    with claimed(root, NOW) as lease, pytest.raises(UsageError, match=said), claimed_as(root.snapshot(lease.snapshot)):
        pass


def test_a_capture_that_was_overtaken_leaves_the_folder_to_the_other(root: Root) -> None:
    with pytest.raises(KeyboardInterrupt), claimed(root, NOW) as lease:
        (lease.folder / LEASE).write_text(json.dumps({"nonce": "another"}))
        (lease.folder / "tenants.jsonl.zst").write_text("theirs")
        raise KeyboardInterrupt
    assert (lease.folder / "tenants.jsonl.zst").read_text() == "theirs"


def test_a_capture_that_would_not_become_the_latest_is_refused(root: Root) -> None:
    with claimed(root, NOW) as lease:
        (lease.folder / MANIFEST).write_text("{}")
    with claimed(root, NOW - timedelta(minutes=5)) as lease:
        (lease.folder / MANIFEST).write_text("{}")
    set_back = NOW - timedelta(hours=3)
    said = r"snapshot 20261121T083000Z .* is 180 min in the future.* the clock of this machine was set back"
    with pytest.raises(StorageError, match=said), claimed(root, set_back):
        pass
    assert root.snapshots() == ["20261121T082500Z", "20261121T083000Z"]
