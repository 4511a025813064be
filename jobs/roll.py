"""spark-submit entry point of the plan of a rolling restart: tables in; its order, and the plan of its first turn, out.

`--brokers` and `--spare` are separated by commas; the DAG names the proposer.
"""

import argparse
import sys

from pulsar_advisor.model.bounds import ratio
from pulsar_advisor.stages.roll import plan
from pulsar_advisor.tables.job import run_job


def names(text: str) -> tuple[str, ...]:
    """Names that commas separate."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--brokers", type=names, default=())
    parser.add_argument("--spare", type=names, default=())
    parser.add_argument("--ceiling", default="")
    mine, others = parser.parse_known_args(sys.argv[1:])
    raise SystemExit(
        run_job(
            "roll",
            lambda spark, snapshot: plan(
                spark, snapshot, mine.brokers, mine.spare, ratio(mine.ceiling) if mine.ceiling else None
            ),
            others,
        )
    )
