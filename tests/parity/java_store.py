"""Asks Pulsar's own Java metadata store what it reads at an address."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from parity.java_classes import SOURCES, START_FAST, java_command, java_environment

RELEASE = "5.0.1"
ANSWER_LIMIT_S = 120


class Read(NamedTuple):
    """A record and the names below it."""

    children: list[str]
    value: bytes
    created_at_ms: int
    modified_at_ms: int


def read_by_java(url: str, paths: Iterable[str], partition_keys: Mapping[str, str] | None = None) -> dict[str, Read]:
    """What it finds at each path, looked for by its partition key if it has one.

    Raises `LiveClusterUnavailable` without its jars.
    """
    keys = partition_keys or {}
    command = java_command("ReadStore", RELEASE, [SOURCES / "store" / "ReadStore.java"], START_FAST)
    answered = subprocess.run(
        [*command, url],
        input="\n".join(f"{path}\t{keys[path]}" if path in keys else path for path in paths),
        capture_output=True,
        text=True,
        timeout=ANSWER_LIMIT_S,
        env=java_environment(),
        check=False,
    )
    assert answered.returncode == 0, answered.stderr
    found = [json.loads(line) for line in answered.stdout.splitlines()]
    return {
        one["path"]: Read(one["children"], base64.b64decode(one["value"]), one["created"], one["modified"])
        for one in found
    }
