"""A task that folds a day, where Spark runs a second copy of it."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

import pytest

from pulsar_advisor.stages.fold_all import fold_task
from pulsar_advisor.storage.lease import held
from pulsar_advisor.storage.root import Root
from pulsar_advisor.tables import job
from written_tables import snapshot_of_one_bundle

DAY = "20261120"


def test_a_copy_of_a_task_waits_for_the_one_that_folds_the_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot_of_one_bundle(tmp_path, f"{DAY}T080000Z", "a:8080", brokers=["a:8080"], cluster="eu")
    with ExitStack() as first:
        first.enter_context(
            held(Root(str(tmp_path), "eu").day(DAY).folder("result"), DAY, f"day {DAY} is being folded")
        )
        monkeypatch.setattr(job.time, "sleep", lambda _seconds: first.close())
        folded = json.loads(fold_task({"root": str(tmp_path), "cluster": "eu", "day": DAY, "address": None}))
    assert (folded["line"][:8], folded["exit_code"]) == (DAY, 0)
