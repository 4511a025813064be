"""Options that say where things are: the root, the ledger and its heads, the cluster, the policy file."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from cyclopts import Parameter

from pulsar_advisor.admin.home import with_home
from pulsar_advisor.admin.profiles import DEFAULT_CONFIG, Profile, choose_profile, read_profiles
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.storage.root import Root, Snapshot

if TYPE_CHECKING:
    from pulsar_advisor.admin.connection import AdminConnection
    from pulsar_advisor.admin.options import CaptureOptions
    from pulsar_advisor.execution.consent.policy import ApprovalPolicy
    from pulsar_advisor.execution.ledger.heads import Keeper
    from pulsar_advisor.execution.ledger.ledger import Ledger

ROOT_VARIABLE: Final = "PULSAR_ADVISOR_ROOT"
CLUSTER_VARIABLE: Final = "PULSAR_ADVISOR_CLUSTER"


def _chosen(given: str | None, *others: str | None) -> str | None:
    """What is given, else the first of the others that isn't empty.

    What is given and empty, as by a variable that isn't set, must not choose another cluster or ledger.
    """
    return next(filter(None, others), None) if given is None else given


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a cluster's files are: by options, else by environment variables, else by a profile of the config file."""

    root: str | None = None
    """Root of all files: a path or an object-store URL. By default PULSAR_ADVISOR_ROOT, else the profile's."""
    cluster: str | None = None
    """Your name for the cluster; part of every path. By default PULSAR_ADVISOR_CLUSTER, else the profile's."""
    profile: str | None = None
    """Profile of the config file; by default that of the cluster, or the only one."""
    config: Path | None = None
    """Config file (TOML); by default ~/.config/pulsar-advisor/config.toml."""

    def found(self) -> tuple[str | None, str | None, Profile | None]:
        """Root, cluster and profile, if known. A profile named by `--profile` takes precedence over the environment, so
        that a variable for one cluster is not mixed with the connection of another."""
        profiles = read_profiles(self.config)
        named = None if self.profile is None else choose_profile(profiles, self.profile, None)
        root = _chosen(self.root, named.root if named else None, os.environ.get(ROOT_VARIABLE))
        cluster = _chosen(self.cluster, named.cluster if named else None, os.environ.get(CLUSTER_VARIABLE))
        profile = named or choose_profile(profiles, None, cluster)
        if profile is not None:
            root, cluster = _chosen(root, profile.root), _chosen(cluster, profile.cluster, profile.name)
        return None if root is None else with_home(root), cluster, profile

    def of_all_clusters(self) -> Self:
        """The same place for what concerns a whole root: it needs no cluster's name."""
        root, cluster, _ = self.found()
        return self if root is None or cluster is not None else replace(self, cluster="any")

    def open_if_named(self) -> Root | None:
        """The root of the cluster; None if nothing names it."""
        root, cluster, _ = self.found()
        return None if root is None or cluster is None else Root(root, cluster)

    def open(self) -> Root:
        """The root of the cluster. Raises `UsageError` if nothing names it."""
        root, cluster, _ = self.found()
        if root is not None and cluster is not None:
            return Root(root, cluster)
        missing = {"--root": (root, ROOT_VARIABLE), "--cluster": (cluster, CLUSTER_VARIABLE)}
        options = [option for option, (value, _) in missing.items() if value is None]
        variables = [variable for value, variable in missing.values() if value is None]
        profiles = ", ".join(sorted(read_profiles(self.config)))
        raise UsageError(
            f"which cluster, and where? Give {' and '.join(options)}, set {' and '.join(variables)}, or "
            + (f"choose a profile with --profile: {profiles}" if profiles else f"write a profile in {DEFAULT_CONFIG}")
        )

    def at(self, snapshot: str) -> Snapshot:
        """The snapshot that is meant, in the root that `open` gives. Raises as `Root.resolve`, too."""
        return self.open().resolve(snapshot)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class LedgerPlace(Place):
    """Where a cluster's files are, and its ledger."""

    ledger: str | None = None
    """Ledger database (SQLAlchemy URL, or env:NAME or file:PATH where one with a password is kept); by default the
    profile's, else SQLite in a local root."""

    def given_ledger(self) -> str | None:
        """The address given here or in the profile. Raises `UsageError` if others could read its password."""
        from pulsar_advisor.execution.ledger.address import shown_in_process_list

        _, _, profile = self.found()
        address = _chosen(self.ledger, profile.ledger if profile else None)
        return None if address is None else shown_in_process_list(address)

    def existing_ledger(self) -> str | None:
        """The same. Raises `UsageError` if `--ledger` names one that isn't there; a profile may name one to come."""
        from pulsar_advisor.execution.ledger.opening import ledger_exists

        address = self.given_ledger()
        if self.ledger and address and not ledger_exists(address):
            raise UsageError(f"there is no ledger at {address}: correct --ledger")
        return address

    def ledger_url(self) -> str:
        """The given address, or SQLite in the root."""
        return self.given_ledger() or self.open().ledger_url

    def ledger_url_if_any(self) -> str | None:
        """The same; None with an object store."""
        return self.given_ledger() or self.open().own_ledger_url

    def sealing(self, snapshot: Snapshot, *stages: str) -> AbstractContextManager[None]:
        """Record what stages write about a snapshot within the block; see `stages.seal`."""
        from pulsar_advisor.stages.seal import sealing

        return sealing(self.opened_ledger, snapshot, *stages)

    def seal(self, snapshot: Snapshot, *stages: str) -> None:
        """Record what stages have just written about a snapshot; see `stages.seal`."""
        from pulsar_advisor.stages.seal import seal

        seal(self.opened_ledger, snapshot, *stages)

    def ledger_if_any(self) -> AbstractContextManager[Ledger | None]:
        """The ledger, open within the block; None if there is none."""
        from pulsar_advisor.execution.ledger.opening import ledger_if_any

        return ledger_if_any(self.ledger_url())

    def opened_ledger(self) -> AbstractContextManager[Ledger]:
        """The ledger, created if missing, open within the block."""
        from pulsar_advisor.execution.ledger.opening import open_ledger

        return closing(open_ledger(self.ledger_url()))


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class HeadsPlaces:
    """Where heads of the ledger are kept."""

    heads: str | None = None
    """Places for heads of the ledger, out of its owner's reach, separated by commas: a folder for this ledger alone
    (path or object-store URL), `log`, a webhook's https address (or env:NAME or file:PATH where it is kept). By default
    PULSAR_ADVISOR_HEADS, else the profile's."""

    def keepers(self, place: Place) -> tuple[Keeper, ...]:
        """The places. Raises `UsageError` for one that is none."""
        from pulsar_advisor.execution.ledger.heads import keepers_of

        if self.heads is not None and not self.heads.strip():
            raise UsageError("--heads is empty: name a place for the ledger's heads, or omit it")
        _, _, profile = place.found()
        places = _chosen(self.heads, os.environ.get("PULSAR_ADVISOR_HEADS"), profile.heads if profile else None)
        return keepers_of(places or "")

    @property
    def shown(self) -> HeadsPlaces:
        """The same without addresses of webhooks, whose paths often are the receivers' passwords."""
        return HeadsPlaces(heads=self.heads and re.sub(r"https?://[^,]*", "WEBHOOK", self.heads))

    def existing(self, place: Place) -> tuple[Keeper, ...]:
        """As `keepers`. Raises `UsageError` if `--heads` names a folder that isn't there; a profile or the environment
        may name one to come."""
        from pulsar_advisor.execution.ledger.heads import absent

        keepers = self.keepers(place)
        if self.heads and (folders := absent(keepers)):
            raise UsageError(f"there is no folder {folders[0]}: correct --heads")
        return keepers


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Connection:
    """How to reach a cluster, where its profile does not say it, or says it otherwise."""

    admin_url: tuple[str, ...] = ()
    """Admin URL of a broker or of a proxy; repeatable, tried in turn."""
    zookeeper: str | None = None
    """ZooKeeper hosts: host:port,host:port[/chroot]."""
    metadata_store: str | None = None
    """The brokers' metadataStoreUrl: zk:host:port,host:port[/chroot], or oxia://host:port/namespace."""
    configuration_metadata_store: str | None = None
    """The brokers' configurationMetadataStoreUrl, if it differs; only read without an admin URL."""
    service_url: str | None = None
    """Binary address, pulsar://broker:6650: reads what Extensible brokers publish to their leader."""
    token_file: Path | None = None
    """File that holds the token."""
    token_env: str | None = None
    """Name of the environment variable that holds the token."""
    tls_ca_file: Path | None = None
    """CA certificates to trust instead of the system's."""
    tls_cert_file: Path | None = None
    """Client certificate."""
    tls_key_file: Path | None = None
    """Key of the client certificate."""

    @property
    def is_given(self) -> bool:
        """Whether any option gives access to a cluster."""
        return self != Connection()

    def options(self, place: Place, **manners: Any) -> CaptureOptions:
        """The connection, checked. Options override a profile named by `--profile`; an unnamed profile is used as
        it is or not at all, so that its credentials go to no other address."""
        from pulsar_advisor.admin.options import capture_options

        _, _, profile = place.found()
        if self.is_given and place.profile is None:
            profile = None
        admin = asdict(self)
        admin["admin_urls"] = admin.pop("admin_url")
        stores = ("zookeeper", "metadata_store", "configuration_metadata_store")
        others = {name: admin.pop(name) for name in (*stores, "service_url")}
        return capture_options(profile=profile, admin=admin, **others, **manners)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class PolicyFile:
    """What an organisation demands of an approval."""

    policy: Path | None = None
    """Approval policy (YAML), by default the file that `PULSAR_ADVISOR_POLICY` names: who may approve what, and which
    plans need no person."""

    def read(self) -> ApprovalPolicy:
        """The policy; without a file, the strictest one that allows approvals from a shell."""
        from pulsar_advisor.execution.consent.policy import ApprovalPolicy, read_policy

        named = self.policy or os.environ.get("PULSAR_ADVISOR_POLICY")
        return read_policy(Path(named)) if named else ApprovalPolicy()


