"""docs/kubernetes/values.yaml in Airflow's own chart: accepted by its schema, and what the product needs is there.

Needs `helm` on PATH, and AIRFLOW_CHART: the folder of a chart with its dependencies, as `helm pull --untar` writes it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubernetes_files import BINDING, CLAIM, IMAGE, NAMESPACE, VALUES, VALUES_FILE, mounted_claims, spark_files

pytestmark = pytest.mark.full

Manifests = dict[tuple[str, str], Any]


def helm(command: str, *options: str | Path) -> subprocess.CompletedProcess[str]:
    program, chart = shutil.which("helm"), os.environ.get("AIRFLOW_CHART")
    if program is None or chart is None:
        pytest.skip("no helm on PATH, or AIRFLOW_CHART doesn't name the folder of a chart")
    return subprocess.run([program, *command.split(), chart, *options], capture_output=True, text=True, check=False)


def rendered(*options: str) -> subprocess.CompletedProcess[str]:
    return helm("template airflow", "--namespace", NAMESPACE, "--values", VALUES_FILE, *options)


def unknown(values: Any, defaults: Any, path: str = "") -> Iterator[str]:
    """Paths of values that the defaults don't have; below an empty map, anything may be set."""
    if isinstance(values, dict) and isinstance(defaults, dict) and defaults:
        for key, value in values.items():
            if key in defaults:
                yield from unknown(value, defaults[key], f"{path}.{key}")
            else:
                yield f"{path}.{key}"


@pytest.fixture(scope="module")
def manifests() -> Manifests:
    done = rendered()
    assert done.returncode == 0, done.stderr
    return {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(done.stdout) if each}


@pytest.fixture(scope="module")
def pods(manifests: Manifests) -> dict[str, Any]:
    """Name -> spec of every pod that the chart or its scheduler starts."""
    task = yaml.safe_load(manifests["ConfigMap", "airflow-config"]["data"]["pod_template_file.yaml"])["spec"]
    templates = {name: each["spec"].get("template") for (_, name), each in manifests.items() if "spec" in each}
    return {"task": task} | {name: template["spec"] for name, template in templates.items() if template}


def test_a_value_of_another_kind_is_refused() -> None:
    done = rendered("--set-string=logs.persistence.enabled=no")
    assert done.returncode != 0
    assert "/logs/persistence/enabled" in done.stderr


def test_the_chart_has_every_value() -> None:
    assert list(unknown(VALUES, yaml.safe_load(helm("show values").stdout))) == []


def test_every_container_runs_the_image(pods: dict[str, Any]) -> None:
    images = {each["image"] for pod in pods.values() for each in pod["containers"] + (pod.get("initContainers") or [])}
    assert images == {IMAGE}


def test_every_pod_meets_the_pod_security_standard_restricted(pods: dict[str, Any]) -> None:
    """A namespace under it refuses the others, as Kubernetes 1.37 did with those of the chart's defaults."""
    for pod in pods.values():
        assert pod["securityContext"].items() >= VALUES["securityContexts"]["pod"].items()
        for container in pod["containers"] + (pod.get("initContainers") or []):
            assert container["securityContext"]["allowPrivilegeEscalation"] is False
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_every_secret_that_is_read_is_a_key_of_the_one_that_the_page_makes(pods: dict[str, Any]) -> None:
    referred = {
        variable["valueFrom"]["secretKeyRef"]["name"]
        for pod in pods.values()
        for container in pod["containers"]
        for variable in container["env"]
        if "secretKeyRef" in variable.get("valueFrom", {})
    }
    assert referred == {"pulsar-advisor"}


def test_a_task_has_sparks_settings_its_own_address_and_the_role(manifests: Manifests, pods: dict[str, Any]) -> None:
    task, name = pods["task"], "pulsar-advisor-spark"
    assert manifests["ConfigMap", name]["data"] == spark_files()
    assert {"name": "spark", "configMap": {"name": name}} in task["volumes"]
    variables = {each["name"]: each for each in task["containers"][0]["env"]}
    assert variables["POD_IP"]["valueFrom"] == {"fieldRef": {"fieldPath": "status.podIP"}}
    assert variables["POD_NAME"]["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.name"}}
    assert "AIRFLOW_CONN_SPARK_DEFAULT" in variables
    assert task["serviceAccountName"] in {each["name"] for each in BINDING["subjects"]}


@pytest.mark.parametrize("pod", ["task", "airflow-api-server", "airflow-scheduler", "airflow-triggerer"])
def test_who_reads_the_root_mounts_it(pods: dict[str, Any], pod: str) -> None:
    assert CLAIM["metadata"]["name"] in mounted_claims(pods[pod])
