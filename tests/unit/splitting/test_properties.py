"""What holds for every split decider on any cluster."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.model.cluster.cluster_state import LoadManagerKind
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.splitting.steady_splits import steady_splits
from states import cluster_state
from unit.any_cluster import Rows, rows
from unit.properties import examples

EAGER = {"loadBalancerNamespaceBundleMaxMsgRate": "10", "loadBalancerNamespaceBundleMaxTopics": "2"}

every_manager = pytest.mark.parametrize("manager", ["modular", "simple", "extensible"])


@every_manager
@given(of=rows(), release=st.sampled_from(["2.11.0", "4.0.8", "4.2.4"]))
@examples(60)
def test_every_bundle_looked_at_has_one_answer_and_what_is_split_is_explained_as_chosen(
    manager: LoadManagerKind, of: Rows, release: str
) -> None:
    state = cluster_state(*of, load_manager=manager, pulsar_version=release)
    decision = steady_splits(state, resolve_settings(release, EAGER).values).decision
    answers = decision.bundles
    assert len(np.unique(answers.index)) == len(answers)
    chosen = answers.chosen()
    assert sorted(split.bundle for split in decision.splits) == sorted(answers.index[chosen].tolist())
    assert all(answers.explain(row) for row in range(len(answers)))


@every_manager
@given(of=rows())
@examples(60)
def test_boundaries_part_the_bundle_into_children_that_are_not_empty(manager: LoadManagerKind, of: Rows) -> None:
    state = cluster_state(*of, load_manager=manager)
    for split in steady_splits(state, resolve_settings("4.0.8", EAGER).values).decision.splits:
        bounds = (state.bundles.lower[split.bundle], *split.boundaries, state.bundles.upper[split.bundle])
        assert all(lower < upper for lower, upper in pairwise(bounds))
