"""The first sentence: what to do, what it brings at the likely and at the worse end, and whom it is about."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.configuration.resolved_settings import ResolvedSettings
from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.model.plans.plan import BrokerForecast, Forecast, Plan, StepPrediction
from pulsar_advisor.model.strategy.decision import Split
from pulsar_advisor.planning.advice.compare import no_score
from pulsar_advisor.planning.advice.headline import (
    ByItself,
    advised_sentence,
    none_judged,
    plan_sentence,
    unadvised_sentence,
    unjudged_sentence,
)
from pulsar_advisor.planning.proposals.fitness import refusals
from pulsar_advisor.planning.proposals.proposal import Move
from pulsar_advisor.planning.situation import Situation
from pulsar_advisor.planning.usage.noise import NoiseFloor
from states import BrokerRow, cluster_state
from unit.planning.made_plans import plan_of

FLOOR = 0.03


@pytest.fixture
def moving(state: ClusterState, settings: ResolvedSettings) -> Plan:
    """One bundle of a:8080 goes to b:8080."""
    return plan_of(state, settings, (Move(1, 0, 1, "because", near_tie=False),))


def forecast(worst: float | None = None, **usage: float | tuple[float, str]) -> Forecast:
    """Usage of brokers, with the deciding resource if it isn't CPU; `worst` is that of the busiest at most."""

    def broker(figure: float | tuple[float, str]) -> BrokerForecast:
        ratio, resource = figure if isinstance(figure, tuple) else (figure, "cpu")
        return BrokerForecast(
            usage_ratio=ratio,
            highest_usage_ratio=worst if ratio == highest else ratio,
            resource=resource,
            msg_rate_per_s=0.0,
            throughput_bytes_per_s=0.0,
            bundles=1,
        )

    highest = max(figure[0] if isinstance(figure, tuple) else figure for figure in usage.values())
    return Forecast(
        brokers={f"{name}:8080": broker(figure) for name, figure in usage.items()},
        maximum_ratio=highest,
        highest_maximum_ratio=worst,
        mean_ratio=None,
        standard_deviation_ratio=None,
    )


def predicting(plan: Plan, after: Forecast, goal: Goal | None = None) -> Plan:
    predicted = plan.predicted.model_copy(update={"before": forecast(a=0.925, b=0.2), "after": after})
    return plan.model_copy(update={"predicted": predicted, "goal": goal})


def test_the_busiest_broker_and_its_resource_are_named(moving: Plan) -> None:
    assert plan_sentence(predicting(moving, forecast(0.52, a=0.511, b=0.4)), FLOOR) == (
        "Unload 1 bundle from a:8080: the busiest broker should fall from 92.5% (CPU) to 51.1%."
    )


def test_a_busiest_broker_that_stays_as_busy_as_it_was_is_said_to(moving: Plan) -> None:
    found = plan_sentence(predicting(moving, forecast(0.93, a=0.9252, b=0.4)), FLOOR)
    assert found == "Unload 1 bundle from a:8080: the busiest broker stays at 92.5% (CPU)."


def test_another_resource_that_decides_afterwards_is_named_too(moving: Plan) -> None:
    after = forecast(0.6, a=(0.6, "bandwidthOut"), b=0.4)
    assert plan_sentence(predicting(moving, after)).endswith("from 92.5% (CPU) to 60.0% (outbound bandwidth).")


def test_a_worse_end_that_is_still_a_gain_is_a_figure(moving: Plan) -> None:
    found = plan_sentence(predicting(moving, forecast(0.7, a=0.511, b=0.4)), FLOOR)
    assert found.endswith("should fall from 92.5% (CPU) to 51.1%, at worst to 70.0%.")


def test_a_worse_end_that_is_no_gain_is_said(moving: Plan) -> None:
    found = plan_sentence(predicting(moving, forecast(0.925, a=0.511, b=0.4)), FLOOR)
    assert found.endswith("may fall from 92.5% (CPU) to 51.1%, at worst not at all.")


