"""The product's command line as an operator has it: one root, one cluster, one way to reach it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.cluster import LiveCluster

ADVISOR = Path(sys.executable).with_name("pulsar-advisor")
CALL_LIMIT_S = 1800
ONE_SYSTEM_USER = Path(__file__).with_name("one_system_user.yaml")
QUICK = ("--pause-between", "0s", "--canary-hold", "3s")
"""A throttle without pauses."""


@dataclass(frozen=True)
class Answer:
    """What one call left behind."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """What `--json` printed."""
        return json.loads(self.out)


def call(command: Sequence[str]) -> Answer:
    """Wait for one command."""
    environment = os.environ | {"PULSAR_ADVISOR_POLICY": str(ONE_SYSTEM_USER)}
    ended = subprocess.run(command, capture_output=True, text=True, timeout=CALL_LIMIT_S, check=False, env=environment)
    return Answer(ended.returncode, ended.stdout, ended.stderr)


@dataclass(frozen=True)
class Shell:
    """Calls the command line; `connection` holds the flags that reach the cluster, for the verbs that need them."""

    root: Path
    connection: tuple[str, ...]

    def command(self, *words: str, name: str = "live") -> list[str]:
        """The whole command of one call."""
        return [str(ADVISOR), *words, "--root", str(self.root), "--cluster", name]

    def __call__(self, *words: str, name: str = "live") -> Answer:
        return call(self.command(*words, name=name))

    def document(self, stage: str, name: str) -> dict[str, Any]:
        """The file of this name that a stage left in the root's only snapshot."""
        (path,) = (self.root / stage / "cluster=live").glob(f"snapshot=*/{name}")
        content: dict[str, Any] = json.loads(path.read_bytes())
        return content

    def plans(self) -> list[dict[str, Any]]:
        """Every plan of that snapshot."""
        paths = (self.root / "plans" / "cluster=live").glob("snapshot=*/*--*.json")
        return [json.loads(path.read_bytes()) for path in paths]


def plain_connection(cluster: LiveCluster) -> tuple[str, ...]:
    """Flags for every broker's admin URL and its metadata store."""
    urls = [word for url in cluster.admin_urls for word in ("--admin-url", url)]
    return (*urls, "--metadata-store", cluster.metadata_store)
