"""What must hold before a plan, and each of its steps, is sent to a cluster: pure rules on plain facts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from pulsar_advisor.execution.cluster.cluster_port import Split, Unload
from pulsar_advisor.execution.ledger.tables import Run, StepRecord
from pulsar_advisor.model.bounds import duration
from pulsar_advisor.model.cluster.bundle_range import format_range, parse_range
from pulsar_advisor.model.cluster.cluster_state import IsolationPolicy
from pulsar_advisor.model.cluster.isolation_policies import broker_host, matched_brokers, needs_secondaries
from pulsar_advisor.model.cluster.namespaces import is_pulsars_own
from pulsar_advisor.model.cluster.snapshot_id import snapshot_moment
from pulsar_advisor.model.configuration.defaults import listed_release
from pulsar_advisor.model.configuration.releases import release_number
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.model.java.expressions import Matched, matched
from pulsar_advisor.model.plans.plan import Plan, Step
from pulsar_advisor.model.text.some_of import count, lasting, some_of
from pulsar_advisor.planning.plans.by_hand import SPECIFIED_POSITIONS_SINCE, release_of, takes_positions
from pulsar_advisor.planning.plans.consent import overloaded_ratio

NEW_PLAN: Final = "capture again and make a new plan"
"""What helps where a plan can't be carried out, or no further."""

_DESTINATION_SINCE = (3, 0)
_CLOCK_TOLERANCE_S = 300
LEDGER_CLOCK_TOLERANCE_S: Final = 30
"""How far the ledger's clock may be set back within a run."""


@dataclass(frozen=True)
class OpenCall:
    """A call of another run whose outcome is unknown."""

    bundle: str
    """Its full name."""
    run: int
    leaves_destination: bool
    """See `leaves_destination`."""
    to_do: str
    """What settles it, in words."""


@dataclass(frozen=True)
class Found:
    """The facts about one step at one moment."""

    active_brokers: frozenset[str]
    boundaries: tuple[str, ...]
    owner: str | None
    topics: int
    """Loaded topics for an unload, all topics for a split."""
    topic_names: tuple[str, ...] = ()
    """Theirs, as far as they are reported."""
    isolation_policies: tuple[IsolationPolicy, ...] = ()
    release: str = ""
    """The leader's, or else the owner's, by which they match; empty without policies."""
    peers_at_source: int = 0
    """Other namespaces of the same anti-affinity group with bundles on the source (next: on the destination)."""
    peers_at_destination: int = 0
    destination_usage_ratio: float | None = None
    """Current weighted maximum usage of the destination; None if unknown."""
    open_calls: tuple[OpenCall, ...] = ()
    """Those of other plans' runs."""


def call_of(step: Step, pulsar_version: str) -> Unload | Split:
    """The call for a step. Up to 2.10, it can't include positions; there `malformed` allows only equal halves."""
    if step.action == "unload":
        return Unload(step.namespace, step.bundle, step.destination)
    if not takes_positions(pulsar_version):
        return Split(step.namespace, step.bundle, ())
    return Split(step.namespace, step.bundle, tuple(int(boundary, 16) for boundary in step.boundaries))


def leaves_destination(plan: Plan, step: Step) -> bool:
    """Whether a call without effect may leave its destination on the leader, for the next bundle of that range.

    It does under Modular: there the leader remembers a destination by the range alone.
    """
    return plan.load_manager == "modular" and step.destination is not None


def boundaries_after(boundaries: tuple[str, ...], namespace: str, done: Iterable[Step]) -> tuple[str, ...]:
    """The boundaries of a namespace after those of these steps that split its bundles."""
    cuts = {cut for step in done if step.action == "split" and step.namespace == namespace for cut in step.boundaries}
    return tuple(sorted({*boundaries, *cuts})) if cuts else boundaries


def has_bundle(boundaries: Sequence[str], bundle: str) -> bool:
    """Whether a bundle, by its range, lies between two of a namespace's boundaries, undivided."""
    return bundle in map("_".join, pairwise(boundaries))


def expected_boundaries(step: Step, done: Iterable[Step]) -> tuple[str, ...]:
    """The boundaries a step must find: those in the plan, and those from the plan's finished splits."""
    return boundaries_after(step.expect.boundaries, step.namespace, done)


