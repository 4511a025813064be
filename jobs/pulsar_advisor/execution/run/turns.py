"""Steps as procedures that yield whenever they wait, and take turns in one thread.

So all events have a single order, that of the ledger.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from heapq import heappop, heappush
from typing import Final, TypeVar

from pulsar_advisor.execution.ledger.held_run import LeaseLost
from pulsar_advisor.execution.run.ongoing_run import OngoingRun, Stop, in_words
from pulsar_advisor.execution.run.parking import Parked

T = TypeVar("T")

Waits = Generator[float, None, T]
"""A procedure that yields the seconds it wants to wait, so that others can go on meanwhile."""

_LONGEST_NAP_S: Final = 20.0


def take_turns(run: OngoingRun, procedures: Iterable[Waits[None]]) -> None:
    """Advance procedures in turn until each has ended; one that fails doesn't end the others, which are in flight.

    Raises the failure, or a `Stop` with all of them; `Parked` only if nothing else ends the run.
    """
    waiting = [(run.clock.monotonic_s(), number, each) for number, each in enumerate(procedures)]
    while waiting:
        due_s, number, procedure = heappop(waiting)
        _sleep(run, due_s - run.clock.monotonic_s())
        try:
            wait_s = next(procedure)
        except StopIteration:
            continue
        except LeaseLost:
            raise
        except Exception as failure:
            run.failures.append(failure)
        else:
            heappush(waiting, (run.clock.monotonic_s() + wait_s, number, procedure))
    ends = [failure for failure in run.failures if not isinstance(failure, Parked)] or run.failures[:1]
    if len(ends) == 1:
        raise ends[0]
    if ends:
        reasons = dict.fromkeys(in_words(failure) for failure in ends)
        raise _together(ends, "; ".join(reasons)) from ends[0]


def _together(failures: Sequence[Exception], message: str) -> Stop:
    """The end of a run by several failures: for good if it is by one, else until what the first of them needs."""
    stop = Stop(message)
    if that_stay := [failure for failure in failures if isinstance(failure, Stop) and failure.first != ""]:
        worst = min(that_stay, key=lambda failure: failure.first is not None)
        stop.first, stop.to_do = worst.first, worst.to_do
    return stop


def _sleep(run: OngoingRun, seconds: float) -> None:
    """Wait, renewing the lease from time to time, which also detects an abort."""
    while seconds > 0:
        run.clock.sleep(min(seconds, _LONGEST_NAP_S))
        run.held.renew()
        seconds -= _LONGEST_NAP_S
