"""Options shared by several verbs: root and ledger, connection, what to recommend, throttle, policy file."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, cast

from cyclopts import Parameter, Token

from pulsar_advisor.admin.home import with_home
from pulsar_advisor.admin.profiles import DEFAULT_CONFIG, Profile, choose_profile, read_profiles
from pulsar_advisor.execution.person import person_on_command_line
from pulsar_advisor.execution.throttle import ThrottleChanges
from pulsar_advisor.model.bounds import ratio, seconds
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.planning.proposals.limits import Limits
from pulsar_advisor.storage.root import Root

ROOT_VARIABLE: Final = "PULSAR_ADVISOR_ROOT"
CLUSTER_VARIABLE: Final = "PULSAR_ADVISOR_CLUSTER"

if TYPE_CHECKING:
    from pulsar_advisor.admin.connection import AdminConnection
    from pulsar_advisor.admin.options import CaptureOptions
    from pulsar_advisor.execution.consent.policy import ApprovalPolicy
    from pulsar_advisor.execution.ledger.heads import Keeper
    from pulsar_advisor.execution.ledger.ledger import Ledger
    from pulsar_advisor.planning.requests.request import Request


Json = Annotated[bool, Parameter(name="--json", negative="", help="Print the result as JSON.")]


Master = Annotated[
    str, Parameter(name=("--master", "--remote"), help="Spark master, or sc://HOST:PORT of a Spark Connect server.")
]


DetailedExitCode = Annotated[
    bool,
    Parameter(negative="", help="End with exit code 7 instead of 0 if changes are proposed."),
]


Flag = Parameter(negative="")


def whole_numbers(_wanted: object, tokens: Sequence[Token]) -> tuple[int, ...]:
    """Numbers as they are typed: cyclopts would round `1.5`, and take `0x10` for 16."""
    if not all(re.fullmatch(r"[+-]?\d{1,20}", token.value, re.ASCII) for token in tokens):
        raise ValueError
    return tuple(int(token.value) for token in tokens)


def _whole_number(wanted: object, tokens: Sequence[Token]) -> int:
    (number,) = whole_numbers(wanted, tokens)
    return number


WholeNumber = Annotated[int, Parameter(converter=_whole_number)]
WholeNumberIfAny = Annotated[int | None, Parameter(converter=_whole_number)]


PlanName = Annotated[str, Parameter(help="The plan: the first digits of its digest, or the path of its file.")]
SnapshotId = Annotated[str, Parameter(help="Id of the snapshot, as `snapshots list` shows it.")]
YourName = Annotated[str, Parameter(name="--as", help="Your name, for the ledger.")]
Comment = Annotated[str, Parameter(help="Why.")]


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
        if self.profile is not None:
            named = choose_profile(profiles, self.profile, None)
            root, cluster = (named.root, named.cluster) if named else (None, None)
        else:
            named, root, cluster = None, None, None
        root = _chosen(self.root, root, os.environ.get(ROOT_VARIABLE))
        cluster = _chosen(self.cluster, cluster, os.environ.get(CLUSTER_VARIABLE))
        profile = named or choose_profile(profiles, None, cluster)
        if profile is not None:
            root, cluster = _chosen(root, profile.root), _chosen(cluster, profile.cluster, profile.name)
        return None if root is None else with_home(root), cluster, profile

    def of_all_clusters(self) -> Place:
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

    def at(self, snapshot: str) -> tuple[Root, str]:
        """The root as `open` gives it, and the id of the snapshot that is meant. Raises as `Root.resolve`, too."""
        root = self.open()
        return root, root.resolve(snapshot)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class LedgerPlace:
    """Where the ledger is."""

    ledger: str | None = None
    """Ledger database (SQLAlchemy URL, or env:NAME or file:PATH where one with a password is kept); by default the
    profile's, else SQLite in a local root."""

    def given(self, place: Place) -> str | None:
        """The address given here or in the profile. Raises `UsageError` if others could read its password."""
        from pulsar_advisor.execution.ledger.address import shown_in_process_list

        _, _, profile = place.found()
        address = _chosen(self.ledger, profile.ledger if profile else None)
        return None if address is None else shown_in_process_list(address)

    def existing(self, place: Place) -> str | None:
        """As `given`. Raises `UsageError` if `--ledger` names one that isn't there; a profile may name one to come."""
        from pulsar_advisor.execution.ledger.opening import ledger_exists

        address = self.given(place)
        if self.ledger and address and not ledger_exists(address):
            raise UsageError(f"there is no ledger at {address}: correct --ledger")
        return address

    def url(self, place: Place) -> str:
        """The given address, or SQLite in the root."""
        return self.given(place) or place.open().ledger_url

    def url_if_any(self, place: Place) -> str | None:
        """The same; None with an object store."""
        return self.given(place) or place.open().own_ledger_url

    def sealing(self, place: Place, snapshot: str, *stages: str) -> AbstractContextManager[None]:
        """Record what stages write about a snapshot within the block; see `stages.seal`."""
        from pulsar_advisor.stages.seal import sealing

        return sealing(lambda: self.open(place), place.open(), snapshot, *stages)

    def seal(self, place: Place, snapshot: str, *stages: str) -> None:
        """Record what stages have just written about a snapshot; see `stages.seal`."""
        from pulsar_advisor.stages.seal import seal

        seal(lambda: self.open(place), place.open(), snapshot, *stages)

    def if_any(self, place: Place) -> AbstractContextManager[Ledger | None]:
        """The ledger, open within the block; None if there is none."""
        from pulsar_advisor.execution.ledger.opening import ledger_if_any

        return ledger_if_any(self.url(place))

    def open(self, place: Place) -> Ledger:
        """The ledger, created if missing."""
        from pulsar_advisor.execution.ledger.opening import open_ledger

        return open_ledger(self.url(place))


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

    def admin(self, place: Place) -> AdminConnection:
        """How to reach the admin API. Raises `UsageError` if nothing says so."""
        return self.options(place).required_admin


