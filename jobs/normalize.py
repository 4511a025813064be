"""spark-submit entry point of `normalize`: raw snapshot in, tables and their result file out."""

from pulsar_advisor.stages.normalize import run
from pulsar_advisor.tables.job import run_job

if __name__ == "__main__":
    raise SystemExit(run_job("normalize", run))
