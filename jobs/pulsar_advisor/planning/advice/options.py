"""What an operator could do about a snapshot, ranked: what each option brings, what it costs, and when that holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from pulsar_advisor.model.plans.plan import Confidence
from pulsar_advisor.model.strategy.entry import combination
from pulsar_advisor.model.text.some_of import count, points
from pulsar_advisor.planning.advice.compare import Score, is_harmless_split, is_worthwhile, ranked_by_effect
from pulsar_advisor.planning.proposals.configured import Configured
from pulsar_advisor.planning.situation import Situation
from pulsar_advisor.planning.usage.merit import Cost, Merit

OptionKind = Literal["move", "split", "setting", "own_balancer", "nothing"]
"""Carry out a plan that only unloads · one that splits, and may unload the children · change settings of Pulsar's own
balancer, which may be to switch it on · let it act as it is · leave all as it is."""

_LEAST_GAIN: Final = 1e-9


@dataclass(frozen=True)
class Option:
    """One thing to do. Usage is the weighted maximum, 0..1: predicted for a plan, simulated for Pulsar's balancer."""

    kind: OptionKind
    sentence: str
    """What to do."""
    maximum_ratio: float | None
    """The busiest broker's usage then."""
    standard_deviation_ratio: float | None
    gain_ratio: float | None
    """By how much the busiest broker's usage falls."""
    cost: Cost
    confidence: Confidence | None
    """None where nothing is predicted step by step."""
    condition: str
    """When that holds, as a clause."""
    plan: str | None = None
    digest: str | None = None
    change: Mapping[str, str] = field(default_factory=dict)
    """Settings to change, as for `--set`."""
    highest_maximum_ratio: float | None = None
    """The busiest broker's usage at the worse end of the prediction's range; None where no range is known."""
    strategies: tuple[str, ...] = ()
    """Every `shedder with placement` that leads to the same steps."""


@dataclass(frozen=True)
class Balancing:
    """How Pulsar's own balancer fares in a simulation, with its settings or with some of them changed."""

    change: Mapping[str, str]
    """What has to be set for that to happen, the balancer's switches included."""
    ends: str
    """How the simulation ends, in words."""
    settles: bool
    first_maximum_ratio: float
    """The busiest broker's usage as its simulation begins."""
    merit: Merit
    condition: str

    @property
    def gain_ratio(self) -> float:
        """By how much the busiest broker's usage falls."""
        return self.first_maximum_ratio - self.merit.maximum_ratio


def ranked_options(
    situation: Situation,
    scores: Sequence[Score],
    balancing: Sequence[Balancing],
    *,
    limited: bool = False,
    of_verb: Score | None = None,
) -> tuple[Option, ...]:
    """At most four options, the best first; none if no usage is known.

    `limited`: the operator's limits may leave steps out of plans; `of_verb`: what a verb finds where no plan lowers the
    busiest broker, with the command in the shedder's place.

    First that, or what lowers the busiest broker by at least the noise floor: the best plan that moves, and one that
    also splits if it is better; then Pulsar's own balancer, unless a plan dominates it. Then the splits that Pulsar
    itself would make, which serve their own purpose, and last to do nothing.
    """
    if situation.as_is is None:
        return ()
    own, floor_ratio = situation.configured, situation.noise.ratio
    ranked = ranked_by_effect([row for row in scores if is_worthwhile(row, floor_ratio)], own, floor_ratio)
    plans: list[Score] = []
    for row in ranked:
        if all(bool(row.splits) is not bool(better.splits) for better in plans):
            plans.append(row)
    by_pulsar = _best([one for one in balancing if one.settles], floor_ratio)
    helping = plans if of_verb is None else [of_verb, *plans]
    if by_pulsar is not None and any(
        row.merit and row.merit.is_as_good(by_pulsar.merit, floor_ratio) for row in helping
    ):
        by_pulsar = None
    found = [] if of_verb is None else [_of_plan(of_verb, [])]
    found += [_of_plan(row, [one for one in scores if _is_alike(one, row)], limited=limited) for row in plans]
    if by_pulsar is not None:
        found.append(_of_balancing(by_pulsar, own))
    if not any(row.splits for row in plans):
        splitting = ranked_by_effect(filter(is_harmless_split, scores), own, floor_ratio)
        found += [_of_plan(row, [row], limited=limited) for row in splitting[:1]]
    return (*found, _nothing(situation, situation.as_is, something_helps=bool(helping or by_pulsar)))


