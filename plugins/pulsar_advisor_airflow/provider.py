"""Declares this package to Airflow: connection types, extra links, a task decorator, and a configuration section."""

from __future__ import annotations

from importlib.metadata import version
from typing import Final

from pulsar_advisor.model.plans.canonical_json import Json
from pulsar_advisor.model.release import DISTRIBUTION
from pulsar_advisor_airflow.configuration import OPTIONS, SECTION

_TEXT: Final[Json] = {"type": ["string", "null"]}


def _file(label: str, description: str = "A path on the workers.") -> Json:
    return {"label": label, "description": description, "schema": _TEXT}


def _box(label: str, *, default: bool) -> Json:
    return {"label": label, "schema": {"type": ["boolean", "null"], "default": default}}


_TLS_FIELDS: Final[Json] = {
    "tls_ca_file": _file("TLS: CA file"),
    "tls_cert_file": _file("TLS: certificate file"),
    "tls_key_file": _file("TLS: key file"),
    "tls_verify_hostname": _box("TLS: check the host name", default=True),
}

_ADMIN: Final[Json] = {
    "connection-type": "pulsar_admin",
    "hook-class-name": "pulsar_advisor_airflow.hooks.pulsar_admin.PulsarAdminHook",
    "hook-name": "Apache Pulsar admin",
    "ui-field-behaviour": {
        "hidden-fields": ["host", "port", "schema"],
        "relabeling": {
            "login": "User (basic authentication), or client id (OAuth2)",
            "password": "Token, password of the user, or client secret",
        },
        "placeholders": {"password": "of a super-user: even reading requires one"},
    },
    "conn-fields": {
        "admin_urls": {
            "label": "Admin URLs",
            "description": "Of brokers, or of a proxy in front of them, separated by commas: http://broker-1:8080,http://…",
            "schema": {"type": "string"},
        },
        "zookeeper": {
            "label": "ZooKeeper hosts",
            "description": "host:port,host:port/chroot. For digest authentication or TLS, make a connection of type "
            "Apache Pulsar ZooKeeper instead. Without either, the leader's averages are not captured.",
            "schema": _TEXT,
        },
        "metadata_store": {
            "label": "Metadata store",
            "description": "In place of ZooKeeper hosts, the brokers' metadataStoreUrl: oxia://host:6648/namespace. "
            "For TLS or a token, make a connection of type Apache Pulsar Oxia instead.",
            "schema": _TEXT,
        },
        "service_url": {
            "label": "Service URL",
            "description": "pulsar://broker:6650. Only for what Extensible brokers publish to their leader.",
            "schema": _TEXT,
        },
        "listen": {
            "label": "Listen",
            "description": "How long to listen to Extensible brokers, 0s to 15m; 65s by default.",
            "schema": _TEXT,
        },
        "token_file": _file("Token file", "A path on the workers, in place of a token; read again for every call."),
        "oauth2_issuer_url": {
            "label": "OAuth2: issuer URL",
            "description": "If set, user and password are a client's id and secret.",
            "schema": _TEXT,
        },
        "oauth2_audience": {"label": "OAuth2: audience", "schema": _TEXT},
        "oauth2_scope": {"label": "OAuth2: scope", "schema": _TEXT},
        "oauth2_tls_ca_file": _file("OAuth2: CA file of the issuer"),
        **_TLS_FIELDS,
    },
}

_ZOOKEEPER: Final[Json] = {
    "connection-type": "pulsar_zookeeper",
    "hook-class-name": "pulsar_advisor_airflow.hooks.pulsar_metadata_store.PulsarZooKeeperHook",
    "hook-name": "Apache Pulsar ZooKeeper",
    "ui-field-behaviour": {
        "hidden-fields": ["host", "port", "schema"],
        "relabeling": {"login": "User (digest authentication)", "password": "Password of the user"},
        "placeholders": {"login": "empty if anyone may read"},
    },
    "conn-fields": {
        "hosts": {
            "label": "Hosts",
            "description": "host:port,host:port/chroot: the brokers' metadataStoreUrl without zk:",
            "schema": {"type": "string"},
        },
        "tls": _box("TLS: the hosts' ports use it", default=False),
        **_TLS_FIELDS,
    },
}

_OXIA: Final[Json] = {
    "connection-type": "pulsar_oxia",
    "hook-class-name": "pulsar_advisor_airflow.hooks.pulsar_metadata_store.PulsarOxiaHook",
    "hook-name": "Apache Pulsar Oxia",
    "ui-field-behaviour": {
        "hidden-fields": ["host", "port", "schema", "login"],
        "relabeling": {"password": "Token"},
        "placeholders": {"password": "empty if anyone may read"},
    },
    "conn-fields": {
        "url": {
            "label": "Address",
            "description": "oxia://host:6648/namespace: the brokers' metadataStoreUrl",
            "schema": {"type": "string"},
        },
        "token_file": _file("Token file", "A path on the workers, in place of a token; read again for every capture."),
        "tls": _box("TLS", default=False),
        **{name: field for name, field in _TLS_FIELDS.items() if name != "tls_verify_hostname"},
    },
}


def get_provider_info() -> Json:
    """The provider in the format of `airflow/provider_info.schema.json` of Airflow 3.3."""
    return {
        "package-name": DISTRIBUTION,
        "name": "Pulsar Rebalance Advisor",
        "description": "Previews, explains and safely carries out load balancing of Apache Pulsar clusters.",
        "versions": [version(DISTRIBUTION)],
        "integrations": [{"integration-name": "Apache Pulsar", "external-doc-url": "https://pulsar.apache.org/docs/"}],
        "connection-types": [_ADMIN, _ZOOKEEPER, _OXIA],
        "task-decorators": [
            {
                "name": "pulsar_stage",
                "class-name": "pulsar_advisor_airflow.decorators.spark_stage.spark_stage_task",
            }
        ],
        "extra-links": [
            f"pulsar_advisor_airflow.links.{link}" for link in ("ReportLink", "PlanLink", "RollLink", "LedgerLink")
        ],
        "config": {
            SECTION: {
                "description": "The Pulsar Rebalance Advisor.",
                "options": {
                    name: {"type": "string", "version_added": None, **option} for name, option in OPTIONS.items()
                },
            }
        },
    }
