"""Builds the product's options for a metadata store from an Airflow connection: ZooKeeper or Oxia."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from airflow.sdk import BaseHook
from pydantic import SecretStr

from pulsar_advisor.model.errors import AdvisorError
from pulsar_advisor.model.text.reader import read_by
from pulsar_advisor.model.text.some_of import count
from pulsar_advisor_airflow.hooks.connection_fields import connection_and_extra, plain_fields
from pulsar_advisor_airflow.reader import IN_AIRFLOW

if TYPE_CHECKING:
    from pulsar_advisor.admin.metadata_store import StoreConnection
    from pulsar_advisor.admin.profiles import Fields

ZOOKEEPER_FIELDS: Final = ("tls", "tls_ca_file", "tls_cert_file", "tls_key_file", "tls_verify_hostname")
"""Fields of the form that `ZooKeeperConnection` has by the same name."""

OXIA_FIELDS: Final = ("token_file", "tls", "tls_ca_file", "tls_cert_file", "tls_key_file")
"""Fields of the form that `OxiaConnection` has by the same name."""


class _MetadataStoreHook(BaseHook):  # type: ignore[misc]
    option: str
    """The option of a capture that takes these fields."""

    def fields(self) -> Fields:
        """The connection as fields of that option, not yet checked."""
        raise NotImplementedError

    def options(self) -> StoreConnection:
        """The connection in the product's own form. Raises `UsageError` naming the field that can't be used."""
        from pulsar_advisor.admin.options import capture_options

        given: dict[str, Any] = {self.option: self.fields()}
        store = capture_options(**given).metadata_store
        assert store is not None
        return store

    def test_connection(self) -> tuple[bool, str]:
        """Whether Pulsar's metadata can be read, and how many brokers are registered."""
        from pulsar_advisor.admin.metadata_store import connected

        try:
            with read_by(IN_AIRFLOW), connected(self.options()) as reader:
                brokers = reader.active_brokers()
        except AdvisorError as error:
            return False, str(error)
        return True, count(len(brokers), "registered broker")


class PulsarZooKeeperHook(_MetadataStoreHook):
    """The ZooKeeper in which a Pulsar cluster keeps its metadata. Read-only.

    :param zookeeper_conn_id: connection of type `pulsar_zookeeper`
    """

    conn_name_attr = "zookeeper_conn_id"
    default_conn_name = "pulsar_zookeeper_default"
    conn_type = "pulsar_zookeeper"
    option = "zookeeper"
    hook_name = "Apache Pulsar ZooKeeper"

    def __init__(self, zookeeper_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.zookeeper_conn_id = zookeeper_conn_id

    def fields(self) -> Fields:
        """The connection as fields of `ZooKeeperConnection`, not yet checked."""
        connection, extra = connection_and_extra(self.zookeeper_conn_id, self.conn_type)
        fields = {"hosts": extra.get("hosts") or "", **plain_fields(extra, ZOOKEEPER_FIELDS)}
        if connection.login:
            fields |= {"digest_user": connection.login, "digest_password": SecretStr(connection.password or "")}
        return fields


class PulsarOxiaHook(_MetadataStoreHook):
    """The Oxia in which a Pulsar cluster keeps its metadata. Read-only.

    :param oxia_conn_id: connection of type `pulsar_oxia`
    """

    conn_name_attr = "oxia_conn_id"
    default_conn_name = "pulsar_oxia_default"
    conn_type = "pulsar_oxia"
    option = "oxia"
    hook_name = "Apache Pulsar Oxia"

    def __init__(self, oxia_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.oxia_conn_id = oxia_conn_id

    def fields(self) -> Fields:
        """The connection as fields of `OxiaConnection`, not yet checked."""
        connection, extra = connection_and_extra(self.oxia_conn_id, self.conn_type)
        fields = {"url": extra.get("url") or "", **plain_fields(extra, OXIA_FIELDS)}
        return fields | ({"token": SecretStr(connection.password)} if connection.password else {})


def is_oxia(conn_id: str) -> bool:
    """Whether a connection to a metadata store is of the type `pulsar_oxia`."""
    return bool(connection_and_extra(conn_id, PulsarZooKeeperHook.conn_type)[0].conn_type == PulsarOxiaHook.conn_type)
