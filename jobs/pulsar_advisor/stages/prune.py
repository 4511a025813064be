"""`snapshots prune`: removes old snapshots and all results derived from them, except those that a plan refers to."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import closing
from datetime import datetime

from pulsar_advisor.documents.prune_result import Pruned
from pulsar_advisor.execution.ledger.chain import ChainHead
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.opening import ledger_exists, open_ledger
from pulsar_advisor.execution.ledger.plans import new_plans
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.snapshots.retention import Retention, referred_to
from pulsar_advisor.storage.index import update_index
from pulsar_advisor.storage.removal import (
    is_at_work,
    made_of,
    new_plan_files,
    remove_snapshot,
    stage_folders,
    with_plans,
)
from pulsar_advisor.storage.root import PLANS, Root


def run(root: Root, retention: Retention, address: str | None, now: datetime, *, dry_run: bool) -> Pruned:
    """Remove outdated snapshots, see `remove`.

    `address` is the ledger's (see `ledger.address`), by default SQLite in a local root.
    Raises `UsageError` if the snapshots that plans refer to can't be determined (see `PlanReferences`), and
    `StorageError` if the ledger can't be read or a folder can't be removed.
    """
    with closing(PlanReferences(root, address)) as references:
        return remove(root, references, lambda existing: retention.outdated(existing, now), dry_run=dry_run)


def remove(
    root: Root,
    references: PlanReferences,
    outdated: Callable[[Sequence[str]], Collection[str]],
    *,
    dry_run: bool,
) -> Pruned:
    """Remove those of the existing snapshots that are `outdated`, unless a plan refers to them.

    The raw manifest goes first, so that none ever exists in part, then every stage's folder. Others may capture, or
    make and apply plans, at the same time, so the manifest, the plans' references and active stages are checked again
    before each removal. Raises `StorageError`.
    """
    stages = stage_folders(root)
    made = made_of(root, stages)  # listed before the manifests, so that a new snapshot is not mistaken for a remainder
    existing = root.snapshots()
    left_over = made.difference(existing)
    removed: list[str] = []
    remainders: list[str] = []
    kept: list[str] = []
    at_work: list[str] = []
    references.snapshots()  # reads every plan once; what comes to it later, `refer_to` reads
    for id in sorted(left_over.union(outdated(existing))):
        snapshot, is_remainder = root.snapshot(id), id in left_over
        if snapshot.is_written("capture") == is_remainder:
            continue  # imported, or removed by another process, since the listing
        if references.refer_to(id):
            kept += [] if is_remainder else [id]
        elif is_at_work(snapshot, ("raw", *stages)):
            at_work += [] if is_remainder else [id]
        else:
            (remainders if is_remainder else removed).append(id)
            if not dry_run:
                remove_snapshot(snapshot, stages, is_remainder=is_remainder)
    if not dry_run:
        update_index(root)
    return Pruned(
        removed=tuple(removed),
        referred_to=tuple(kept),
        at_work=tuple(at_work),
        remainders=tuple(remainders),
        dry_run=dry_run,
        unreadable=tuple(references.unreadable),
    )


class PlanReferences:
    """The snapshots that a cluster's plans refer to; each query also finds plans made since the last one.

    Includes every plan in the ledger (proposed, approved or applied), plan files with steps to apply, since those may
    be recorded in another ledger, and the snapshots that a plan's strategies learnt from.
    Without a ledger there are none, unless the root has plans: then their ledger is elsewhere, and `UsageError` is
    raised.
    """

    def __init__(self, root: Root, address: str | None) -> None:
        self._root = root
        self._url = address or root.ledger_url
        self._read: set[str] = set()
        """Plans, by digest or file: a plan never changes, so each is read once."""
        self._found: set[str] = set()
        self._ledger: Ledger | None = None
        self._head: ChainHead | None = None
        """The ledger's last event when its plans were listed: none comes without an event."""
        self.unreadable: list[str] = []
        """Plans, by digest or file, that can't be read: they refer at least to their own snapshot."""
        if not ledger_exists(self._url):
            if address is not None:
                raise UsageError(f"there is no ledger at {address}: nothing was removed")
            if root.of_cluster(PLANS).is_dir():
                raise UsageError(
                    f"{root.path} holds plans but no ledger that refers to them: name it with --ledger URL"
                )
        else:
            self._ledger = open_ledger(self._url)

    def close(self) -> None:
        """Close the ledger."""
        if self._ledger is not None:
            self._ledger.close()

    def snapshots(self) -> frozenset[str]:
        """Every snapshot that a plan currently refers to."""
        self._look(with_plans(self._root))
        return frozenset(self._found)

    def refer_to(self, snapshot: str) -> bool:
        """Whether a plan known already, recorded since in the ledger, or lying with the snapshot refers to it.

        Listing the plan files of every snapshot again before each removal would take hours where there are thousands.
        """
        if snapshot not in self._found:
            self._look([snapshot])
        return snapshot in self._found

    def _look(self, folders: Iterable[str]) -> None:
        """Read the new plans of the ledger, and those in the folders of these snapshots."""
        if self._ledger is None:
            if not ledger_exists(self._url):
                return
            self._ledger = open_ledger(self._url)
        if (head := self._ledger.head()) != self._head:
            for plan in new_plans(self._ledger, self._root.cluster, self._read):
                self._note(plan.digest, plan.snapshot, plan.document, only_to_carry_out=False)
            self._head = head
        for file in new_plan_files(self._root, folders, self._read):
            self._note(file.place, file.snapshot, file.content, only_to_carry_out=True)

    def _note(self, plan: str, snapshot: str, document: str | bytes, *, only_to_carry_out: bool) -> None:
        self._read.add(plan)
        try:
            self._found.update(referred_to(document, only_to_carry_out=only_to_carry_out))
        except ValueError:
            self.unreadable.append(plan)
            self._found.add(snapshot)
