"""Options shared by several verbs: what to recommend, and how carefully to carry it out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from cyclopts import Parameter, Token

from pulsar_advisor.execution.person import person_on_command_line
from pulsar_advisor.execution.throttle import ThrottleChanges
from pulsar_advisor.model.bounds import ratio, seconds
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.planning.proposals.limits import Limits

if TYPE_CHECKING:
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
    bundles: str = ""
    """The bundles it is about, separated by commas."""

    def chosen(self) -> Goal | None:
        """The goal these options make, if any. Raises `UsageError` for a percentage that is none, and for other
        options without a goal."""
        if not self.goal:
            if self != GoalOptions():
                raise UsageError(
                    "--brokers, --bundles, --to, --ceiling and --onto are about a goal: name it with --goal"
                )
            return None
        brokers, onto, bundles = (
            tuple(name.strip() for name in names.split(",") if name.strip())
            for names in (self.brokers, self.onto, self.bundles)
        )
        to, ceiling = (ratio(text) if text else None for text in (self.to, self.ceiling))
        return Goal(self.goal, brokers, to, ceiling, onto, bundles)


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
        durations = {"max_age": "max_age_s", "pause_between": "pause_s", "canary_hold": "canary_hold_s"}
        given = {**asdict(self), "guard": self.guard or None}
        for option, limit in durations.items():
            text = given.pop(option)
            given[limit] = None if text is None else seconds(text)
        return cast("ThrottleChanges", {name: value for name, value in given.items() if value is not None})
