"""The compose file: pinned, healthy, free of secrets, on loopback only, and of the versions that are locked."""

from __future__ import annotations

import importlib.util
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.artifacts import DEFAULT_RELEASE
from pulsar_advisor_airflow.provider import get_provider_info

REPOSITORY = Path(__file__).parents[2]
COMPOSE = yaml.safe_load((REPOSITORY / "docker-compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
AIRFLOW_SERVICES = [name for name in SERVICES if name.startswith("airflow-")]
BROKERS = [name for name in SERVICES if name.startswith("broker-")]

ONE_SHOT = {
    dependency
    for service in SERVICES.values()
    for dependency, wanted in service.get("depends_on", {}).items()
    if wanted["condition"] == "service_completed_successfully"
}
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
BASE_IMAGE = re.search(
    r"^FROM apache/airflow:slim-([\d.]+)-python([\d.]+)$", (REPOSITORY / "Dockerfile").read_text(), re.M
)
SECRET_NAME = re.compile(r"PASSWORD$|SECRET|KEY$|TOKEN|SQL_ALCHEMY_CONN|CREDENTIAL", re.I)


def locked(package: str) -> str:
    match = re.search(rf"^{re.escape(package)}==(\S+)", (REPOSITORY / "requirements.txt").read_text(), re.M)
    assert match, f"{package} is not in requirements.txt"
    return match[1]


@pytest.mark.parametrize("name", SERVICES)
def test_every_image_has_a_version_for_a_tag(name: str) -> None:
    assert re.fullmatch(r"[a-z/-]+:\d+(\.\d+)+", SERVICES[name]["image"])


@pytest.mark.parametrize("name", sorted(SERVICES.keys() - ONE_SHOT))
def test_every_service_that_stays_up_says_whether_it_is_healthy(name: str) -> None:
    health = SERVICES[name]["healthcheck"]
    assert health["test"][0] in {"CMD", "CMD-SHELL"}
    assert {"interval", "timeout", "retries"} <= health.keys()


@pytest.mark.parametrize("name", sorted(ONE_SHOT))
def test_a_service_that_ends_is_not_started_again(name: str) -> None:
    assert SERVICES[name]["restart"] == "no"


@pytest.mark.parametrize("name", SERVICES)
def test_a_dependency_is_waited_for_until_it_is_ready(name: str) -> None:
    for dependency, wanted in SERVICES[name].get("depends_on", {}).items():
        ready = "service_completed_successfully" if dependency in ONE_SHOT else "service_healthy"
        assert wanted["condition"] == ready


@pytest.mark.parametrize("name", SERVICES)
def test_no_secret_has_a_value_in_the_file(name: str) -> None:
    for variable, value in SERVICES[name].get("environment", {}).items():
        if SECRET_NAME.search(variable):
            assert "${" in value
            assert re.fullmatch(r"[^:@]*(://\w+:)?\$\{\w+:\?[^}]+\}(@[\w./-]+)?", value), variable


def test_the_example_names_every_secret_and_gives_none_a_value() -> None:
    wanted = set(re.findall(r"\$\{(\w+):\?", (REPOSITORY / "docker-compose.yaml").read_text()))
    lines = (REPOSITORY / ".env.example").read_text().splitlines()
    assert {line for line in lines if line and not line.startswith("#")} == {f"{name}=" for name in wanted}


def test_the_values_of_the_example_stay_out_of_version_control_and_of_the_image() -> None:
    assert ".env" in (REPOSITORY / ".gitignore").read_text().splitlines()
    ignored = (REPOSITORY / ".dockerignore").read_text().splitlines()
    assert "*" in ignored
    assert not any(line.startswith("!.") for line in ignored)


@pytest.mark.parametrize("name", SERVICES)
def test_ports_are_open_to_this_machine_only(name: str) -> None:
    assert all(port.startswith("127.0.0.1:") for port in SERVICES[name].get("ports", []))


def test_no_two_services_publish_the_same_port() -> None:
    published = [port.split(":")[1] for service in SERVICES.values() for port in service.get("ports", [])]
    assert sorted(published) == sorted(set(published))


def test_every_airflow_variable_is_an_option_of_the_locked_airflow() -> None:
    package = importlib.util.find_spec("airflow")
    assert package and package.origin
    options = yaml.safe_load(Path(package.origin).with_name("config_templates").joinpath("config.yml").read_text())
    options |= get_provider_info()["config"]
    variables = {variable for name in AIRFLOW_SERVICES for variable in SERVICES[name]["environment"]}
    variables |= set(re.findall(r"\b(AIRFLOW__\w+)=", (REPOSITORY / "Dockerfile").read_text()))
    for variable in variables:
        if match := re.fullmatch(r"AIRFLOW__([A-Z_]+?)__([A-Z_]+)", variable):
            assert match[2].lower() in options[match[1].lower()]["options"], variable


def test_airflow_is_connected_to_the_brokers_of_the_file() -> None:
    connection = json.loads(SERVICES["airflow-scheduler"]["environment"]["AIRFLOW_CONN_PULSAR_DEFAULT"])
    assert connection["conn_type"] == "pulsar_admin"
    assert connection["extra"]["admin_urls"].split(",") == [f"http://{broker}:8080" for broker in BROKERS]


def test_the_image_is_built_on_the_locked_airflow() -> None:
    assert BASE_IMAGE, "the Dockerfile does not start from apache/airflow:slim-<version>-python<version>"
    assert BASE_IMAGE[1] == locked("apache-airflow")


def test_the_image_has_a_python_that_the_project_supports() -> None:
    assert BASE_IMAGE, "the Dockerfile does not start from apache/airflow:slim-<version>-python<version>"
    assert PROJECT["requires-python"] == ">=3.11,<3.14"
    assert BASE_IMAGE[2] in {"3.11", "3.12", "3.13"}


def test_spark_has_the_image_of_airflow_and_so_the_locked_pyspark_and_the_same_python() -> None:
    images = {SERVICES[name]["image"] for name in (*AIRFLOW_SERVICES, "spark-master", "spark-worker")}
    assert images == {f"{PROJECT['name']}:{PROJECT['version']}"}
    assert "--require-hashes -r requirements.txt" in (REPOSITORY / "Dockerfile").read_text()


def test_airflow_and_the_spark_workers_see_the_root_at_the_same_path() -> None:
    users = {
        name
        for name, service in SERVICES.items()
        if "advisor-root:/var/lib/pulsar-advisor" in service.get("volumes", [])
    }
    assert users == {*AIRFLOW_SERVICES, "spark-worker"}


def test_pulsar_is_the_release_that_the_live_tests_run() -> None:
    pulsar = {name: service for name, service in SERVICES.items() if service.get("profiles") == ["pulsar"]}
    assert pulsar.keys() == {"zookeeper", "pulsar-init", "bookie", *BROKERS}
    assert {service["image"] for service in pulsar.values()} == {f"apachepulsar/pulsar:{DEFAULT_RELEASE}"}


def test_there_are_three_brokers_each_reachable_by_its_own_name() -> None:
    assert len(BROKERS) == 3
    assert all(SERVICES[name]["environment"]["advertisedAddress"] == name for name in BROKERS)


def test_airflow_starts_without_the_pulsar_profile() -> None:
    for name in (*AIRFLOW_SERVICES, "spark-master", "spark-worker"):
        assert all("profiles" not in SERVICES[dependency] for dependency in SERVICES[name].get("depends_on", {}))
