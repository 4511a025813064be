"""spark-submit entry point of `normalize` and `validate` in one Spark application: raw snapshot in, two results out."""

from pyspark.sql import SparkSession

from pulsar_advisor.documents.validation import Validation
from pulsar_advisor.stages import normalize, validate
from pulsar_advisor.storage.root import Snapshot
from pulsar_advisor.tables.job import run_job


def both(spark: SparkSession, snapshot: Snapshot) -> Validation:
    """Make the tables of a snapshot, then judge them; what is there already is left as it is."""
    normalize.run(spark, snapshot)
    return validate.run(spark, snapshot)


if __name__ == "__main__":
    raise SystemExit(run_job("snapshot", both))
