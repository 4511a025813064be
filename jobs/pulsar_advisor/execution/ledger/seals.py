"""Seals: what each stage wrote, by hash in the ledger, so that whoever writes files can't change what is judged."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Final

from pulsar_advisor.execution.ledger.tables import Seal
from pulsar_advisor.model.errors import Refused

RELEASE: Final = version("pulsar-rebalance-advisor")


def why_not_as_sealed(seals: Sequence[Seal], snapshot: str, stage: str, found: str | None) -> str | None:
    """Why a stage's result can't be compared with the newest of a snapshot's seals; None if they agree.

    `found` is the SHA-256 of what is there, None without a result; None is also the answer where there is neither.
    Raises `Refused` if they differ.
    """
    sealed = next((one for one in reversed(seals) if one.stage == stage), None)
    if sealed is None:
        return found and f"this ledger has no seal of what `{stage}` wrote about snapshot {snapshot}"
    if found is None:
        return f"what `{stage}` wrote about snapshot {snapshot} is no longer there"
    if found != sealed.sha256:
        raise Refused(
            f"what `{stage}` wrote about snapshot {snapshot} was changed since: its SHA-256 is {found}, and "
            f"{sealed.name} of the ledger says {sealed.sha256}. Run `{stage}` again, and find out who changed it"
        )
    return None
