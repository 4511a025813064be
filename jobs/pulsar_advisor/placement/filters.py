"""Which brokers a bundle may go to before a placement strategy chooses, and why not the others.

Three pipelines. Modular: isolation policies, topic limit, anti-affinity, even spread of the namespace's bundles, load
manager class, latest version; a step that fails or leaves no broker restores all that the policies allow. Extensible:
load manager class, topic limit, latest version, anti-affinity, isolation policies, on one shrinking set; a filter that
fails is skipped, and no broker is restored. Simple: isolation policies, even spread. Bundles that the leader assigned
but no broker reports yet are unknown.

Releases: the class filter came with 3.0; `pulsar/system` is spread evenly from 3.0.6 on (apache/pulsar#22953) even if
`loadBalancerDistributeBundlesEvenlyEnabled` is false.
Source: Pulsar `ModularLoadManagerImpl.selectBroker`, `LoadManagerShared`, `BrokerVersionFilter`,
`BrokerLoadManagerClassFilter`, `extensions.filter.*`, `ExtensibleLoadManagerImpl.selectAsync`,
`SimpleLoadManagerImpl.getFinalCandidates`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from pulsar_advisor.model.cluster.cluster_state import NO_ROW, Booleans, ClusterState, Indices, Integers
from pulsar_advisor.model.cluster.isolation_policies import NO_POLICY, Isolation, isolation_of, needs_secondaries
from pulsar_advisor.model.cluster.namespaces import SYSTEM_NAMESPACE
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.strategy.outcomes import Outcome, Outcomes, Record, about_brokers, no, yes
from pulsar_advisor.placement.anti_affinity import (
    NO_GROUP,
    AntiAffinity,
    anti_affinity_of,
    counts_of,
    least_occupied,
    may_unload,
)

SETTING_KEYS: Final = (
    "loadManagerClassName",
    "loadBalancerBrokerMaxTopics",
    "loadBalancerDistributeBundlesEvenlyEnabled",
    "preferLaterVersions",
    "failureDomainsEnabled",
)

_CLASS_FILTER_SINCE: Final = (3, 0, 0)
_SYSTEM_SPREAD_SINCE: Final = (3, 0, 6)


class FilterOutcome(Outcome):
    """The answers of the filters about a broker."""

    CANDIDATE = yes("passes every filter")
    BROUGHT_BACK = yes("is a candidate again: the filters failed, left no broker, or chose an overloaded one")
    UNAVAILABLE = no("not registered as an active broker, or unfit")
    NO_PORT = no("its id has no port, so policies and placement ignore it")
    NOT_IN_POLICY = no("neither primary nor secondary in the namespace's isolation policy")
    SECONDARY_NOT_NEEDED = no("secondary, and {left:.0f} primaries reach the policy's {right:.0f}", ">=")
    NOT_SHARED = no("reserved: primary in an isolation policy, and the namespace has none")
    NO_PERSISTENT_TOPICS = no("does not serve persistent topics")
    NO_NON_PERSISTENT_TOPICS = no("does not serve non-persistent topics")
    TOO_MANY_TOPICS = no("{left:.0f} topics; accepts bundles with up to {right:.0f}", ">")
    DOMAIN_FULLER = no("its failure domain counts {left:.0f} of the anti-affinity group, another {right:.0f}", ">")
    GROUP_FULLER = no("counts {left:.0f} of the anti-affinity group, another broker {right:.0f}", ">")
    MORE_BUNDLES = no("has {left:.0f} of the namespace's bundles, another broker {right:.0f}", ">")
    OTHER_LOAD_MANAGER = no("runs another load manager class")
    OLDER_VERSION = no("runs an older version than another candidate (preferLaterVersions)")
    LEAVING = no("is to be emptied itself")


Version = tuple[tuple[int, int, int], bool, tuple[tuple[bool, int, str], ...]]
"""A semantic version in a form that Python orders correctly: number, whether it is a release, pre-release parts."""

_SEMANTIC_VERSION = re.compile(
    r"(0|[1-9]\d{0,9})\.(0|[1-9]\d{0,9})\.(0|[1-9]\d{0,9})(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?",
    re.ASCII,
)


def semantic_version(text: str) -> Version | None:
    """A broker's version without build metadata; None if it is not a semantic version, such as `4.0.8.1`."""
    match = _SEMANTIC_VERSION.fullmatch(text)
    if match is None:
        return None
    parts = match[4].split(".") if match[4] else []
    if any(part.isdigit() and part != "0" and part.startswith("0") for part in parts):
        return None
    return (int(match[1]), int(match[2]), int(match[3])), not parts, tuple(map(_identifier, parts))


