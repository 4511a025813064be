"""Waits in place of a roll's task: for somebody to restart a broker, or to lift a pause."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from time import monotonic
from typing import Final

from airflow.triggers.base import BaseTrigger, TriggerEvent

from pulsar_advisor.model.errors import AdvisorError
from pulsar_advisor.storage.root import Root
from pulsar_advisor_airflow.failures import logged
from pulsar_advisor_airflow.hooks.pulsar_admin import PulsarAdminHook
from pulsar_advisor_airflow.ledger import opened_ledger
from pulsar_advisor_airflow.triggers.taken_over import GOES_ON, WAITS, is_in

POLL_S: Final = 5.0
BALANCER_POLL_S: Final = 60.0
"""How often it looks whether the cluster's own balancer is still off while a drained broker waits for its restart."""


class RollTrigger(BaseTrigger):  # type: ignore[misc]
    """Fires once a roll can be carried on: somebody says that its broker was restarted, or lifted a pause.

    It also fires once the roll is over, or its approval is no longer valid, and if somebody has switched the cluster's
    own balancer on, which fills the drained broker again: the event says so, as it may soon be off. While ledger or
    cluster can't be read, it waits.

    :param root: path or object-store URL of the root
    :param cluster: name of the cluster in the root
    :param digest: of the roll's plan
    :param at_least_s: minimum wait; a restarted triggerer waits it again
    :param called_about: the last broker that somebody was called about; the event returns it to the task
    :param pulsar_conn_id: connection of type `pulsar_admin`, whose files must be within the triggerer's reach too; None
        for a task that an earlier release deferred
    """

    def __init__(
        self,
        root: str,
        cluster: str,
        digest: str,
        at_least_s: float = 0.0,
        called_about: str | None = None,
        pulsar_conn_id: str | None = None,
    ) -> None:
        super().__init__()
        self.root = root
        self.cluster = cluster
        self.digest = digest
        self.at_least_s = at_least_s
        self.called_about = called_about
        self.pulsar_conn_id = pulsar_conn_id
        self._looked_at_s = monotonic()
        self._unseen = ""
        self._why_filling: str | None = None
        self._drained_by: str | None = None

    def serialize(self) -> tuple[str, dict[str, str | float | None]]:
        """The class and its arguments, from which any triggerer builds the trigger again."""
        names = ("root", "cluster", "digest", "at_least_s", "called_about", "pulsar_conn_id")
        return f"{__name__}.{type(self).__name__}", {name: getattr(self, name) for name in names}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """One event, when the roll can be carried on."""
        await asyncio.sleep(self.at_least_s)
        said = None
        while (why := await asyncio.to_thread(self._waits_for)) is not None:
            if why != said:
                logged(self.log.info)(f"the roll waits: {why}")
                said = why
            await asyncio.sleep(POLL_S)
        self.log.info("the roll goes on")
        filling = {"why_filling": self._why_filling, "drained_by": self._drained_by}
        yield TriggerEvent({"digest": self.digest, "called_about": self.called_about, **filling})

    async def on_kill(self) -> None:
        """A user stopped the task, or deleted its DAG run: the roll is given up, unless the task waits or goes on."""
        await asyncio.to_thread(self._give_up)

    def _give_up(self) -> None:
        from pulsar_advisor.execution.ledger.rolls import give_up

        if not is_in(self.task_instance, WAITS, *GOES_ON):
            with opened_ledger(Root(self.root, self.cluster)) as ledger:
                give_up(ledger, self.digest)

    def _waits_for(self) -> str | None:
        from pulsar_advisor.execution.ledger.plans import recorded_plan
        from pulsar_advisor.execution.roll.status import drained_by, status_of, waits_for

        try:
            with opened_ledger(Root(self.root, self.cluster)) as ledger:
                plan = recorded_plan(ledger, self.digest)
                why = waits_for(ledger, plan)
                status = status_of(ledger, plan) if self._is_time_to_look() else None
            looks = status is not None and status.restart is not None
            self._why_filling = self._why_balancer_is_on(plan.identity.cluster_name) if looks else None
            self._drained_by = None if status is None else drained_by(status)
            return None if self._why_filling else why
        except AdvisorError as error:
            return str(error)

    def _is_time_to_look(self) -> bool:
        return self.pulsar_conn_id is not None and monotonic() - self._looked_at_s >= BALANCER_POLL_S

    def _why_balancer_is_on(self, cluster_name: str) -> str | None:
        """Why the cluster's own balancer isn't off; None if it is, or if that can't be seen."""
        from pulsar_advisor.stages.apply import why_balancer_is_on

        assert self.pulsar_conn_id is not None
        self._looked_at_s = monotonic()
        try:
            return why_balancer_is_on(PulsarAdminHook(self.pulsar_conn_id).options().required_admin, cluster_name)
        except AdvisorError as error:
            if (unseen := str(error)) != self._unseen:
                logged(self.log.warning)(f"the triggerer can't see whether the balancer is off: {unseen}")
                self._unseen = unseen
            return None
