"""The files a broker reads its CPU from, and what is done where they can't be mounted."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.sensor import Machine, MountIsolation, create_counters, mount_isolation


def test_a_new_broker_has_used_no_cpu_of_its_limit(tmp_path: Path) -> None:
    create_counters(tmp_path, Machine(cores=2.5))
    files = {file.name: int(file.read_text()) for file in (tmp_path / "cpu").iterdir()}
    assert files["cpuacct.usage"] == 0
    assert files["cpu.cfs_quota_us"] / files["cpu.cfs_period_us"] == 2.5


def test_cpu_grows_with_the_message_rate_and_stays_under_the_limit_at_the_hottest_broker() -> None:
    machine = Machine()
    assert 0 < machine.cores_used(0) < machine.cores_used(500) < machine.cores_used(1640) < machine.cores


def test_cpu_may_not_follow_messages_at_all() -> None:
    machine = Machine(idle_cores=2, cores_per_1000_messages=0)
    assert machine.cores_used(0) == machine.cores_used(5_000) == 2


@pytest.mark.parametrize(("target", "source"), [("/sys/fs/cgroup/cpu", "/private/cpu"), ("/sys/fs/cgroup", "/private")])
def test_the_folder_that_is_mounted_matches_the_place(target: str, source: str) -> None:
    wrapper = MountIsolation(("unshare", "--mount"), Path(target)).wrapper(Path("/private"))
    assert wrapper[-2:] == [source, target]


def test_without_unshare_there_is_no_isolation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert mount_isolation() is None
