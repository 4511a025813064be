"""Declares this package to Airflow: a connection type with its form, and a configuration section."""

from __future__ import annotations

import importlib.metadata
from typing import Any, Final

from pulsar_advisor_airflow.configuration import OPTIONS, SECTION

_TEXT: Final = {"type": ["string", "null"]}

_CONNECTION_TYPE: Final[dict[str, Any]] = {
    "connection-type": "pulsar_admin",
    "hook-class-name": "pulsar_advisor_airflow.hooks.pulsar_admin.PulsarAdminHook",
    "hook-name": "Apache Pulsar admin",
    "ui-field-behaviour": {
        "hidden-fields": ["host", "port", "schema"],
        "relabeling": {"login": "User (basic authentication only)", "password": "Token, or password of the user"},
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
            "description": "host:port,host:port/chroot. Without it the leader's averages are not captured.",
            "schema": _TEXT,
        },
        "service_url": {
            "label": "Service URL",
            "description": "pulsar://broker:6650. Only for what Extensible brokers publish to their leader.",
            "schema": _TEXT,
        },
        "tls_ca_file": {"label": "TLS: CA file", "schema": _TEXT},
        "tls_cert_file": {"label": "TLS: certificate file", "schema": _TEXT},
        "tls_key_file": {"label": "TLS: key file", "schema": _TEXT},
        "tls_verify_hostname": {
            "label": "TLS: check the host name",
            "schema": {"type": ["boolean", "null"], "default": True},
        },
    },
}


def get_provider_info() -> dict[str, Any]:
    """The provider in the format of `airflow/provider_info.schema.json` of Airflow 3.3."""
    return {
        "package-name": "pulsar-rebalance-advisor",
        "name": "Pulsar Rebalance Advisor",
        "description": "Previews, explains and safely carries out load balancing of Apache Pulsar clusters.",
        "versions": [importlib.metadata.version("pulsar-rebalance-advisor")],
        "connection-types": [_CONNECTION_TYPE],
        "config": {
            SECTION: {
                "description": "The Pulsar Rebalance Advisor.",
                "options": {
                    name: {"type": "string", "version_added": None, **option} for name, option in OPTIONS.items()
                },
            }
        },
    }
