"""Options that several verbs take: root and ledger, the connection, what to recommend, how carefully to act."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from pulsar_advisor.storage.root import Root

if TYPE_CHECKING:
    from pulsar_advisor.admin.options import CaptureOptions
    from pulsar_advisor.execution.ledger import Ledger
    from pulsar_advisor.stages.recommend import Request


Json = Annotated[bool, Parameter(name="--json", negative="", help="Print the result as JSON.")]


Master = Annotated[str, Parameter(help="Spark master.")]


Flag = Parameter(negative="")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a cluster's files are."""

    root: str
    """Where everything is kept: a path or an object-store URL."""
    cluster: str
    """Your name for the cluster; part of every path."""

    def open(self) -> Root:
        """The root."""
        return Root(self.root, self.cluster)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class LedgerPlace:
    """Where the ledger is."""

    ledger: str | None = None
    """Ledger database (SQLAlchemy URL, or env:NAME or file:PATH where one with a password is kept); by default SQLite
    beside a local root."""

    def url(self, root: Root) -> str:
        """As given, or beside the root."""
        from pulsar_advisor.execution.ledger import default_ledger_url
        from pulsar_advisor.execution.ledger_address import shown_in_process_list

        return shown_in_process_list(self.ledger) if self.ledger else default_ledger_url(root)

    def open(self, root: Root) -> Ledger:
        """The ledger, made if it isn't there."""
        from pulsar_advisor.execution.ledger import open_ledger

        return open_ledger(self.url(root))


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Connection:
    """How to reach a cluster: by flags, or by a profile of the config file, or both."""

    admin_url: tuple[str, ...] = ()
    """Admin REST address of a broker or of a proxy before them; repeatable, tried in turn."""
    zookeeper: str | None = None
    """ZooKeeper hosts: host:port,host:port[/chroot]."""
    service_url: str | None = None
    """Binary address, pulsar://broker:6650: reads what Extensible brokers tell their leader of ownership and load."""
    profile: str | None = None
    """Take the connection from this profile of the config file."""
    config: Path | None = None
    """Config file (TOML)."""
    token_file: Path | None = None
    """File that holds the token."""
    token_env: str | None = None
    """Name of the environment variable that holds the token."""
    tls_ca_file: Path | None = None
    """Certificates to trust instead of the system's."""
    tls_cert_file: Path | None = None
    """Our client certificate."""
    tls_key_file: Path | None = None
    """The key of our client certificate."""

    def options(self, **manners: Any) -> CaptureOptions:
        """The connection, checked."""
        from pulsar_advisor.admin.options import capture_options

        admin = asdict(self)
        admin["admin_urls"] = admin.pop("admin_url")
        places = {name: admin.pop(name) for name in ("zookeeper", "service_url", "profile", "config")}
        return capture_options(admin=admin, **places, **manners)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What to recommend, and within which limits."""

    shedder: str = "all"
    """A shedder by Pulsar's class name, 'configured' for the cluster's own, or 'all'."""
    placement: str = "all"
    """A placement strategy by Pulsar's class name, 'configured' for the cluster's own, or 'all'."""
    splits: bool = True
    """Whether to recommend bundle splits."""
    set: tuple[str, ...] = ()
    """What if this setting were so: KEY=VALUE, by Pulsar's key; repeatable."""
    view: Literal["judged", "fresh", "published"] = "judged"
    """Figures as the brokers have them now (fresh), or as the leader sees them in ZooKeeper (published); judged: those
    that were validated, fresh if any broker was asked."""
    history: int = 0
    """How many earlier snapshots the strategies learn from."""
    max_unloads: int | None = None
    """Plan at most so many unloads."""
    max_splits: int = 10
    """Plan at most so many splits."""
    seed: int = 0
    """Where Pulsar draws at random, draw by this."""
    as_: Annotated[str | None, Parameter(name="--as")] = None
    """Your name: it stands in the ledger as the proposer's."""

    def request(self) -> Request:
        """The wishes, checked."""
        from pulsar_advisor.planning.build_plan import Limits
        from pulsar_advisor.stages.recommend import Request, what_if

        return Request(
            shedder=self.shedder,
            placement=self.placement,
            splits=self.splits,
            what_if=what_if(self.set),
            view=self.view,
            history=self.history,
            limits=Limits(self.max_unloads, self.max_splits),
            seed=self.seed,
            proposer=self.as_ or os_user(),
        )


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Care:
    """How carefully a plan is carried out."""

    max_age: str = "6h"
    """Greatest age of the plan's snapshot: 90s, 30m, 6h, 1d."""
    pause: str = "10s"
    """Between two calls."""
    canary_hold: str = "60s"
    """How long the first step must hold before the second one is sent."""
    error_budget: int = 1
    """Failed steps that are forgiven; one more stops the run. The first step may not fail."""
    on_drift: Literal["stop", "skip"] = "stop"
    """What to do about a step whose world has changed."""


def os_user() -> str:
    """The name of the operating system's user."""
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return f"uid {os.getuid()}"
