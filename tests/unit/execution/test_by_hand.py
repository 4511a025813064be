"""What an exported script says of its plan; that it does it is shown by running it."""

from __future__ import annotations

import re

from pulsar_advisor.execution.by_hand import exported
from pulsar_advisor.model.plans.plan import Prediction
from unit.execution.doubles import B1, forecast, make_plan, split_step, unload_step, wide_plan


def test_a_highest_usage_that_reads_the_same_afterwards_stays() -> None:
    before, after = forecast({B1: 0.8}), forecast({B1: 0.8001})
    plan = make_plan([unload_step()], predicted=Prediction(model="proportional", before=before, after=after))
    assert "predicted: highest usage stays at 80.0%\n" in exported(plan, "curl")


def test_of_a_plan_that_only_splits_nothing_is_said_to_be_unloaded() -> None:
    script = exported(make_plan([split_step()]), "curl")
    assert "bash FILE             nothing: all steps are splits\n" in script


def test_the_unload_that_disturbs_least_comes_first_as_in_apply() -> None:
    steps = [step for step in wide_plan().steps if step.action == "unload"]
    begun = re.findall(r"if begin (\S+)", exported(make_plan(steps), "curl"))
    assert begun == ["step-003", "step-001", "step-002"]
