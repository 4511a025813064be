"""Waits in place of `apply` while its run is parked: through a long pause, the hold of its first step, or a request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Final, TypeVar

from airflow.triggers.base import BaseTrigger, TriggerEvent

from pulsar_advisor.execution.ledger.pauses import pause_requested
from pulsar_advisor.execution.ledger.runs import end_unheld_run, is_held, is_parked, run_by_id
from pulsar_advisor.execution.run.parking import parking_of
from pulsar_advisor.execution.run.preconditions import LEDGER_CLOCK_TOLERANCE_S
from pulsar_advisor.model.errors import AdvisorError
from pulsar_advisor.storage.root import Root
from pulsar_advisor_airflow.ledger import opened_ledger
from pulsar_advisor_airflow.triggers.taken_over import WAITS, is_in

if TYPE_CHECKING:
    from pulsar_advisor.execution.ledger.ledger import Ledger
    from pulsar_advisor.model.plans.canonical_json import Json

POLL_S: Final = 5.0

_Result = TypeVar("_Result")


class ParkedRunTrigger(BaseTrigger):  # type: ignore[misc]
    """Fires once a parked run may go on: its time is over and no pause is in force. Fires at once if the run has ended.

    A run that another task has parked again since is that one's to go on with, or to stop. It waits while another
    process holds the run.

    A restarted triggerer waits the whole time again, by its own monotonic clock: longer than approved, never shorter.
    While the ledger can't be read the run stays parked.

    :param root: path or object-store URL of the root
    :param cluster: name of the cluster in the root
    :param run_number: the run in the ledger
    :param wait: a `Parking` as a mapping; the event brings it back
    """

    def __init__(self, root: str, cluster: str, run_number: int, wait: Json) -> None:
        super().__init__()
        self.root = root
        self.cluster = cluster
        self.run_number = run_number
        self.wait = wait

    def serialize(self) -> tuple[str, dict[str, str | int | Json]]:
        """The class and its arguments, from which any triggerer builds the trigger again."""
        names = ("root", "cluster", "run_number", "wait")
        return f"{__name__}.{type(self).__name__}", {name: getattr(self, name) for name in names}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """One event, when the run may go on."""
        clock = asyncio.get_running_loop().time
        over_s = clock() + parking_of(self.wait).wait_s
        said = None
        while (why := await self._why_not(is_over=clock() >= over_s)) is not None:
            if why != said:
                self.log.info("the run is parked: %s", why)
                said = why
            await asyncio.sleep(min(POLL_S, max(over_s - clock(), 0.1)) if clock() < over_s else POLL_S)
        self.log.info("the run is no longer parked")
        yield TriggerEvent({"waited": self.wait})

    async def on_kill(self) -> None:
        """A user stopped or cleared the task: the run ends with the steps so far."""
        await asyncio.to_thread(self._end)  # the triggerer may cancel this wait, but no thread

    def _end(self) -> None:
        def end(ledger: Ledger) -> None:
            digest = run_by_id(ledger, self.run_number).digest
            end_unheld_run(ledger, digest, "the task was stopped in Airflow", parking_of(self.wait).hold)

        if not is_in(self.task_instance, WAITS):
            self._with_ledger(end)

    async def _why_not(self, *, is_over: bool) -> str | None:
        """Why the run may not go on yet; None if it may, or has ended."""

        def look(ledger: Ledger) -> str | None:
            run, waited = run_by_id(ledger, self.run_number), parking_of(self.wait)
            if run.state != "active":
                return None
            # By a clock that was set back, a lease would not end for hours: a worker waits by its own.
            if is_held(ledger, run) and run.heartbeat_at_ms <= ledger.now_ms() + LEDGER_CLOCK_TOLERANCE_S * 1000:
                return "another process has gone on with the run"
            if is_parked(run) and not is_parked(run, waited.hold):
                return "another task has gone on with the run, and waits in its turn"
            return pause_requested(ledger, self.run_number) or (None if is_over else waited.sentence)

        try:
            return await asyncio.to_thread(self._with_ledger, look)
        except AdvisorError as error:
            return str(error)

    def _with_ledger(self, act: Callable[[Ledger], _Result]) -> _Result:
        with opened_ledger(Root(self.root, self.cluster)) as ledger:
            return act(ledger)
