"""Creates Java's class-data archive for this environment, after set-up: `archive_classes.py RECORDED_SNAPSHOT`.

It holds the classes that `normalize` and `validate` load for the snapshot.
"""

import sys
import tempfile
from pathlib import Path

from pulsar_advisor.stages.normalize import run as normalize
from pulsar_advisor.stages.validate import run as validate
from pulsar_advisor.storage.archive import import_snapshot
from pulsar_advisor.storage.root import Root
from pulsar_advisor.tables.class_archive import FOLDER
from pulsar_advisor.tables.session import spark_session

if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        snapshot = import_snapshot(Path(sys.argv[1]), Root(folder, "recorded"))
        spark = spark_session()
        java = spark.sparkContext._gateway.proc
        normalize(spark, snapshot)
        validate(spark, snapshot)
        spark.stop()
    java.stdin.close()  # ends the JVM, which then writes the archive
    java.wait()
