"""Each doubt is said where its reason holds, and nowhere else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pulsar_advisor.model.cluster.cluster_state import ClusterState, LoadManagerKind, PublishedLoad
from pulsar_advisor.planning.plans.doubts import above_capacity, doubts_before, may_not_fall
from pulsar_advisor.planning.proposals.proposal import Move

A, B, C = 0, 1, 2
PUBLISHED = PublishedLoad(np.zeros(3), np.zeros((3, 2)), np.full(6, -1))


def sentences(state: ClusterState, move: Move, change: float = 0.0) -> list[str]:
    return [doubt.sentence for doubt in doubts_before(state, move, change)]


def move(margin: float = 1.0, awaits: tuple[str, ...] = (), possible: tuple[int, ...] = ()) -> Move:
    return Move(0, A, B, "because", near_tie=False, margin=margin, awaits=awaits, possible=possible)


def managed(state: ClusterState, load_manager: LoadManagerKind, published: PublishedLoad | None = None) -> ClusterState:
    return replace(state, load_manager=load_manager, published_load=published)


@pytest.mark.parametrize(
    ("likely", "highest", "confidence"),
    [(0.9, 1.0, None), (0.9, 1.01, "medium"), (1.0, 1.2, "medium"), (1.01, 1.2, "low"), (0.9, np.nan, None)],
)
def test_a_broker_that_would_need_more_than_it_has(likely: float, highest: float, confidence: str | None) -> None:
    found = [*above_capacity("b:8080", likely, highest)]
    assert [doubt.confidence for doubt in found] == ([confidence] if confidence else [])
    assert all(f"{likely:.0%} of a resource, {highest:.0%} at most" in doubt.sentence for doubt in found)


@pytest.mark.parametrize(("above_likely", "is_said"), [(0.02, False), (0.021, True), (np.nan, False)])
def test_a_source_that_may_stay_above_what_is_likely_by_more_than_noise(above_likely: float, is_said: bool) -> None:
    assert [doubt.confidence for doubt in may_not_fall("a:8080", above_likely, 0.02)] == ["medium"] * is_said


def test_a_move_that_waits_for_reports_names_them(state: ClusterState) -> None:
    [sentence] = sentences(managed(state, "extensible"), move(awaits=("b:8080", "c:8080")))
    assert sentence.startswith("Pulsar unloads it only if b:8080 and c:8080 will have published a new load")


def test_a_margin_below_what_was_not_published_is_a_doubt_on_extensible_brokers_alone(state: ClusterState) -> None:
    close = move(margin=0.03)
    [sentence] = sentences(managed(state, "extensible"), close, change=0.05)
    assert sentence.startswith("It was decided by a margin of 3.0%; the figures of a:8080 may have changed by 5.0%")
    assert sentences(managed(state, "extensible"), close, change=0.03) == []
    assert sentences(managed(state, "extensible", PUBLISHED), close, change=0.05) == []
    assert sentences(managed(state, "modular"), close, change=0.05) == []


def test_a_modular_leader_may_draw_the_broker_that_has_the_bundle(state: ClusterState) -> None:
    [sentence] = sentences(managed(state, "modular"), move(possible=(A, B, C)))
    assert sentence == (
        "Pulsar may draw its destination among 3 brokers, and leaves it where it is if it draws a:8080."
    )
    assert sentences(managed(state, "modular"), move(possible=(B, C))) == []
    assert sentences(managed(state, "simple"), move(possible=(A, B, C))) == []


def test_an_extensible_leader_may_choose_another_on_what_is_published_until_then(state: ClusterState) -> None:
    [sentence] = sentences(managed(state, "extensible", PUBLISHED), move(possible=(B, C)))
    assert sentence == "Pulsar may choose c:8080 instead, on what brokers publish before the next cycle."
    assert sentences(managed(state, "extensible", PUBLISHED), move(possible=(B,))) == []
    assert sentences(managed(state, "extensible"), move(possible=(B, C))) == []
