"""spark-submit entry point of `validate`: tables in, validation result out."""

from pulsar_advisor.stages.validate import run
from pulsar_advisor.tables.job import run_job

if __name__ == "__main__":
    raise SystemExit(run_job("validate", run))
