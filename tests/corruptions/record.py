"""Judges the corruptions that `outcomes.tsv` has no line for, and writes their lines; then read every one of them.

    PYTHONPATH=tests python -m corruptions.record [MINUTES]

To judge some again, delete their lines; all of them take about half an hour on two cores. It may stop after some
MINUTES and go on another time.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import zip_longest
from pathlib import Path
from typing import Final

from corruptions.generated import corruptions
from corruptions.outcomes import Judge, Outcome, Taken
from corruptions.table import Key, key_of, reviewed, write
from pulsar_advisor.tables.session import spark_session

_AT_A_TIME: Final = 3
"""While Spark plans the queries of one on a single core, it runs those of another."""


def record(minutes: float) -> None:
    """Add outcomes for this long; those that several corruptions share first."""
    outcomes = reviewed()
    deadline, writing = time.monotonic() + 60 * minutes, threading.Lock()
    spark = spark_session("local[2]", "tests")
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(_AT_A_TIME) as pool:
        judge = Judge(spark, Path(folder))
        alike: dict[tuple[str, str], list[tuple[Key, Taken]]] = {}
        for corruption in corruptions():
            key, taken = key_of(corruption), judge.taken(corruption)
            if isinstance(taken, Outcome):
                outcomes.setdefault(key, taken)
            else:
                alike.setdefault((taken.load_manager, taken.content), []).append((key, taken))
        left = []
        for group in alike.values():
            judged = next((outcomes[key] for key, _ in group if key in outcomes), None)
            if judged is None:
                left.append(group)
            else:
                outcomes |= {key: outcomes.get(key, judged) for key, _ in group}
        write(corruptions(), outcomes)
        print(f"{len(outcomes)} are known, {len(left)} distinct snapshots are left", file=sys.stderr)

        def judged_together(group: Sequence[tuple[Key, Taken]]) -> None:
            if time.monotonic() < deadline:
                outcome = judge.judged(group[0][1])
                with writing:
                    outcomes.update({key: outcome for key, _ in group})
                    write(corruptions(), outcomes)

        running = {pool.submit(judged_together, group): group for group in _in_turn(left)}
        for done in as_completed(running):
            if error := done.exception():
                print(f"{running[done][0][0]}: {error!r}", file=sys.stderr)
    spark.stop()
    print(f"{len(corruptions()) - len(outcomes)} of {len(corruptions())} are left", file=sys.stderr)


def _in_turn(groups: Sequence[list[tuple[Key, Taken]]]) -> list[list[tuple[Key, Taken]]]:
    """The largest groups first; among equal ones, one of each surface in turn."""
    by_surface: dict[tuple[str, ...], list[list[tuple[Key, Taken]]]] = {}
    for group in groups:
        by_surface.setdefault(group[0][0][:2], []).append(group)
    rounds = zip_longest(*by_surface.values())
    return sorted((one for round_ in rounds for one in round_ if one is not None), key=len, reverse=True)


if __name__ == "__main__":
    record(float(sys.argv[1]) if len(sys.argv) > 1 else 1e6)
