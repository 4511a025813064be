"""Run the test levels one after the other, keep going after a failing one, and end with one line of totals.

    python tests/run_levels.py [--full] [LEVEL ...]

A level is a folder of tests/. Without --full the tests marked `full` are left out. A level without tests, or one whose
tests were all skipped, is reported as SKIPPED with the reason; the exit code is 0 if tests ran and none failed.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

LEVELS = ("unit", "parity", "spark", "dags", "integration", "live", "e2e")
"""In the order they run: the cheap ones, which fail most often, first."""

PARALLEL_LEVELS = frozenset({"unit", "spark", "dags", "integration"})
"""Levels whose tests share nothing: each processor runs some of them. One cluster of brokers keeps all busy."""

LIVE_LEVELS = frozenset({"live", "e2e"})
"""Levels that need real brokers; PULSAR_ADVISOR_REQUIRE_LIVE=1 makes it a failure when all their tests are skipped."""

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


def run_level(level: str, tests: Path, *, full: bool, environment: Mapping[str, str]) -> Outcome:
    """Run one level's folder with pytest in a process of its own; its output goes straight to the terminal."""
    folder = tests / level
    if not any(folder.rglob("test_*.py")):
        return Outcome(level, reasons=(f"no tests in {folder.name}/",))
    print(f"\n=== {level} ===", flush=True)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "junit.xml"
        command = [sys.executable, "-m", "pytest", str(folder), f"--junitxml={report}"]
        # Without --full the generated examples are the same in every run; with it each run looks for new ones.
        command += [] if full else ["-m", "not full", "--hypothesis-profile=ci"]
        command += ["-n", "auto", "--dist", "worksteal"] if level in PARALLEL_LEVELS else []
        code = subprocess.run(command, env=dict(environment), check=False).returncode
        passed, failed, skipped, reasons = read_junit(report) if report.exists() else (0, 0, 0, ())
    if code == EXIT_NO_TESTS_COLLECTED:
        reasons = ("no tests selected: all are marked full",)
    elif code != 0 and failed == 0:
        failed, reasons = 1, (f"pytest ended with exit code {code}", *reasons)
    elif skipped and not passed and level in LIVE_LEVELS and environment.get("PULSAR_ADVISOR_REQUIRE_LIVE") == "1":
        failed, reasons = 1, ("PULSAR_ADVISOR_REQUIRE_LIVE=1, but every test was skipped", *reasons)
    return Outcome(level, passed, failed, skipped, time.monotonic() - started, reasons)


def main(arguments: Sequence[str], tests: Path = Path(__file__).parent) -> int:
    """Run the levels asked for (all by default), print the summary, and return the exit code."""
    parser = argparse.ArgumentParser(description="Run the test levels and end with one line of totals.")
    parser.add_argument("levels", nargs="*", metavar="LEVEL", help=f"any of: {', '.join(LEVELS)} (default: all)")
    parser.add_argument("--full", action="store_true", help="also run the tests marked full")
    options = parser.parse_args(arguments)
    if unknown := [level for level in options.levels if level not in LEVELS]:
        parser.error(f"no such level: {', '.join(unknown)} (there are: {', '.join(LEVELS)})")

    # On Ctrl-C pytest still stops the brokers it started; this process waits for that and then sums up.
    interrupted: list[int] = []
    previous = signal.signal(signal.SIGINT, lambda number, _frame: interrupted.append(number))
    outcomes: list[Outcome] = []
    try:
        for level in options.levels or LEVELS:
            outcomes.append(run_level(level, tests, full=options.full, environment=os.environ))
            if interrupted:
                break
    finally:
        signal.signal(signal.SIGINT, previous)

    print("\n=== summary ===")
    for outcome in outcomes:
        print(outcome.lines())
    passed, failed, skipped = (sum(getattr(o, name) for o in outcomes) for name in ("passed", "failed", "skipped"))
    print(f"\n{passed} passed, {failed} failed, {skipped} skipped", flush=True)
    if interrupted:
        return 128 + signal.SIGINT
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
