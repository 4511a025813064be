"""The disk fills up, or can only be read: an error that says so, nothing half done, and with room again all goes on."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.scene import assert_as_undisturbed, scene


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
            if ended.returncode:  # none at the last instants, after which nothing is written
                assert ended.returncode in (1, 5), f"full at instant {instant}: {ended.stderr}"
                assert "can't be used: database or disk is full: check" in ended.stderr
                (disk / "filler").unlink()
                ended = full.apply()
                if ended.returncode == 4:
                    ended = full.apply("--resume")
            assert ended.returncode == 0, f"full at instant {instant}: {ended.stderr}"
            assert_as_undisturbed(full)
