from __future__ import annotations

import pytest
from sqlalchemy import text

from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.run.observe import open_calls
from pulsar_advisor.execution.run.steering import abort, left_open
from pulsar_advisor.execution.undo import propose_undo
from pulsar_advisor.model.cluster.cluster_state import LoadManagerKind
from pulsar_advisor.model.plans.names import short
from pulsar_advisor.model.plans.plan import Step
from pulsar_advisor.model.plans.sealed import digest_of
from unit.execution.actors import ALICE, approved, killed_at_work, run
from unit.execution.doubles import (
    B1,
    B2,
    B3,
    BASKETS,
    LOWER_BUNDLE,
    MOVE,
    UPPER,
    FakeCluster,
    make_plan,
    split_step,
    unload_step,
    widen,
)

NOWHERE = unload_step(1, destination=None)
CUT_IN_TWO = split_step(1)
MOVE_UPPER = unload_step(1, UPPER)


@pytest.mark.parametrize(
    ("manager", "still_open", "is_forbidden"),
    [
        ("modular", MOVE, True),
        ("modular", NOWHERE, False),
        ("modular", CUT_IN_TWO, False),
        ("extensible", MOVE, False),
    ],
    ids=["a destination on a Modular leader", "an unload without one", "a split", "Extensible"],
)
def test_an_open_call_forbids_unloads_of_its_range_in_other_namespaces_only_if_a_leader_remembers_its_destination(
    ledger: Ledger, cluster: FakeCluster, manager: LoadManagerKind, still_open: Step, is_forbidden: bool
) -> None:
    cluster.manager = manager
    expect = MOVE.expect.model_copy(update={"owner": widen(cluster).owners[f"{BASKETS}/{still_open.bundle}"]})
    owner = expect.owner or ""
    first = approved(ledger, make_plan([still_open], load_manager=manager))
    killed_at_work(ledger, cluster, first, "before the call")
    other = unload_step(2, still_open.bundle, owner, B3, namespace=BASKETS, expect=expect)
    result = run(approved(ledger, make_plan([other], load_manager=manager)), ledger, cluster, dry_run=True)
    assert ("may still wait on the leader" in "".join(result.refusals)) == is_forbidden


@pytest.mark.parametrize("manager", ["modular", "extensible"])
@pytest.mark.parametrize("still_open", [MOVE_UPPER, CUT_IN_TWO], ids=["unload", "split"])
@pytest.mark.parametrize("other", [MOVE_UPPER, CUT_IN_TWO], ids=["unload", "split"])
def test_an_open_call_forbids_calls_about_its_own_bundle(
    ledger: Ledger, cluster: FakeCluster, manager: LoadManagerKind, still_open: Step, other: Step
) -> None:
    """Split meanwhile, a bundle on its way would have no owner to find, and its destination no bundle to consume it."""
    cluster.manager = manager
    first = approved(ledger, make_plan([still_open], load_manager=manager))
    killed_at_work(ledger, cluster, first, "before the call")
    again = approved(ledger, make_plan([other], load_manager=manager, seed=7))
    [refusal] = run(again, ledger, cluster, dry_run=True).refusals
    assert f"first `pulsar-advisor apply {short(digest_of(first))} --resume`, or end it with" in refusal


def test_an_open_call_of_an_undone_plan_is_settled_only_by_ending_its_run(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, make_plan([MOVE, unload_step(2, UPPER, B1, B2)]))
    cluster.whenever("after the call", lambda: setattr(cluster, "unreadable", len(cluster.writes) == 2))
    assert run(plan, ledger, cluster).outcome == "partial"
    cluster.unreadable = False
    assert run(approved(ledger, propose_undo(plan, ledger, cluster)), ledger, cluster).outcome == "done"
    [still_open] = open_calls(ledger, "live")
    assert still_open.to_do == f"end it with `pulsar-advisor apply {short(digest_of(plan))} --abort`"


@pytest.mark.parametrize("manager", ["modular", "extensible"])
def test_an_open_call_of_a_plan_that_can_not_be_read_may_have_left_its_destination(
    ledger: Ledger, cluster: FakeCluster, manager: LoadManagerKind
) -> None:
    cluster.manager = manager
    plan = approved(ledger, make_plan([MOVE], load_manager=manager))
    killed_at_work(ledger, cluster, plan, "before the call")
    with ledger.writing() as session:
        session.execute(text("DROP TRIGGER plans_fixed"))
        session.execute(text("UPDATE plans SET document = '{}'"))
    assert [(call.bundle, call.leaves_destination) for call in open_calls(ledger, "live")] == [(LOWER_BUNDLE, True)]
    [to_check] = left_open(ledger, abort(ledger, plan, ALICE))
    assert f"{LOWER_BUNDLE}: the outcome of its call is unknown, and no run blocks its range" in to_check
