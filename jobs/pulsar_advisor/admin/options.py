"""Where a cluster is and how it is captured: from flags, or from a profile in a config file, or both."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Final, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    field_validator,
    model_validator,
)

from pulsar_advisor.admin.connection import AdminConnection
from pulsar_advisor.admin.metadata_store import StoreConnection
from pulsar_advisor.admin.oxia import OxiaConnection
from pulsar_advisor.admin.profiles import Fields, Profile
from pulsar_advisor.admin.zookeeper import ZooKeeperConnection
from pulsar_advisor.model.bounds import LISTEN, MAX_REQUESTS
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.model.text.problems import problems
from pulsar_advisor.model.text.reader import reader

_SERVICE_URL: Final = re.compile(r"pulsar(\+ssl)?://[^/@,\s]+(,[^/@,\s]+)*/?")


def _kind_of_store(fields: object) -> str:
    """Which of the two stores is meant: Oxia's has a `url`, ZooKeeper's has `hosts`."""
    if isinstance(fields, OxiaConnection) or (isinstance(fields, Mapping) and "url" in fields):
        return OxiaConnection.kind
    return ZooKeeperConnection.kind


Store = Annotated[
    Annotated[ZooKeeperConnection, Tag(ZooKeeperConnection.kind)] | Annotated[OxiaConnection, Tag(OxiaConnection.kind)],
    Discriminator(_kind_of_store),
]


class CaptureOptions(BaseModel):
    """What a capture needs to know."""

    # This model alone validates all its parts, so their own settings can't keep a secret out of a stack trace.
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    admin: AdminConnection | None = None
    """Without it there is no `fresh` view: no settings, and only the load that brokers published in ZooKeeper."""
    zookeeper: ZooKeeperConnection | None = None
    """Without a metadata store there are no node versions, no averages from the leader, and no transaction-internal
    topics."""
    oxia: OxiaConnection | None = None
    """The metadata store, in place of `zookeeper`."""
    configuration_store: Store | None = None
    """Where the cluster's configuration is kept, if elsewhere; read if no broker can be asked for it."""
    service_url: str | None = None
    """`pulsar(+ssl)://host:port[,host:port…]`: where Extensible brokers publish ownership and load."""
    listen_s: int = Field(default=65, ge=LISTEN.least, le=LISTEN.greatest)
    """How long Extensible brokers are given to publish their load; it ends once all have. They publish their top
    bundles after each statistics update, every 60 s by default."""
    concurrency: int = Field(default=16, ge=1, le=256)
    """Concurrent reads across all brokers; a single broker never gets more than one request at a time."""
    max_requests: int | None = Field(default=None, ge=MAX_REQUESTS.least, le=MAX_REQUESTS.greatest)
    """Total number of requests, including ZooKeeper reads, redirects and retries; after that nothing more is sent."""
    second_pass: bool = False
    """Whether brokers that bundles moved to or from are read again, after their next statistics update."""

    @model_validator(mode="after")
    def _has_a_way_in(self) -> Self:
        if self.admin is None and (self.metadata_store is None or self.service_url is not None):
            raise ValueError(_no_admin_url())
        if self.zookeeper is not None and self.oxia is not None:
            raise ValueError("give either ZooKeeper or Oxia, not both")
        if self.configuration_store is not None and self.metadata_store is None:
            raise ValueError("give the metadata store too: a configuration store alone is not read")
        return self

    @model_validator(mode="after")
    def _keeps_credentials_encrypted(self) -> Self:
        if self.admin is None or self.service_url is None or not self.admin.has_credentials:
            return self
        if self.admin.admin_urls[0].startswith("https://") and self.service_url.startswith("pulsar://"):
            raise ValueError(
                "service_url pulsar:// would send the credentials unencrypted, unlike the https admin URL: "
                "use the brokers' pulsar+ssl:// address"
            )
        return self

    @property
    def metadata_store(self) -> StoreConnection | None:
        """The cluster's metadata store, if it was given."""
        return self.zookeeper or self.oxia

    @property
    def without_metadata_store(self) -> CaptureOptions:
        """The same brokers, without their metadata store."""
        return self.model_copy(update={"zookeeper": None, "oxia": None, "configuration_store": None})

    @property
    def required_admin(self) -> AdminConnection:
        """The admin API, for operations that require it. Raises `UsageError` if none is configured."""
        if self.admin is None:
            raise UsageError(_no_admin_url())
        return self.admin

    @field_validator("service_url")
    @classmethod
    def _plain_service_url(cls, url: str | None) -> str | None:
        if url is not None and not _SERVICE_URL.fullmatch(url):
            raise ValueError("not a service URL; expected the form pulsar://broker:6650")
        return url


