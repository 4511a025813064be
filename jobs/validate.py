"""spark-submit entry point of `validate`: tables in, validation result out."""

from pulsar_advisor.quality.validate import validate
from pulsar_advisor.tables.job import run_job

if __name__ == "__main__":
    raise SystemExit(run_job("validate", validate))
