"""Oxia as a metadata store: its address, and a session with it.

Source: Pulsar `OxiaMetadataStoreProvider`, Oxia's Java client 0.9.5 (`TokenAuthentication`), both of 5.0.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar, Final, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from pulsar_advisor.admin.metadata_store import MetadataStore
from pulsar_advisor.admin.secret import Given, Secret, UserPath, require_tls_files, secret_line

_ADDRESS: Final = r"(?:\[(?P<ipv6>[0-9a-fA-F:]{2,45})\]|(?P<host>[\w.-]{1,253})):(?P<port>[0-9]{1,5})"
_URL: Final = re.compile(rf"oxia://(?P<address>{_ADDRESS})(/(?P<namespace>[\w.-]+))?/?", re.ASCII)


def grpc_target(address: str | bytes) -> str | None:
    """The gRPC target for a server's `host:port`; None if the text isn't one.

    gRPC would take `unix:1` for a socket file and `dns:1` for a host named 1, so the target names the kind of address.
    """
    match = re.fullmatch(_ADDRESS, address, re.ASCII) if isinstance(address, str) else None
    if match is None or not 1 <= int(match["port"]) <= 65_535:
        return None
    return f"ipv6:[{match['ipv6']}]:{match['port']}" if match["ipv6"] else f"dns:///{match[0]}"


class OxiaConnection(BaseModel):
    """Where the cluster's metadata store is, and how to authenticate to it; secrets as in `AdminConnection`."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)
    kind: ClassVar[str] = "Oxia"

    url: str
    """`oxia://host:port[/namespace]`, the text of `metadataStoreUrl`."""
    timeout_s: float = Field(default=15.0, gt=0)
    """For the first answer and for each read."""
    token: Secret | None = None
    token_file: UserPath | None = None
    token_env: Given | None = None
    tls: bool = False
    tls_ca_file: UserPath | None = None
    """Certificates to trust instead of gRPC's own."""
    tls_cert_file: UserPath | None = None
    tls_key_file: UserPath | None = None

    @field_validator("url")
    @classmethod
    def _is_of_the_form(cls, url: str) -> str:
        match = _URL.fullmatch(url)
        if match is None or grpc_target(match["address"]) is None:
            raise ValueError("not the address of an Oxia store; expected the form oxia://host:6648/namespace")
        return url

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if sum(token is not None for token in (self.token, self.token_file, self.token_env)) > 1:
            raise ValueError("give one of token_file, token_env")
        if (self.tls_cert_file is None) != (self.tls_key_file is None):
            raise ValueError("tls_cert_file and tls_key_file must be given together")
        if (self.tls_ca_file or self.tls_cert_file) and not self.tls:
            raise ValueError("certificates require tls = true")
        return self

    @property
    def address(self) -> str:
        """`host:port` of any server."""
        return self._part("address")

    @property
    def namespace(self) -> str:
        """The namespace of the records, as Pulsar takes it from the address."""
        return self._part("namespace") or "default"

    def has_namespace_of(self, url: str) -> bool:
        """Whether a `metadataStoreUrl` names the same namespace; every server of a store knows all of them."""
        match = _URL.fullmatch(url)
        return match is not None and (match["namespace"] or "default") == self.namespace

    def _part(self, name: str) -> str:
        match = _URL.fullmatch(self.url)
        assert match is not None
        return match[name] or ""

    @property
    def name(self) -> str:
        """The store as named in messages."""
        return f"{self.kind} {self.address}/{self.namespace}"

    @contextmanager
    def session(self) -> Iterator[MetadataStore]:
        """See `StoreConnection`."""
        require_tls_files(self.tls_ca_file, self.tls_cert_file, self.tls_key_file)
        authorization: tuple[tuple[str, str], ...] = ()
        if self.token is not None or self.token_file is not None or self.token_env is not None:
            authorization = (("authorization", f"Bearer {secret_line(self.token, self.token_file, self.token_env)}"),)
        # gRPC and the messages take a while to load, which only a cluster with Oxia needs.
        from pulsar_advisor.admin.oxia_store import OxiaStore

        store = OxiaStore(self, authorization)
        try:
            store.look_around()
            yield store
        finally:
            store.close()
