"""The package as Airflow sees it: a valid provider, a connection type with its form, a section of the configuration."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import airflow
import jsonschema
import pytest

from pulsar_advisor.model.errors import UsageError
from pulsar_advisor_airflow.configuration import OPTIONS, job, option, report_link
from pulsar_advisor_airflow.hooks.pulsar_admin import PulsarAdminHook
from pulsar_advisor_airflow.provider import get_provider_info

AIRFLOW = Path(airflow.__path__[0])


def connect(monkeypatch: pytest.MonkeyPatch, **fields: Any) -> PulsarAdminHook:
    extra = {"admin_urls": "http://b1:8080, http://b2:8080", **fields.pop("extra", {})}
    document = {"conn_type": "pulsar_admin", "extra": extra, **fields}
    monkeypatch.setenv("AIRFLOW_CONN_PULSAR_DEFAULT", json.dumps(document))
    return PulsarAdminHook()


def test_the_provider_is_what_airflow_expects_of_one() -> None:
    jsonschema.validate(get_provider_info(), json.loads((AIRFLOW / "provider_info.schema.json").read_text()))


def test_airflow_offers_the_connection_type_with_its_fields() -> None:
    from airflow.providers_manager import ProvidersManager

    manager = ProvidersManager()
    hook = manager.hooks["pulsar_admin"]
    assert hook is not None
    assert hook.hook_name == "Apache Pulsar admin"
    widgets = manager.connection_form_widgets
    assert {"extra__pulsar_admin__admin_urls", "extra__pulsar_admin__zookeeper"} <= widgets.keys()


def test_each_option_has_a_default_that_the_environment_overrides(monkeypatch: pytest.MonkeyPatch) -> None:
    assert option("spark_conn_id") == OPTIONS["spark_conn_id"]["default"]
    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__SPARK_CONN_ID", "spark_batch")
    assert option("spark_conn_id") == "spark_batch"


@pytest.mark.parametrize("stage", ["normalize", "validate", "snapshot", "recommend"])
def test_each_spark_stage_has_its_file(stage: str) -> None:
    assert Path(job(stage)).is_file()


def test_the_link_to_a_report_keeps_the_path_airflow_is_served_under(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://tools.example/airflow/")
    assert report_link("20261121T083000Z") == "/airflow/pulsar-advisor/reports/20261121T083000Z"


def test_a_token_is_handed_over_and_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    hook = connect(
        monkeypatch, password="eyJ.a.b", extra={"zookeeper": "zk1:2181/pulsar", "service_url": "pulsar://b:1"}
    )
    before = dict(os.environ)
    options = hook.options()
    assert options.admin.admin_urls == ("http://b1:8080", "http://b2:8080")
    assert options.admin.authorization() == "Bearer eyJ.a.b"
    assert options.zookeeper is not None
    assert options.zookeeper.hosts == "zk1:2181/pulsar"
    assert options.service_url == "pulsar://b:1"
    assert "eyJ.a.b" not in repr(options)
    assert dict(os.environ) == before
    assert "eyJ.a.b" not in {value for name, value in os.environ.items() if not name.startswith("AIRFLOW_CONN_")}


def test_a_user_and_a_password_are_basic_authentication(monkeypatch: pytest.MonkeyPatch) -> None:
    options = connect(monkeypatch, login="ann", password="secret").options()
    assert options.admin.authorization() == "Basic YW5uOnNlY3JldA=="


def test_without_a_secret_none_is_sent_and_zookeeper_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    options = connect(monkeypatch).options()
    assert options.admin.authorization() is None
    assert options.zookeeper is None


def test_tls_files_and_the_host_name_check_reach_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    extra = {
        "tls_ca_file": "/ca.pem",
        "tls_cert_file": "/c.pem",
        "tls_key_file": "/k.pem",
        "tls_verify_hostname": False,
    }
    options = connect(monkeypatch, extra=extra).options()
    assert options.admin.tls_ca_file == Path("/ca.pem")
    assert (options.admin.tls_cert_file, options.admin.tls_key_file) == (Path("/c.pem"), Path("/k.pem"))
    assert options.admin.tls_verify_hostname is False


def test_a_connection_without_an_admin_url_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="no admin URL"):
        connect(monkeypatch, extra={"admin_urls": ""}).options()


def test_testing_a_connection_to_nobody_tells_why(monkeypatch: pytest.MonkeyPatch) -> None:
    works, message = connect(monkeypatch, extra={"admin_urls": "http://127.0.0.1:1"}).test_connection()
    assert not works
    assert "connection refused" in message
