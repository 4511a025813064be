"""The steps of a plan with their effects."""

from __future__ import annotations

from dataclasses import replace

from pulsar_advisor.planning.proposals.proposal import Move
from pulsar_advisor.reporting.steps import step_lists
from states import QUARTERS
from unit.reporting.skewed import (
    BROKERS,
    bundle_row,
    checks_of,
    make_plan,
    skewed_inputs,
    skewed_settings,
    skewed_state,
)


def test_each_step_starts_from_where_the_one_before_it_ended() -> None:
    inputs = skewed_inputs()
    unloads, _ = step_lists(inputs.state, inputs.plans[0])
    before = inputs.plans[0].predicted.before.brokers[BROKERS[0]].usage_ratio
    usage = [(effect.before_ratio, effect.after_ratio) for view in unloads.shown for effect in view.effects[:1]]
    assert usage[0][0] == before
    assert usage[0][1] == usage[1][0]
    assert usage[1][1] == inputs.plans[0].predicted.after.brokers[BROKERS[0]].usage_ratio


def test_a_split_shares_out_the_topics_and_the_load_of_its_bundle() -> None:
    inputs = skewed_inputs()
    _, splits = step_lists(inputs.state, inputs.plans[0])
    (view,) = splits.shown
    assert [child.range for child in view.children] == list(view.step.children)
    assert all(child.topics for child in view.children)
    assert round(sum(child.msg_rate_per_s for child in view.children), 6) == round(
        view.step.expect.msg_rate_per_s or 0.0, 6
    )


def test_without_an_advised_plan_there_are_no_steps() -> None:
    unloads, splits = step_lists(skewed_inputs().state, None)
    assert (unloads.total, splits.total) == (0, 0)


def test_a_step_says_what_it_rests_on_and_what_of_it_failed_there() -> None:
    state = skewed_state()
    first, second = (bundle_row(state, f"shop/orders/{text}") for text in QUARTERS[:2])
    moves = (Move(first, 0, 3, "because", near_tie=False), Move(second, 0, 2, "because", near_tie=False))
    failing = checks_of(("brokers.bandwidth_in_limit", BROKERS[3]))
    unloads, _ = step_lists(state, make_plan(state, skewed_settings(), moves=moves, checks=failing))
    assert [view.checks.replace("\u00a0", " ") for view in unloads.shown] == [
        "Based on 3 checks, 1 failed.",
        "Based on 3 checks, all passed.",
    ]
    assert [view.step.failed_checks for view in unloads.shown] == [("brokers.bandwidth_in_limit",), ()]
    assert [view.step.confidence for view in unloads.shown] == ["medium", "high"]
    assert unloads.rests_on == ("brokers.bandwidth_in_limit", "brokers.cpu_limit", "brokers.memory_limit")


def test_a_plan_that_names_no_checks_claims_none() -> None:
    inputs = skewed_inputs()
    unloads, _ = step_lists(inputs.state, inputs.plans[0])
    assert {view.checks for view in unloads.shown} == {""}


def test_a_step_names_the_owner_that_it_expects_if_that_is_not_its_source() -> None:
    inputs = skewed_inputs()
    unloads, _ = step_lists(inputs.state, inputs.plans[0])
    step = unloads.shown[0].step
    expect = step.expect.model_copy(update={"owner": BROKERS[3]})
    view = replace(unloads.shown[0], step=step.model_copy(update={"expect": expect}))
    assert view.condition.replace("\u00a0", " ").startswith(
        f"Sent only if {BROKERS[3]} still owns it and its namespace still has the same 4 bundles"
    )