def _identifier(part: str) -> tuple[bool, int, str]:
    """A pre-release part in a form that can be ordered; a number too long for Java is compared as text."""
    is_number = part.isdigit() and len(part) <= 10
    return not is_number, int(part) if is_number else 0, part


@dataclass(frozen=True, eq=False)
class PlacementFacts:
    """A cluster, and the facts that the filters look up, computed once per snapshot."""

    state: ClusterState
    settings: LoadBalancerSettings
    isolation: Isolation
    anti_affinity: AntiAffinity
    first_bundle: Integers
    """The bundles of namespace row s are the rows from `first_bundle[s]` to before `first_bundle[s + 1]`."""
    same_class: Booleans
    """Per broker, whether it runs the load manager class of the settings; true if its class is unknown."""
    versions: tuple[Version | None, ...]
    """Per broker; None if it reported no readable version."""
    non_persistent: Booleans
    """Per bundle, whether one of its loaded topics is known to be non-persistent."""
    _group_counts: dict[int, Integers] = field(default_factory=dict, init=False)

    def group_counts(self, group: int) -> Integers:
        """Per broker, how much it counts of an anti-affinity group."""
        if group not in self._group_counts:
            self._group_counts[group] = counts_of(self.state, self.anti_affinity.bundles[group])
        return self._group_counts[group]

    def after_moves(self, state: ClusterState) -> PlacementFacts:
        """The facts of a state that differs in the load and the owners of its bundles, and in its brokers' topics and
        availability, only."""
        return replace(self, state=state)


def placement_facts(state: ClusterState, settings: LoadBalancerSettings) -> PlacementFacts:
    """The facts of a cluster state."""
    return PlacementFacts(
        state=state,
        settings=settings,
        isolation=isolation_of(state, settings),
        anti_affinity=anti_affinity_of(state, settings.failure_domains_enabled),
        first_bundle=np.searchsorted(state.bundles.namespace, np.arange(len(state.namespaces) + 1)),
        same_class=np.array(
            [name in ("", settings.load_manager_class_name) for name in state.brokers.load_manager_class_names],
            dtype=np.bool_,
        ),
        versions=tuple(semantic_version(text) for text in state.brokers.versions),
        non_persistent=state.holds_non_persistent,
    )


@dataclass(frozen=True, eq=False)
class Candidates:
    """The remaining brokers, and the answer about every broker."""

    brokers: Indices
    """Rows, ascending."""
    outcomes: Outcomes


class _Filtering:
    """Candidates that shrink step by step, with the reason for every broker dropped."""

    def __init__(self, number: int) -> None:
        self.left_over = np.ones(number, dtype=np.bool_)
        self.answers = Record.of(number, FilterOutcome.CANDIDATE)

    def keep(
        self, kept: Booleans, reason: FilterOutcome, left: npt.ArrayLike = np.nan, right: npt.ArrayLike = np.nan
    ) -> None:
        dropped = self.left_over & ~kept
        if not dropped.any():
            return
        self.left_over &= kept
        self.answers.record(dropped, reason, *(np.broadcast_to(side, len(kept))[dropped] for side in (left, right)))

    def bring_back(self, allowed: Booleans) -> None:
        back = allowed & ~self.left_over
        self.left_over |= back
        self.answers.record(back, FilterOutcome.BROUGHT_BACK)

    def candidates(self) -> Candidates:
        rows = np.arange(len(self.left_over), dtype=np.int32)
        return Candidates(rows[self.left_over], self.answers.about_brokers(rows, FilterOutcome))


def policy_candidates(facts: PlacementFacts, namespace: int, *, non_persistent: bool = False) -> Booleans:
    """Per broker, whether it is available and the isolation policies allow it for a namespace (a row).

    `non_persistent`: the bundle is known to hold a non-persistent topic.
    """
    return _within_policies(facts, namespace, non_persistent).left_over


UnloadObstacle = Literal["isolation", "anti_affinity"]


def unload_obstacle(facts: PlacementFacts, allowed: Booleans, namespace: int, current: int) -> UnloadObstacle | None:
    """Why the Modular manager would not unload a chosen bundle of a namespace from broker `current` (rows).

    `isolation`: the policies (`policy_candidates` gives `allowed`) leave no other broker; `anti_affinity`: it would not
    spread the group better. Source: `ModularLoadManagerImpl.shouldNamespacePoliciesUnload` (from 2.11 on) and
    `shouldAntiAffinityNamespaceUnload`.
    """
    if np.count_nonzero(allowed) <= allowed[current]:
        return "isolation"
    group = int(facts.anti_affinity.group_of_namespace[namespace])
    if group != NO_GROUP and not may_unload(allowed, facts.group_counts(group), current):
        return "anti_affinity"
    return None