def destinations_after(done: Iterable[Step]) -> Mapping[str, str]:
    """Where the bundles moved by these steps must be (broker ids by `tenant/namespace/range`)."""
    destinations: dict[str, str] = {}
    for step in done:
        bundle = step.bundle_name
        destinations.pop(bundle, None)  # split, or moved without a given destination
        if step.action == "unload" and step.destination is not None:
            destinations[bundle] = step.destination
    return destinations


def malformed(plan: Plan) -> Iterator[str]:
    """Why a plan must not be applied, regardless of the cluster's state."""
    release = release_of(plan.pulsar_version)
    if release is None:
        yield f"the plan's Pulsar version '{plan.pulsar_version}' can't be read"
        return
    seen: set[str] = set()
    for step in plan.steps:
        if step.executable:
            yield from (f"{step.id}: {reason}" for reason in _malformed(step, plan.load_manager, release, seen))
        seen.add(step.id)


def _malformed(step: Step, load_manager: str, release: tuple[int, ...], earlier: Collection[str]) -> Iterator[str]:
    if missing := [name for name in step.after if name not in earlier]:
        yield f"comes after {', '.join(missing)}, which is not before it in the plan"
    if step.id in earlier:
        yield "a step of that id is already in the plan"
    if is_pulsars_own(step.namespace):
        yield f"{step.namespace} is one of Pulsar's own namespaces and is never moved"
    if not step.source or step.source != step.expect.owner:
        yield f"the source '{step.source}' is not the owner the step expects, '{step.expect.owner}'"
    try:
        lower, upper = parse_range(step.bundle)
    except UsageError as error:
        yield str(error)
        return
    if step.action == "unload":
        yield from _malformed_unload(step, load_manager, release)
    else:
        yield from _malformed_split(step, lower, upper, load_manager, release)


def _malformed_unload(step: Step, load_manager: str, release: tuple[int, ...]) -> Iterator[str]:
    if step.destination is None:
        return
    if reason := _no_destination(load_manager, release):
        yield f"{reason}: make the plan without destinations"
    if step.destination == step.source:
        yield f"the destination {step.destination} is the source: the unload would only disturb clients"


def no_destination(plan: Plan) -> str | None:
    """Why unloads on the plan's cluster can't name a destination, or None."""
    return _no_destination(plan.load_manager, release_of(plan.pulsar_version) or _DESTINATION_SINCE)


def _no_destination(load_manager: str, release: tuple[int, ...]) -> str | None:
    if load_manager == "simple":
        return "the Simple load manager doesn't keep the destination of an unload"
    if release < _DESTINATION_SINCE:
        return f"Pulsar {'.'.join(map(str, release))} doesn't keep the destination of an unload (3.0 and later do)"
    return None


