"""Gives brokers on one host different CPU usage: private CPU counters that a thread advances by message rate.

A broker that can't ask the JVM for container metrics reads its CPU from three files of cgroup version 1
(`org.apache.pulsar.broker.loadbalance.LinuxInfoUtils`, 2.10 to 4.2): `cpuacct.usage` (nanoseconds used so far),
`cpu.cfs_quota_us` and `cpu.cfs_period_us` below `/sys/fs/cgroup/cpu`. Each broker is started in a mount namespace of
its own where these are ordinary files. Everything from there on is Pulsar's own code, and moving a bundle really moves
CPU.
"""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import requests

from harness.admin_api import AdminApi

INTERVAL_S = 1.0

_CGROUPS = Path("/sys/fs/cgroup")
_USAGE = Path("cpu", "cpuacct.usage")


@dataclass(frozen=True, slots=True)
class Machine:
    """What a broker is said to run on, whatever this machine has."""

    cores: float = 4
    """Its limit: usage is a percentage of these, and may be above 100."""
    idle_cores: float = 0.1
    """What it uses whatever it serves."""
    cores_per_1000_messages: float = 2.2
    """What 1,000 messages per second (in and out) cost beside."""

    def cores_used(self, messages_per_s: float) -> float:
        """The cores that a broker with this message rate (in + out) is said to use."""
        return self.idle_cores + self.cores_per_1000_messages * messages_per_s / 1000


@dataclass(frozen=True, slots=True)
class MountIsolation:
    """How this machine lets us start a process with a private view of the CPU controller."""

    unshare: tuple[str, ...]
    target: Path
    """Where the counters are mounted."""

    def wrapper(self, counters: Path) -> list[str]:
        """The command prefix under which a broker sees `counters`; it becomes the broker's own process."""
        source = counters / self.target.relative_to(_CGROUPS)
        mount_and_run = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
        return [*self.unshare, "sh", "-c", mount_and_run, "sh", str(source), str(self.target)]


def mount_isolation() -> MountIsolation | None:
    """What works here: as root, as a user with user namespaces, or None where neither is permitted."""
    if not _CGROUPS.is_dir() or shutil.which("unshare") is None:
        return None
    # With cgroup version 2 there is no cpu folder, and none can be made: cover the whole tree.
    target = _CGROUPS / "cpu" if (_CGROUPS / "cpu").is_dir() else _CGROUPS
    for unshare in (("unshare", "--mount"), ("unshare", "--map-root-user", "--mount")):
        attempt = [*unshare, "mount", "--bind", "/tmp", str(target)]
        if subprocess.run(attempt, capture_output=True, check=False, timeout=10).returncode == 0:
            return MountIsolation(unshare, target)
    return None


def create_counters(directory: Path, machine: Machine) -> None:
    """Write the three files of a broker that has used no CPU yet, below `directory`/cpu."""
    usage = directory / _USAGE
    usage.parent.mkdir(parents=True)
    usage.write_text("0\n")
    usage.with_name("cpu.cfs_quota_us").write_text(f"{machine.cores * 100_000:.0f}\n")
    usage.with_name("cpu.cfs_period_us").write_text("100000\n")


def messages_per_s(admin: AdminApi, url: str) -> float:
    """Messages per second in and out of all topics of the broker at `url`, from its last statistics pass."""
    return float(sum(topic["msgRateIn"] + topic["msgRateOut"] for topic in admin.topics(url).values()))


class CpuSensor:
    """Advances each broker's counter every second by its own message rate, until stopped.

    `counters` gives the directory made by `create_counters` for each broker's admin URL, `machines` what it runs on,
    which may change meanwhile.
    """

    def __init__(self, counters: Mapping[str, Path], machines: Mapping[str, Machine], admin: AdminApi) -> None:
        self._counters = counters
        self._machines = machines
        self._admin = admin
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="cpu-sensor", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop and wait until the last file is written."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        used_ns = dict.fromkeys(self._counters, 0.0)
        cores = {url: machine.idle_cores for url, machine in self._machines.items()}
        last = time.monotonic()
        while not self._stopped.wait(INTERVAL_S):
            now = time.monotonic()
            for url, directory in self._counters.items():
                # A busy broker keeps its last rate; a dead one's counter is not read.
                with suppress(requests.RequestException):
                    cores[url] = self._machines[url].cores_used(messages_per_s(self._admin, url))
                used_ns[url] += cores[url] * (now - last) * 1e9
                # In place and never shorter than before: the broker may read at any moment.
                with (directory / _USAGE).open("r+") as usage:
                    usage.write(f"{used_ns[url]:.0f}\n")
            last = now
