from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import create_engine

from pulsar_advisor.execution.apply import apply_plan
from pulsar_advisor.execution.consent.approval import propose
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.run.options import Work
from pulsar_advisor.model.cluster.cluster_state import IsolationPolicy
from pulsar_advisor.model.errors import Refused
from unit.execution.actors import BOB, FOUR_EYES, approved, carried_out, killed_at_work, kinds, options_of, run
from unit.execution.doubles import (
    B1,
    B2,
    B3,
    LOWER_BUNDLE,
    MOVE,
    NAMESPACE,
    UPPER,
    FakeCluster,
    FakeTime,
    make_plan,
    split_step,
    unload_step,
)


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (
            lambda c: setattr(c, "name", "staging"),
            "the plan is for cluster 'live', but the brokers reached say 'staging'",
        ),
        (lambda c: setattr(c, "brokers", {B1, "10.9.9.8:8080"}), "only 1 of the plan's 3 brokers is active here"),
        (lambda c: setattr(c, "manager", "extensible"), "made for the modular load manager"),
        (lambda c: c.owners.update({LOWER_BUNDLE: B3}), f"the bundle is on {B3}, not on {B1} any more"),
        (lambda c: c.owners.pop(LOWER_BUNDLE), "the bundle has no owner"),
        (lambda c: c.bounds[NAMESPACE].insert(1, 0x40000000), "have changed at 0x40000000: somebody split a bundle"),
        (lambda c: c.bounds[NAMESPACE].pop(1), "have changed at 0x80000000: it was created again, with other bundles"),
        (lambda c: c.bounds.clear(), "does not exist or is being deleted"),
        (lambda c: c.brokers.remove(B2), f"the destination {B2} is not an active broker"),
        (lambda c: c.all_topics.clear(), "no topic of the bundle is loaded"),
        (lambda c: c.usage.update({B2: 0.7}), "would be at 100.0%"),
        (
            lambda c: setattr(c, "policies", (IsolationPolicy("vip", ("shop/.*",), (r"10\.0\.0\.1",), (), 1, 100),)),
            "isolation policy 'vip' keeps shop/orders off",
        ),
        (
            lambda c: (setattr(c, "peers", frozenset({"shop/b"})), c.owners.update({f"shop/b/{UPPER}": B2})),
            "has bundles of 1 other namespace of the same anti-affinity group, and the source of 0",
        ),
    ],
)
def test_a_world_that_has_changed_is_refused_and_nothing_is_sent(
    ledger: Ledger, cluster: FakeCluster, spoil: Callable[[FakeCluster], object], reason: str
) -> None:
    plan = approved(ledger, make_plan([MOVE]), consents=())
    spoil(cluster)
    with pytest.raises(Refused, match=reason.replace("(", r"\(")):
        run(plan, ledger, cluster)
    assert cluster.writes == []
    assert cluster.lookups == []


@pytest.mark.parametrize(
    ("step", "changes", "reason"),
    [
        (split_step(at=("0xbfffffff", "0xbfffffff")), {}, "distinct and ascending"),
        (unload_step(executable=False, not_executable_because="unowned"), {}, "no step"),
        (unload_step(), {"shedder": "roll"}, "the plan is a roll"),
    ],
)
def test_a_plan_that_no_cluster_should_see_is_refused(
    ledger: Ledger, cluster: FakeCluster, step: object, changes: dict[str, object], reason: str
) -> None:
    plan = make_plan([step], **changes)  # type: ignore[list-item]
    cluster.manager = plan.load_manager
    with pytest.raises(Refused, match=reason):
        run(plan, ledger, cluster)
    assert cluster.writes == []


def test_without_an_approval_nothing_is_sent_and_that_is_remembered(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = make_plan([MOVE])
    with pytest.raises(Refused, match="has no approval: have it approved") as refusal:
        run(plan, ledger, cluster)
    assert refusal.value.exit_code == 4
    assert cluster.writes == []
    assert kinds(ledger, plan) == ["refused"]


def test_an_old_snapshot_is_refused(ledger: Ledger, cluster: FakeCluster) -> None:
    with pytest.raises(Refused, match=r"10 min old, more than the 6m that are allowed"):
        carried_out(ledger, cluster, MOVE, max_age_s=360)
    assert cluster.writes == []


def test_a_snapshot_that_has_just_become_too_old_is_older_than_the_limit_in_words_too(
    ledger: Ledger, cluster: FakeCluster, time: FakeTime
) -> None:
    time.pass_s(6 * 3600 - 599)
    plan = approved(ledger, make_plan([MOVE]))
    with pytest.raises(Refused, match=r"is 6\.1 h old, more than the 6h that are allowed"):
        run(plan, ledger, cluster)


def test_a_snapshot_that_is_old_by_the_ledgers_clock_is_refused_by_a_machine_whose_clock_is_slow(
    ledger: Ledger, cluster: FakeCluster, time: FakeTime
) -> None:
    plan = approved(ledger, make_plan([MOVE]))
    slow = replace(time.clock, now_ms=lambda: time.ms - 600_000)
    with pytest.raises(Refused, match=r"10 min old, more than the 6m that are allowed"):
        apply_plan(plan, options_of(max_age_s=360), Work(ledger, cluster, lambda _line: None, slow))
    assert cluster.writes == []


def test_while_the_metadata_store_is_migrated_nothing_starts(ledger: Ledger, cluster: FakeCluster) -> None:
    cluster.migration = "COPYING"
    with pytest.raises(Refused, match=r"metadata store is being migrated \(COPYING\): apply when that is over"):
        carried_out(ledger, cluster, MOVE)
    assert cluster.writes == []


def test_there_must_be_something_to_resume(ledger: Ledger, cluster: FakeCluster) -> None:
    with pytest.raises(Refused, match="there is nothing to resume"):
        carried_out(ledger, cluster, MOVE, resume=True)


def test_an_approval_of_one_plan_is_none_of_another(ledger: Ledger, cluster: FakeCluster) -> None:
    approved(ledger, make_plan([MOVE]))
    with pytest.raises(Refused, match="has no approval"):
        run(make_plan([MOVE], seed=1), ledger, cluster)
    assert cluster.writes == []


def test_the_policy_is_asked_again_when_the_plan_is_applied(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, make_plan([MOVE]))
    propose(ledger, plan, BOB)
    with pytest.raises(Refused, match="bob proposed"):
        run(plan, ledger, cluster)
    relaxed = FOUR_EYES.model_copy(update={"separate_approver": False})
    assert run(plan, ledger, cluster, policy=relaxed).outcome == "done"


def test_a_run_without_some_of_its_steps_is_not_resumed(ledger: Ledger, cluster: FakeCluster, tmp_path: Path) -> None:
    plan = approved(ledger, make_plan([unload_step(1), unload_step(2, UPPER)]))
    killed_at_work(ledger, cluster, plan)
    cluster.time.pass_s(3600)
    with create_engine(f"sqlite:///{tmp_path}/ledger.sqlite").begin() as connection:
        connection.exec_driver_sql("DROP TRIGGER steps_no_delete")
        connection.exec_driver_sql("DELETE FROM steps WHERE step_id = 'step-002'")
    sent = list(cluster.writes)
    with pytest.raises(Refused, match="the ledger holds other steps for run 1 than its plan has"):
        run(plan, ledger, cluster, resume=True)
    assert cluster.writes == sent
