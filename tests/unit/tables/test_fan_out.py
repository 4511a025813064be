"""What a small snapshot needs computed is computed in this process, with or without a session."""

from __future__ import annotations

import json
import os
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from pulsar_advisor.tables.fan_out import fan_out

SMALL = cast(SparkSession, SimpleNamespace(conf={"spark.sql.shuffle.partitions": "1"}))
"""A session of a small snapshot, which can do nothing else."""

TASKS = {f"combination-{number}": {"shedder": f"S{number}"} for number in (2, 0, 1)}


@pytest.mark.parametrize("spark", [SMALL, None], ids=["a session with one partition", "no session"])
def test_of_a_small_snapshot_this_process_makes_all_in_the_order_given(spark: SparkSession | None) -> None:
    answers = fan_out(spark, TASKS, lambda payload: f"{payload['shedder']} in process {os.getpid()}")
    assert list(answers.items()) == [
        (f"combination-{number}", f"S{number} in process {os.getpid()}") for number in (2, 0, 1)
    ]


def test_a_payload_is_what_an_executor_would_get() -> None:
    assert fan_out(SMALL, {"one": {"placements": ("A", "B")}}, json.dumps) == {"one": '{"placements": ["A", "B"]}'}


def test_an_exception_in_one_computation_ends_them_all() -> None:
    def fails(payload: Any) -> str:
        raise ValueError(payload["shedder"])

    with pytest.raises(ValueError, match="S2"):
        fan_out(SMALL, TASKS, fails)


def test_nothing_to_compute_is_nothing() -> None:
    assert fan_out(SMALL, {}, json.dumps) == {}
