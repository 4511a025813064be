"""spark-submit entry point of `normalize`: raw snapshot in, tables and their result file out."""

from pulsar_advisor.tables.job import run_job
from pulsar_advisor.tables.normalize import normalize

if __name__ == "__main__":
    raise SystemExit(run_job("normalize", normalize))