def command(words: Sequence[str], *given: Place | LedgerPlace | HeadsPlaces | Connection | PolicyFile) -> str:
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
class PlanOptions:
    """What every plan is made from, and within which limits."""

    set: tuple[str, ...] = ()
    """What-if value for a Pulsar setting: KEY=VALUE; repeatable. Keys that change no answer are refused."""
    view: Literal["judged", "fresh", "published"] = "judged"
    """Figures from the brokers (fresh), or as the leader sees them in ZooKeeper (published); judged: the
    validated view, fresh if any broker was read."""
    history: WholeNumberIfAny = None
    """How many earlier snapshots the strategies learn from; by default those within the grace period of unloads
    (loadBalancerSheddingGracePeriodMinutes)."""
    max_unloads: WholeNumberIfAny = None
    """Maximum number of unloads per plan."""
    max_per_source: WholeNumberIfAny = None
    """Maximum number of unloads from any one broker."""
    max_topics: WholeNumberIfAny = None
    """Maximum number of loaded topics that the unloads of a plan disturb."""
    max_megabytes_per_s: WholeNumberIfAny = None
    """Maximum traffic, in and out, of all bundles that a plan unloads, in MB/s."""
    exclude_broker: tuple[str, ...] = ()
    """Broker that no step may touch, as source or destination; repeatable."""
    exclude_namespace: tuple[str, ...] = ()
    """Namespace, or tenant, that no step may touch; repeatable."""
    first_broker: tuple[str, ...] = ()
    """Broker whose unloads come first, where limits leave some out; repeatable."""
    first_namespace: tuple[str, ...] = ()
    """Namespace, or tenant, whose unloads come first; repeatable."""
    as_: Annotated[str | None, Parameter(name="--as")] = None
    """Your name, recorded in the ledger as proposer."""

    def request_for(self, goal: Goal) -> Request:
        """The request for a plan with this goal, checked."""
        return self._request(goal=goal, splits=False)

    def _request(self, max_splits: int | None = None, **others: Any) -> Request:
        from pulsar_advisor.planning.requests.request import Request, what_if

        return Request(
            limits=Limits(
                max_unloads=self.max_unloads,
                max_splits=max_splits,
                max_per_source=self.max_per_source,
                max_topics=self.max_topics,
                max_megabytes_per_s=self.max_megabytes_per_s,
                exclude_brokers=self.exclude_broker,
                exclude_namespaces=self.exclude_namespace,
                first_brokers=self.first_broker,
                first_namespaces=self.first_namespace,
            ),
            what_if=what_if(self.set),
            view=self.view,
            history=self.history,
            proposer=person_on_command_line(self.as_).name,
            **others,
        )


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RequestOptions(PlanOptions):
    """What to recommend, and within which limits."""

    shedder: str = "all"
    """A shedder by Pulsar's class name, 'configured' for the cluster's own, or 'all'."""
    placement: str = "all"
    """A placement strategy by Pulsar's class name, 'configured' for the cluster's own, or 'all'."""
    splits: bool = True
    """Whether to recommend bundle splits."""
    unload_children: bool = False
    """Whether to unload the children of a split too, if the placement strategy puts them on another broker."""
    max_splits: WholeNumber = 10
    """Maximum number of splits per plan."""
    seed: WholeNumber = 0
    """Seed for Pulsar's random choices."""

    def request(self) -> Request:
        """The request these options make, checked."""
        return self._request(
            shedder=self.shedder,
            placement=self.placement,
            splits=self.splits,
            unload_children=self.unload_children,
            max_splits=self.max_splits,
            seed=self.seed,
        )


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class GoalOptions:
    """A goal for a job, whose caller fills a form; in a shell each plan kind is a verb. Empty: not chosen."""

    goal: str = ""
    """A plan kind, instead of strategies."""
    brokers: str = ""
    """The brokers it is about, separated by commas."""
    to: str = ""
    """The usage that they are to reach, for example 60%."""
    ceiling: str = ""
    """No destination may end above this usage."""
    onto: str = ""
    """The only brokers that may take bundles, separated by commas; empty: every broker may."""

    def chosen(self) -> Goal | None:
        """The goal these options make, if any. Raises `UsageError` for a percentage that is none, and for other
        options without a goal."""
        if not self.goal:
            if self != GoalOptions():
                raise UsageError("--brokers, --to, --ceiling and --onto are about a goal: name it with --goal")
            return None
        brokers, onto = (
            tuple(name.strip() for name in names.split(",") if name.strip()) for names in (self.brokers, self.onto)
        )
        to, ceiling = (ratio(text) if text else None for text in (self.to, self.ceiling))
        return Goal(self.goal, brokers, to, ceiling, onto)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Throttle:
    """How carefully a plan is carried out: approved with the plan; `apply` may only make it stricter."""

    max_age: str | None = None
    """Maximum age of the plan's snapshot: 90s, 30m, 6h, 1d. By default 6h is approved."""
    pause_between: str | None = None
    """Pause between two calls, or waves of calls. By default 10s is approved."""
    canary_hold: str | None = None
    """How long the first step must hold before the second one is sent. By default 60s is approved."""
    error_budget: WholeNumberIfAny = None
    """Number of failed steps tolerated; one more stops the run. The first step must not fail. By default 1 is
    approved."""
    on_drift: Literal["stop", "skip"] | None = None
    """What to do if the cluster no longer matches a step. By default stop is approved."""
    in_flight: WholeNumberIfAny = None
    """Maximum number of steps in flight. By default 1 is approved."""
    per_source: WholeNumberIfAny = None
    """How many steps in flight may leave the same broker. By default 2 is approved."""
    per_destination: WholeNumberIfAny = None
    """How many steps in flight may go to the same broker. By default 2 is approved."""
    per_namespace: WholeNumberIfAny = None
    """How many steps in flight may be of the same namespace. By default 2 is approved."""
    topics_per_minute: WholeNumberIfAny = None
    """How many topics may be unloaded per minute. By default there is no limit."""
    guard: Annotated[bool, Flag] = False
    """Switch the cluster's own shedding and automatic splits off during the run, then restore what was there."""

    def changes(self) -> ThrottleChanges:
        """The given limits, by their names in `ApplyThrottle`."""
        durations = {"max_age_s": self.max_age, "pause_s": self.pause_between, "canary_hold_s": self.canary_hold}
        given = {**asdict(self), "guard": self.guard or None}
        for option in ("max_age", "pause_between", "canary_hold"):
            del given[option]
        given |= {name: None if text is None else seconds(text) for name, text in durations.items()}
        return cast("ThrottleChanges", {name: value for name, value in given.items() if value is not None})


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