def _best(tried: Sequence[Balancing], floor_ratio: float) -> Balancing | None:
    """The one that changes the fewest settings, then disturbs the least, of those that lower the busiest broker by the
    noise floor and are within that floor of the best; None without one."""
    worthwhile = [one for one in tried if one.gain_ratio >= max(floor_ratio, _LEAST_GAIN)]
    lowest = min((one.merit.maximum_ratio for one in worthwhile), default=0.0)

    def cost(one: Balancing) -> tuple[float, ...]:
        disturbed = one.merit.cost
        return (len(one.change), disturbed.splits, disturbed.disturbed, disturbed.unloads, one.merit.maximum_ratio)

    return min((one for one in worthwhile if one.merit.maximum_ratio <= lowest + floor_ratio), key=cost, default=None)


def _is_alike(one: Score, other: Score) -> bool:
    return one == other or one.steps_sha256 == other.steps_sha256 is not None


def _of_plan(row: Score, alike: Sequence[Score], *, limited: bool = False) -> Option:
    what = " and ".join(
        f"{verb} {count(number, 'bundle')}"
        for verb, number in (("unload", row.unloads), ("split", row.splits))
        if number
    )
    within = " within the limits" if limited else ""
    condition = "the bundles are where the snapshot found them, and the load stays as it is"
    return Option(
        kind="split" if row.splits else "move",
        sentence=f"{what[0].upper()}{what[1:]} as {combination(row.shedder, row.placement)} would{within}",
        maximum_ratio=row.maximum_after,
        standard_deviation_ratio=row.standard_deviation_after,
        gain_ratio=row.gain_ratio,
        highest_maximum_ratio=row.highest_maximum_after,
        cost=row.cost,
        confidence=row.confidence,
        condition=condition if row.unloads else "its children are unloaded later: a split alone moves no load",
        plan=row.plan,
        digest=row.digest,
        strategies=tuple(combination(one.shedder, one.placement) for one in alike),
    )


def _of_balancing(one: Balancing, own: Configured) -> Option:
    name = f"Pulsar's own {combination(*own)}"
    values = " ".join(f"{key}={value}" for key, value in one.change.items())
    return Option(
        kind="setting" if one.change else "own_balancer",
        sentence=f"Set {values}: Pulsar's balancer {one.ends}" if values else f"Wait: {name} {one.ends}",
        maximum_ratio=one.merit.maximum_ratio,
        standard_deviation_ratio=one.merit.standard_deviation_ratio,
        gain_ratio=one.gain_ratio,
        highest_maximum_ratio=one.merit.highest_maximum_ratio,
        cost=one.merit.cost,
        confidence=None,
        condition=one.condition,
        change=dict(one.change),
    )


def _nothing(situation: Situation, as_is: Merit, *, something_helps: bool) -> Option:
    overloaded_ratio = situation.settings.values.overloaded_ratio
    if as_is.maximum_ratio > overloaded_ratio:
        why = f"clients can bear a broker above the overload threshold of {overloaded_ratio:.0%}"
    elif something_helps:
        why = "the busiest broker has room for the load to come"
    else:
        fall = f"a fall of less than {points(situation.noise.ratio)}"
        why = f"{fall}, the difference between two snapshots, isn't worth a disturbance"
    return Option(
        kind="nothing",
        sentence="Do nothing",
        maximum_ratio=as_is.maximum_ratio,
        standard_deviation_ratio=as_is.standard_deviation_ratio,
        gain_ratio=0.0,
        highest_maximum_ratio=as_is.highest_maximum_ratio,
        cost=as_is.cost,
        confidence=None,
        condition=why,
    )
