"""The snapshots before a given one: of the same cluster, comparable with it, and the one that it continues."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import timedelta
from itertools import islice, pairwise, takewhile
from statistics import median
from typing import Final

from pulsar_advisor.documents.validation import Validation
from pulsar_advisor.model.cluster.snapshot_id import snapshot_moment
from pulsar_advisor.model.errors import AdvisorError
from pulsar_advisor.planning.proposals.replay import RESTART_AFTER_INTERVALS
from pulsar_advisor.storage.results import read_manifest, read_validation, validation_if_any
from pulsar_advisor.storage.root import Snapshot

_USUAL_GAPS: Final = 10
"""Gaps between snapshots that define the usual gap."""
_RESULTS_COMPARED: Final = 10
"""Number of earlier results that the history of quality covers."""
_LONGEST_GAP_S: Final = 24 * 60 * 60
_GRACE_PERIOD_S: Final = 30 * 60
"""Default of `loadBalancerSheddingGracePeriodMinutes` in every release: unloads within it still count."""


def snapshots_before(snapshot: Snapshot, stage: str = "capture") -> Iterator[Snapshot]:
    """The earlier snapshots of the same cluster that a stage wrote a result for, newest first.

    Several clusters may have used one name in paths. Two snapshots are of the same cluster if Pulsar's name for it is
    equal and at least one broker is in both.
    """
    name, brokers = _identity(snapshot)
    for one in snapshot.root.newest_first(before=snapshot.id):
        if not one.is_written(stage):  # asked first: a manifest may take a hundred times as long to read
            continue
        try:
            name_then, brokers_then = _identity(one)
        except AdvisorError:
            continue  # unreadable or being removed: its cluster is unknown
        if name_then == name and not brokers.isdisjoint(brokers_then):
            yield one


def comparable_before(snapshot: Snapshot) -> Iterator[Snapshot]:
    """Those of these snapshots that have tables and weren't found unfit for use, newest first."""
    for one in snapshots_before(snapshot, "normalize"):
        try:
            result = validation_if_any(one)
        except AdvisorError:
            continue  # whether it is fit for use is unknown
        if result is None or result.success:
            yield one


def good_before(snapshot: Snapshot) -> Snapshot | None:
    """The newest earlier snapshot whose validation found it fit for use."""
    return next((one for one in comparable_before(snapshot) if validation_if_any(one) is not None), None)


def validations_until(snapshot: Snapshot) -> tuple[Validation, ...]:
    """The validation results of a snapshot and of the last readable ones before it, newest first."""
    return (read_validation(snapshot), *islice(_validated_before(snapshot), _RESULTS_COMPARED))


def _validated_before(snapshot: Snapshot) -> Iterator[Validation]:
    for one in snapshots_before(snapshot, "validate"):
        with suppress(AdvisorError):
            yield read_validation(one)


def within(period: timedelta, snapshot: Snapshot, before: Iterable[Snapshot]) -> Iterator[Snapshot]:
    """Those of the earlier snapshots, newest first, that were taken at most `period` before a given one."""
    return takewhile(lambda one: _gap_s(one, snapshot) <= period.total_seconds(), before)


def earlier_snapshot(snapshot: Snapshot) -> Snapshot | None:
    """The newest comparable snapshot, if its averages and unloads may continue in this one.

    None without such a snapshot, or if the gap is unusual: longer than a day, or than three usual gaps and
    Pulsar's default grace period for an unloaded bundle.
    """
    earlier = next(comparable_before(snapshot), None)
    if earlier is None:
        return None
    recent = [snapshot, *islice(snapshots_before(snapshot), _USUAL_GAPS)]
    usual_gap_s = median(_gap_s(before, after) for after, before in pairwise(recent))
    longest_gap_s = min(max(RESTART_AFTER_INTERVALS * usual_gap_s, _GRACE_PERIOD_S), _LONGEST_GAP_S)
    return earlier if _gap_s(earlier, snapshot) <= longest_gap_s else None


def _identity(snapshot: Snapshot) -> tuple[str, frozenset[str]]:
    """Pulsar's name of the cluster, and its brokers when the capture began."""
    identity = read_manifest(snapshot).identity
    return identity.cluster_name, frozenset(identity.broker_ids)


def _gap_s(before: Snapshot, after: Snapshot) -> float:
    return (snapshot_moment(after.id) - snapshot_moment(before.id)).total_seconds()
