"""Waits in place of `apply` while its run is parked: through a long pause, the hold of its first step, or a request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final

from airflow.triggers.base import BaseTrigger, TriggerEvent

from pulsar_advisor_airflow.ledger import opened_ledger

if TYPE_CHECKING:
    from pulsar_advisor.documents.document import Json
    from pulsar_advisor.execution.ledger.ledger import Ledger

POLL_S: Final = 5.0


class ParkedRunTrigger(BaseTrigger):  # type: ignore[misc]
    """Fires once a parked run may go on: its time is over and no pause is in force. Fires at once if the run has ended.

    A triggerer that is started again waits the whole time once more, by its own monotonic clock: longer than approved,
    never shorter. While the ledger can't be read the run stays parked.

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
        from pulsar_advisor.execution.run.parking import parking_of

        clock = asyncio.get_running_loop().time
        over_s = clock() + parking_of(self.wait).wait_s
        while not await self._may_go_on(is_over=clock() >= over_s):
            await asyncio.sleep(min(POLL_S, max(over_s - clock(), 0.1)) if clock() < over_s else POLL_S)
        yield TriggerEvent({"waited": self.wait})

    async def on_kill(self) -> None:
        """The task was stopped or cleared by a user: the run ends with the steps so far."""

        def end(ledger: Ledger) -> None:
            ledger.end_parked(ledger.run(self.run_number).digest, "the task was stopped in Airflow")

        await asyncio.to_thread(self._with_ledger, end)

    async def _may_go_on(self, *, is_over: bool) -> bool:
        from pulsar_advisor.model.errors import AdvisorError

        def look(ledger: Ledger) -> bool:
            run = ledger.run(self.run_number)
            return run.state != "active" or (is_over and ledger.pause_requested(run.id) is None)

        try:
            return bool(await asyncio.to_thread(self._with_ledger, look))
        except AdvisorError as error:
            self.log.warning("the run stays parked: %s", error)
            return False

    def _with_ledger(self, act: Any) -> Any:
        from pulsar_advisor.storage.root import Root

        with opened_ledger(Root(self.root, self.cluster)) as ledger:
            return act(ledger)