def modular_candidates(facts: PlacementFacts, namespace: int, *, non_persistent: bool = False) -> Candidates:
    """The brokers the Modular manager considers for a bundle of a namespace (a row); the same for all its bundles."""
    state, settings = facts.state, facts.settings
    filtering = _within_policies(facts, namespace, non_persistent)
    allowed = filtering.left_over.copy()

    most = settings.load_balancer_broker_max_topics
    has_room = state.brokers.topics <= most
    if (filtering.left_over & has_room).any():
        filtering.keep(has_room, FilterOutcome.TOO_MANY_TOPICS, state.brokers.topics, most)
    _by_anti_affinity(filtering, facts, namespace)
    if settings.load_balancer_distribute_bundles_evenly_enabled or (
        state.namespaces.names[namespace] == SYSTEM_NAMESPACE and settings.behaviour >= _SYSTEM_SPREAD_SINCE
    ):
        _by_even_spread(filtering, facts, namespace)
    if settings.behaviour >= _CLASS_FILTER_SINCE:
        filtering.keep(facts.same_class, FilterOutcome.OTHER_LOAD_MANAGER)
    if not _by_version(filtering, facts) or not filtering.left_over.any():
        filtering.bring_back(allowed)
    return filtering.candidates()


def overloaded_retry(candidates: Candidates, allowed: Booleans) -> Candidates:
    """The candidates for the second choice of the Modular manager, made when the first choice was a broker above
    `loadBalancerBrokerOverloadedThresholdPercentage`: all that the policies allow (`policy_candidates`) are restored.
    """
    was_left = np.zeros(len(allowed), dtype=np.bool_)
    was_left[candidates.brokers] = True
    outcomes = candidates.outcomes
    code = np.where(allowed & ~was_left, np.uint8(FilterOutcome.BROUGHT_BACK.value), outcomes.code)
    return Candidates(
        np.flatnonzero(allowed | was_left).astype(np.int32),
        about_brokers(outcomes.index, FilterOutcome, code, outcomes.left, outcomes.right),
    )


def extensible_candidates(facts: PlacementFacts, namespace: int, *, non_persistent: bool = False) -> Candidates:
    """The brokers the Extensible manager considers for a bundle of a namespace (a row); possibly none."""
    filtering, _ = _for_every_namespace(facts)
    _by_anti_affinity(filtering, facts, namespace)
    _by_policies(filtering, facts, namespace, non_persistent)
    return filtering.candidates()


def version_filter_fails(facts: PlacementFacts) -> bool:
    """Whether the Extensible manager's filters can't compare versions, or leave no broker to any namespace.

    An assignment skips a filter that fails; `TransferShedder.isTransferable` then lets nothing move.
    """
    _, is_compared = _for_every_namespace(facts)
    return not is_compared


def _for_every_namespace(facts: PlacementFacts) -> tuple[_Filtering, bool]:
    """The Extensible manager's first filters, and whether that of versions worked."""
    brokers, most = facts.state.brokers, facts.settings.load_balancer_broker_max_topics
    filtering = _Filtering(len(brokers))
    filtering.keep(brokers.available, FilterOutcome.UNAVAILABLE)
    filtering.keep(facts.same_class, FilterOutcome.OTHER_LOAD_MANAGER)
    filtering.keep(brokers.topics < most, FilterOutcome.TOO_MANY_TOPICS, brokers.topics, most - 1)
    return filtering, _by_version(filtering, facts)


def destinations(
    facts: PlacementFacts, namespace: int, leaving: Booleans, *, persistent: bool, non_persistent: bool
) -> Candidates:
    """The brokers that may be named as destinations for a bundle of a namespace (a row), whatever room they have.

    The filters of both managers, strictly: none is skipped, no broker is restored, and a broker serves every kind of
    topics that the bundle is known to hold, whereas Pulsar looks at one kind, and at none under an isolation policy.
    Two are left out: the topic limit, because it depends on the bundle, and the even spread of a namespace's bundles,
    which is a preference and no policy. Brokers that are `leaving` count for the isolation policies only, as they are
    active as long as the plan runs.
    """
    brokers = facts.state.brokers
    filtering = _Filtering(len(brokers))
    filtering.keep(brokers.available, FilterOutcome.UNAVAILABLE)
    _by_policies(filtering, facts, namespace, non_persistent)
    filtering.keep(brokers.complete, FilterOutcome.UNAVAILABLE)
    if persistent:
        filtering.keep(brokers.persistent_topics_enabled, FilterOutcome.NO_PERSISTENT_TOPICS)
    if non_persistent:
        filtering.keep(brokers.non_persistent_topics_enabled, FilterOutcome.NO_NON_PERSISTENT_TOPICS)
    filtering.keep(~leaving, FilterOutcome.LEAVING)
    filtering.keep(facts.same_class, FilterOutcome.OTHER_LOAD_MANAGER)
    _by_version(filtering, facts)
    _by_anti_affinity(filtering, facts, namespace)
    return filtering.candidates()


