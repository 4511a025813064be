"""The line with its root in an object store: a local S3 server, s3fs on Python's side, Hadoop's s3a on Spark's.

What the product doesn't need elsewhere is fetched: s3fs and moto into an environment of their own, which sees all other
packages, and Hadoop's S3 jars (642 MB) through Maven, once. Without either the test is skipped. Moto is a simulation;
where `minio` is on the PATH (a Go program, built from its source), the same runs on that store.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import sysconfig
import time
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.artifacts import archive
from harness.errors import LiveClusterUnavailable
from harness.ports import free_port

pytestmark = [pytest.mark.spark, pytest.mark.full]

PACKAGES = ("s3fs==2026.9.0", "moto[server]==5.2.5")
JARS = ("org.apache.hadoop:hadoop-aws:3.4.2", "software.amazon.awssdk:bundle:2.29.52")
"""Of the Hadoop release that Spark 4.1.3 carries."""
RECORDED = Path(__file__).parents[1] / "data" / "recorded" / "modular-4.0.8.tar"
SNAPSHOT = "20261121T112321Z"
PLACE = ("--root", "s3://advisor/root", "--cluster", "demo")
START_SECONDS = 60


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("python")
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    # Ours come first; the line that makes the editable package importable is in a .pth, which isn't read from there.
    (site / "others.pth").write_text(f"{sysconfig.get_path('purelib')}\n{Path(__file__).parents[2] / 'jobs'}\n")
    uv = Path(sys.executable).with_name("uv")
    done = subprocess.run(
        [uv, "pip", "install", "-q", "--python", folder / "bin" / "python", *PACKAGES],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"s3fs and moto can't be installed: {done.stderr.strip().splitlines()[-1]}")
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def jars() -> list[Path]:
    try:
        return [archive(f"{artifact}:jar") for artifact in JARS]
    except LiveClusterUnavailable as error:
        pytest.skip(str(error))


@dataclass(frozen=True)
class Shell:
    """The command line with an S3-compatible store started here."""

    python: Path
    environment: dict[str, str]

    def call(self, *words: str) -> str:
        command = [str(self.python), "-c", "from pulsar_advisor.cli import main; main()", *words, *PLACE]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module", params=["moto", "minio"])
def store(
    request: pytest.FixtureRequest, python: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    """The environment by which clients find the store."""
    if request.param == "minio" and shutil.which("minio") is None:
        pytest.skip("no minio on PATH")
    port = free_port()
    environment = {
        **os.environ,
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "anybody",
        "AWS_SECRET_ACCESS_KEY": "anything",
    }
    folder = tmp_path_factory.mktemp("store")
    servers = {
        "moto": [str(python), "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        "minio": ["minio", "server", "--address", f"127.0.0.1:{port}", str(folder / "data")],
    }
    secrets = {"MINIO_ROOT_USER": "anybody", "MINIO_ROOT_PASSWORD": "anything", "MINIO_BROWSER": "off"}
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(servers[request.param], stdout=log, stderr=log, env={**environment, **secrets}) as process,
    ):
        try:
            _wait_for(port, process)
            yield environment
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def shell(python: Path, jars: list[Path], store: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Shell:
    folder = tmp_path_factory.mktemp("spark")
    # As docs/spark.md says.
    settings = {
        "spark.jars": ",".join(map(str, jars)),
        "spark.hadoop.fs.s3a.endpoint": store["AWS_ENDPOINT_URL"],
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
    }
    (folder / "spark-defaults.conf").write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
    bucket = "import boto3; boto3.client('s3').create_bucket(Bucket='advisor')"
    subprocess.run([python, "-c", bucket], env=store, check=True)
    return Shell(python, {**store, "SPARK_CONF_DIR": str(folder), "PYSPARK_PYTHON": str(python)})


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        assert process.poll() is None
        assert time.monotonic() < deadline
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.2)
        else:
            return


def test_a_recorded_capture_goes_through_to_a_report(shell: Shell) -> None:
    assert shell.call("snapshots", "import", str(RECORDED)).split() == [SNAPSHOT]
    shell.call("normalize", "--master", "local[2]")
    shell.call("validate", "--master", "local[2]")
    one_of_each = ("--shedder", "ThresholdShedder", "--placement", "LeastLongTermMessageRate")
    shell.call("recommend", "--master", "local[2]", *one_of_each)
    shell.call("report")
    shown = json.loads(shell.call("snapshots", "show", "--json"))
    assert set(shown["stages"]) == {"normalized", "validated", "recommended", "reported"}
    assert shell.call("snapshots", "list").split() == [SNAPSHOT]


LOCKED = """
import boto3, botocore.exceptions, json
from pulsar_advisor.execution.ledger.chain import ChainHead
from pulsar_advisor.execution.ledger.heads import keep, keepers_of, kept

store = boto3.client("s3")
store.create_bucket(Bucket="heads", ObjectLockEnabledForBucket=True)
retention = {"DefaultRetention": {"Mode": "COMPLIANCE", "Days": 30}}
locked = {"ObjectLockEnabled": "Enabled", "Rule": retention}
store.put_object_lock_configuration(Bucket="heads", ObjectLockConfiguration=locked)
keepers = keepers_of("s3://heads/demo")
failures = [keep(head, keepers) for head in (ChainHead(3, "a" * 64), ChainHead(9, "b" * 64), ChainHead(9, "b" * 64))]
versions = store.list_object_versions(Bucket="heads")["Versions"]
refused = []
for version in versions:
    try:
        store.delete_object(Bucket="heads", Key=version["Key"], VersionId=version["VersionId"])
    except botocore.exceptions.ClientError as error:
        refused.append(error.response["Error"]["Code"])
print(json.dumps([failures, len(versions), refused, [head.event for head in kept(keepers)]]))
"""


def test_heads_in_a_bucket_with_a_retention_lock_stay_and_are_written_once(
    request: pytest.FixtureRequest, python: Path, store: dict[str, str]
) -> None:
    done = subprocess.run([python, "-c", LOCKED], env=store, capture_output=True, text=True, check=True)
    refusal = {"moto": "AccessDenied", "minio": "InvalidRequest"}[request.node.callspec.params["store"]]
    assert json.loads(done.stdout) == [[[], [], []], 2, [refusal] * 2, [3, 9]]
