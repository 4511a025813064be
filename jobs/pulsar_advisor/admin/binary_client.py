"""Pulsar's own client for the binary protocol, with the credentials and the trust of an admin connection."""

from __future__ import annotations

import os
import ssl
from base64 import b64decode
from typing import TYPE_CHECKING, Final

from pulsar_advisor.admin.transport import AdminTransport

if TYPE_CHECKING:
    import pulsar

OPERATION_LIMIT_S: Final = 10


def binary_client(transport: AdminTransport, service_url: str) -> pulsar.Client:
    """A client that logs nothing; `service_url` is `pulsar(+ssl)://host:port`."""
    import pulsar

    connection = transport.connection
    certificate, key = (file and str(file) for file in (connection.tls_cert_file, connection.tls_key_file))
    authentication: pulsar.Authentication | None = None
    kind, _, secret = (transport.authorization() or "").partition(" ")
    if kind == "Bearer":
        authentication = pulsar.AuthenticationToken(lambda: (transport.authorization() or "").partition(" ")[2])
    elif kind == "Basic":
        user, _, password = b64decode(secret).decode().partition(":")
        authentication = pulsar.AuthenticationBasic(user, password)
    elif certificate is not None:
        authentication = pulsar.AuthenticationTLS(certificate, key)
    return pulsar.Client(
        service_url,
        authentication=authentication,
        operation_timeout_seconds=OPERATION_LIMIT_S,
        connection_timeout_ms=int(connection.connect_timeout_s * 1000),
        # Without a file the client trusts certificates of its own, not the system's.
        tls_trust_certs_file_path=str(connection.tls_ca_file or ssl.get_default_verify_paths().cafile or "") or None,
        tls_certificate_file_path=certificate,
        tls_private_key_file_path=key,
        tls_validate_hostname=connection.tls_verify_hostname,
        logger=pulsar.FileLogger(pulsar.LoggerLevel.Error, os.devnull),
    )
