"""A file is whole wherever it shows, and still there after a power failure."""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from upath import UPath

from pulsar_advisor.model.errors import StorageError
from pulsar_advisor.storage import files
from pulsar_advisor.storage.files import (
    LARGEST_FILE_BYTES,
    read_file,
    why_not_writable,
    write_chunks,
    write_file,
    write_output,
)


def test_a_file_and_its_name_are_on_disk_once_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "new" / "file"
    synced: list[tuple[str, bool]] = []
    sync = os.fsync

    def noted(number: int) -> None:
        kind = "folder" if stat.S_ISDIR(os.fstat(number).st_mode) else f"{os.fstat(number).st_size} bytes"
        synced.append((kind, file.exists()))
        sync(number)

    monkeypatch.setattr(os, "fsync", noted)
    write_file(UPath(file), b"content")
    assert synced == [("7 bytes", False), ("folder", True)]
    assert file.read_bytes() == b"content"


def refuse_to_sync_folders(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    sync = os.fsync

    def refuse_folders(file: int) -> None:
        if stat.S_ISDIR(os.fstat(file).st_mode):
            raise OSError(number, os.strerror(number))
        sync(file)

    monkeypatch.setattr(os, "fsync", refuse_folders)


def test_where_a_folder_can_not_be_synced_a_file_is_written_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_to_sync_folders(monkeypatch, errno.EINVAL)
    write_file(UPath(tmp_path / "file"), b"content")
    assert (tmp_path / "file").read_bytes() == b"content"


def test_a_disk_that_fails_while_a_folder_is_synced_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_to_sync_folders(monkeypatch, errno.EIO)
    with pytest.raises(StorageError, match="Input/output error"):
        write_file(UPath(tmp_path / "file"), b"content")


def test_a_pipe_or_a_device_that_was_named_is_written_to_and_stays_what_it_is(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_output(UPath(pipe), [b"content"])
    assert (os.read(reader, 100), pipe.is_fifo()) == (b"content", True)
    os.close(reader)


def test_a_pipe_or_a_device_in_the_place_of_a_file_of_the_root_is_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/full")
    for name in ("device", "pipe"):
        write_file(UPath(tmp_path / name), b"content")
        assert (tmp_path / name).read_bytes() == b"content"


@pytest.mark.parametrize("mode", [0o700, 0o666])
def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path: Path, mode: int) -> None:
    (tmp_path / "plan.sh").touch()
    (tmp_path / "plan.sh").chmod(mode)
    write_file(UPath(tmp_path / "plan.sh"), b"content")
    assert stat.S_IMODE((tmp_path / "plan.sh").stat().st_mode) == mode


def test_a_private_file_that_is_replaced_is_at_no_moment_anybody_elses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "report.html").touch(mode=0o600)
    seen: list[int] = []
    monkeypatch.setattr(os, "fchmod", lambda number, _mode: seen.append(stat.S_IMODE(os.fstat(number).st_mode)))
    write_file(UPath(tmp_path / "report.html"), b"private")
    assert seen == [0o600]


def test_a_file_that_others_put_there_makes_ours_no_program_that_runs_as_us(tmp_path: Path) -> None:
    (tmp_path / "report.html").touch()
    (tmp_path / "report.html").chmod(0o6755)
    write_file(UPath(tmp_path / "report.html"), b"")
    assert stat.S_IMODE((tmp_path / "report.html").stat().st_mode) == 0o755


def test_a_name_of_an_open_file_such_as_dev_stdout_is_written_to(tmp_path: Path) -> None:
    (tmp_path / "redirected").write_bytes(b"earlier ")
    with (tmp_path / "redirected").open("ab") as opened:
        write_output(UPath(f"/proc/self/fd/{opened.fileno()}"), [b"content"])
    assert (tmp_path / "redirected").read_bytes() == b"earlier content"


@pytest.mark.parametrize("target", ["pipe", "/dev/zero"])
def test_what_would_block_its_reader_or_never_end_is_not_read(tmp_path: Path, target: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").symlink_to(target)
    with pytest.raises(StorageError, match=r"can't read .*file: it is not a regular file"):
        read_file(UPath(tmp_path / "file"), "recommend")


def test_a_file_that_grows_while_it_is_read_is_read_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Growing(io.BytesIO):
        def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
            place = super().seek(offset, whence)
            if whence == os.SEEK_END:
                self.write(b" and on and on")
            return place

    monkeypatch.setattr(files, "open_file", lambda _path: Growing(b"content"))
    assert read_file(UPath(tmp_path / "file"), "recommend") == b"content"


def test_a_file_larger_than_any_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        file.truncate(LARGEST_FILE_BYTES + 1)  # takes no space
    with pytest.raises(StorageError, match=r"file has 2,147,483,649 bytes, more than `recommend` ever writes"):
        read_file(UPath(tmp_path / "file"), "recommend")


def test_two_containers_in_which_the_writers_have_one_process_id_do_not_share_an_unfinished_file(
    tmp_path: Path,
) -> None:
    def content_while_the_other_writes() -> Iterator[bytes]:
        yield b"first "
        write_file(UPath(tmp_path / "file"), b"the other")
        yield b"and last"

    write_chunks(UPath(tmp_path / "file"), content_while_the_other_writes())
    assert (tmp_path / "file").read_bytes() == b"first and last"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_disk_that_fills_up_keeps_no_part_of_the_file(tmp_path: Path) -> None:
    def content() -> Iterator[bytes]:
        yield b"as much as fits"
        raise OSError(28, "No space left on device")

    with pytest.raises(StorageError, match=r"can't write .*: No space left on device"):
        write_chunks(UPath(tmp_path / "file"), content())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("folder", [".", "new/below"])
def test_a_folder_is_tried_and_left_as_it_was(tmp_path: Path, folder: str) -> None:
    assert why_not_writable(UPath(tmp_path / folder)) is None
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "file/root" in str(why_not_writable(UPath(tmp_path / "file" / "root")))