def test_of_several_unloads_the_first_shows_which_end_is_true(moving: Plan) -> None:
    twice = moving.model_copy(update={"steps": moving.steps * 2})
    found = plan_sentence(predicting(twice, forecast(0.925, a=0.511, b=0.4)), FLOOR)
    assert found.endswith("to 51.1%, at worst not at all: try one bundle first.")
    found = plan_sentence(predicting(twice, forecast(0.99, a=0.511, b=0.4)), FLOOR)
    assert found.startswith("Try one bundle first: at worst the busiest broker rises from 92.5% to 99.0%. Unload 2")


def test_of_an_exchange_no_single_bundle_is_tried_that_would_overload_a_broker(moving: Plan) -> None:
    (step,) = moving.steps
    above = step.model_copy(update={"predicted": StepPrediction(brokers={"a:8080": 0.6, "b:8080": 0.975})})
    exchange = predicting(moving.model_copy(update={"steps": (above, step)}), forecast(0.99, a=0.7, b=0.4))
    assert plan_sentence(exchange, FLOOR).startswith("At worst the busiest broker rises from 92.5% to 99.0%. Unload 2")


def test_a_worse_end_that_is_a_loss_comes_first(moving: Plan) -> None:
    found = plan_sentence(predicting(moving, forecast(0.99, a=0.511, b=0.4)), FLOOR)
    assert found.startswith(
        "At worst the busiest broker rises from 92.5% to 99.0%. Unload 1 bundle from a:8080: the busiest broker may "
        "fall from 92.5% (CPU) to 51.1%."
    )


def test_of_several_sources_those_with_the_most_unloads_are_named(moving: Plan) -> None:
    (step,) = moving.steps
    sources = ["a", "a", "b", "c", "d", "e"]
    plan = moving.model_copy(update={"steps": tuple(step.model_copy(update={"source": name}) for name in sources)})
    assert plan_sentence(plan).startswith(
        "Unload 6 bundles (2 from a, 1 from b, 1 from c, the rest from 2 more brokers): the busiest broker"
    )


QUIET = replace(no_score("A", "B", ""), error=None, why_nothing="All brokers are near the mean.")
QUIET_TOO = ByItself(False, "Pulsar itself sheds no load.")


@pytest.fixture
def situation(state: ClusterState, settings: ResolvedSettings) -> Situation:
    """Figures differ by 2 points from one snapshot to the next."""
    found = Situation.of(state, settings)
    vars(found).update(noise=NoiseFloor(0.02, "history"))
    return found


