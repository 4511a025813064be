"""A run stops when what it has done does not last."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from pulsar_advisor.execution.apply import apply_plan
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.run.options import Work
from pulsar_advisor.execution.run.preconditions import destinations_after
from unit.execution.actors import approved, carried_out, options_of, run
from unit.execution.doubles import (
    B1,
    B2,
    B3,
    CUT,
    LOWER,
    MOVE,
    NAMESPACE,
    START_MS,
    FakeCluster,
    make_plan,
    split_step,
    unload_step,
)

BUNDLE = f"{NAMESPACE}/{LOWER}"


@pytest.mark.parametrize("guard", [False, True])
def test_a_run_stops_when_another_moves_what_it_has_moved(ledger: Ledger, cluster: FakeCluster, guard: bool) -> None:
    original = cluster.owned_bundles

    def balanced_away(broker: str) -> frozenset[str]:
        if cluster.time.ms > START_MS + 65_000:
            cluster.owners[BUNDLE] = B3
        return original(broker)

    cluster.owned_bundles = balanced_away  # type: ignore[method-assign]
    result = carried_out(ledger, cluster, MOVE, CUT, canary_hold_s=60.0, pause_s=10.0, guard=guard)
    assert [step.state for step in result.steps] == ["confirmed", "pending"]
    assert ("apply with a guard" in result.sentence) != guard
    assert f"{BUNDLE} was moved to {B2} by this run and is on {B3} now" in result.sentence


def test_a_bundle_that_is_split_or_moved_on_later_is_no_longer_expected_where_it_was() -> None:
    moved_on = unload_step(2, source=B2, destination=B3)
    split = split_step(3)
    before = unload_step(4, split.bundle)
    assert destinations_after([MOVE, moved_on]) == {BUNDLE: B3}
    assert destinations_after([before, split]) == {}
    assert destinations_after([MOVE, unload_step(2, destination=None)]) == {}


def test_a_run_stops_once_its_snapshot_is_older_than_was_approved(ledger: Ledger, cluster: FakeCluster) -> None:
    result = carried_out(ledger, cluster, MOVE, CUT, max_age_s=660, canary_hold_s=60.0)
    assert [step.state for step in result.steps] == ["confirmed", "pending"]
    assert "the snapshot 20261121T083000Z is 12 min old, more than the 11m that are allowed" in result.sentence


def test_a_run_stops_once_its_snapshot_is_that_old_by_the_ledgers_clock_though_this_machines_stands_still(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    plan = approved(ledger, make_plan([MOVE, CUT]))
    slow = replace(cluster.time.clock, now_ms=lambda: START_MS)
    options = options_of(max_age_s=660, canary_hold_s=60.0)
    result = apply_plan(plan, options, Work(ledger, cluster, lambda _line: None, slow))
    assert [step.state for step in result.steps] == ["confirmed", "pending"]


def test_before_a_wave_each_destination_is_asked_once_however_many_bundles_it_got(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    names = [f"shop/orders-{number}" for number in range(12)]
    for name in names:
        cluster.bounds[name], cluster.owners[f"{name}/{LOWER}"] = list(cluster.bounds[NAMESPACE]), B1
        cluster.all_topics += [f"persistent://{name}/{topic}" for topic in "abcdefghijkl"]
    original, asked = cluster.owned_bundles, Counter[int]()

    def counting(broker: str) -> frozenset[str]:
        asked[len(cluster.writes)] += 1
        return original(broker)

    cluster.owned_bundles = counting  # type: ignore[method-assign]
    assert (
        carried_out(
            ledger,
            cluster,
            *(unload_step(number, namespace=name) for number, name in enumerate(names)),
            canary_hold_s=0.0,
        ).outcome
        == "done"
    )
    assert asked[2] == asked[11]


@pytest.mark.parametrize(
    ("valid_for_s", "max_age_s", "why"),
    [
        (3600, 660, "the snapshot 20261121T083000Z is 13 min old, more than the 11m that are allowed"),
        (60, 3600, "the approval of bob has expired"),
    ],
)
def test_no_call_is_repeated_once_the_snapshot_is_too_old_or_the_approval_has_expired(
    ledger: Ledger, cluster: FakeCluster, valid_for_s: int, max_age_s: int, why: str
) -> None:
    plan = approved(ledger, make_plan([MOVE]), valid_for_s=valid_for_s)
    cluster.lands_on = lambda _unload: None
    result = run(plan, ledger, cluster, pause_s=120.0, max_age_s=max_age_s)
    assert (result.exit_code, len(cluster.writes)) == (5, 1)
    assert why in result.sentence


def test_a_moved_bundle_that_no_broker_owns_for_a_moment_is_no_reason_to_stop(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    """Its broker may hand it over, or the namespace may have been deleted: so it proves no other mover."""
    original = cluster.owned_bundles

    def unowned(broker: str) -> frozenset[str]:
        if cluster.time.ms > START_MS + 65_000:
            cluster.owners.pop(BUNDLE, None)
        return original(broker)

    cluster.owned_bundles = unowned  # type: ignore[method-assign]
    result = carried_out(ledger, cluster, MOVE, CUT, canary_hold_s=60.0, pause_s=10.0)
    assert result.outcome == "done"
