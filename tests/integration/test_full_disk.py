"""The disk fills up, or can only be read: an error that says so, nothing half done, and with room again all goes on."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from integration.scene import assert_as_undisturbed, scene
from pulsar_advisor.cli import exit_code
from pulsar_advisor.execution.consent.approval import propose
from pulsar_advisor.execution.ledger.opening import open_ledger
from pulsar_advisor.model.errors import StorageError
from unit.execution.actors import ALICE
from unit.execution.doubles import make_plan, unload_step

RECORDED = Path(__file__).parents[1] / "data" / "recorded" / "modular-4.0.8.tar"
EARLIER = Path(__file__).parents[1] / "data" / "earlier" / "root"
INDEX = "index/cluster=demo/snapshots.json"
"""Nothing depends on it, so it may be missing where there was no room for it."""
PAGE_BYTES = 4096


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount a file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.parametrize("instants", ["one", pytest.param("all", marks=pytest.mark.full)])
def test_a_run_whose_disk_fills_up_at_any_instant_ends_as_an_undisturbed_one(disk: Path, instants: str) -> None:
    def ledger(name: object) -> str:
        return f"sqlite:///{disk}/{name}.sqlite"

    with scene(ledger("undisturbed"), disk) as undisturbed:
        assert undisturbed.apply().returncode == 0
        count = len(undisturbed.instants())
    for instant in range(1, count + 1) if instants == "all" else (count // 2,):
        with scene(ledger(instant), disk) as full:
            ended = full.apply(event_at=(f"fill:{disk}", instant))
            (disk / "filler").unlink()
            if ended.returncode:  # none at the last instants, after which nothing is written
                assert ended.returncode in (1, 5), f"full at instant {instant}: {ended.stderr}"
                assert "can't be used: database or disk is full: check" in ended.stderr
                ended = full.apply()
                if ended.returncode == 4:
                    ended = full.apply("--resume")
            assert ended.returncode == 0, f"full at instant {instant}: {ended.stderr}"
            assert_as_undisturbed(full)
        (disk / f"{instant}.sqlite").unlink()  # the disk has no room for all of them


def free_pages(folder: Path) -> int:
    return os.statvfs(folder).f_bavail


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("every", [12, pytest.param(1, marks=pytest.mark.full)])
def test_an_import_without_room_leaves_nothing_and_can_be_repeated(
    disk: Path, every: int, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["snapshots", "import", str(RECORDED), "--root", f"{disk}/root", "--cluster", "demo"]
    before = free_pages(disk)
    assert exit_code(command) == 0
    imported, needed = files(disk / "root"), before - free_pages(disk)
    for path in [*(disk / "root").rglob("*")][::-1]:
        path.rmdir() if path.is_dir() else path.unlink()
    refused = 0
    for pages in range(0, needed + 2 + every, every):
        filler = disk / "filler"
        filler.write_bytes(bytes((free_pages(disk) - pages) * PAGE_BYTES))
        code, said = exit_code(command), capsys.readouterr().err
        filler.unlink()
        if code:
            assert (code, "No space left on device" in said, "unexpected" in said) == (1, True, False), said
            assert files(disk / "root") == []
            refused += 1
        else:
            assert [path for path in imported if path not in files(disk / "root")] in ([], [INDEX])
            break
    assert exit_code(command) == 0
    assert files(disk / "root") == imported
    assert refused * every > needed // 2
    print(f"refused with up to {(refused - 1) * every} of {needed} pages free, then done")


@pytest.mark.parametrize("command", [["snapshots", "import", str(RECORDED)], ["report"]], ids=lambda words: words[0])
def test_a_root_that_can_only_be_read_is_named(
    disk: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    subprocess.run(["cp", "-r", str(EARLIER), f"{disk}/root"], check=True)
    before = files(disk / "root")
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    code, said = exit_code([*command, "--root", f"{disk}/root", "--cluster", "live"]), capsys.readouterr().err
    assert (code, "Read-only file system" in said, "unexpected" in said) == (1, True, False), said
    assert files(disk / "root") == before


def test_a_ledger_that_can_only_be_read_is_audited_and_whoever_writes_is_refused(
    disk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{disk}/ledger.sqlite"
    open_ledger(url).close()
    (disk / "ledger.sqlite").chmod(0o444)  # as the files of a copy that is only to be read
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    assert exit_code(["audit", "--ledger", url]) == 0
    assert "as it was written" in capsys.readouterr().out
    with closing(open_ledger(url)) as ledger, pytest.raises(StorageError, match="readonly"):
        propose(ledger, make_plan([unload_step()]), ALICE)
    with pytest.raises(StorageError, match="Read-only file system: check its disk and permissions"):
        open_ledger(f"sqlite:///{disk}/new.sqlite")


def test_what_only_reads_does_so_where_nothing_can_be_written(disk: Path) -> None:
    subprocess.run(["cp", "-r", str(EARLIER), f"{disk}/root"], check=True)
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    for command in (["snapshots", "list"], ["snapshots", "show"], ["report", "--output", "/dev/null"], ["lint"]):
        assert exit_code([*command, "--root", f"{disk}/root", "--cluster", "live"]) == 0, command
