"""Builds the product's connection options from an Airflow connection of type `pulsar_admin`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook

if TYPE_CHECKING:
    from pulsar_advisor.admin.options import CaptureOptions


class PulsarAdminHook(BaseHook):  # type: ignore[misc]
    """The admin API (and the ZooKeeper, if there is one) of a Pulsar cluster.

    :param pulsar_conn_id: connection of type `pulsar_admin`
    """

    conn_name_attr = "pulsar_conn_id"
    default_conn_name = "pulsar_default"
    conn_type = "pulsar_admin"
    hook_name = "Apache Pulsar admin"

    def __init__(self, pulsar_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.pulsar_conn_id = pulsar_conn_id

    def options(self) -> CaptureOptions:
        """The connection in the product's own form. Raises `UsageError` naming the field that can't be used."""
        from pydantic import SecretStr

        from pulsar_advisor.admin.options import capture_options

        connection = self.get_connection(self.pulsar_conn_id)
        extra = connection.extra_dejson
        urls = [url.strip() for url in (extra.get("admin_urls") or "").split(",") if url.strip()]
        admin: dict[str, Any] = {
            name: extra.get(name) for name in ("tls_ca_file", "tls_cert_file", "tls_key_file", "tls_verify_hostname")
        }
        if connection.login:
            admin |= {"basic_user": connection.login, "basic_password": SecretStr(connection.password or "")}
        elif connection.password:
            admin["token"] = SecretStr(connection.password)
        return capture_options(
            admin={**admin, "admin_urls": urls},
            zookeeper=extra.get("zookeeper") or None,
            service_url=extra.get("service_url") or None,
        )

    def test_connection(self) -> tuple[bool, str]:
        """Whether the admin API grants access, and which cluster answers."""
        from pulsar_advisor.admin.read_client import ReadClient
        from pulsar_advisor.admin.transport import AdminTransport
        from pulsar_advisor.capture.session import identify
        from pulsar_advisor.model.errors import AdvisorError

        try:
            with AdminTransport(self.options().required_admin) as transport:
                found = identify(ReadClient(transport))
        except AdvisorError as error:
            return False, str(error)
        return True, f"cluster '{found.cluster_name}', {len(found.brokers)} active brokers, leader {found.leader}"