def _malformed_split(step: Step, lower: int, upper: int, load_manager: str, release: tuple[int, ...]) -> Iterator[str]:
    try:
        positions = [int(bound, 16) for bound in step.boundaries]
    except ValueError:
        yield f"the boundaries {', '.join(step.boundaries)} are not hexadecimal numbers"
        return
    if not positions or positions != sorted(set(positions)):
        yield f"the boundaries {', '.join(step.boundaries)} must be distinct and ascending: a duplicate hangs a broker"
    elif not lower < positions[0] <= positions[-1] < upper:
        yield f"the boundaries {', '.join(step.boundaries)} must lie inside {step.bundle}"
    elif step.boundaries != tuple(f"0x{position:08x}" for position in positions):
        yield f"the boundaries {', '.join(step.boundaries)} must have the form 0x00000000"
    else:
        cuts = [lower, *positions, upper]
        children = tuple(format_range(*pair) for pair in pairwise(cuts))
        if step.children != children:
            yield f"the children {', '.join(step.children)} are not those of the boundaries: {', '.join(children)}"
    if load_manager == "extensible" and len(positions) != 1:
        yield f"the Extensible load manager splits in two only, not at {len(positions)} boundaries"
    if release < SPECIFIED_POSITIONS_SINCE and positions != [lower + (upper - lower) // 2]:
        yield f"Pulsar {'.'.join(map(str, release))} can only split in equal halves (positions came with 2.11)"


def observed_at(plan: Plan) -> str:
    """When the cluster was observed for a plan, in the form of a snapshot's id.

    This is the plan's snapshot; an undo plan is based on a later observation (`memory`).
    """
    return str(plan.memory.get("observed_at", plan.snapshot))


def stale(plan: Plan, max_age_s: int, *now_ms: int) -> str | None:
    """Why the plan is based on an outdated view of the cluster by any of these clocks (epoch ms), or None."""
    try:
        taken = snapshot_moment(observed_at(plan))
    except ValueError:
        return f"the plan's snapshot '{observed_at(plan)}' is not of the form 20261121T083000Z: its age is unknown"
    ages_s = [one / 1000 - taken.timestamp() for one in now_ms]
    if max(ages_s) > max_age_s:
        return (
            f"the snapshot {observed_at(plan)} is {lasting(max(ages_s))} old, more than the "
            f"{duration(max_age_s)} that are allowed: {NEW_PLAN}"
        )
    if min(ages_s) < -_CLOCK_TOLERANCE_S:
        return (
            f"the snapshot {observed_at(plan)} is {lasting(-min(ages_s))} in the future: check the clocks of "
            "this machine, of the one that captured it, and of the ledger's database"
        )
    return None


def from_the_future(run: Run, steps: Iterable[StepRecord], now_ms: int) -> str | None:
    """Why the ledger's clock (`now_ms`) can't be trusted for an unfinished run, or None."""
    times_ms = (run.started_at_ms, run.heartbeat_at_ms, *(step.sent_at_ms or 0 for step in steps))
    ahead_s = (max(times_ms) - now_ms) / 1000
    if ahead_s <= LEDGER_CLOCK_TOLERANCE_S:
        return None
    return (
        f"the ledger's last entry about run {run.id} is {lasting(ahead_s)} in the future: the clock of the machine "
        "that keeps the ledger was set back; set it, or wait that long"
    )


def foreign(plan: Plan, cluster_name: str, active_brokers: frozenset[str]) -> str | None:
    """Why this is not the cluster the plan was made for, or None.

    It is the same cluster if Pulsar's cluster name is equal and at least half of the plan's brokers are active. The
    name alone is not enough: many installations keep the default one. Brokers that have left or joined since are no
    reason to refuse the plan; a step that names a missing broker detects that itself.
    """
    if cluster_name != plan.identity.cluster_name:
        return (
            f"the plan is for cluster '{plan.identity.cluster_name}', but the brokers reached say '{cluster_name}': "
            "check the admin URL"
        )
    known = frozenset(plan.identity.broker_ids)
    if 2 * (active := len(known & active_brokers)) < len(known):
        return (
            f"only {active} of the plan's {len(known)} brokers {'is' if active == 1 else 'are'} active here "
            f"({some_of(active_brokers)}): this is another cluster named '{cluster_name}', or one that was "
            f"rebuilt; {NEW_PLAN}"
        )
    return None


def differences(step: Step, boundaries: tuple[str, ...], owner: str, found: Found) -> Iterator[str]:
    """How the cluster differs from the state a step requires; `boundaries` and `owner` are the required ones."""
    if not found.boundaries:
        yield f"namespace {step.namespace} does not exist or is being deleted"
        return
    if found.boundaries != boundaries:
        changed = sorted(set(found.boundaries) ^ set(boundaries))
        is_split = set(boundaries) < set(found.boundaries)  # splits only add boundaries
        why = "somebody split a bundle" if is_split else "it was created again, with other bundles"
        yield f"the boundaries of {step.namespace} have changed at {', '.join(changed)}: {why}"
    elif found.owner is None:
        yield "the bundle has no owner, so it is not moved: its destination could be applied to another bundle"
    elif found.owner != owner:
        yield f"the bundle is on {found.owner}, not on {owner} any more"
    if step.action == "unload" and found.topics == 0:
        yield "no topic of the bundle is loaded: no client would bring it back"
    if step.action == "split" and found.topics < 2:
        yield f"the bundle has {count(found.topics, 'topic')}, and a split needs two"
    yield from filter(None, (_in_the_way(step, call) for call in found.open_calls))
    if step.destination is not None:
        yield from _destination_differences(step.namespace, step.destination, found)


def _in_the_way(step: Step, call: OpenCall) -> str | None:
    """Why a step must not be sent while a call is open; None if it may."""
    what = f"the outcome of a call about {call.bundle} in run {call.run} is unknown"
    # A split leaves its children where they are, so no leader assigns any.
    if step.action == "unload" and call.leaves_destination and call.bundle.endswith(f"/{step.bundle}"):
        return (
            f"{what}, and its destination may still wait on the leader for any bundle of that range: first {call.to_do}"
        )
    return f"{what}: first {call.to_do}" if call.bundle == step.bundle_name else None


def _destination_differences(namespace: str, destination: str, found: Found) -> Iterator[str]:
    if destination not in found.active_brokers:
        yield f"the destination {destination} is not an active broker"
    if (reason := isolated_from(namespace, destination, found)) is not None:
        yield reason
    if found.peers_at_destination > found.peers_at_source:
        yield (
            f"the destination {destination} has bundles of {count(found.peers_at_destination, 'other namespace')} of "
            f"the same anti-affinity group, and the source of {found.peers_at_source}"
        )


def isolated_from(namespace: str, broker: str, found: Found) -> str | None:
    """Why isolation policies exclude a namespace from a broker, or None.

    The first policy whose namespace pattern matches applies; its secondary brokers count only while fewer than
    `min_limit` primary ones are active. A namespace without a policy may not go to a broker that is primary in any.
    Source: Pulsar `NamespaceIsolationPolicies`, `SimpleResourceAllocationPolicies`.
    """
    if broker_host(broker) is None:
        return f"{broker} is not a broker id of the form host:port"
    policies, release = found.isolation_policies, release_number(listed_release(found.release))

    def among(expressions: Sequence[str], *brokers: str) -> int:
        return _matches(matched_brokers(expressions, brokers, release))

    try:
        for policy in policies:
            if _matches(matched(policy.namespaces, [namespace])):
                if among(policy.primary, broker):
                    return None
                primaries = among(policy.primary, *found.active_brokers)
                if among(policy.secondary, broker) and needs_secondaries(primaries, policy.min_limit):
                    return None
                return f"isolation policy '{policy.name}' keeps {namespace} off {broker}"
        for policy in policies:
            if among(policy.primary, broker):
                return f"isolation policy '{policy.name}' reserves {broker} for other namespaces"
    except _Unreadable as error:
        return f"isolation policies can't be evaluated, so the allowed brokers are unknown: {error}"
    return None


def overload(
    plan: Plan, step: Step, fresh_usage_ratio: float | None, moved: Collection[str], foreseen: Collection[str] = ()
) -> Iterator[str]:
    """Why a step would now overload its destination, if it would.

    This repeats the step's forecast: the greater of the destination's current usage and the usage the plan expects
    after the other steps that were `moved` (ids; brokers report them late), plus the usage that the step adds according
    to the plan. The step itself may be among them, if it was sent without effect; its usage counts once. `foreseen`:
    those of them that are yet to be sent, so that the current usage is without what they add or take.
    """
    if step.destination is None or fresh_usage_ratio is None:
        return
    changes = usage_changes(plan).get(step.destination, ())
    added = {change.step: change.added for change in changes if change.added is not None}
    before = plan.predicted.before.brokers.get(step.destination)
    if len(added) < len(changes) or before is None or before.usage_ratio is None:
        return
    counted_on = before.usage_ratio + sum(usage for name, usage in added.items() if name in moved and name != step.id)
    by_then = fresh_usage_ratio + sum(added.get(name, 0.0) for name in foreseen)
    forecast = max(by_then, counted_on) + added.get(step.id, 0.0)
    if forecast > overloaded_ratio(plan):
        yield (
            f"the destination {step.destination} is at {fresh_usage_ratio:.1%} now and would be at {forecast:.1%}; "
            f"above {overloaded_ratio(plan):.0%} it is overloaded"
        )


class UsageChange(NamedTuple):
    """A change of a broker's usage (ratio) that a plan predicts; None where a figure is not finite."""

    step: str
    """Its id."""
    before: float | None
    afterwards: float | None

    @property
    def added(self) -> float | None:
        """What the step adds."""
        return None if self.before is None or self.afterwards is None else self.afterwards - self.before


def usage_changes(plan: Plan) -> Mapping[str, Sequence[UsageChange]]:
    """The changes of each broker by the plan's steps, in their order; a broker that none changes is left out."""
    usages = {broker: row.usage_ratio for broker, row in plan.predicted.before.brokers.items()}
    found: defaultdict[str, list[UsageChange]] = defaultdict(list)
    for step in plan.executable_steps:
        for broker, afterwards in step.predicted.brokers.items():
            found[broker].append(UsageChange(step.id, usages.get(broker), afterwards))
            usages[broker] = afterwards
    return found


class _Unreadable(ValueError):
    """A regular expression that can't be evaluated here the way Java would."""


def _matches(found: Matched) -> int:
    """How many were matched."""
    for expression, why in found.unusable.items():
        raise _Unreadable(f"expression '{expression}': {why}")
    return int(found.matches.sum())