def test_without_traffic_there_is_nothing_to_balance_however_busy_a_broker_is(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    state.brokers.traffic[:] = 0.0
    sentence = unadvised_sentence(Situation.of(state, settings), [QUIET], QUIET_TOO, uneven="b is at 90%.")
    assert sentence.startswith("There is no load to balance: no broker reports any message")


def test_doing_nothing_has_a_sentence_too(situation: Situation) -> None:
    assert unadvised_sentence(situation, [QUIET], QUIET_TOO) == (
        "Do nothing: no strategy would act on these figures. All brokers are near the mean. Pulsar itself sheds no "
        "load."
    )
    small = replace(QUIET, steps=1, unloads=200, maximum_before=0.9, maximum_after=0.89999)
    assert unadvised_sentence(situation, [small], QUIET_TOO) == (
        "Do nothing: no strategy lowers the busiest broker by more than 2.0 points, and figures differ that much from "
        "one snapshot to the next. Pulsar itself sheds no load."
    )


def test_what_pulsar_does_by_itself_without_a_gain_is_not_to_do_nothing(situation: Situation) -> None:
    small = replace(QUIET, steps=1, unloads=4, maximum_before=0.6, maximum_after=0.59)
    acts = ByItself(True, "Pulsar's own A with B would settle in cycle 1.")
    sentence = unadvised_sentence(situation, [small], acts)
    assert sentence == (
        "No plan is worthwhile: no strategy lowers the busiest broker by more than 2.0 points, and figures differ that "
        "much from one snapshot to the next. Pulsar's own A with B would settle in cycle 1."
    )


def test_an_overloaded_broker_is_never_answered_with_do_nothing(situation: Situation) -> None:
    assert unadvised_sentence(situation, [replace(QUIET, steps=1)], QUIET_TOO, uneven="a:8080 is at 95.0%.") == (
        "No strategy finds a move that lowers the busiest broker. a:8080 is at 95.0%."
    )


def test_where_nothing_shows_where_bundles_go_no_gain_is_denied(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    unloads = replace(QUIET, steps=1, unloads=1)
    simple = Situation.of(replace(state, load_manager="simple"), settings)
    assert unadvised_sentence(simple, [unloads], QUIET_TOO, uneven="a:8080 is at 95.0%.") == (
        "What a plan brings isn't known, as this load manager chooses where each unloaded bundle goes. a:8080 is at "
        "95.0%."
    )


def test_what_could_not_be_judged_is_said_and_not_taken_for_balance() -> None:
    state = cluster_state([BrokerRow("a:8080")], [], missing={"isolation_policies": "isolation_policies: 500"})
    (lack,) = refusals("ThresholdShedder", "shedder", frozenset({"isolation_policies"}), state)
    refused = replace(QUIET, why_nothing=lack.sentence)
    assert none_judged([refused], [lack])
    assert unjudged_sentence([refused], [lack]) == (
        "No unload can be judged: isolation_policies is missing (isolation_policies: 500)."
    )
    assert not none_judged([refused, QUIET], [lack])


def test_without_a_known_busiest_broker_only_the_steps_are_said(moving: Plan) -> None:
    plan = predicting(moving, forecast(0.52, a=0.511, b=0.4).model_copy(update={"maximum_ratio": None}))
    assert plan_sentence(plan, FLOOR) == "Unload 1 bundle from a:8080."


def test_limits_are_said_before_that_no_strategy_would_act(situation: Situation) -> None:
    limited = replace(QUIET, why_nothing="The limits leave out all 4 unloads: 4 by --max-unloads 0.")
    assert unadvised_sentence(situation, [limited], QUIET_TOO, limited=True).startswith(
        "Do nothing: within the limits no strategy would act on these figures. The limits leave out all 4 unloads: "
    )


def test_of_an_overloaded_broker_a_split_alone_is_not_all_that_is_said(
    moving: Plan, state: ClusterState, settings: ResolvedSettings
) -> None:
    split = Split(0, "range_equally_divide", (0x20000000,), "too many", near_tie=False)
    splitting = plan_of(state, settings, splits=(split,))
    uneven = "a:8080 is at 95.0%."
    assert advised_sentence(splitting, QUIET_TOO, FLOOR, uneven).startswith(f"{uneven} Split 1 bundle")
    assert uneven not in advised_sentence(moving, QUIET_TOO, FLOOR, uneven)


def test_what_pulsar_does_by_itself_is_said_where_only_splits_are_advised(
    moving: Plan, state: ClusterState, settings: ResolvedSettings
) -> None:
    splitting = plan_of(state, settings, splits=(Split(0, "range_equally_divide", (1,), "too many", near_tie=False),))
    acts = ByItself(True, "Pulsar's own A settles in cycle 1.")
    assert advised_sentence(splitting, acts, FLOOR, None).endswith(acts.sentence)
    assert acts.sentence not in advised_sentence(moving, acts, FLOOR, None)


def test_a_split_whose_parts_move_comes_first(moving: Plan) -> None:
    (whole,) = moving.steps
    cut = whole.model_copy(update={"id": "step-000", "action": "split"})
    part = whole.model_copy(update={"after": (cut.id,)})
    steps = {"steps": (cut, part)}
    said = plan_sentence(predicting(moving, forecast(a=0.5, b=0.4)).model_copy(update=steps))
    assert said.startswith(f"Split 1 bundle of {whole.namespace}, which can't be undone, then unload 1 bundle from a:")
    assert "Then split" not in said


def test_where_every_strategy_fails_nothing_is_said_of_the_figures() -> None:
    failed = no_score("Own", "AvgShedder", "there is no shedder 'Own'")
    assert none_judged([failed], [])
    assert unjudged_sentence([failed], []) == "No unload can be judged: there is no shedder 'Own'."
