"""Listens in place of `capture`, before any read, to what Extensible brokers publish for their leader."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from contextvars import copy_context
from typing import TYPE_CHECKING, Final, TypeVar

from airflow.triggers.base import BaseTrigger, TriggerEvent

from pulsar_advisor.model.errors import AdvisorError
from pulsar_advisor_airflow.failures import logged
from pulsar_advisor_airflow.hooks.pulsar_admin import PulsarAdminHook

if TYPE_CHECKING:
    from pulsar_advisor.capture.publications import Listener, Wait

POLL_S: Final = 1.0

_Result = TypeVar("_Result")


class PublicationsTrigger(BaseTrigger):  # type: ignore[misc]
    """Fires with what it heard, once every broker has published or the connection's wait is over.

    If the cluster doesn't answer, it fires with nothing, and the task listens itself. A restarted triggerer listens for
    the whole time again.

    :param pulsar_conn_id: connection of type `pulsar_admin`, whose files must be within the triggerer's reach too
    """

    def __init__(self, pulsar_conn_id: str) -> None:
        super().__init__()
        self.pulsar_conn_id = pulsar_conn_id

    def serialize(self) -> tuple[str, dict[str, str]]:
        """The class and its arguments, from which any triggerer builds the trigger again."""
        return f"{__name__}.{type(self).__name__}", {"pulsar_conn_id": self.pulsar_conn_id}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """One event: `heard` is `Heard.packed()`, or None."""
        heard = None
        # What ends the connections runs after what makes them, even if somebody stops the task meanwhile, and never on
        # the loop: an ailing broker may keep it waiting for ten seconds, and with it every other trigger.
        stack, thread = ExitStack(), ThreadPoolExecutor(max_workers=1)

        def in_thread(call: Callable[..., _Result], *arguments: object) -> asyncio.Future[_Result]:
            return asyncio.get_running_loop().run_in_executor(thread, copy_context().run, call, *arguments)

        try:
            listener, wait = await in_thread(self._listening, stack)
        except AdvisorError as error:
            logged(self.log.warning)(f"the triggerer can't listen, the worker will: {error}")
        else:
            while silent := await in_thread(wait.silent):
                logged(self.log.debug)(f"not published yet: {silent}")
                await asyncio.sleep(POLL_S)
            heard = listener.heard().packed()
        finally:
            thread.submit(stack.close)
            thread.shutdown(wait=False)
        yield TriggerEvent({"heard": heard})

    def _listening(self, stack: ExitStack) -> tuple[Listener, Wait]:
        from pulsar_advisor.capture.capture import opened

        cluster = stack.enter_context(opened(PulsarAdminHook(self.pulsar_conn_id).options().without_metadata_store))
        listener = stack.enter_context(closing(cluster.listener()))
        return listener, cluster.wait(listener)