def fewest_bundles(candidates: Booleans, owned: npt.NDArray[np.signedinteger]) -> tuple[Booleans, int]:
    """Candidates with the fewest bundles of a namespace (`owned` per broker), and that number.

    Source: `LoadManagerShared.removeMostServicingBrokersForNamespace`.
    """
    if not candidates.any():
        return candidates, 0
    fewest = int(owned[candidates].min())
    return candidates & (owned == fewest), fewest


def simple_candidates(facts: PlacementFacts, namespace: int, *, non_persistent: bool = False) -> Candidates:
    """The brokers the Simple manager considers for a bundle of a namespace (a row)."""
    filtering = _within_policies(facts, namespace, non_persistent)
    _by_even_spread(filtering, facts, namespace)
    return filtering.candidates()


def _within_policies(facts: PlacementFacts, namespace: int, non_persistent: bool) -> _Filtering:
    filtering = _Filtering(len(facts.state.brokers))
    filtering.keep(facts.state.brokers.available, FilterOutcome.UNAVAILABLE)
    _by_policies(filtering, facts, namespace, non_persistent)
    return filtering


def _by_even_spread(filtering: _Filtering, facts: PlacementFacts, namespace: int) -> None:
    bundles, rows = facts.state.bundles, slice(*facts.first_bundle[namespace : namespace + 2])
    owner = bundles.owner[rows][bundles.listed[rows]]
    owned = np.bincount(owner[owner != NO_ROW], minlength=len(facts.state.brokers))
    kept, fewest = fewest_bundles(filtering.left_over, owned)
    filtering.keep(kept, FilterOutcome.MORE_BUNDLES, owned, fewest)


def _by_policies(filtering: _Filtering, facts: PlacementFacts, namespace: int, non_persistent: bool) -> None:
    brokers, isolation = facts.state.brokers, facts.isolation
    filtering.keep(isolation.has_host, FilterOutcome.NO_PORT)
    policy = int(isolation.policy_of_namespace[namespace])
    if policy == NO_POLICY:
        if non_persistent:
            filtering.keep(brokers.non_persistent_topics_enabled, FilterOutcome.NO_NON_PERSISTENT_TOPICS)
        else:
            filtering.keep(brokers.persistent_topics_enabled, FilterOutcome.NO_PERSISTENT_TOPICS)
        filtering.keep(isolation.shared, FilterOutcome.NOT_SHARED)
        return
    primary, secondary = isolation.primary[policy], isolation.secondary[policy]
    filtering.keep(primary | secondary, FilterOutcome.NOT_IN_POLICY)
    primaries, min_limit = int((filtering.left_over & primary).sum()), isolation.min_limit[policy]
    if not needs_secondaries(primaries, min_limit):
        filtering.keep(primary, FilterOutcome.SECONDARY_NOT_NEEDED, primaries, min_limit)


def _by_anti_affinity(filtering: _Filtering, facts: PlacementFacts, namespace: int) -> None:
    group = int(facts.anti_affinity.group_of_namespace[namespace])
    if group == NO_GROUP:
        return
    counts = facts.group_counts(group)
    spread = least_occupied(filtering.left_over, counts, facts.anti_affinity.domain)
    filtering.keep(spread.in_domain, FilterOutcome.DOMAIN_FULLER, spread.domain_count, spread.least_in_domain)
    filtering.keep(spread.kept, FilterOutcome.GROUP_FULLER, counts, spread.least)


def _by_version(filtering: _Filtering, facts: PlacementFacts) -> bool:
    """Keeps the candidates of the latest version; False if versions can't be compared, and then nothing is dropped."""
    if not facts.settings.prefer_later_versions:
        return True
    versions = [facts.versions[row] for row in np.flatnonzero(filtering.left_over)]
    readable = [version for version in versions if version is not None]
    if not versions or len(readable) < len(versions):
        return False
    latest = max(readable)
    filtering.keep(
        np.array([version == latest for version in facts.versions], dtype=np.bool_), FilterOutcome.OLDER_VERSION
    )
    return True
