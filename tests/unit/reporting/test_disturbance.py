"""What a plan disturbs is estimated from its steps and from the clients of the bundles it moves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pulsar_advisor.model.bounds import VALID_FOR_S
from pulsar_advisor.model.plans.goal import ROLL
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.reporting.disturbance import Disturbance, disturbance_of, tenants_of
from unit.reporting.scores import plain
from unit.reporting.skewed import skewed_inputs


def takes_s(calls: int) -> float:
    return 100.0 * calls


def advised() -> tuple[Plan, Disturbance]:
    inputs = skewed_inputs()
    found = disturbance_of(inputs.state, inputs.plans[0], takes_s)
    assert found is not None
    return inputs.plans[0], found


def test_topics_and_throughput_are_those_that_the_unloads_expect() -> None:
    plan, found = advised()
    unloads = [step for step in plan.steps if step.executable and step.action == "unload"]
    assert found.topics == sum(step.expect.topics for step in unloads)
    assert found.throughput_bytes_per_s == sum(step.expect.throughput_bytes_per_s or 0 for step in unloads)
    assert found.largest_step_topics == max(step.expect.topics for step in unloads)
    assert found.calls == sum(step.executable for step in plan.steps)


def test_duration_and_impact_are_said() -> None:
    duration, impact = (plain(sentence) for sentence in advised()[1].sentences)
    assert duration.startswith("Applying takes at least ")
    assert " close, one bundle at a time, and " in impact


def test_messages_to_non_persistent_topics_are_said_to_be_lost() -> None:
    inputs = skewed_inputs()
    plan, state = inputs.plans[0], inputs.state
    unload = next(step for step in plan.steps if step.executable and step.action == "unload")
    held = np.flatnonzero([state.bundle_name(row) == unload.bundle_name for row in state.topics.bundle.tolist()])
    names = state.topics.names.copy()
    names[held[:2]] = ["non-persistent://t/n/a", "non-persistent://t/n/b"]
    found = disturbance_of(replace(state, topics=replace(state.topics, names=names)), plan, takes_s)
    assert found is not None
    assert found.sentences[-1] == (
        "2 of these topics are non-persistent: messages sent until the clients are back are lost."
    )


def test_of_a_split_bundles_topics_only_those_of_the_moving_child_are_lost() -> None:
    inputs = skewed_inputs()
    plan, state = inputs.plans[0], inputs.state
    unload = next(step for step in plan.steps if step.executable and step.action == "unload")
    held = np.flatnonzero([state.bundle_name(row) == unload.bundle_name for row in state.topics.bundle.tolist()])
    names, position = state.topics.names.copy(), np.sort(state.topics.hash[held])
    names[held] = [f"non-persistent://t/n/{row}" for row in held.tolist()]
    child = f"{unload.bundle.partition('_')[0]}_0x{position[1]:08x}"
    plan = plan.model_copy(update={"steps": (unload.model_copy(update={"bundle": child}),)})
    found = disturbance_of(replace(state, topics=replace(state.topics, names=names)), plan, takes_s)
    assert (len(held) > 1, found and found.non_persistent_topics) == (True, 1)


def test_of_a_roll_only_the_first_turn_is_estimated() -> None:
    inputs = skewed_inputs()
    roll = inputs.plans[0].model_copy(update={"shedder": ROLL})
    found = disturbance_of(inputs.state, roll, lambda *_: VALID_FOR_S + 1.0)
    assert found is not None
    duration, impact = (plain(sentence) for sentence in found.sentences)
    assert duration.startswith("The first turn takes at least ")
    assert impact.startswith(f"{found.topics} topics with ")


def test_a_run_that_outlasts_its_approval_says_so_and_what_helps() -> None:
    _, longer, _ = replace(advised()[1], least_duration_s=VALID_FOR_S + 1.0).sentences
    assert longer == (
        "An approval expires after 4 h by default: allow more steps in flight, or limit the plan's unloads."
    )
    assert len(replace(advised()[1], least_duration_s=float(VALID_FOR_S)).sentences) == 2


def test_it_takes_as_long_as_its_calls() -> None:
    _, found = advised()
    assert found.least_duration_s == takes_s(found.calls)


def test_without_anything_to_carry_out_there_is_no_estimate() -> None:
    inputs = skewed_inputs()
    assert disturbance_of(inputs.state, None, takes_s) is None
    assert disturbance_of(inputs.state, inputs.plans[0].model_copy(update={"steps": ()}), takes_s) is None


def test_the_tenants_have_all_of_the_load_and_all_of_the_disturbance() -> None:
    inputs = skewed_inputs()
    _, found = advised()
    tenants = tenants_of(inputs.state, inputs.plans[0])
    assert sum(one.bundles for one in tenants) == len(inputs.state.bundles)
    assert sum(one.throughput_share or 0 for one in tenants) == pytest.approx(1)
    assert sum(one.topics for one in tenants) == found.topics
    assert sum(one.clients for one in tenants) == found.clients
    assert sum(one.unloads + one.splits for one in tenants) == found.calls
    assert len({one.name for one in tenants}) == len(tenants)
    disturbed = [one.topics + one.clients for one in tenants]
    assert disturbed == sorted(disturbed, reverse=True)


def test_figures_that_cannot_be_are_no_part_of_the_load() -> None:
    state = skewed_inputs().state
    state.bundles.traffic[0] = [-1e9, 1.0, float("-inf"), 1.0]
    shares = [share for one in tenants_of(state, None) for share in (one.msg_rate_share, one.throughput_share)]
    assert all(share is not None and 0.0 <= share <= 1.0 for share in shares)


def test_without_a_plan_no_tenant_is_disturbed() -> None:
    assert all(one.topics == one.clients == one.unloads == 0 for one in tenants_of(skewed_inputs().state, None))


def test_one_topic_closes_and_one_client_connects() -> None:
    said = " ".join(Disturbance(1, 10.0, 1, 1, 5.0, "step-001", 1, 1).sentences).replace("\u00a0", " ")
    assert "1 topic with 5.00 B/s closes, one bundle at a time, and 1 client reconnects" in said
