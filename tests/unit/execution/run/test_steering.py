from __future__ import annotations

import pytest

from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.run.steering import abort, left_open
from pulsar_advisor.model.errors import Refused
from pulsar_advisor.model.plans.plan import Step
from unit.execution.actors import ALICE, approved, killed_at_work, run
from unit.execution.doubles import B3, CUT, LOWER_BUNDLE, MOVE, FakeCluster, make_plan


def test_there_must_be_something_to_abort(ledger: Ledger) -> None:
    with pytest.raises(Refused, match="there is nothing to abort"):
        abort(ledger, make_plan([MOVE]), ALICE)


def test_an_abort_after_the_last_step_ends_with_what_was_done(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, make_plan([MOVE]))
    result = run(plan, ledger, cluster, progress=lambda line: "confirmed" in line and abort(ledger, plan, ALICE))
    assert (result.exit_code, [step.state for step in result.steps]) == (5, ["confirmed"])


def test_an_abort_after_the_last_step_was_left_out_is_a_refusal(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, make_plan([MOVE]))
    cluster.owners[LOWER_BUNDLE] = B3
    with pytest.raises(Refused, match="nothing was sent: run 1 was aborted"):
        run(
            plan,
            ledger,
            cluster,
            on_drift="skip",
            progress=lambda line: "skipped" in line and abort(ledger, plan, ALICE),
        )


def test_an_abort_from_elsewhere_stops_a_run_before_its_next_call(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, make_plan([MOVE, CUT]))
    cluster.whenever("after the call", lambda: abort(ledger, plan, ALICE))
    result = run(plan, ledger, cluster)
    assert (result.exit_code, len(cluster.writes)) == (5, 1)
    assert "was aborted" in result.sentence
    with pytest.raises(Refused, match="was aborted: capture again"):
        run(plan, ledger, cluster)


@pytest.mark.parametrize(
    ("step", "to_check"),
    [
        (MOVE, "and no run blocks its range any more: check who owns it before unloading any bundle of that range"),
        (CUT, ": check who owns it, and whether it was split, before unloading or splitting it"),
    ],
    ids=["unload", "split"],
)
def test_whoever_ends_a_run_is_told_what_to_check_of_a_call_that_nobody_will_settle(
    ledger: Ledger, cluster: FakeCluster, step: Step, to_check: str
) -> None:
    plan = approved(ledger, make_plan([step]))
    killed_at_work(ledger, cluster, plan, "before the call")
    [line] = left_open(ledger, abort(ledger, plan, ALICE))
    assert line.startswith(f"ATTENTION: {step.id}, {step.bundle_name}: the outcome of its call is unknown")
    assert line.endswith(to_check)
