"""Results that pages show: a file in docs/results/ for each table, which `make docs` copies to its page."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

RESULTS: Final = Path(__file__).parents[1] / "docs" / "results"


def record(file: Path, rows: Iterable[Mapping[str, str]]) -> None:
    """Write rows into a file of results: a row of the same first cell takes the columns given, others are added.

    A column that the file lacks raises ValueError.
    """
    head, *before = (line.split("\t") for line in file.read_text(encoding="utf-8").splitlines())
    found = {cells[0]: dict(zip(head, cells, strict=True)) for cells in before}
    for row in rows:
        if unknown := row.keys() - set(head):
            raise ValueError(f"{file.name} has no column {', '.join(sorted(unknown))}")
        found.setdefault(row[head[0]], dict.fromkeys(head, "")).update(row)
    lines = ["\t".join(head), *("\t".join(row[column] for column in head) for row in found.values())]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def today() -> str:
    """The day, as files of results write it."""
    return f"{datetime.now(UTC):%d %b %Y}"


def conditions() -> dict[str, str]:
    """The columns that say when and on what machine something was measured, and how fast that was then."""
    machine = f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}, loop {_loop_s():.2f} s"
    return {"measured": today(), "machine": machine}


def _loop_s() -> float:
    """Processor time of ten million additions: machines, and hours of one machine, differ by a factor of five."""
    began, total = time.process_time(), 0
    for number in range(10_000_000):
        total += number
    return time.process_time() - began
