"""The property that every decoder of foreign bytes has: a result, or a refusal of its own; never anything else."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given

from fuzz.targets import TARGETS
from unit.admin.mutated import mutated


class Fault(Exception):
    """A decoder neither read a document nor refused it; the cause is what it did instead."""

    def __init__(self, name: str, body: bytes) -> None:
        super().__init__(f"{name}: {body[:200]!r}{f' … {len(body)} bytes' if len(body) > 200 else ''}")
        self.body = body


def fault_free(name: str) -> Callable[[], None]:
    """A Hypothesis test of one target. Raises `Fault`."""
    target = TARGETS[name]

    @given(body=mutated(target.seeds))
    def decoder_reads_or_refuses(body: bytes) -> None:
        try:
            target.decode(body)
        except target.refusals:
            return
        except Exception as error:
            raise Fault(name, body) from error

    return decoder_reads_or_refuses
