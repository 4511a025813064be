"""spark-submit entry point of a turn of a roll: raw snapshot in; tables, verdict, and the plan of the turn out."""

import argparse
import sys

from pulsar_advisor.stages.roll import run
from pulsar_advisor.storage.plans import find_plan
from pulsar_advisor.tables.job import run_job

if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--roll", required=True, help="digest of the roll's plan")
    parser.add_argument("--left", required=True, help="the brokers that are left, in order, separated by commas")
    mine, others = parser.parse_known_args(sys.argv[1:])
    raise SystemExit(
        run_job(
            "turn",
            lambda spark, snapshot: run(
                spark, snapshot, find_plan(snapshot.root, mine.roll).load(snapshot.root), mine.left.split(",")
            ),
            others,
        )
    )
