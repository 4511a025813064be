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
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from corruptions.generated import Corruption, corruptions
from corruptions.outcomes import Judge
from corruptions.table import key_of, reviewed, write
from pulsar_advisor.tables.session import spark_session

_AT_A_TIME: Final = 3
"""While Spark plans the queries of one on a single core, it runs those of another."""


def record(minutes: float) -> None:
    """Add outcomes for this long."""
    outcomes = reviewed()
    missing = [one for one in corruptions() if key_of(one) not in outcomes]
    deadline, writing = time.monotonic() + 60 * minutes, threading.Lock()
    spark = spark_session("local[2]", "tests")
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(_AT_A_TIME) as pool:
        judge = Judge(spark, Path(folder))

        def judged(corruption: Corruption) -> None:
            if time.monotonic() < deadline:
                outcome = judge.outcome(corruption)
                with writing:
                    outcomes[key_of(corruption)] = outcome
                    write(corruptions(), outcomes)

        for done in [pool.submit(judged, one) for one in missing]:
            if error := done.exception():
                print(f"{error!r}", file=sys.stderr)
    spark.stop()
    print(f"{len(corruptions()) - len(outcomes)} of {len(corruptions())} are left", file=sys.stderr)


if __name__ == "__main__":
    record(float(sys.argv[1]) if len(sys.argv) > 1 else 1e6)
