"""Run the test levels, keep going after a failing one, and end with one line of totals.

    python tests/run_levels.py [--slow | --full] [LEVEL ...]

A level is a folder of tests/. Without an option the tests marked `slow` or `full` are left out, with --slow only those
marked `slow` run; in both cases several levels run at once, the output of each in one piece. A level without tests, or
one whose tests were all skipped, is reported as SKIPPED with the reason; the exit code is 0 if tests ran and none
failed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO

LEVELS = ("unit", "parity", "spark", "dags", "integration", "live", "e2e")
"""In the order they run: the cheap ones, which fail most often, first."""

PARALLEL_LEVELS = frozenset({"unit", "spark", "dags", "integration"})
"""Levels whose tests share nothing: each processor runs some of them. One cluster of brokers keeps all busy."""

SLOW_TO_START = frozenset({"spark", "dags"})
"""Levels whose processes each take half a minute of processor time, or twice that, until their Airflow or Java is warm:
beside other levels, which keep the processors busy, one process is enough."""

AT_ONCE = ("live", "spark", "dags", "integration", "unit", "parity", "e2e")
"""In the order they start if some run at a time: first those that wait for brokers or take longest."""

COMPUTING_LEVELS = frozenset({"unit", "spark"})
"""They give way to the others, or brokers and runs would miss their time-outs."""

MEMORY = Path("/dev/shm")
IN_MEMORY_LEVELS = frozenset({"unit", "dags"})
"""Levels whose temporary files are in memory where there is room: a disk makes them wait for each commit to SQLite."""
ROOM_IN_MEMORY = 4 << 30
"""Bytes; several times what one level writes."""

LIVE_LEVELS = frozenset({"live", "e2e"})
"""Levels that need real brokers; PULSAR_ADVISOR_REQUIRE_LIVE=1 makes it a failure when all their tests are skipped."""

QUICK, SLOW, ALL = "not slow and not full", "slow and not full", ""
"""Which tests run: those that there is time for after each change, the further ones of each landing, or every one."""

EXIT_NO_TESTS_COLLECTED = 5


@dataclass(frozen=True)
class Outcome:
    """How one level ended: its verdict, the number of tests by result, and why tests were skipped."""

    level: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    reasons: tuple[str, ...] = field(default=())

    @property
    def verdict(self) -> str:
        if self.failed:
            return "FAILED"
        return "PASSED" if self.passed else "SKIPPED"

    def lines(self) -> str:
        counts = f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped, {self.seconds:.0f} s"
        details = [counts, *self.reasons] if self.passed + self.failed + self.skipped else list(self.reasons)
        return f"{self.level:<12} {self.verdict:<8} " + f"\n{'':<22}".join(details)


def read_junit(report: Path) -> tuple[int, int, int, tuple[str, ...]]:
    """Count the results in a JUnit file of pytest: passed, failed (errors included), skipped, and the skip reasons.

    A test whose teardown fails after it passed is two entries in the file; it counts as failed.
    """
    failed: set[tuple[str, str]] = set()
    skipped: dict[tuple[str, str], str] = {}
    seen: set[tuple[str, str]] = set()
    for case in ElementTree.parse(report).iter("testcase"):
        name = (case.get("classname", ""), case.get("name", ""))
        seen.add(name)
        if case.find("failure") is not None or case.find("error") is not None:
            failed.add(name)
        elif (skip := case.find("skipped")) is not None:
            skipped[name] = skip.get("message", "no reason given")
    skipped = {name: why for name, why in skipped.items() if name not in failed}
    reasons = tuple(f"{count} skipped: {why}" for why, count in Counter(skipped.values()).most_common())
    return len(seen - failed - skipped.keys()), len(failed), len(skipped), reasons


def run_level(
    level: str, tests: Path, *, which: str, environment: Mapping[str, str], output: IO[str] | None = None
) -> Outcome:
    """Run one level's folder with pytest; `output`: where it writes if others run beside it, else to the terminal."""
    folder = tests / level
    if not any(folder.rglob("test_*.py")):
        return Outcome(level, reasons=(f"no tests in {folder.name}/",))
    print(f"\n=== {level} ===", file=output, flush=True)
    started = time.monotonic()
    in_memory = level in IN_MEMORY_LEVELS and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= ROOM_IN_MEMORY
    with tempfile.TemporaryDirectory(dir=MEMORY if in_memory else None) as scratch:
        report = Path(scratch) / "junit.xml"
        command = ["nice"] if level in COMPUTING_LEVELS else []
        command += [sys.executable, "-m", "pytest", str(folder), f"--junitxml={report}"]
        # Without --full the generated examples are the same in every run; with it each run looks for new ones.
        command += ["-m", which, "--hypothesis-profile=ci"] if which else []
        parallel = PARALLEL_LEVELS - SLOW_TO_START if output else PARALLEL_LEVELS
        command += ["-n", "auto", "--dist", "worksteal"] if level in parallel else []
        # Without bytecode files, each process would compile pytest's plugins, and the tests, anew.
        kept = {name: value for name, value in environment.items() if name != "PYTHONDONTWRITEBYTECODE"}
        place = {"TMPDIR": scratch} if in_memory else {}
        code = subprocess.run(
            command, env={**kept, **place}, stdout=output, stderr=output and subprocess.STDOUT, check=False
        ).returncode
        passed, failed, skipped, reasons = read_junit(report) if report.exists() else (0, 0, 0, ())
    if code == EXIT_NO_TESTS_COLLECTED:
        reasons = (f"no tests selected: {which}",)
    elif code != 0 and failed == 0:
        failed, reasons = 1, (f"pytest ended with exit code {code}", *reasons)
    elif skipped and not passed and level in LIVE_LEVELS and environment.get("PULSAR_ADVISOR_REQUIRE_LIVE") == "1":
        failed, reasons = 1, ("PULSAR_ADVISOR_REQUIRE_LIVE=1, but every test was skipped", *reasons)
    return Outcome(level, passed, failed, skipped, time.monotonic() - started, reasons)


