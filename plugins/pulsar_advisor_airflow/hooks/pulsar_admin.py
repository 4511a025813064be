"""Builds the product's connection options from an Airflow connection of type `pulsar_admin`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from airflow.sdk import BaseHook
from pydantic import SecretStr

from pulsar_advisor.model.bounds import seconds
from pulsar_advisor.model.errors import AdvisorError
from pulsar_advisor.model.text.reader import read_by
from pulsar_advisor.model.text.some_of import count
from pulsar_advisor_airflow.hooks.connection_fields import connection_and_extra, filled, plain_fields, text_field
from pulsar_advisor_airflow.hooks.pulsar_metadata_store import PulsarOxiaHook, PulsarZooKeeperHook, is_oxia
from pulsar_advisor_airflow.reader import IN_AIRFLOW

if TYPE_CHECKING:
    from airflow.sdk import Connection

    from pulsar_advisor.admin.options import CaptureOptions
    from pulsar_advisor.admin.profiles import Fields
    from pulsar_advisor.admin.read_client import ReadClient

ADMIN_FIELDS: Final = ("token_file", "tls_ca_file", "tls_cert_file", "tls_key_file", "tls_verify_hostname")
"""Fields of the form that `AdminConnection` has by the same name."""

OAUTH2: Final = "oauth2_"
OAUTH2_FIELDS: Final = ("issuer_url", "audience", "scope", "tls_ca_file")
"""Fields of the form, after this prefix, that `ClientCredentials` has by the same name."""


class PulsarAdminHook(BaseHook):  # type: ignore[misc]
    """The admin API of a Pulsar cluster, and its metadata store if one is given.

    :param pulsar_conn_id: connection of type `pulsar_admin`
    :param zookeeper_conn_id: connection of type `pulsar_zookeeper` or `pulsar_oxia`, in place of the store that the
        other one names
    """

    conn_name_attr = "pulsar_conn_id"
    default_conn_name = "pulsar_default"
    conn_type = "pulsar_admin"
    hook_name = "Apache Pulsar admin"

    def __init__(self, pulsar_conn_id: str = default_conn_name, zookeeper_conn_id: str | None = None) -> None:
        super().__init__()
        self.pulsar_conn_id = pulsar_conn_id
        self.zookeeper_conn_id = zookeeper_conn_id

    def options(self) -> CaptureOptions:
        """The connection in the product's own form. Raises `UsageError` naming the field that can't be used."""
        from pulsar_advisor.admin.options import capture_options

        connection, extra = connection_and_extra(self.pulsar_conn_id, self.conn_type)
        urls = extra.get("admin_urls") or ()  # a list, as in a profile, will do
        if isinstance(urls, str):
            urls = [url.strip() for url in urls.split(",") if url.strip()]
        zookeeper: str | Fields | None = text_field(extra, "zookeeper")
        metadata_store, oxia = text_field(extra, "metadata_store"), None
        if self.zookeeper_conn_id:
            zookeeper = metadata_store = None
            if is_oxia(self.zookeeper_conn_id):
                oxia = PulsarOxiaHook(self.zookeeper_conn_id).fields()
            else:
                zookeeper = PulsarZooKeeperHook(self.zookeeper_conn_id).fields()
        return capture_options(
            admin={**plain_fields(extra, ADMIN_FIELDS), **_credentials(connection, extra), "admin_urls": urls},
            zookeeper=zookeeper,
            oxia=oxia,
            metadata_store=metadata_store,
            service_url=text_field(extra, "service_url"),
            listen_s=seconds(listen) if (listen := text_field(extra, "listen")) else None,
        )

    @contextmanager
    def get_conn(self) -> Iterator[ReadClient]:
        """A client of the admin API that can send nothing but GET, for the duration of the block."""
        from pulsar_advisor.admin.read_client import ReadClient
        from pulsar_advisor.admin.transport import AdminTransport

        with AdminTransport(self.options().required_admin) as transport:
            yield ReadClient(transport)

    def test_connection(self) -> tuple[bool, str]:
        """Whether the admin API grants access, and which cluster answers."""
        from pulsar_advisor.capture.session import identify

        try:
            with read_by(IN_AIRFLOW), self.get_conn() as client:
                found = identify(client)
        except AdvisorError as error:
            return False, str(error)
        brokers = count(len(found.brokers), "active broker")
        return True, f"cluster '{found.cluster_name}', {brokers}, leader {found.leader or 'unknown'}"


def _credentials(connection: Connection, extra: Fields) -> Fields:
    """What login and password contain: an OAuth2 client's id and secret, a user's name and password, or a token."""
    login, password = connection.login, connection.password
    oauth2 = {name: extra.get(f"{OAUTH2}{name}") for name in OAUTH2_FIELDS}
    if filled(oauth2["issuer_url"]):
        key = json.dumps({"client_id": login or "", "client_secret": password or ""})
        return {"oauth2": {**plain_fields(oauth2, OAUTH2_FIELDS), "key": SecretStr(key)}}
    if login:
        return {"basic_user": login, "basic_password": SecretStr(password or "")}
    return {"token": SecretStr(password)} if password else {}
