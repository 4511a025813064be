"""Which of two records of a bundle holds in the ownership channel."""

from __future__ import annotations

import pytest

from pulsar_advisor.capture.service_unit_state import ServiceUnitState, prevailing, replaces

BUNDLE = "shop/orders/0x00000000_0x80000000"


def record(
    state: str, version: int, *, to: str | None = None, source: str | None = None, force: bool = False
) -> ServiceUnitState:
    return ServiceUnitState(state=state, versionId=version, dstBroker=to, sourceBroker=source, force=force)


OWNED_BY_A = record("Owned", 3, to="a")

LIFE = [
    record("Assigning", 1, to="a"),
    record("Owned", 2, to="a"),
    record("Releasing", 3, to="b", source="a"),
    record("Assigning", 4, to="b", source="a"),
    record("Owned", 5, to="b", source="a"),
    record("Releasing", 6, source="b"),
    record("Free", 7, source="b"),
    record("Assigning", 8, to="c"),
    record("Owned", 9, to="c"),
    record("Splitting", 10, source="c"),
    record("Deleted", 11, source="c"),
]
"""Assigned, transferred, released, assigned again and split, as brokers write it."""


@pytest.mark.parametrize("steps", range(1, len(LIFE) + 1))
def test_a_regular_life_is_followed_step_by_step(steps: int) -> None:
    assert prevailing((BUNDLE, each) for each in LIFE[:steps]) == {BUNDLE: LIFE[steps - 1]}


def test_a_removed_record_leaves_nothing_behind_whatever_it_was() -> None:
    assert prevailing([(BUNDLE, OWNED_BY_A), (BUNDLE, None)]) == {}
    assert prevailing([(BUNDLE, OWNED_BY_A), (BUNDLE, None), (BUNDLE, LIFE[0])]) == {BUNDLE: LIFE[0]}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(OWNED_BY_A, record("Releasing", 3, source="a"), id="same version: the first writer wins"),
        pytest.param(OWNED_BY_A, record("Releasing", 2, source="a"), id="older version"),
        pytest.param(OWNED_BY_A, record("Assigning", 4, to="b"), id="no such transition"),
        pytest.param(OWNED_BY_A, record("Releasing", 4, to="b", source="c"), id="released by who does not own it"),
        pytest.param(OWNED_BY_A, record("Releasing", 4, to="a", source="a"), id="transferred to its owner"),
        pytest.param(OWNED_BY_A, record("Splitting", 4, to="b", source="a"), id="split with a destination"),
        pytest.param(record("Assigning", 1, to="a"), record("Owned", 2, to="b"), id="taken by another than assigned"),
        pytest.param(record("Free", 1), record("Assigning", 2), id="assigned to none"),
        pytest.param(None, record("Init", 1), id="nothing becomes nothing"),
    ],
)
def test_a_record_that_lost_a_race_or_breaks_a_rule_is_passed_over(
    old: ServiceUnitState | None, new: ServiceUnitState
) -> None:
    assert not replaces(new, old)


@pytest.mark.parametrize(
    "new",
    [
        pytest.param(record("Assigning", 9, to="b"), id="records in between were compacted away"),
        pytest.param(record("Assigning", 4, to="b", force=True), id="forced"),
    ],
)
def test_a_gap_or_force_overrides_the_rules(new: ServiceUnitState) -> None:
    assert replaces(new, OWNED_BY_A)


def test_the_version_runs_over() -> None:
    assert replaces(record("Releasing", -(2**63), source="a"), record("Owned", 2**63 - 1, to="a"))
