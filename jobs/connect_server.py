"""Starts a Spark Connect server on loopback, whose Java stays warm: `connect_server.py [PORT]`, until it is stopped."""

import os
import sys
from pathlib import Path

import pyspark

from pulsar_advisor.tables.session import server_settings

DEFAULT_PORT = 15002
"""Spark's own."""

if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_PORT
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    settings = [f"--conf={key}={value}" for key, value in server_settings(port).items()]
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_HOME"] = str(submit.parents[1])  # another Spark's would be started in its place
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    server = ["--master", "local[*]", "--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    os.execv(submit, [str(submit), *server, *settings, "spark-internal"])
