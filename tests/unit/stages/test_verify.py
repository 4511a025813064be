"""When the outcome of a plan can be judged is never beyond what a run of Airflow waits for."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pulsar_advisor.execution.ledger.opening import open_ledger
from pulsar_advisor.stages import verify
from pulsar_advisor.storage.files import write_file
from pulsar_advisor.storage.root import Root
from unit.execution.doubles import make_plan, unload_step

ENDED_AT = datetime(2026, 11, 21, 8, 30, tzinfo=UTC)


@pytest.mark.parametrize(("minutes", "waits"), [(5, timedelta(minutes=10)), (2**31 - 1, timedelta(hours=2))])
def test_the_wait_for_new_figures_has_an_end_whatever_the_settings(
    minutes: int, waits: timedelta, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, root = make_plan([unload_step()]), Root(str(tmp_path), "prod")
    write_file(root.snapshot(plan.snapshot).result_file("normalize"), b"{}")
    runtime = {"loadBalancerHostUsageCheckIntervalMinutes": str(minutes)}
    monkeypatch.setattr(verify, "settings_inputs", lambda *_: ("4.0.8", runtime, {}))
    monkeypatch.setattr(verify, "settled_run", lambda *_: (None, int(ENDED_AT.timestamp() * 1000)))
    with closing(open_ledger(f"sqlite:///{tmp_path}/ledger.sqlite")) as ledger:
        assert verify.judged_from(plan, ledger, root) - ENDED_AT == waits
