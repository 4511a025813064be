"""Opens the ledger that this installation configures, and names the authority behind user names from Airflow."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pulsar_advisor.model.errors import AdvisorError
from pulsar_advisor_airflow.configuration import different_by_process, option, webhook

if TYPE_CHECKING:
    from pulsar_advisor.execution.consent.policy import ApprovalPolicy
    from pulsar_advisor.execution.ledger.heads import Keeper
    from pulsar_advisor.execution.ledger.ledger import Ledger
    from pulsar_advisor.storage.root import Root, Snapshot

log = logging.getLogger(__name__)

AUTHENTICATED_BY: Final = "airflow"


def approval_policy(cluster: str) -> ApprovalPolicy:
    """The policy of a cluster, or else of the configuration; by default, approvers must be authenticated."""
    from pulsar_advisor.execution.consent.policy import ApprovalPolicy, read_policy
    from pulsar_advisor_airflow.clusters import clusters

    registered = clusters().get(cluster)
    named = registered.approval_policy if registered else option("approval_policy")
    policy = read_policy(Path(named)) if named else ApprovalPolicy()
    if "require_authenticated" in policy.model_fields_set:
        return policy
    return policy.model_copy(update={"require_authenticated": True})


def opened_ledger(root: Root) -> AbstractContextManager[Ledger]:
    """The ledger of `[pulsar_advisor] ledger`, or SQLite in the root; closed at the end of the block."""
    from pulsar_advisor.execution.ledger.address import ledger_url
    from pulsar_advisor.execution.ledger.opening import open_ledger

    address = option("ledger") or root.ledger_url
    url = ledger_url(address)
    if url.get_backend_name() == "sqlite" and not Path(str(url.database)).is_absolute():  # of env:NAME or file:PATH
        raise different_by_process("ledger", address)
    return closing(open_ledger(address))


def seal(snapshot: Snapshot, *stages: str) -> None:
    """Record what stages have just written about a snapshot; see `stages.seal`."""
    from pulsar_advisor.stages.seal import seal as record

    record(lambda: opened_ledger(snapshot.root), snapshot, *stages)


def sealing(snapshot: Snapshot, *stages: str) -> AbstractContextManager[None]:
    """Record what stages write about a snapshot within the block; see `stages.seal`."""
    from pulsar_advisor.stages.seal import sealing as recording

    return recording(lambda: opened_ledger(snapshot.root), snapshot, *stages)


def head_keepers() -> tuple[Keeper, ...]:
    """Where heads of the ledger are kept. Raises `UsageError` for an invalid place, or one that differs by process."""
    from upath import UPath

    from pulsar_advisor.execution.ledger.heads import keepers_of
    from pulsar_advisor.storage.files import is_local

    keepers = keepers_of(option("heads"), webhook())
    for place in keepers:
        if isinstance(place, UPath) and is_local(place) and not place.is_absolute():
            raise different_by_process("heads", str(place))
    return keepers


def keep_head(ledger: Ledger) -> None:
    """Keep the head of the ledger; a failure is logged, and the next try is due within the hour."""
    from pulsar_advisor.execution.ledger.heads import keep

    try:
        failures = keep(ledger.head(), head_keepers())
    except AdvisorError as error:
        failures = [str(error)]
    for failure in failures:
        log.error(failure)


def ledger_url_if_any(root: Root) -> str | None:
    """The address of the configured ledger, or else of the one in a local root; None without either."""
    return option("ledger") or root.own_ledger_url
