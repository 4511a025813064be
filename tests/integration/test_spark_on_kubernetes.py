"""What docs/kubernetes submits, as Spark carries it out: a driver, an API that records, executors as processes."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from typing import Any

import pytest

from harness.kubernetes_api import POD_IP, KubernetesApi, image_variables, kubernetes_api
from kubernetes_files import CLAIM, IMAGE, NAMESPACE, REPOSITORY, ROLE, mounted_claims, spark_files
from pulsar_advisor.storage.root import RESULT, Root, Snapshot
from snapshots import skewed_modular_cluster

pytestmark = [pytest.mark.spark, pytest.mark.full]

STAGES = ("snapshot", "recommend")
EXECUTORS = 2
DRIVER = "pulsar-snapshot-normalize-abc123"
"""The pod of the task, which Airflow names."""
LIMIT_S = 1800
"""Of a stage: a driver without executors waits for them."""


@dataclass(frozen=True)
class Submitted:
    """What came of the stages: the API's record, and the root."""

    api: KubernetesApi
    snapshot: Snapshot

    @property
    def executors(self) -> list[dict[str, Any]]:
        return [each for each in self.api.created if "-exec-" in each["metadata"]["name"] and "spec" in each]


@pytest.fixture(scope="module")
def submitted(tmp_path_factory: pytest.TempPathFactory) -> Submitted:
    """The stages with the words of Airflow's Spark hook and the files of the ConfigMap."""
    folder = tmp_path_factory.mktemp("kubernetes")
    pods, settings = folder / "pods", folder / "settings"
    for made in (pods, settings):
        made.mkdir()
    for name, text in spark_files().items():
        (settings / name).write_text(text.replace("/etc/spark/", f"{settings}/"))
    variables = {"SPARK_CONF_DIR": str(settings), "POD_IP": POD_IP, "POD_NAME": DRIVER}
    root = Root(str(folder / "root"), "test")
    snapshot = skewed_modular_cluster().write(root)
    with kubernetes_api(pods) as api:
        api.create(NAMESPACE, "pods", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": DRIVER}})
        for stage in STAGES:
            command = ["spark-submit", "--master", f"k8s://{api.url}"]
            command += ["--conf", "spark.log.level=WARN", "--name", f"pulsar-advisor {stage}"]
            command += ["--deploy-mode", "client", REPOSITORY / "jobs" / f"{stage}.py"]
            command += ["--root", root.url, "--cluster", "test", "--snapshot", snapshot.id]
            environment = image_variables() | variables
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, check=False, timeout=LIMIT_S
            )
            assert done.returncode == 0, done.stderr
    return Submitted(api, snapshot)


def test_the_stages_are_carried_out(submitted: Submitted) -> None:
    validation = json.loads((submitted.snapshot.folder("validation") / RESULT).read_text())
    assert validation["success"]
    assert (submitted.snapshot.folder("plans") / "recommendation.json").exists()


def test_executors_are_what_the_values_say(submitted: Submitted) -> None:
    assert len(submitted.executors) == EXECUTORS * len(STAGES)
    for executor in submitted.executors:
        [container] = executor["spec"]["containers"]
        assert container["image"] == IMAGE
        assert container["resources"]["limits"]["memory"] == "2048Mi"
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert CLAIM["metadata"]["name"] in mounted_claims(executor["spec"])
        assert executor["spec"]["automountServiceAccountToken"] is False
        assert executor["metadata"]["namespace"] == NAMESPACE


def test_executors_go_with_the_pod_of_the_task(submitted: Submitted) -> None:
    assert {each["metadata"]["ownerReferences"][0]["name"] for each in submitted.executors} == {DRIVER}
    assert [each["metadata"]["name"] for each in submitted.api.existing.values()] == [DRIVER]


def test_the_role_permits_what_a_driver_does(submitted: Submitted) -> None:
    permitted = {(verb, resource) for rule in ROLE["rules"] for resource in rule["resources"] for verb in rule["verbs"]}
    assert submitted.api.calls <= permitted
    # Spark deletes single pods only where an executor failed. By its audit log, the API server of Kubernetes 1.37 was
    # asked for this and the rest, and for nothing else.
    assert permitted - submitted.api.calls == {("delete", "pods")}
