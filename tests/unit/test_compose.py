"""The compose file: valid, healthy, limited, free of secrets, on loopback only, and of the versions that are locked."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import ssl
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from harness.artifacts import DEFAULT_RELEASE
from pulsar_advisor_airflow.provider import get_provider_info

REPOSITORY = Path(__file__).parents[2]
COMPOSE = yaml.safe_load((REPOSITORY / "docker-compose.yaml").read_text())
SCHEMA = json.loads((REPOSITORY / "tests" / "data" / "compose" / "compose-spec.json").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
AIRFLOW_SERVICES = [name for name in SERVICES if re.match("airflow-(?!database)", name)]
ADVISOR_SERVICES = [*AIRFLOW_SERVICES, "spark-master", "spark-worker", "load"]
BROKERS = [name for name in SERVICES if name.startswith("broker-")]

ONE_SHOT = {
    dependency
    for service in SERVICES.values()
    for dependency, wanted in service.get("depends_on", {}).items()
    if wanted["condition"] == "service_completed_successfully"
}
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
DOCKERFILE = (REPOSITORY / "Dockerfile").read_text()
VARIABLE = re.compile(r"\$\{(\w+):-([^}]+)\}")
SECRET_NAME = re.compile(r"PASSWORD|SECRET|KEY|TOKEN|SQL_ALCHEMY_CONN|CREDENTIAL|LEDGER$", re.I)


def image(name: str) -> str:
    """The image of a service where no variable names another one."""
    return VARIABLE.sub(r"\2", SERVICES[name]["image"])


def test_it_is_valid_by_the_compose_specification() -> None:
    assert list(jsonschema.Draft7Validator(SCHEMA).iter_errors(COMPOSE)) == []


@pytest.mark.parametrize("name", SERVICES)
def test_every_image_has_a_version_and_can_be_replaced_by_one_with_a_digest(name: str) -> None:
    assert VARIABLE.fullmatch(SERVICES[name]["image"])
    assert re.fullmatch(r"[a-z/-]+:\d+(\.\d+)+", image(name))


def test_the_image_is_built_once_for_all_services() -> None:
    assert [name for name, service in SERVICES.items() if "build" in service] == ["airflow-init"]
    assert {image(name) for name in ADVISOR_SERVICES} == {f"{PROJECT['name']}:{PROJECT['version']}"}


def test_the_example_gives_every_variable_its_default() -> None:
    defaults = dict(VARIABLE.findall((REPOSITORY / "docker-compose.yaml").read_text()))
    lines = (REPOSITORY / ".env.example").read_text().splitlines()
    example = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    # Not the project's name, whose default is the folder's: a stack that exists would lose sight of its volumes.
    assert example == defaults


@pytest.mark.parametrize("name", sorted(SERVICES.keys() - ONE_SHOT))
def test_every_service_that_stays_up_says_whether_it_is_healthy(name: str) -> None:
    health = SERVICES[name]["healthcheck"]
    assert health["test"][0] in {"CMD", "CMD-SHELL"}
    assert {"interval", "timeout", "retries"} <= health.keys()


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_has_limits_and_no_privileges(name: str) -> None:
    service = SERVICES[name]
    assert {"cpus", "mem_limit", "pids_limit"} <= service.keys()
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["read_only"] is True


def test_only_who_starts_spark_processes_knows_their_secret() -> None:
    knows = {name for name, service in SERVICES.items() if "spark_secret" in service.get("secrets", [])}
    assert knows == {"airflow-worker", "spark-master", "spark-worker"}


def test_only_the_migration_and_the_database_know_the_owner_of_the_ledger() -> None:
    secrets = {"ledger_owner_password", "ledger_owner_url"}
    knows = {name for name, service in SERVICES.items() if secrets & set(service.get("secrets", []))}
    assert knows == {"airflow-init", "ledger-database"}


@pytest.mark.parametrize("name", sorted(ONE_SHOT))
def test_a_service_that_ends_is_not_started_again(name: str) -> None:
    assert SERVICES[name]["restart"] == "no"


@pytest.mark.parametrize("name", SERVICES)
def test_a_dependency_is_waited_for_until_it_is_ready(name: str) -> None:
    for dependency, wanted in SERVICES[name].get("depends_on", {}).items():
        ready = "service_completed_successfully" if dependency in ONE_SHOT else "service_healthy"
        assert wanted["condition"] == ready


@pytest.mark.parametrize("name", SERVICES)
def test_secrets_come_as_files(name: str) -> None:
    service = SERVICES[name]
    files = set()
    for variable, value in service.get("environment", {}).items():
        if SECRET_NAME.search(variable):
            named = re.fullmatch(r"(?:cat |file:)?/run/secrets/(\w+)", value)
            assert named, variable
            files.add(named[1])
    assert files <= set(service.get("secrets", []))


def test_make_writes_each_secret_once_and_for_its_owner_only(tmp_path: Path) -> None:
    shutil.copy(REPOSITORY / "Makefile", tmp_path)
    made: list[dict[str, str]] = []
    for _ in range(2):
        subprocess.run(["make", "secrets"], cwd=tmp_path, check=True, capture_output=True)
        made.append({file.name: file.read_text() for file in (tmp_path / "secrets").iterdir()})
    assert made[0] == made[1]
    assert made[0].keys() == COMPOSE["secrets"].keys()
    assert all(entry == {"file": f"./secrets/{name}"} for name, entry in COMPOSE["secrets"].items())
    assert (tmp_path / "secrets").stat().st_mode & 0o777 == 0o700
    values = {name: value for name, value in made[0].items() if "tls" not in name}
    assert len(set(values.values())) == len(values)
    assert not any(value.endswith("\n") for value in values.values())
    for name, user, database in (
        ("airflow_database", "airflow", "airflow"),
        ("ledger_database", "ledger", "ledger"),
        ("ledger_owner", "ledger_owner", "ledger"),
    ):
        url = values["ledger_url" if name == "ledger_database" else f"{name}_url"]
        assert url == f"postgresql+psycopg2://{user}:{values[f'{name}_password']}@{database}-database/{database}"


def test_make_leaves_a_password_empty_whose_user_is_not_to_come_back(tmp_path: Path) -> None:
    shutil.copy(REPOSITORY / "Makefile", tmp_path)
    emptied = tmp_path / "secrets" / "airflow_admin_password"
    emptied.parent.mkdir()
    emptied.touch()
    subprocess.run(["make", "secrets"], cwd=tmp_path, check=True, capture_output=True)
    assert emptied.read_text() == ""


def test_make_renews_a_certificate_that_was_deleted(tmp_path: Path) -> None:
    shutil.copy(REPOSITORY / "Makefile", tmp_path)
    secrets = tmp_path / "secrets"
    keys = []
    for _ in range(2):
        subprocess.run(["make", "secrets"], cwd=tmp_path, check=True, capture_output=True)
        certificate, key = secrets / "airflow_tls_certificate", secrets / "airflow_tls_key"
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(certificate, key)
        keys.append(key.read_text())
        certificate.unlink()
    assert keys[0] == keys[1]


def test_make_pins_the_images_of_others_by_the_digests_that_were_pulled(tmp_path: Path) -> None:
    for file in ("Makefile", ".env.example"):
        shutil.copy(REPOSITORY / file, tmp_path)
    docker = tmp_path / "docker"
    docker.write_text(
        '#!/bin/sh\n[ "$1" != image ] || echo "anywhere/${5%:*}@sha256:$(echo "$5" | sha256sum | cut -c -64)"\n'
    )
    docker.chmod(0o755)
    (tmp_path / ".env").write_text("AIRFLOW_PORT=9090\nPOSTGRES_IMAGE=postgres:16\n")
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    for _ in range(2):
        subprocess.run(["make", "pin"], cwd=tmp_path, check=True, capture_output=True, env=environment)
    lines = dict(line.split("=", 1) for line in (tmp_path / ".env").read_text().splitlines())
    assert lines.pop("AIRFLOW_PORT") == "9090"
    assert lines.keys() == {"BASE_IMAGE", "POSTGRES_IMAGE", "PULSAR_IMAGE"}
    assert all(re.fullmatch(r"[a-z/-]+:[a-z0-9.-]+@sha256:[0-9a-f]{64}", image) for image in lines.values())


def test_the_secrets_stay_out_of_version_control_and_of_the_image() -> None:
    assert {".env", "/secrets/"} <= set((REPOSITORY / ".gitignore").read_text().splitlines())
    ignored = (REPOSITORY / ".dockerignore").read_text().splitlines()
    assert "*" in ignored
    assert not any(line.startswith(("!.", "!secrets")) for line in ignored)


@pytest.mark.parametrize("name", SERVICES)
def test_ports_are_open_to_this_machine_only(name: str) -> None:
    assert all(port.startswith("127.0.0.1:") for port in SERVICES[name].get("ports", []))


def test_no_two_services_publish_the_same_port() -> None:
    published = [
        VARIABLE.sub(r"\2", port).split(":")[1] for each in SERVICES.values() for port in each.get("ports", [])
    ]
    assert sorted(published) == sorted(set(published))


def test_every_airflow_variable_is_an_option_of_the_locked_airflow() -> None:
    package = importlib.util.find_spec("airflow")
    assert package and package.origin
    options = yaml.safe_load(Path(package.origin).with_name("config_templates").joinpath("config.yml").read_text())
    options |= get_provider_info()["config"]
    # Of a provider that only the image has.
    options |= {"edge": {"options": {"api_enabled": {}, "api_url": {}}}}
    variables = {variable for name in AIRFLOW_SERVICES for variable in SERVICES[name]["environment"]}
    variables |= set(re.findall(r"\b(AIRFLOW__\w+)=", DOCKERFILE))
    for variable in variables:
        if match := re.fullmatch(r"AIRFLOW__([A-Z_]+?)__([A-Z_]+?)(_CMD)?", variable):
            option = options[match[1].lower()]["options"][match[2].lower()]
            assert not match[3] or option["sensitive"], f"{variable}: Airflow runs commands for sensitive options only"


def test_connections_are_in_the_database_where_the_ui_can_edit_them() -> None:
    assert not any("AIRFLOW_CONN" in name for service in SERVICES.values() for name in service.get("environment", {}))
    found = re.search(r"<<'JSON'\n(.*?)\nJSON\n", SERVICES["airflow-init"]["command"][-1], re.S)
    assert found
    connections = json.loads(found[1])
    assert connections["pulsar_default"]["conn_type"] == "pulsar_admin"
    urls = connections["pulsar_default"]["extra"]["admin_urls"].split(",")
    assert urls == [f"http://{broker}:8080" for broker in BROKERS]
    assert connections["spark_default"]["host"] == "spark://spark-master"


def test_an_emptied_password_makes_no_user(tmp_path: Path) -> None:
    (tmp_path / "airflow_admin_password").touch()
    (tmp_path / "airflow_operator_password").write_text("secret")
    for name in ("airflow", "pulsar-advisor"):
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\necho "$*" >>{tmp_path}/calls\n')
        program.chmod(0o755)
    script = SERVICES["airflow-init"]["command"][-1].replace("$$", "$").replace("/tmp/connections.json", "/dev/null")
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "AIRFLOW__PULSAR_ADVISOR__SPARK_POOL": "spark"}
    script = script.replace("/run/secrets", str(tmp_path))
    subprocess.run(["bash", "-euc", script], check=True, stdin=subprocess.DEVNULL, env=environment)
    assert re.findall("users create --username (.+?) ", (tmp_path / "calls").read_text()) == ["operator"]


def test_tasks_and_spark_drivers_run_outside_the_scheduler() -> None:
    assert SERVICES["airflow-scheduler"]["environment"]["AIRFLOW__CORE__EXECUTOR"].endswith(".EdgeExecutor")
    assert SERVICES["airflow-worker"]["command"][:3] == ["airflow", "edge", "worker"]


def test_the_image_has_a_python_that_the_project_supports() -> None:
    # Debian bookworm has Python 3.11.
    assert "ARG BASE_IMAGE=debian:bookworm-slim\n" in DOCKERFILE
    assert PROJECT["requires-python"] == ">=3.11,<3.14"


def test_the_image_holds_locked_packages_only_and_does_not_run_as_root() -> None:
    installs = re.findall(r"pip install (.*?)(?= && |\n\n|\Z)", DOCKERFILE.replace("\\\n", ""), re.S)
    assert len(installs) == 3
    assert all("--require-hashes" in each or "--no-deps" in each for each in installs)
    assert all("--no-build-isolation" in each for each in installs[1:])
    assert re.findall(r"^USER (.+)$", DOCKERFILE, re.M)[-1] == "50000:0"


def test_airflow_and_the_spark_workers_see_the_root_at_the_same_path() -> None:
    users = {
        name
        for name, service in SERVICES.items()
        if "advisor-root:/var/lib/pulsar-advisor" in service.get("volumes", [])
    }
    assert users == {*AIRFLOW_SERVICES, "spark-worker"}


def test_there_are_two_spark_workers() -> None:
    assert SERVICES["spark-worker"]["scale"] == 2


def test_what_keeps_state_has_a_volume() -> None:
    kept = {volume.partition(":")[0] for service in SERVICES.values() for volume in service.get("volumes", [])}
    # What begins with a slash is written to, and not kept.
    assert COMPOSE["volumes"].keys() == {name for name in kept if not name.startswith((".", "/"))}
    assert {"airflow-database", "ledger-database", "zookeeper-data", "bookie-data", "advisor-root"} <= kept


def test_sparks_secret_is_copied_into_memory_only() -> None:
    """A volume without a name, such as the one at /tmp, outlives `docker compose down`."""
    (folder,) = re.findall(r"export SPARK_CONF_DIR=(/\S+)/", DOCKERFILE)
    knowing = [service for service in SERVICES.values() if "spark_secret" in service.get("secrets", [])]
    assert len(knowing) == 3
    assert all([mount.partition(":")[0] for mount in service["tmpfs"]] == [folder] for service in knowing)


def test_pulsar_is_the_release_that_the_live_tests_run() -> None:
    pulsar = {name: service for name, service in SERVICES.items() if service.get("profiles") == ["pulsar"]}
    assert pulsar.keys() == {"zookeeper", "pulsar-init", "bookie", "load", *BROKERS}
    assert {image(name) for name in pulsar.keys() - {"load"}} == {f"apachepulsar/pulsar:{DEFAULT_RELEASE}"}


def test_there_are_three_brokers_each_reachable_by_its_own_name() -> None:
    assert len(BROKERS) == 3
    assert all(SERVICES[name]["environment"]["advertisedAddress"] == name for name in BROKERS)


def test_airflow_starts_without_a_profile() -> None:
    for name in (*AIRFLOW_SERVICES, "spark-master", "spark-worker"):
        assert all("profiles" not in SERVICES[dependency] for dependency in SERVICES[name].get("depends_on", {}))
