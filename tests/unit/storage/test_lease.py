"""One writer at a time, and a dead one blocks no other."""

from __future__ import annotations

import io
import json
import os
import resource
import threading
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fcntl import LOCK_EX, flock
from pathlib import Path

import pytest
from upath import UPath

from pulsar_advisor.model.errors import Refused, StorageError
from pulsar_advisor.storage.lease import LEASE, Lease, held, is_held
from pulsar_advisor.storage.process import Process, this_process
from pulsar_advisor.storage.store_clock import store_time

SNAPSHOT = "20261121T083000Z"
WORK = f"the tables of snapshot {SNAPSHOT} are being made"


def leased(folder: Path, process: Process, silent_for: timedelta = timedelta()) -> None:
    """A lease that a process left."""
    writer = {"process": process.id, "host": process.host, "namespace": process.namespace, "began": process.began}
    (folder / LEASE).write_text(json.dumps({**writer, "nonce": "another", "renewed_at_ms": 0}))
    aged(folder / LEASE, silent_for)


def aged(file: Path, age: timedelta) -> None:
    """A file that was last written this long ago, by the clock of the file system."""
    written_at_s = (store_time(UPath(file.parent)) - age).timestamp()
    os.utime(file, (written_at_s, written_at_s))


def files(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


ELSEWHERE = Process("elsewhere", 1)


def test_the_second_writer_is_refused_while_the_first_is_at_work(tmp_path: Path) -> None:
    with (
        held(UPath(tmp_path), SNAPSHOT, WORK),
        pytest.raises(Refused, match="are being made by another process"),
        held(UPath(tmp_path), SNAPSHOT, WORK),
    ):
        pass


def test_a_lease_that_did_not_fit_on_the_disk_holds_nothing(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        with pytest.raises(StorageError, match="can't write"), held(UPath(tmp_path), SNAPSHOT, WORK):
            pytest.fail("it was not held")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    with held(UPath(tmp_path), SNAPSHOT, WORK):
        assert files(tmp_path) == [LEASE]


def test_a_lease_whose_writer_was_interrupted_before_it_wrote_it_holds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted(io.FileIO):
        def write(self, _content: object) -> int:
            raise KeyboardInterrupt

    with monkeypatch.context() as during:
        during.setattr(io, "open", lambda path, *_options: Interrupted(path, "xb"))
        with pytest.raises(KeyboardInterrupt), held(UPath(tmp_path), SNAPSHOT, WORK):
            pytest.fail("it was not held")
    assert files(tmp_path) == []


@pytest.mark.parametrize("ends", ["orderly", "by a failure"])
def test_the_next_writer_may_begin_once_the_first_has_ended(tmp_path: Path, ends: str) -> None:
    try:
        with held(UPath(tmp_path), SNAPSHOT, WORK):
            assert files(tmp_path) == [LEASE]
            if ends == "by a failure":
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    assert files(tmp_path) == []


def test_a_killed_writer_stands_in_nobodys_way(tmp_path: Path, dead_process: Process) -> None:
    leased(tmp_path, dead_process)
    with held(UPath(tmp_path), SNAPSHOT, WORK):
        assert json.loads((tmp_path / LEASE).read_text())["process"] == os.getpid()


def test_a_writer_on_another_host_that_renewed_its_lease_is_at_work(tmp_path: Path) -> None:
    leased(tmp_path, ELSEWHERE, timedelta(minutes=14))
    with pytest.raises(Refused), held(UPath(tmp_path), SNAPSHOT, WORK):
        pass
    assert json.loads((tmp_path / LEASE).read_text())["host"] == "elsewhere"


@pytest.mark.parametrize("silent_for", [timedelta(minutes=16), timedelta(days=-365)], ids=["silent", "in the future"])
def test_a_writer_on_another_host_that_fell_silent_is_gone(tmp_path: Path, silent_for: timedelta) -> None:
    leased(tmp_path, ELSEWHERE, silent_for)
    with held(UPath(tmp_path), SNAPSHOT, WORK):
        assert json.loads((tmp_path / LEASE).read_text())["host"] == this_process().host


def test_a_writer_that_is_at_work_on_this_host_keeps_its_lease_when_the_clock_is_set_back(tmp_path: Path) -> None:
    leased(tmp_path, this_process(), timedelta(days=-1))
    with pytest.raises(Refused), held(UPath(tmp_path), SNAPSHOT, WORK):
        pass


@pytest.mark.parametrize(
    "elsewhere",
    [replace(this_process(), namespace="another boot pid:[1]", id=2**22), replace(ELSEWHERE, host=this_process().host)],
    ids=["another PID namespace", "a lease of an earlier release"],
)
def test_an_equal_host_name_proves_no_death(tmp_path: Path, elsewhere: Process) -> None:
    leased(tmp_path, elsewhere)
    with pytest.raises(Refused), held(UPath(tmp_path), SNAPSHOT, WORK):
        pass


def test_a_process_id_that_was_given_away_again_is_another_process(tmp_path: Path) -> None:
    leased(tmp_path, replace(this_process(), began="1"))
    with held(UPath(tmp_path), SNAPSHOT, WORK):
        assert files(tmp_path) == [LEASE]


@pytest.mark.parametrize("target", ["pipe", "nowhere", "/dev/zero"])
def test_a_link_in_the_place_of_a_lease_is_not_followed(tmp_path: Path, target: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / LEASE).symlink_to(target)
    with pytest.raises(StorageError, match=r"lease\.json: it is a link$"), held(UPath(tmp_path), SNAPSHOT, WORK):
        pytest.fail("it was not held")


def test_a_pipe_in_the_place_of_a_lease_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / LEASE)
    with pytest.raises(StorageError, match="it is not a regular file"), held(UPath(tmp_path), SNAPSHOT, WORK):
        pytest.fail("it was not held")


def test_a_lease_that_is_not_text_is_held_until_it_expires(tmp_path: Path) -> None:
    (tmp_path / LEASE).write_bytes(b'{"host": "\xff"}')
    with pytest.raises(Refused), held(UPath(tmp_path), SNAPSHOT, WORK):
        pytest.fail("it was not held")


def overtaken(folder: Path) -> bytes:
    """Another process, which found this one silent, takes its place; its lease."""
    (folder / LEASE).unlink()
    leased(folder, ELSEWHERE)
    return (folder / LEASE).read_bytes()


def test_whoever_was_overtaken_neither_renews_nor_removes_the_lease_of_the_new_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with held(UPath(tmp_path), SNAPSHOT, WORK) as lease:
        theirs = overtaken(tmp_path)
        monkeypatch.setattr("pulsar_advisor.storage.lease.RENEW_EVERY", timedelta())
        with pytest.raises(Refused, match="was taken over by another process"):
            lease.renew()
        with pytest.raises(Refused, match="the other process continues"):
            lease.write(UPath(tmp_path / "result"), b"")
    assert (tmp_path / LEASE).read_bytes() == theirs
    assert files(tmp_path) == [LEASE]


def test_a_writer_is_renewed_while_it_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pulsar_advisor.storage.lease.RENEW_EVERY", timedelta(milliseconds=1))
    renewed = threading.Event()
    monkeypatch.setattr(Lease, "renew", lambda _lease: renewed.set())
    with held(UPath(tmp_path), SNAPSHOT, WORK):
        assert renewed.wait(10)


def test_a_lease_that_was_only_begun_is_a_writers_until_it_is_old(tmp_path: Path) -> None:
    (tmp_path / LEASE).touch()
    with pytest.raises(Refused), held(UPath(tmp_path), SNAPSHOT, WORK):
        pass
    aged(tmp_path / LEASE, timedelta(minutes=16))
    with held(UPath(tmp_path), SNAPSHOT, WORK):
        assert files(tmp_path) == [LEASE]


def test_of_two_who_take_over_from_a_dead_writer_one_is_refused(tmp_path: Path, dead_process: Process) -> None:
    leased(tmp_path, dead_process)
    begin, refused = threading.Barrier(2), threading.Event()
    outcomes: list[str] = []

    def write() -> None:
        begin.wait()
        try:
            with held(UPath(tmp_path), SNAPSHOT, WORK):
                outcomes.append("at work")
                refused.wait(60)
        except Refused:
            outcomes.append("refused")
            refused.set()

    writers = [threading.Thread(target=write) for _ in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sorted(outcomes) == ["at work", "refused"]
    assert files(tmp_path) == []


def test_whoever_comes_too_late_to_take_over_leaves_the_new_writers_lease_in_its_place(
    tmp_path: Path, dead_process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    def replaced_before_it_is_removed(_content: bytes, _silent_for: timedelta) -> bool:
        leased(tmp_path, this_process())
        monkeypatch.setattr("pulsar_advisor.storage.lease.is_held", is_held)
        return False

    leased(tmp_path, dead_process)
    monkeypatch.setattr("pulsar_advisor.storage.lease.is_held", replaced_before_it_is_removed)
    monkeypatch.setattr(os, "rename", lambda *_names: pytest.fail("the new writer would miss it"))
    with pytest.raises(Refused, match="by another process"), held(UPath(tmp_path), SNAPSHOT, WORK):
        pytest.fail("it was not held")


def test_a_process_suspended_while_it_takes_over_delays_the_others_only(
    tmp_path: Path, dead_process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    leased(tmp_path, dead_process)
    monkeypatch.setattr("pulsar_advisor.storage.lease._LOCK_WAIT_S", 0.0)
    with (tmp_path / LEASE).open("rb") as suspended:
        flock(suspended, LOCK_EX)
        with held(UPath(tmp_path), SNAPSHOT, WORK):
            assert json.loads((tmp_path / LEASE).read_text())["process"] == os.getpid()


@pytest.mark.parametrize(
    "content", [b"", b"\xff", b"[]", b"[" * 100_000], ids=["empty", "no text", "another", "nested"]
)
def test_a_lease_that_can_not_be_read_is_a_writers_until_it_is_old(content: bytes) -> None:
    assert [is_held(content, timedelta(minutes=age)) for age in (14, 16)] == [True, False]


def test_a_writer_with_a_number_that_no_process_has_is_gone(tmp_path: Path) -> None:
    leased(tmp_path, replace(this_process(), id=2**62))
    assert not is_held((tmp_path / LEASE).read_bytes(), timedelta())


@pytest.mark.parametrize("ahead", [timedelta(minutes=20), timedelta(minutes=-20)])
def test_a_host_whose_clock_differs_judges_a_lease_like_all_others(tmp_path: Path, ahead: timedelta) -> None:
    """What a writer notes of its own clock says nothing about its age."""
    for silent_for, is_at_work in ((timedelta(minutes=14), True), (timedelta(minutes=16), False)):
        leased(tmp_path, ELSEWHERE)
        theirs = json.loads((tmp_path / LEASE).read_text())
        theirs["renewed_at_ms"] = int((datetime.now(UTC) - silent_for + ahead).timestamp() * 1000)
        (tmp_path / LEASE).write_text(json.dumps(theirs))
        aged(tmp_path / LEASE, silent_for)
        with pytest.raises(Refused) if is_at_work else nullcontext(), held(UPath(tmp_path), SNAPSHOT, WORK):
            pass