def run_at_once(run: Callable[..., Outcome], levels: Sequence[str], interrupted: Sequence[int]) -> list[Outcome]:
    """Run a level per processor and one more, as some wait; what each says is printed when it ends."""
    printing = threading.Lock()

    def in_one_piece(level: str) -> Outcome | None:
        if interrupted:
            return None
        print(f"{level}: running", flush=True)
        with tempfile.TemporaryFile("w+") as said:
            outcome = run(level, output=said)
            said.seek(0)
            with printing:
                shutil.copyfileobj(said, sys.stdout)
        return outcome

    with ThreadPoolExecutor(len(os.sched_getaffinity(0)) + 1) as pool:
        outcomes = pool.map(in_one_piece, sorted(levels, key=AT_ONCE.index))
        return [outcome for outcome in outcomes if outcome is not None]


def main(arguments: Sequence[str], tests: Path = Path(__file__).parent) -> int:
    """Run the levels asked for (all by default), print the summary, and return the exit code."""
    parser = argparse.ArgumentParser(description="Run the test levels and end with one line of totals.")
    parser.add_argument("levels", nargs="*", metavar="LEVEL", help=f"any of: {', '.join(LEVELS)} (default: all)")
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--slow", dest="which", action="store_const", const=SLOW, help="run the tests marked slow")
    chosen.add_argument("--full", dest="which", action="store_const", const=ALL, help="run every test")
    parser.set_defaults(which=QUICK)
    options = parser.parse_args(arguments)
    if unknown := [level for level in options.levels if level not in LEVELS]:
        parser.error(f"no such level: {', '.join(unknown)} (there are: {', '.join(LEVELS)})")

    # On Ctrl-C pytest still stops the brokers it started; this process waits for that and then sums up.
    interrupted: list[int] = []
    previous = signal.signal(signal.SIGINT, lambda number, _frame: interrupted.append(number))
    asked = options.levels or LEVELS
    run = partial(run_level, tests=tests, which=options.which, environment=os.environ)
    try:
        if options.which == ALL or len(asked) == 1:
            outcomes = [run(level) for level in asked if not interrupted]
        else:
            outcomes = run_at_once(run, asked, interrupted)
    finally:
        signal.signal(signal.SIGINT, previous)

    print("\n=== summary ===")
    for outcome in sorted(outcomes, key=lambda one: LEVELS.index(one.level)):
        print(outcome.lines())
    passed, failed, skipped = (sum(getattr(o, name) for o in outcomes) for name in ("passed", "failed", "skipped"))
    print(f"\n{passed} passed, {failed} failed, {skipped} skipped", flush=True)
    if interrupted:
        return 128 + signal.SIGINT
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
