"""ZooKeeper as a metadata store: its address, and a session with it."""

from __future__ import annotations

import logging
import re
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from threading import Thread
from typing import Any, ClassVar, Self

from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError, NoNodeError
from kazoo.handlers.threading import SequentialThreadingHandler
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from pulsar_advisor.admin.metadata_store import Node, in_batches
from pulsar_advisor.admin.secret import Given, Secret, UserPath, require_tls_files, secret_line
from pulsar_advisor.model.errors import ClusterUnreachable

_HOST = r"(\[[0-9a-fA-F:]+\]|[\w.-]+)(:\d+)?"
_HOSTS = re.compile(rf"{_HOST}(,{_HOST})*(/\S*)?")

# kazoo logs every failed connection attempt as a warning; our own error covers it.
_silent = logging.getLogger(f"{__name__}.kazoo")
_silent.addHandler(logging.NullHandler())
_silent.propagate = False


class _Threads(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo has no types
    """kazoo's threads. One that an answer ends has nothing to print: whoever waits for the answer says so."""

    def __init__(self, connect_timeout_s: float) -> None:
        """The limit is for one server: kazoo would give the first one all the time that the session has."""
        super().__init__()
        self._connect_timeout_s = connect_timeout_s
        self._made: list[socket.socket] = []
        self._is_given_up = False

    def spawn(self, func: Callable[..., None], *args: Any, **kwargs: Any) -> Thread:
        """Start a thread."""

        def run() -> None:
            try:
                func(*args, **kwargs)
            except Exception:
                _silent.debug("a thread of kazoo has ended", exc_info=True)

        thread: Thread = super().spawn(run)
        return thread

    def create_connection(self, *args: Any, **kwargs: Any) -> socket.socket:
        """A connection, which is shut down at once if the session was given up while it was made."""
        made: socket.socket = super().create_connection(*args, **{**kwargs, "timeout": self._connect_timeout_s})
        self._made.append(made)
        if self._is_given_up:
            self.give_up()
        return made

    def give_up(self) -> None:
        """Shut down every connection, also one that is being made: kazoo reads for as long as an answer drips in."""
        self._is_given_up = True
        for made in self._made:
            with suppress(OSError):
                made.shutdown(socket.SHUT_RDWR)


class ZooKeeperConnection(BaseModel):
    """Where the cluster's metadata store is, and how to authenticate to it; secrets as in `AdminConnection`."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)
    kind: ClassVar[str] = "ZooKeeper"

    hosts: str
    """`host:port[,host:port…][/chroot]`, the text of `metadataStoreUrl` without its `zk:`."""
    timeout_s: float = Field(default=15.0, gt=0)
    """For the session and for each read."""
    digest_user: Given | None = None
    """For ZooKeeper's `digest` scheme, if it protects the nodes."""
    digest_password: Secret | None = None
    digest_password_file: UserPath | None = None
    digest_password_env: Given | None = None
    tls: bool = False
    """Whether `hosts` names the servers' TLS ports."""
    tls_ca_file: UserPath | None = None
    """Certificates to trust in addition to the system's."""
    tls_cert_file: UserPath | None = None
    tls_key_file: UserPath | None = None
    tls_verify_hostname: bool = True

    @field_validator("hosts")
    @classmethod
    def _without_scheme(cls, hosts: str) -> str:
        hosts = hosts.removeprefix("zk:")
        if not _HOSTS.fullmatch(hosts):
            raise ValueError("not a ZooKeeper address; expected the form zk1:2181,zk2:2181/chroot")
        return hosts.removesuffix("/")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        passwords = (self.digest_password, self.digest_password_file, self.digest_password_env)
        if sum(password is not None for password in passwords) != (self.digest_user is not None):
            raise ValueError("digest_user requires exactly one of digest_password_file, digest_password_env")
        if (self.tls_cert_file is None) != (self.tls_key_file is None):
            raise ValueError("tls_cert_file and tls_key_file must be given together")
        if (self.tls_ca_file or self.tls_cert_file) and not self.tls:
            raise ValueError("certificates require tls = true")
        return self

    def client(self) -> KazooClient:
        """An unconnected client. Raises `UsageError` if the password or a file can't be read."""
        require_tls_files(self.tls_ca_file, self.tls_cert_file, self.tls_key_file)
        digest = []
        if self.digest_user is not None:
            password = secret_line(self.digest_password, self.digest_password_file, self.digest_password_env)
            digest = [("digest", f"{self.digest_user}:{password}")]
        return KazooClient(
            hosts=self.hosts,
            timeout=self.timeout_s,
            # Whichever are dead, the last has its turn, also of a single name's three addresses.
            handler=_Threads(self.timeout_s / (self.hosts.count(",") + 3)),
            read_only=True,
            logger=_silent,
            connection_retry=None,
            auth_data=digest,
            use_ssl=self.tls,
            ca=self.tls_ca_file and str(self.tls_ca_file),
            certfile=self.tls_cert_file and str(self.tls_cert_file),
            keyfile=self.tls_key_file and str(self.tls_key_file),
            check_hostname=self.tls and self.tls_verify_hostname,
        )

    @property
    def name(self) -> str:
        """The store as named in messages."""
        return f"{self.kind} {self.hosts}"

    @contextmanager
    def session(self) -> Iterator[ZooKeeperStore]:
        """See `StoreConnection`."""
        client = self.client()
        try:
            if not client.start_async().wait(self.timeout_s):
                what = f"no session within {self.timeout_s:g} s: check hosts, port and firewall"
                if self.tls:
                    what += ", that it is the secure port, and the certificates on both sides"
                raise ClusterUnreachable(f"{self.name}: {what}")
            yield ZooKeeperStore(client, self)
        finally:
            # kazoo waits for its thread.
            ending = Thread(target=_end, args=(client,), daemon=True)
            ending.start()
            ending.join(self.timeout_s)
            if ending.is_alive():
                client.handler.give_up()


def _end(client: KazooClient) -> None:
    client.stop()
    client.close()


class ZooKeeperStore:
    """A `MetadataStore` in one session of kazoo's client."""

    def __init__(self, client: KazooClient, connection: ZooKeeperConnection) -> None:
        self._get_children = client.get_children_async
        self._get = client.get_async
        self.kind = connection.kind
        self._connection = connection

    def children(self, paths: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
        """See `MetadataStore`."""
        for path, names in self._each(self._get_children, paths):
            yield path, sorted(names)

    def nodes(self, paths: Iterable[str]) -> Iterator[Node]:
        """See `MetadataStore`."""
        for path, (data, stat) in self._each(self._get, paths):
            yield Node(path, data, stat.ctime, stat.mtime, stat.version)

    def _each(self, read: Any, paths: Iterable[str]) -> Iterator[tuple[str, Any]]:
        """The result of a read for each path that exists, in order."""
        for some in in_batches(paths):
            calls = [(path, self._attempt(path, partial(read, path))) for path in some]
            for path, call in calls:
                try:
                    result = self._attempt(path, partial(call.get, timeout=self._connection.timeout_s))
                except NoNodeError:
                    continue
                yield path, result

    def _attempt(self, path: str, step: Callable[[], Any]) -> Any:
        """The result of one step of a read. Raises `NoNodeError`, `ClusterUnreachable`."""
        try:
            return step()
        except NoNodeError:
            raise
        except NoAuthError as error:
            todo = "use another digest_user" if self._connection.digest_user else "give a digest_user"
            raise ClusterUnreachable(f"{self._connection.name}: no permission to read {path}: {todo}") from error
        except Exception as error:  # answers are untrusted: kazoo raises whatever one does to its parser
            raise ClusterUnreachable(
                f"{self._connection.name}: reading {path} failed ({type(error).__name__}): try again"
            ) from error
