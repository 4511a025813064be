"""The Helm values and what they need: what they name exists in the product, and agrees with the rest of it."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import yaml

from kubernetes_files import BINDING, CLAIM, IMAGE, REPOSITORY, ROLE, VALUES, VALUES_FILE, mounted_claims, spark_files
from pulsar_advisor_airflow.configuration import OPTIONS, SECTION

COMPOSE = yaml.safe_load((REPOSITORY / "docker-compose.yaml").read_text())
PAGE = (REPOSITORY / "docs/kubernetes.md").read_text()
WORKERS = VALUES["workers"]["kubernetes"]
SETTINGS = spark_files()["spark-defaults.conf"]
EXECUTOR = yaml.safe_load(spark_files()["executor.yaml"])["spec"]

TAKEN_BY_THE_CHART = {
    "fernetKeySecretName": "fernet-key",
    "apiSecretKeySecretName": "api-secret-key",
    "jwtSecretName": "jwt-secret",
    "metadataSecretName": "connection",
}


def test_it_is_the_image_and_the_airflow_of_the_compose_file() -> None:
    assert IMAGE.rpartition("/")[2] in COMPOSE["x-advisor"]["image"]
    assert f"\napache-airflow=={VALUES['airflowVersion']} " in (REPOSITORY / "requirements.txt").read_text()


def test_users_have_passwords_and_roles_whatever_the_chart_defaults_to() -> None:
    assert "airflow users create" in PAGE
    environment = COMPOSE["x-airflow"]["environment"]
    assert VALUES["config"]["core"]["auth_manager"] == environment["AIRFLOW__CORE__AUTH_MANAGER"]


def test_the_image_holds_what_the_executor_and_sparks_connection_need() -> None:
    assert VALUES["executor"] == "KubernetesExecutor"
    assert "\napache-airflow-providers-cncf-kubernetes==" in (REPOSITORY / "requirements-image.txt").read_text()


def test_every_variable_is_one_that_the_product_reads() -> None:
    names = {each["envName"] for each in VALUES["secret"]} | {each["name"] for each in WORKERS["env"]}
    known = {f"AIRFLOW__{SECTION}__{option}".upper() for option in OPTIONS}
    known |= {f"AIRFLOW_CONN_{option['default']}".upper() for name, option in OPTIONS.items() if "conn_id" in name}
    assert names <= known
    referred = set(re.findall(r"\$\{env:(\w+)\}", SETTINGS))
    assert referred == {each["name"] for each in yaml.safe_load(VALUES["extraEnv"])}


def test_spark_is_submitted_to_kubernetes_with_the_driver_in_the_pod() -> None:
    connection = json.loads(WORKERS["env"][0]["value"])
    assert connection["conn_type"] == "spark"
    assert connection["host"].startswith("k8s://https://")
    assert connection["extra"] == {"deploy-mode": "client"}


def test_airflow_and_the_executors_see_the_root_at_the_same_path() -> None:
    everywhere = {CLAIM["metadata"]["name"]: OPTIONS["root"]["default"]}
    airflow = {"volumes": VALUES["volumes"], "containers": [{"volumeMounts": VALUES["volumeMounts"]}]}
    assert mounted_claims(airflow) == everywhere
    assert mounted_claims(EXECUTOR) == everywhere
    assert CLAIM["spec"]["accessModes"] == ["ReadWriteMany"]


def test_the_settings_of_spark_are_where_the_image_looks_for_them() -> None:
    [volume], [mount] = WORKERS["extraVolumes"], WORKERS["extraVolumeMounts"]
    assert volume["name"] == mount["name"]
    assert VALUES["extraConfigMaps"].keys() == {volume["configMap"]["name"]}
    dockerfile = (REPOSITORY / "Dockerfile").read_text()
    assert f"SPARK_CONF_DIR={mount['mountPath']} " in dockerfile
    assert f" {mount['mountPath']}/executor.yaml\n" in SETTINGS
    # They replace the image's.
    [settings] = re.findall(r"printf '%s\\n' (.*) > /etc/spark/spark-defaults\.conf", dockerfile)
    written = [line.split() for line in SETTINGS.splitlines()]
    assert all(setting.split() in written for setting in re.findall(r"'([^']+)'", settings))


def test_spark_derives_its_keys_as_spark_recommends_here_and_in_the_image() -> None:
    """Version 1, still Spark's default, encrypts with the bare secret of the key exchange."""
    recommended = r"\bspark\.network\.crypto\.authEngineVersion +2\b"
    assert re.search(recommended, SETTINGS)
    assert re.search(recommended, (REPOSITORY / "Dockerfile").read_text())


def test_the_role_is_that_of_the_pods_of_tasks() -> None:
    assert BINDING["roleRef"]["name"] == ROLE["metadata"]["name"]
    assert [(each["namespace"], each["name"]) for each in BINDING["subjects"]] == [("airflow", "airflow-worker")]
    assert "helm install airflow apache-airflow/airflow --version 1.21.0 --namespace airflow" in PAGE


def test_probes_ask_for_jobs_that_airflow_has() -> None:
    commands = [
        probe["command"]
        for part in ("scheduler", "dagProcessor", "triggerer")
        for name, probe in VALUES[part].items()
        if name.endswith("Probe")
    ]
    package = importlib.util.find_spec("airflow")
    assert package and package.origin
    source = Path(package.origin).with_name("cli").joinpath("cli_config.py").read_text()
    [choices] = re.findall(r"^ARG_JOB_TYPE_FILTER = Arg\(.*?choices=\(([^)]+)\)", source, re.M | re.S)
    assert len(commands) == 4
    for command in commands:
        assert command[:4] == ["airflow", "jobs", "check", "--job-type"]
        assert f'"{command[4]}"' in choices


def test_secrets_are_keys_of_one_secret_that_the_page_makes_from_the_files_of_make_secrets() -> None:
    made = dict(re.findall(r"--from-file=([\w-]+)=secrets/(\w+)", PAGE))
    named = VALUES | VALUES["data"]
    used = {key for name, key in TAKEN_BY_THE_CHART.items() if named[name] == "pulsar-advisor"}
    used |= {each["secretKey"] for each in VALUES["secret"] if each["secretName"] == "pulsar-advisor"}
    assert used == made.keys()
    assert set(made.values()) <= COMPOSE["secrets"].keys()
    assert "create secret generic pulsar-advisor --namespace airflow" in PAGE


def test_no_password_is_in_the_files_or_left_to_the_charts_defaults() -> None:
    assert not re.search(r"://[^/\s\"]+@", VALUES_FILE.read_text())
    assert not VALUES["createUserJob"]["enabled"]
    assert not VALUES["postgresql"]["enabled"]


def test_pods_meet_the_pod_security_standard_restricted() -> None:
    pod, [container] = EXECUTOR["securityContext"], EXECUTOR["containers"]
    assert VALUES["securityContexts"]["pod"] == pod
    assert (pod["runAsNonRoot"], pod["seccompProfile"]) == (True, {"type": "RuntimeDefault"})
    assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    assert re.search(r"^USER [1-9][0-9]*:", (REPOSITORY / "Dockerfile").read_text(), re.M)  # a name proves nothing