def capture_options(
    *,
    profile: Profile | None = None,
    admin: Fields | None = None,
    zookeeper: str | Fields | None = None,
    oxia: Fields | None = None,
    metadata_store: str | None = None,
    configuration_metadata_store: str | None = None,
    service_url: str | None = None,
    listen_s: int | None = None,
    max_requests: int | None = None,
    second_pass: bool | None = None,
) -> CaptureOptions:
    """Options from a profile, overridden by those given explicitly.

    `admin` holds fields of `AdminConnection`; None and empty values count as not given. An authentication method
    replaces the profile's. `zookeeper` is the hosts, or fields of `ZooKeeperConnection`; `oxia` has fields of
    `OxiaConnection`. `metadata_store` is `zk:HOSTS` or `oxia://HOST:PORT/NAMESPACE`, and replaces the profile's store
    if that is of the other kind; so does `configuration_metadata_store` for the configuration. Raises `UsageError`
    naming the field that can't be used.
    """
    MAX_REQUESTS.check(max_requests)
    LISTEN.check(listen_s)
    if sum(store is not None for store in (zookeeper, oxia, metadata_store)) > 1:
        raise UsageError("give a metadata store or ZooKeeper hosts, not both")
    fields = dict(profile.connection) if profile is not None else {}
    given = {name: value for name, value in (admin or {}).items() if value not in (None, (), [])}
    inherited = dict(_table(fields, "admin"))
    if given.keys() & _CREDENTIALS:
        inherited = {name: value for name, value in inherited.items() if name not in _CREDENTIALS}
    fields["admin"] = inherited | given
    store, given_there = ("zookeeper", zookeeper) if oxia is None else ("oxia", oxia)
    if metadata_store is not None:
        store, given_there = _store_of(metadata_store)
    if given_there is not None:
        given_there = {_ADDRESS_OF[store]: given_there} if isinstance(given_there, str) else given_there
        of_profile = _table(fields, store)
        fields = {name: value for name, value in fields.items() if name not in _ADDRESS_OF}
        fields[store] = {**of_profile, **given_there}
    if configuration_metadata_store is not None:
        store, there = _store_of(configuration_metadata_store)
        of_profile = _table(fields, "configuration_store")
        kept = of_profile if _ADDRESS_OF[store] in of_profile else {}
        fields["configuration_store"] = {**kept, _ADDRESS_OF[store]: there}
    fields |= {
        name: value
        for name, value in (
            ("service_url", service_url),
            ("listen_s", listen_s),
            ("max_requests", max_requests),
            ("second_pass", second_pass),
        )
        if value is not None
    }
    if not fields["admin"]:
        del fields["admin"]
    elif not fields["admin"].get("admin_urls"):
        raise UsageError(_no_admin_url())
    try:
        return CaptureOptions.model_validate(fields)
    except ValidationError as error:
        where = f"profile '{profile.name}': " if profile else ""
        raise UsageError(where + problems(error)[0]) from error


def _no_admin_url() -> str:
    return f"no admin URL: {reader().name_admin_url}"


_ADDRESS_OF: Final = {"zookeeper": "hosts", "oxia": "url"}
"""The options that are metadata stores, and the field of each that holds its address."""


def _table(fields: Fields, name: str) -> Fields:
    """A table of the profile; empty without one."""
    found = fields.get(name, {})
    if not isinstance(found, Mapping):
        raise UsageError(f"{name} in the profile is not a table: write {name} = {{ … }}, or a section for it")
    return found


def _store_of(url: str) -> tuple[str, str]:
    """The field of the options, and the address, for a text as in `metadataStoreUrl`."""
    if url.startswith("zk:"):
        return "zookeeper", url
    if url.startswith("oxia:"):
        return "oxia", url
    why = "Pulsar 5 has no etcd, and it can't be read here" if url.startswith("etcd:") else "not a metadata store"
    raise UsageError(f"metadata store: {why}; expected zk:host:2181[,host:2181][/chroot] or oxia://host:6648/namespace")


_CREDENTIALS: Final = frozenset(
    {
        *("token", "token_file", "token_env", "oauth2"),
        *("basic_user", "basic_password", "basic_password_file", "basic_password_env"),
    }
)
