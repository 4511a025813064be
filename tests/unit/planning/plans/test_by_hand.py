"""The commands for carrying a plan out by hand make the calls that `apply` makes."""

from __future__ import annotations

import shlex

import pytest

from pulsar_advisor.execution.cluster.cluster_port import Split, Unload
from pulsar_advisor.model.plans.plan import Step
from pulsar_advisor.planning.plans.by_hand import pulsar_admin, release_of
from unit.reporting.skewed import hostile_inputs, skewed_inputs


def options_of(command: str) -> tuple[list[str], dict[str, str], str]:
    """(words before the first option, options, last word)."""
    words = shlex.split(command)
    at = next(place for place, word in enumerate(words) if word.startswith("--"))
    options = words[at:-1]
    return words[:at], dict(zip(options[::2], options[1::2], strict=True)), words[-1]


def steps_of(action: str) -> list[Step]:
    return [step for plan in skewed_inputs().plans for step in plan.steps if step.action == action and step.executable]


@pytest.mark.parametrize("step", steps_of("unload"), ids=lambda step: step.id)
def test_an_unload_names_bundle_and_destination_as_apply_does(step: Step) -> None:
    sent = Unload(step.namespace, step.bundle, step.destination).request
    words, options, namespace = options_of(pulsar_admin(step, "4.0.8"))
    assert words == ["pulsar-admin", "namespaces", "unload"]
    assert sent.path == f"/admin/v2/namespaces/{namespace}/{options['--bundle']}/unload"
    assert sent.query == {"destinationBroker": options["--destinationBroker"]}


@pytest.mark.parametrize("step", steps_of("split"), ids=lambda step: step.id)
def test_a_split_names_algorithm_and_positions_as_apply_does(step: Step) -> None:
    sent = Split(step.namespace, step.bundle, tuple(int(one, 16) for one in step.boundaries)).request
    words, options, namespace = options_of(pulsar_admin(step, "4.0.8"))
    assert words == ["pulsar-admin", "namespaces", "split-bundle"]
    assert sent.path == f"/admin/v2/namespaces/{namespace}/{options['--bundle']}/split"
    assert sent.query["splitAlgorithmName"] == options["--split-algorithm-name"]
    assert sent.body == [int(one) for one in options["--split-boundaries"].split(",")]


def test_where_pulsar_chooses_no_destination_is_named_and_a_split_without_positions_halves_the_bundle() -> None:
    (unload, *_), (split, *_) = steps_of("unload"), steps_of("split")
    anywhere = unload.model_copy(update={"destination": None})
    halves = split.model_copy(update={"boundaries": ()})
    assert "--destinationBroker" not in pulsar_admin(anywhere, "4.0.8")
    assert options_of(pulsar_admin(halves, "4.0.8"))[1]["--split-algorithm-name"] == "range_equally_divide"


def test_a_name_that_is_a_command_stays_one_word() -> None:
    step = hostile_inputs().plans[0].steps[0]
    assert options_of(pulsar_admin(step, "4.0.8"))[2] == step.namespace


@pytest.mark.parametrize("action", ["unload", "split"])
def test_a_name_that_begins_as_an_option_is_none(action: str) -> None:
    step = steps_of(action)[0].model_copy(update={"namespace": "-t/orders"})
    assert pulsar_admin(step, "4.0.8").endswith(" -- -t/orders")


@pytest.mark.parametrize("text", ["", "a stranger's", f"{'9' * 5000}.0.1"])
def test_what_begins_with_no_release_has_none(text: str) -> None:
    assert release_of(text) is None