def command(words: Sequence[str], *given: Place | HeadsPlaces | Connection | PolicyFile) -> str:
    """A command line of ours to copy, with the options `given` on this one: what they name isn't found without them."""
    options: list[str] = []
    for name, value in (item for group in given for item in asdict(group).items() if item[1] is not None):
        for one in value if isinstance(value, tuple) else (value,):
            options += [f"--{name.replace('_', '-')}", str(one)]
    return shlex.join(("pulsar-advisor", *words, *options))


RESTORE: Final = ("guard", "restore")
"""The verb that switches a cluster's own balancer on again."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Reach:
    """Where a cluster's files and its ledger are, and how the cluster is reached."""

    place: LedgerPlace = LedgerPlace()
    connection: Connection = Connection()

    @property
    def is_named(self) -> bool:
        """Whether an option says how, so that the cluster is meant to be reached."""
        return self.connection.is_given or self.place.profile is not None

    @property
    def restore(self) -> str:
        """The command that switches the cluster's own balancer on again."""
        return command(RESTORE, self.place, self.connection)

    def options(self, **manners: Any) -> CaptureOptions:
        """As `Connection.options`."""
        return self.connection.options(self.place, **manners)

    def admin(self) -> AdminConnection:
        """How to reach the admin API. Raises `UsageError` if nothing says so."""
        return self.options().required_admin


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ReachToWrite(Reach):
    """The same, and what is demanded of the approval by which the cluster is written to."""

    policy: PolicyFile = PolicyFile()
