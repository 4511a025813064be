import os
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pyspark
import pytest
from py4j.clientserver import ClientServerConnection
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.tables.frames import materialized
from pulsar_advisor.tables.session import jobs_named, spark_session

pytestmark = pytest.mark.spark


def test_python_side_client_and_jars_are_of_one_version(spark: SparkSession) -> None:
    # Both distributions install the package `pyspark`; with different versions the one installed last breaks the other.
    assert {pyspark.__version__, version("pyspark"), version("pyspark-client")} == {spark.version}


def test_a_local_session_listens_on_loopback_only_and_has_no_web_page(spark: SparkSession) -> None:
    assert spark.conf.get("spark.driver.bindAddress") == "127.0.0.1"
    assert spark.sparkContext.uiWebUrl is None


def test_a_misspelt_master_is_named_before_java_starts() -> None:
    with pytest.raises(UsageError, match=r"^'spark:7077' is not a Spark master: give local\[\*\]"):
        spark_session("spark:7077")


def test_times_are_utc(spark: SparkSession) -> None:
    text = spark.range(1).select(sf.timestamp_millis(sf.lit(1_795_249_800_000)).cast("string")).first()
    assert text is not None
    assert text[0] == "2026-11-21 08:30:00"


def test_java_is_asked_once_where_a_function_of_spark_is(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    send = ClientServerConnection.send_command

    def noted(connection: ClientServerConnection, command: str) -> str:
        asked.append(command)
        return str(send(connection, command))

    monkeypatch.setattr(ClientServerConnection, "send_command", noted)
    sf.soundex("name")
    first = list(asked)
    asked.clear()
    sf.soundex("name")
    search = "r\nm\norg.apache.spark.sql.functions\nsoundex\ne\n"
    assert search in first
    assert not any(command.startswith("r") for command in asked)
    assert asked


def test_jobs_are_called_by_their_work_while_they_are_named(spark: SparkSession) -> None:
    java = spark._jsc.sc()

    def name_of_last_job() -> str:
        materialized(spark.range(3))
        java.listenerBus().waitUntilEmpty()
        return str(java.statusStore().jobsList(None).head().name())

    with jobs_named(spark, "read raw files"):
        assert name_of_last_job() == "read raw files"
    assert name_of_last_job().startswith("localCheckpoint")


@pytest.mark.slow
def test_under_spark_submit_a_local_master_has_the_same_settings_but_for_what_was_told(tmp_path: Path) -> None:
    job = tmp_path / "job.py"
    asked = ["spark.driver.bindAddress", "spark.sql.adaptive.enabled", "spark.sql.shuffle.partitions"]
    asked += ["spark.sql.ansi.enabled"]  # answers depend on it, so it isn't the cluster's
    job.write_text(
        "from pulsar_advisor.tables.session import spark_session\n"
        "session = spark_session(None)\n"
        f"print([session.conf.get(key) for key in {asked}])\n"
    )
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    configured = ["--conf", "spark.sql.shuffle.partitions=3", "--conf", "spark.sql.ansi.enabled=false"]
    command = [str(submit), "--master", "local[2]", *configured, str(job)]
    quick = {"JDK_JAVA_OPTIONS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"}
    environment = {**os.environ, **quick, "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == str(["127.0.0.1", "false", "3", "true"]), done.stderr


@pytest.mark.full
@pytest.mark.parametrize(
    ("work", "raw_bytes", "quick", "compiled"),
    [("normalize", 0, True, "false"), ("validate", 1 << 30, True, "true"), ("normalize", 1 << 30, False, "true")],
)
def test_javas_slow_compiler_is_for_large_raw_files_and_queries_are_compiled_for_large_snapshots(
    work: str, raw_bytes: int, quick: bool, compiled: str
) -> None:
    script = (
        "from pulsar_advisor.tables.session import spark_session\n"
        f"session = spark_session('local[1]', '{work}', raw_bytes={raw_bytes})\n"
        "print('TieredStopAtLevel=1' in session.conf.get('spark.driver.extraJavaOptions'))\n"
        "print(session.conf.get('spark.sql.codegen.wholeStage'))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout.split() == [str(quick), compiled], done.stderr


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("when", ["rows are computed", "nothing is"])
def test_the_end_of_java_is_said_and_no_file_is_blamed(when: str) -> None:
    script = (
        "import os, signal, sys, threading\n"
        "from pyspark import SparkContext\n"
        "from pulsar_advisor.tables.job import exit_code_of\n"
        "from pulsar_advisor.tables.session import spark_session\n"
        "def work():\n"
        "    session = spark_session('local[1]', 'test')\n"
        "    end = lambda: os.kill(SparkContext._gateway.proc.pid, signal.SIGKILL)\n"
        f"    computes = {when == 'rows are computed'}\n"
        "    threading.Timer(2, end).start() if computes else end()\n"
        "    session.range(10**13 if computes else 1).selectExpr('sum(id * id)').collect()\n"
        "sys.exit(exit_code_of('test', work))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "test: Spark's Java process was killed (SIGKILL)" in done.stderr
    assert "Traceback" not in done.stderr
    assert "file" not in done.stderr


@pytest.mark.parametrize("after_s", [0.2, 2.5], ids=["while Java starts", "while Spark starts"])
def test_an_interrupted_start_leaves_no_java_and_no_stack_trace(after_s: float) -> None:
    script = (
        "import os, signal, threading\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # as in a shell, also if the tests ignore it
        "from pulsar_advisor.tables import session\n"
        "launch = session.launch_gateway\n"
        "def launched(*given):\n"
        f"    threading.Timer({after_s}, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "    return launch(*given)\n"
        "session.launch_gateway = launched\n"
        "try:\n"
        "    session.spark_session('local[1]', 'test')\n"
        "    signal.pause()\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
    )
    # A Java that is left keeps its output open, and is waited for.
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=300)
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


def test_a_session_leaves_what_ctrl_c_does_to_the_command_that_has_set_it(spark: SparkSession) -> None:
    def end_after_the_steps_in_flight(*_: object) -> None: ...

    before = signal.signal(signal.SIGINT, end_after_the_steps_in_flight)
    try:
        assert spark_session("local[2]", "tests") is spark
        assert signal.getsignal(signal.SIGINT) is end_after_the_steps_in_flight
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_file_whose_name_is_not_ascii_is_found_under_the_locale_c(tmp_path: Path) -> None:
    (tmp_path / "ü").write_text("a line\n", encoding="utf-8")
    script = (
        "import sys\n"
        "from pulsar_advisor.tables.session import spark_session\n"
        "print(spark_session('local[1]', 'test').read.text(sys.argv[1]).count())\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "ü")]
    done = subprocess.run(
        command, env={**os.environ, "LC_ALL": "C"}, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.stdout == "1\n", done.stderr


def test_files_are_numbered_in_ascii_digits_whatever_those_of_the_locale(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "from pulsar_advisor.tables.session import spark_session\n"
        "spark_session('local[1]', 'test').range(1).write.parquet(sys.argv[1])\n"
    )
    folder = tmp_path / "table"
    environment = {**os.environ, "JAVA_TOOL_OPTIONS": "-Duser.language=ar -Duser.country=EG"}
    subprocess.run([sys.executable, "-c", script, str(folder)], env=environment, check=True, timeout=300)
    assert [file.name.partition("-")[2][:5] for file in folder.glob("*.parquet")] == ["00000"]
