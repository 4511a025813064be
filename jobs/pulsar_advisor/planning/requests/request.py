"""What to recommend: one request, from the command line and the DAGs' forms to Spark's executors and the plans."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Final, Self

import msgspec

from pulsar_advisor.model.bounds import HISTORY, SEED
from pulsar_advisor.model.configuration.kinds import WantedView
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.model.strategy.entry import Strategy, find
from pulsar_advisor.placement.registry import PLACEMENTS
from pulsar_advisor.planning.kinds.goal import check_goal
from pulsar_advisor.planning.proposals.configured import CONFIGURED, Configured
from pulsar_advisor.planning.proposals.limits import Limits
from pulsar_advisor.shedding.registry import SHEDDERS

if TYPE_CHECKING:
    from pulsar_advisor.model.plans.canonical_json import Json
    from pulsar_advisor.model.plans.plan import Plan

ALL: Final = "all"


@dataclass(frozen=True)
class Request:
    """What to recommend; strategies by name, `all`, or `configured` for the cluster's own; or a goal, without them."""

    shedder: str = ALL
    placement: str = ALL
    goal: Goal | None = None
    """What an operator wants instead of what strategies would do."""
    splits: bool = True
    unload_children: bool = False
    """Whether the children of a split are unloaded where the placement strategy puts them on another broker."""
    what_if: Mapping[str, str] = field(default_factory=dict)
    view: WantedView = "judged"
    history: int | None = None
    """How many earlier snapshots the strategies learn from; None: those within the grace period of unloads."""
    limits: Limits = field(default_factory=Limits)
    seed: int = 0
    """Seed of all random choices."""
    proposer: str | None = None
    """Who requests it; recorded in the recommendation, never in a plan."""

    def __post_init__(self) -> None:
        """Refuse unknown strategies, unusable settings and numbers out of bounds before anything is captured."""
        for strategies, wanted, kind in (
            (SHEDDERS, self.shedder, "shedder"),
            (PLACEMENTS, self.placement, "placement strategy"),
        ):
            if wanted not in (ALL, CONFIGURED) and self.goal is None:
                find(strategies, wanted, kind)
        if self.goal is not None:
            check_goal(self.goal)
        HISTORY.check(self.history)
        SEED.check(self.seed)
        if self.what_if:
            from pulsar_advisor.planning.requests.what_if import check_what_if  # loads numpy: other refusals do without

            for key, text in self.what_if.items():
                check_what_if(key, text)

    @property
    def shedders(self) -> tuple[str, ...]:
        """Names of the requested shedders, once the request is resolved; or of the plan kind in their place."""
        return (self.goal.kind,) if self.goal is not None else _names(SHEDDERS, self.shedder, "shedder")

    @property
    def placements(self) -> tuple[str, ...]:
        """Names of the placement strategies to combine with each of them; a plan kind has none: an empty name."""
        return ("",) if self.goal is not None else _names(PLACEMENTS, self.placement, "placement strategy")

    def resolved(self, own: Configured) -> Self:
        """The same request with the cluster's own strategies by name. Raises `UsageError` if one is not modelled."""
        return replace(
            self,
            shedder=_resolved(SHEDDERS, self.shedder, own.shedder, "shedder"),
            placement=_resolved(PLACEMENTS, self.placement, own.placement, "placement strategy"),
        )

    def of(self, shedder: str) -> Self:
        """The part about one shedder."""
        return replace(self, shedder=shedder)

    def for_goal(self, goal: Goal) -> Self:
        """The request that the verb of a resolved goal makes of the same options; it has none about strategies."""
        return replace(
            self,
            shedder=ALL,
            placement=ALL,
            goal=goal,
            splits=False,
            unload_children=False,
            limits=replace(self.limits, max_splits=None),
            seed=0,
            proposer=None,
        )

    def document(self) -> Json:
        """The request as JSON values."""
        return asdict(self)

    @classmethod
    def of_plan(cls, plan: Plan) -> Self:
        """The request about what made a plan, from what the plan records; without the length of its history.

        Raises `UsageError` if the plan names strategies, settings or limits that this release doesn't have.
        """
        if unknown := plan.limits.keys() - {each.name for each in fields(Limits)}:
            raise UsageError(f"its limits {', '.join(sorted(unknown))} are not known here")
        is_of_strategies = plan.goal is None and plan.shedder in {entry.name for entry in SHEDDERS}
        return cls(
            shedder=plan.shedder if is_of_strategies else ALL,
            placement=plan.placement or ALL,
            goal=plan.goal,
            unload_children=bool(plan.placement),
            what_if=plan.what_if,
            view=plan.view,
            limits=msgspec.convert(dict(plan.limits), Limits),
            seed=plan.seed,
        )

    @classmethod
    def from_document(cls, document: Json) -> Self:
        """The request that `document` was made from."""
        return msgspec.convert(document, cls)


def what_if(pairs: Iterable[str]) -> dict[str, str]:
    """Settings given as `KEY=VALUE`. Raises `UsageError` for anything else; a `Request` checks keys and values."""
    settings = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not separator:
            raise UsageError(f"'{pair}' is not KEY=VALUE, for example loadBalancerSheddingEnabled=true")
        settings[key.strip()] = value
    return settings


def _names(strategies: Sequence[Strategy], wanted: str, kind: str) -> tuple[str, ...]:
    return tuple(entry.name for entry in strategies) if wanted == ALL else (find(strategies, wanted, kind).name,)


def _resolved(strategies: Sequence[Strategy], wanted: str, own: str, kind: str) -> str:
    if wanted != CONFIGURED:
        return wanted
    if own not in (entry.name for entry in strategies):
        raise UsageError(f"the cluster's own {kind}, '{own}', is not modelled: name another, or ask for '{ALL}'")
    return own
