"""When a run waits, parks or ends early: its pauses, the time the first step must hold, and interruptions."""

from __future__ import annotations

from math import inf
from typing import Final

from pulsar_advisor.execution.ledger.pauses import pause_requested
from pulsar_advisor.execution.ledger.tables import StepRecord
from pulsar_advisor.execution.run.ongoing_run import OngoingRun, Stop
from pulsar_advisor.execution.run.parking import Parked, Parking
from pulsar_advisor.execution.run.turns import Waits
from pulsar_advisor.model.plans.plan import Step

HOLD_CUT_SHORT: Final = "hold cut short"
"""Kind of event: a first step was confirmed before its hold was over, because the run was to end."""

_WAIT_POLL_S: Final = 1.0
"""How quickly an interruption ends a wait with nothing in flight."""


def wait(run: OngoingRun, seconds: float) -> Waits[None]:
    """Wait, unless the run is to end."""
    while seconds > 0 and interrupted(run) is None:
        yield min(seconds, _WAIT_POLL_S)
        seconds -= _WAIT_POLL_S


def first_hold_s(run: OngoingRun) -> float:
    """How long the result of a step must last before it counts; 0 except for the run's first step."""
    first = run.none_confirmed()
    return run.throttle.canary_hold_s if first and not has_held(run) else 0.0


def hold_left_s(run: OngoingRun, record: StepRecord) -> float:
    """The rest of the hold of the run's first step, which was confirmed before its hold was over."""
    return run.throttle.canary_hold_s - max(0, run.ledger.now_ms() - (record.ended_at_ms or 0)) / 1000


def note_cut_short(run: OngoingRun, step: Step, end_s: float) -> None:
    """Record that a first step is confirmed before the end (monotonic) of its hold, because the run is to end."""
    if run.clock.monotonic_s() < end_s:
        run.held.note(step.id, HOLD_CUT_SHORT, f"of {run.throttle.canary_hold_s:g} s")


def has_held(run: OngoingRun) -> bool:
    """Whether the first step's hold passed while the run was parked; only the bundle's present place counts then."""
    first = run.none_confirmed()
    return first and run.options.waited is not None and run.options.waited.why == "hold"


def parks(run: OngoingRun, wait_s: float) -> bool:
    """Whether the run waits without this process; never under a guard, which a process must be there to restore."""
    is_long = run.options.park_from_s is not None and wait_s >= run.options.park_from_s
    return is_long and not run.throttle.guard and _must_end(run) is None


def check_interruption(run: OngoingRun) -> None:
    """Raises `Stop` if the run is to end here, `Parked` if it may wait without this process."""
    if reason := interrupted(run):
        if parks(run, inf):
            raise Parked(Parking("request", 0))
        began = any(record.attempts for record in run.held.steps().values())
        raise Stop(reason if began else f"{reason}; start it again to go on")


def interrupted(run: OngoingRun) -> str | None:
    """Why the run is to end after the steps in flight; None: it goes on."""
    return _must_end(run) or pause_requested(run.ledger, run.held.id)


def _must_end(run: OngoingRun) -> str | None:
    """Why the run has to end here for good: unlike a pause, waiting wouldn't help."""
    until = run.options.until
    # Either clock may have been set back, or be behind.
    if until is not None and max(run.clock.now_ms(), run.ledger.now_ms()) >= 1000 * until.timestamp():
        return f"it may send nothing after {until:%H:%M %Z}"
    return run.interruption()
