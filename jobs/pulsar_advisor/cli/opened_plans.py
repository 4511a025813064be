"""What the verbs share that act on a plan: finding it, its ledger's head, and a balancer that a run left off."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pulsar_advisor.cli.output import log
from pulsar_advisor.cli.places import LedgerPlace
from pulsar_advisor.model.errors import AdvisorError, ClusterUnreachable, Refused, StorageError
from pulsar_advisor.storage.root import Root

if TYPE_CHECKING:
    from pulsar_advisor.admin.connection import AdminConnection
    from pulsar_advisor.execution.ledger.heads import Keeper
    from pulsar_advisor.execution.ledger.ledger import Ledger
    from pulsar_advisor.model.plans.plan import Plan


def named_plan(plan: str, root: Root, place: LedgerPlace) -> Plan:
    """The plan with this digest or path; that of the ledger if its file is gone or spoiled. Raises as `open_plan`."""
    from pulsar_advisor.execution.ledger.opening import ledger_if_any
    from pulsar_advisor.execution.ledger.plans import only_plan
    from pulsar_advisor.storage.plans import PlanNotFound, open_plan

    try:
        return open_plan(root, plan)
    except (PlanNotFound, StorageError, Refused):  # gone, or spoiled by whoever can write the root
        with ledger_if_any(place.ledger_url_if_any()) as book:
            recorded = None if book is None else only_plan(book, root.cluster, plan)
        if recorded is None:
            raise
        return recorded


@contextmanager
def opened_plan(plan: str, place: LedgerPlace) -> Iterator[tuple[Plan, Root, Ledger]]:
    """The plan, the root, and the ledger of the plan's cluster, which has the plan even if its file is gone or spoiled.

    Raises `Refused` if the plan is for another cluster or there is no ledger: proposing a plan creates one.
    """
    root = place.open()
    document = named_plan(plan, root, place)
    if document.cluster != root.cluster:
        raise Refused(f"plan {plan} is for cluster '{document.cluster}', not '{root.cluster}'")
    with place.ledger_if_any() as book:
        if book is None:
            raise Refused(
                f"there is no ledger at {place.ledger_url()}, so the plan has no recorded proposer: if it was lost, "
                "put back a copy; else pass --ledger URL"
            )
        yield document, root, book


@contextmanager
def head_kept(ledger: Ledger, keepers: Sequence[Keeper]) -> Iterator[None]:
    """However the block ends, the ledger's head is handed over afterwards; a failure of that is logged."""
    from pulsar_advisor.execution.ledger.heads import keep

    try:
        yield
    finally:
        try:
            failures = keep(ledger.head(), keepers)
        except AdvisorError as error:
            failures = [str(error)]
        for failure in failures:
            log(failure)


def mind_the_guard(
    plan: Plan, ledger: Ledger, restore: str, reach: Callable[[], AdminConnection] | None = None
) -> bool:
    """Restore what a crashed run left switched off on the plan's cluster, or warn and name the command that restores.

    Whether anything is still off; that the cluster can't be reached is logged.
    """
    from pulsar_advisor.execution.run.guard.left_off import left_off, warning
    from pulsar_advisor.stages.apply import restore_balancer

    left = left_off(ledger, plan.identity.cluster_name)
    if left and reach is not None:
        try:
            restore_balancer(plan.identity.cluster_name, ledger, reach(), log)
        except ClusterUnreachable as error:  # must not hide what the verb itself has done
            log(str(error))
        left = left_off(ledger, plan.identity.cluster_name)
    for switch in left:
        log(f"{warning(switch, plan.identity.cluster_name)}: `{restore}` restores it")
    return bool(left)
