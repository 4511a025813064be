"""The children of a split: where each of them would go.

Under Modular and Simple, Pulsar unloads the children after an automatic split if
`loadBalancerAutoUnloadSplitBundlesEnabled` is on; then they are placed like any other bundle.
Source: `NamespaceService.splitAndOwnBundle`, `ModularLoadManagerImpl.checkNamespaceBundleSplit` (2.11 to 5.0).
"""

from __future__ import annotations

from collections.abc import Iterator

from pulsar_advisor.model.cluster.cluster_state import NO_ROW, ClusterState
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.strategy.decision import Split
from pulsar_advisor.placement.filters import placement_facts
from pulsar_advisor.planning.proposals.proposal import Move
from pulsar_advisor.planning.proposals.select_broker import BrokerSelection, CandidateSets


def child_moves(
    state: ClusterState, settings: LoadBalancerSettings, placement: str, split: Split, seed: int
) -> Iterator[Move]:
    """The children of a split that go to another broker; `state` is that after the split.

    Where the split doesn't say, the placement strategy decides. None under the Simple manager, which honours no
    destination: a child would come back.
    """
    if state.load_manager == "simple":
        return
    source = int(state.bundles.owner[split.bundle])
    if split.destinations:
        for row, destination in enumerate(split.destinations, split.bundle):
            if destination != source:
                reason = f"this part of the split bundle has room on {state.brokers.ids[destination]}"
                yield Move(row, source, destination, reason, near_tie=split.near_tie)
        return
    candidates = CandidateSets.of(placement_facts(state, settings))
    selection = BrokerSelection.of(placement, candidates, seed)
    for row in range(split.bundle, split.bundle + len(split.boundaries) + 1):
        destination = selection.assign(row, source)
        if destination not in (NO_ROW, source):
            placer = "RoundRobinBrokerSelector" if candidates.placed_in_turn(row) else placement
            reason = f"{placer} places this part of the split bundle on {state.brokers.ids[destination]}"
            yield Move(row, source, destination, reason, near_tie=split.near_tie)
