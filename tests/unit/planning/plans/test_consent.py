from __future__ import annotations

import pytest

from pulsar_advisor.model.plans.plan import Doubt, Plan, PlannedSetting, Prediction, Step
from pulsar_advisor.planning.plans.consent import needed_consents, usage_change
from unit.execution.doubles import B1, B2, B3, UPPER, forecast, make_plan, split_step, unload_step

TIE = Doubt(confidence="low", sentence="The last digits settled the decision.")
NO_LIMIT = Doubt(confidence="medium", sentence="brokers.bandwidth_in_limit failed: its speed is not known")
LIMIT_60 = {"loadBalancerBrokerOverloadedThresholdPercentage": PlannedSetting(value="60", origin="runtime")}


def predicting(before: dict[str, float | None], after: dict[str, float | None], **changes: object) -> Plan:
    prediction = Prediction(model="proportional", before=forecast(before), after=forecast(after))
    return make_plan([unload_step()], predicted=prediction, **changes)


def needed(plan: Plan) -> dict[str, str]:
    return {each.consent.name: each.sentence for each in needed_consents(plan)}


def test_a_plan_that_helps_and_can_be_undone_needs_nothing() -> None:
    assert needed(predicting({B1: 0.8, B2: 0.2}, {B1: 0.5, B2: 0.5})) == {}


@pytest.mark.parametrize(
    ("before", "after", "at_worst", "said"),
    [
        (0.9, 0.496, 0.9, "90.0% → 49.6%, at worst 90.0%"),
        (0.9, 0.496, 0.526, "90.0% → 49.6%"),
        (0.9, 0.496, None, "90.0% → 49.6%"),
        (0.8, 0.8001, 0.95, "stays at 80.0%, at worst 95.0%"),
        (None, None, None, "unknown → unknown"),
    ],
)
def test_who_consents_reads_the_worse_end_of_the_prediction(
    before: float | None, after: float | None, at_worst: float | None, said: str
) -> None:
    plan = predicting({B1: before}, {B1: after})
    worse = plan.predicted.after.model_copy(update={"highest_maximum_ratio": at_worst})
    changed = plan.predicted.model_copy(update={"after": worse})
    assert usage_change(plan.model_copy(update={"predicted": changed})) == said


def test_a_plan_that_moves_nothing_has_no_worse_end() -> None:
    plan = predicting({B1: 0.8}, {B1: 0.8}).model_copy(update={"steps": (split_step(),)})
    worse = plan.predicted.after.model_copy(update={"highest_maximum_ratio": 0.9})
    changed = plan.predicted.model_copy(update={"after": worse})
    assert usage_change(plan.model_copy(update={"predicted": changed})) == "stays at 80.0%"


def test_a_plan_that_only_splits_needs_consent_to_the_splits_alone() -> None:
    plan = predicting({B3: 0.5}, {B3: 0.5}).model_copy(update={"steps": (split_step(),)})
    assert needed(plan) == {"splits": "it splits 1 bundle, which can't be undone"}


@pytest.mark.parametrize(
    ("plan", "because"),
    [
        (
            predicting({B1: 0.8, B2: 0.2}, {B1: 0.2, B2: 0.8}),
            "the highest predicted usage of all brokers stays at 80.0%",
        ),
        (
            predicting({B1: 0.5, B2: 0.2}, {B1: 0.2, B2: 0.6}),
            "the highest predicted usage of all brokers rises from 50.0% to 60.0%",
        ),
        (
            predicting({B1: 0.95, B2: 0.2}, {B1: 0.2, B2: 0.9}),
            f"{B2} would rise above the overload threshold of 85%: its usage rises from 20.0% to 90.0%",
        ),
        (
            predicting({B1: 0.95}, {B1: 0.2, B2: 0.9}),
            f"{B2} would rise above the overload threshold of 85%: its usage is 90.0% afterwards",
        ),
        (
            predicting({B1: 0.8, B2: 0.2}, {B1: 0.5, B2: 0.7}, settings=LIMIT_60),
            f"{B2} would rise above the overload threshold of 60%: its usage rises from 20.0% to 70.0%",
        ),
        (predicting({B1: None}, {B1: None}), "the highest usage of all brokers can't be predicted"),
        (predicting({B1: None}, {B1: 0.5}), "the highest usage of all brokers can't be predicted"),
    ],
)
def test_a_plan_that_makes_things_worse_needs_that_accepted(plan: Plan, because: str) -> None:
    assert needed(plan) == {"worse": because}


def test_no_consent_becomes_unnecessary_by_an_assumption() -> None:
    assumed = {key: one.model_copy(update={"value": "95", "origin": "what-if"}) for key, one in LIMIT_60.items()}
    plan = predicting({B1: 0.95, B2: 0.2}, {B1: 0.5, B2: 0.9}, settings=assumed)
    assert "above the overload threshold of 85%" in needed(plan)["worse"]


def test_a_broker_that_was_overloaded_before_is_not_lifted_over_the_threshold() -> None:
    assert needed(predicting({B1: 0.95, B2: 0.90}, {B1: 0.94, B2: 0.91})) == {}


def test_low_confidence_names_the_steps_and_their_low_doubts() -> None:
    plan = make_plan([unload_step(1), unload_step(2, UPPER, confidence="low", doubts=(TIE, NO_LIMIT))])
    assert needed(plan) == {"low_confidence": "step-002: The last digits settled the decision"}


@pytest.mark.parametrize(
    "steps",
    [
        [unload_step(confidence="medium", doubts=(NO_LIMIT,))],
        [unload_step(), unload_step(2, confidence="low", executable=False, not_executable_because="unowned")],
        [unload_step(), split_step(executable=False, not_executable_because="one topic")],
    ],
)
def test_medium_confidence_and_steps_that_are_not_sent_need_nothing(steps: list[Step]) -> None:
    assert needed(make_plan(steps)) == {}


def test_many_steps_of_low_confidence_are_counted() -> None:
    steps = [unload_step(number, confidence="low") for number in range(1, 6)]
    why = "the plan does not say why"
    assert needed(make_plan(steps)) == {
        "low_confidence": f"step-001: {why}; step-002: {why}; step-003: {why}; 2 more steps"
    }
