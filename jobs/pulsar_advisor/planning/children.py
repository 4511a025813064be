"""The children of a split: their topics and load by the topics' hashes, and where each of them would go.

Under Modular and Simple, Pulsar unloads the children after an automatic split if
`loadBalancerAutoUnloadSplitBundlesEnabled` is on; then they are placed like any other bundle.
Source: `NamespaceService.splitAndOwnBundle`, `ModularLoadManagerImpl.checkNamespaceBundleSplit` (2.11 to 5.0).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace

import numpy as np

from pulsar_advisor.model.cluster_state import NO_ROW, Bundles, ClusterState
from pulsar_advisor.model.decision import Split
from pulsar_advisor.model.settings import LoadBalancerSettings
from pulsar_advisor.placement import registry as placements
from pulsar_advisor.planning.proposal import Move
from pulsar_advisor.planning.select_broker import BrokerSelection, CandidateSets
from pulsar_advisor.planning.views import observed


@np.errstate(over="ignore", invalid="ignore")
def after_split(state: ClusterState, split: Split) -> ClusterState:
    """The state once a bundle has been split: its children take its row, and the rows below move down.

    The bundle's figures are divided in proportion to those of the loaded topics, so their totals remain. What no loaded
    topic accounts for is divided by the number of loaded topics, otherwise of all topics, otherwise by width.
    """
    bundles, topics, first = state.bundles, state.topics, split.bundle
    cuts = [int(bundles.lower[first]), *split.boundaries, int(bundles.upper[first])]
    parts = len(cuts) - 1
    rows = slice(first, first + parts)
    repeats = np.ones(len(bundles), dtype=np.intp)
    repeats[first] = parts
    columns = {field.name: np.repeat(getattr(bundles, field.name), repeats, axis=0) for field in fields(bundles)}
    part_of = np.searchsorted(np.array(split.boundaries, dtype=np.int64), topics.hash, side="right")
    is_inside = topics.bundle == first
    inside = [is_inside & (part_of == part) for part in range(parts)]
    loaded = np.array([np.count_nonzero(each & topics.loaded) for each in inside])
    counted = (loaded, np.array([np.count_nonzero(each) for each in inside]), np.diff(cuts))
    otherwise = next(each / each.sum() for each in counted if each.any())
    figures = np.array([topics.traffic[each & topics.loaded].sum(axis=0) for each in inside])
    totals = figures.sum(axis=0)
    shares = np.where(totals > 0, figures / np.where(totals > 0, totals, 1), otherwise[:, None])
    columns["lower"][rows], columns["upper"][rows] = cuts[:-1], cuts[1:]
    columns["topics"][rows], columns["reported"][rows] = loaded, loaded > 0
    for name in ("traffic", "short_term", "long_term"):
        columns[name][rows] = getattr(bundles, name)[first] * shares
    for name in ("producers", "consumers", "cache_size_bytes"):
        columns[name][rows] = np.rint(getattr(bundles, name)[first] * otherwise)
    moved_down = np.where(topics.bundle > first, topics.bundle + parts - 1, topics.bundle)
    bundle_of = np.where(is_inside, first + part_of, moved_down).astype(topics.bundle.dtype)
    published = state.published_load
    if published is not None:
        positions = np.repeat(published.top_position, repeats)
        positions[rows] = -1
        published = replace(published, top_position=positions)
    return replace(
        state, bundles=Bundles(**columns), topics=replace(topics, bundle=bundle_of), published_load=published
    )


def child_moves(
    state: ClusterState, settings: LoadBalancerSettings, placement: str, split: Split, seed: int
) -> Iterator[Move]:
    """The children of a split that the placement strategy would put on another broker; rows of `after_split(state)`.

    None under the Simple manager, which honours no destination: a child would come back.
    """
    if state.load_manager == "simple":
        return
    strategy = placements.load(placement)
    candidates = CandidateSets.of(state, settings)
    selection = BrokerSelection(
        candidates=candidates,
        name=placement,
        strategy=strategy,
        view=observed(strategy.observe, state, settings, candidates.facts),
        memory=strategy.Memory(),
        seed=seed,
    )
    source = int(state.bundles.owner[split.bundle])
    for row in range(split.bundle, split.bundle + len(split.boundaries) + 1):
        destination = selection.select(row, source)
        if destination not in (NO_ROW, source):
            reason = f"{placement} places this part of the split bundle on {state.brokers.ids[destination]}"
            yield Move(row, source, destination, reason, near_tie=split.near_tie)
