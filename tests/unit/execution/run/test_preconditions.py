from __future__ import annotations

import pytest

from pulsar_advisor.execution.run.preconditions import Found, foreign, isolated_from, malformed, overload, stale
from pulsar_advisor.model.cluster.cluster_state import IsolationPolicy
from pulsar_advisor.model.plans.plan import Step, StepPrediction
from unit.execution.doubles import B1, B2, B3, START_MS, UPPER, make_plan, split_step, unload_step

ACTIVE = frozenset({B1, B2, B3})
NEW = "10.0.0.4:8080"
MOVE = unload_step()
PLAN = make_plan([MOVE])


@pytest.mark.parametrize(
    ("step", "changes", "reason"),
    [
        (MOVE, {"pulsar_version": "latest"}, "Pulsar version 'latest' can't be read"),
        (MOVE, {"load_manager": "simple"}, "Simple load manager doesn't keep the destination"),
        (MOVE, {"pulsar_version": "2.11.0"}, "doesn't keep the destination"),
        (unload_step(namespace="pulsar/system"), {}, "pulsar/system is one of Pulsar's own"),
        (unload_step(namespace="sla-monitor/live/b:8080"), {}, "sla-monitor/live/b:8080 is one of Pulsar's own"),
        (unload_step(bundle="0x0_0x80000000"), {}, "is not a bundle range"),
        (unload_step(destination=B1), {}, "is the source"),
        (unload_step(source="", destination=B2), {}, "the source '' is not the owner the step expects"),
        (MOVE.model_copy(update={"source": B3}), {}, f"the source '{B3}' is not the owner the step expects, '{B1}'"),
        (unload_step(after=("step-007",)), {}, "comes after step-007"),
        (split_step(at=("0xbfffffff", "0xbfffffff")), {}, "distinct and ascending"),
        (split_step(at=()), {}, "distinct and ascending"),
        (split_step(at=("0x80000000",)), {}, "must lie inside"),
        (split_step(at=("0xBFFFFFFF",)), {}, "0xBFFFFFFF must have the form 0x00000000"),
        (split_step(boundaries=("half",)), {}, "half are not hexadecimal numbers"),
        (split_step(children=(UPPER,)), {}, "not those of the boundaries"),
        (split_step(at=("0x90000000", "0xa0000000")), {"load_manager": "extensible"}, "splits in two only"),
        (split_step(at=("0x90000000",)), {"pulsar_version": "2.10.5"}, "equal halves"),
    ],
)
def test_what_no_cluster_should_see(step: Step, changes: dict[str, object], reason: str) -> None:
    [found] = malformed(make_plan([step], **changes))
    assert reason in found


def test_a_release_without_positions_cuts_where_a_plan_asks_for_equal_halves() -> None:
    assert list(malformed(make_plan([split_step(at=("0xbfffffff",))], pulsar_version="2.10.5"))) == []


def test_a_second_step_of_an_id_would_be_taken_for_the_first() -> None:
    assert list(malformed(make_plan([MOVE, unload_step(1, UPPER)]))) == [
        f"{MOVE.id}: a step of that id is already in the plan"
    ]


@pytest.mark.parametrize(
    ("active", "is_foreign"),
    [
        (ACTIVE, False),
        (ACTIVE | {NEW}, False),
        (ACTIVE - {B3}, False),
        (frozenset({B1, NEW}), True),
        (frozenset({NEW}), True),
        (frozenset(), True),
    ],
)
def test_a_cluster_is_the_same_while_half_of_its_brokers_are(active: frozenset[str], is_foreign: bool) -> None:
    assert (foreign(PLAN, "live", active) is not None) == is_foreign


def test_a_cluster_of_another_name_is_another_one_whatever_its_brokers() -> None:
    assert "the brokers reached say 'staging'" in (foreign(PLAN, "staging", ACTIVE) or "")


@pytest.mark.parametrize(
    ("later_s", "is_stale"),
    [(0, False), (6 * 3600 - 601, False), (6 * 3600 - 599, True), (-899, False), (-901, True)],
)
def test_a_snapshot_is_stale_after_its_age_and_before_its_time(later_s: int, is_stale: bool) -> None:
    assert (stale(PLAN, 6 * 3600, START_MS + later_s * 1000) is not None) == is_stale


def test_a_snapshot_without_a_time_in_its_name_is_of_unknown_age() -> None:
    nameless = PLAN.model_copy(update={"snapshot": "yesterday"})
    assert "'yesterday' is not of the form" in (stale(nameless, 6 * 3600, START_MS) or "")


