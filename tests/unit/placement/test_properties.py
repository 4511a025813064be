"""What holds for every placement strategy on any cluster."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.strategy.memory import NoMemory
from pulsar_advisor.placement.registry import PLACEMENTS, load
from states import cluster_state
from unit.any_cluster import Rows, rows
from unit.properties import examples

every_placement = pytest.mark.parametrize("name", [placement.name for placement in PLACEMENTS])
releases = st.sampled_from(["2.11.0", "3.0.7", "4.0.8", "4.2.4", "5.0.1"])


@every_placement
@given(of=rows().filter(lambda of: bool(of[1])), release=releases, data=st.data())
@examples(60)
def test_somebody_among_the_candidates_is_eligible_and_explained_as_such(
    name: str, of: Rows, release: str, data: st.DataObject
) -> None:
    state, placement, of_release = cluster_state(*of), load(name), resolve_settings(release).values
    view, memory = placement.observe(state, of_release, state.captured_at_ms), placement.Memory()
    for bundle in range(len(state.bundles)):
        among = data.draw(st.lists(st.integers(0, len(state.brokers) - 1), min_size=1, unique=True))
        candidates = np.array(among, dtype=np.int32)
        decision, memory = placement.choose(view, candidates, bundle, of_release, memory)
        answers = decision.brokers
        assert answers.index.tolist() == among
        chosen = answers.chosen()
        assert sorted(decision.eligible.tolist()) == sorted(candidates[chosen].tolist()) != []
        assert all(answers.explain(row) for row in range(len(answers)))


@pytest.mark.parametrize("name", [entry.name for entry in PLACEMENTS if load(entry.name).Memory is NoMemory])
@given(of=rows().filter(lambda of: len(of[1]) > 1), release=releases)
@examples(60)
def test_a_strategy_that_remembers_nothing_answers_alike_for_every_bundle(name: str, of: Rows, release: str) -> None:
    state, placement, of_release = cluster_state(*of), load(name), resolve_settings(release).values
    view, candidates = placement.observe(state, of_release, state.captured_at_ms), np.arange(len(state.brokers))
    first, *others = (
        placement.choose(view, candidates, bundle, of_release, NoMemory())[0] for bundle in range(len(state.bundles))
    )
    assert all(other.eligible.tolist() == first.eligible.tolist() for other in others)
