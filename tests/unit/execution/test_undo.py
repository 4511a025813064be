from __future__ import annotations

from pulsar_advisor.execution.approval import worse_because
from pulsar_advisor.execution.undo import undo_plan
from pulsar_advisor.model.plan import Doubt, StepPrediction, digest_of, dump_plan, load_plan
from unit.execution.doubles import B1, B2, B3, BOUNDARIES, LOWER, UPPER, make_plan, split_step, unload_step


def test_unloads_are_undone_last_one_first_back_to_where_the_bundles_were() -> None:
    undo = undo_plan(make_plan([unload_step(1, LOWER, B1, B2), unload_step(2, UPPER, B1, B3)]))
    assert [(step.id, step.bundle, step.source, step.destination) for step in undo.steps] == [
        ("undo-step-002", UPPER, B3, B1),
        ("undo-step-001", LOWER, B2, B1),
    ]
    assert all(step.executable and step.expect.owner == step.source for step in undo.steps)


def test_what_can_not_be_undone_is_listed_with_the_reason() -> None:
    forward = make_plan([unload_step(1, LOWER, destination=None), unload_step(2, UPPER), split_step(3)])
    assert {step.id: step.not_executable_because for step in undo_plan(forward).steps} == {
        "undo-step-001": "the unload has no destination, so the bundle's new broker is not known in advance",
        "undo-step-002": "the plan splits the bundle later: move its children",
        "undo-step-003": "a split can't be undone: Pulsar has no merge",
    }


def test_an_undo_step_expects_the_boundaries_that_the_plan_leaves() -> None:
    undo = undo_plan(make_plan([unload_step(1), split_step(2)]))
    assert undo.steps[1].expect.boundaries == tuple(sorted({*BOUNDARIES, "0xbfffffff"}))


def test_an_undo_step_predicts_the_usage_from_before_the_step_it_undoes() -> None:
    first = unload_step(1, predicted=StepPrediction(brokers={B1: 0.6, B2: 0.4}))
    second = unload_step(2, UPPER, destination=B3, predicted=StepPrediction(brokers={B1: 0.4, B3: 0.5}))
    last, earlier = undo_plan(make_plan([first, second])).steps
    assert last.predicted.brokers == {B1: 0.6, B3: 0.3}
    assert earlier.predicted.brokers == {B1: 0.8, B2: 0.2}


def test_an_undo_plan_is_a_plan_of_its_own_that_names_the_one_it_undoes() -> None:
    forward = make_plan([unload_step()])
    undo = load_plan(dump_plan(undo_plan(forward)))
    assert undo.memory == {"undoes": digest_of(forward)}
    assert digest_of(undo) != digest_of(forward)


def test_an_undo_plan_has_to_be_accepted_as_worse() -> None:
    assert worse_because(undo_plan(make_plan([unload_step()]))) is not None


def test_going_back_is_as_sure_as_what_was_seen_whatever_the_doubts_of_the_step() -> None:
    doubt = Doubt(confidence="low", sentence="A near-tie decided.")
    forward = unload_step(confidence="low", doubts=(doubt,), failed_checks=("capture.skew",))
    undo = undo_plan(make_plan([forward], rests_on={"unload": ("capture.skew",)}))
    [step] = undo.steps
    assert (step.confidence, step.doubts, step.failed_checks, undo.rests_on) == ("high", (), (), {})