def policy(primary: str, secondary: str = "nobody", namespaces: str = "shop/.*", min_limit: int = 1) -> IsolationPolicy:
    return IsolationPolicy("vip", (namespaces,), (primary,), (secondary,), min_limit, 100)


def found(policies: tuple[IsolationPolicy, ...], release: str = "4.0.8") -> Found:
    return Found(ACTIVE, (), None, 0, isolation_policies=policies, release=release)


@pytest.mark.parametrize(
    ("policies", "allowed"),
    [
        ((), True),
        ((policy(r"10\.0\.0\.2"),), True),
        ((policy(r"10\.0\.0\.1"),), False),
        ((policy(r"10\.0\.0\.1", r"10\.0\.0\.2"),), False),
        ((policy(r"10\.0\.0\.1", r"10\.0\.0\.2", min_limit=2),), True),
        ((policy(r"10\.0\.0\.2", namespaces="bank/.*"),), False),
        ((policy(r"10\.0\.0\.1", namespaces="bank/.*"),), True),
        ((policy(r"10\.0\.0\.2"), policy(r"10\.0\.0\.1")), True),
        ((policy("(unclosed"),), False),
    ],
)
def test_isolation_policies_say_where_a_namespace_may_go(policies: tuple[IsolationPolicy, ...], allowed: bool) -> None:
    assert (isolated_from("shop/orders", B2, found(policies)) is None) == allowed


def test_from_5_0_1_on_policies_may_name_a_broker_by_its_whole_id() -> None:
    here, elsewhere = (policy(r"10\.0\.0\.2:\d+", namespaces=one) for one in ("shop/.*", "bank/.*"))
    assert isolated_from("shop/orders", B2, found((here,), "5.0.1")) is None
    assert "keeps shop/orders off" in (isolated_from("shop/orders", B2, found((here,), "4.0.8")) or "")
    assert "for other namespaces" in (isolated_from("shop/orders", B2, found((elsewhere,), "5.0.1")) or "")
    assert isolated_from("shop/orders", B2, found((elsewhere,), "4.0.8")) is None


def test_a_broker_id_without_a_port_fits_no_policy() -> None:
    assert isolated_from("shop/orders", "pulsar-2", found(())) == "pulsar-2 is not a broker id of the form host:port"


@pytest.mark.parametrize(
    ("fresh", "overloads"),
    [(0.2, False), (0.54, False), (0.56, True), (None, False)],
)
def test_a_step_is_forecast_again_on_fresh_usage(fresh: float | None, overloads: bool) -> None:
    assert bool(list(overload(PLAN, PLAN.steps[0], fresh, ()))) == overloads


def test_figures_that_lag_behind_the_plans_own_moves_do_not_hide_an_overload() -> None:
    first = unload_step(1, predicted=StepPrediction(brokers={B1: 0.5, B2: 0.8}))
    second = unload_step(2, predicted=StepPrediction(brokers={B1: 0.4, B2: 0.9}))
    plan = make_plan([first, second])
    assert list(overload(plan, second, 0.2, {first.id})) == [
        f"the destination {B2} is at 20.0% now and would be at 90.0%; above 85% it is overloaded"
    ]


def test_a_step_sent_before_its_turn_is_forecast_without_the_steps_that_were_not() -> None:
    first = unload_step(1, predicted=StepPrediction(brokers={B1: 0.5, B2: 0.8}))
    second = unload_step(2, predicted=StepPrediction(brokers={B1: 0.4, B2: 0.9}))
    assert list(overload(make_plan([first, second]), second, 0.2, ())) == []


def test_a_step_that_was_sent_without_effect_is_forecast_once() -> None:
    step = unload_step(1, predicted=StepPrediction(brokers={B1: 0.4, B2: 0.6}))
    assert list(overload(make_plan([step]), step, 0.2, {step.id})) == []


def test_relief_that_did_not_come_is_not_counted_on() -> None:
    relief = unload_step(1, source=B2, destination=B3, predicted=StepPrediction(brokers={B2: 0.1, B3: 0.4}))
    step = unload_step(2, predicted=StepPrediction(brokers={B1: 0.1, B2: 0.8}))
    elsewhere = unload_step(3, UPPER, destination=B3, predicted=StepPrediction(brokers={B1: 0.05, B3: 0.45}))
    plan = make_plan([relief, step, elsewhere])
    assert list(overload(plan, step, 0.1, {relief.id})) == []
    assert len(list(overload(plan, step, 0.1, ()))) == 1
