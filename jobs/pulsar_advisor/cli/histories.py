"""The verbs over many snapshots: history fold, show, verify and export, trend, diff and index."""

from __future__ import annotations

from typing import Annotated, Final

from pulsar_advisor.cli.options import Flag, Json, WholeNumber
from pulsar_advisor.cli.output import log, print_json, result_of, say, say_lines, timed
from pulsar_advisor.cli.places import LedgerPlace, Place
from pulsar_advisor.cli.rendering import difference_lines
from pulsar_advisor.cli.usage import refuse_together
from pulsar_advisor.model.bounds import DEFAULT_DAYS, TREND_DAYS
from pulsar_advisor.model.cluster.snapshot_id import require_day
from pulsar_advisor.model.errors import DataNotFit, UsageError
from pulsar_advisor.model.text.reader import reader
from pulsar_advisor.model.text.some_of import count
from pulsar_advisor.storage.root import LATEST, Root

_EVER: Final = "99999999"
"""After every day."""


def fold(
    *,
    place: LedgerPlace = LedgerPlace(),
    day: str | None = None,
    all: Annotated[bool, Flag] = False,
    json: Json = False,
) -> None:
    """Fold the normalized snapshots of a day into tables that last; folding it again adds later snapshots.

    Parameters
    ----------
    day
        The day (UTC), such as 20261121; by default that of the newest snapshot.
    all
        Fold every day that has a snapshot, or was folded by an earlier release.
    """
    from pulsar_advisor.stages.fold import fold_until
    from pulsar_advisor.stages.fold import run as fold_day

    refuse_together({"--day": day is not None, "--all": all})
    root = place.open()
    if all:
        folded = fold_until(root, _EVER, place.existing_ledger(), begun=lambda one: log(f"fold {one}"))
        if not folded:
            raise UsageError(f"cluster '{root.cluster}' has no normalized snapshot: there is nothing to fold")
    else:
        one = root.day(require_day(day)) if day else root.resolve(LATEST).day
        with timed(f"fold {one}"):
            folded = [fold_day(one, place.existing_ledger())]
    print_json(folded) if json else say_lines(one.line for one in folded)


def show_days(*, place: Place = Place(), json: Json = False) -> None:
    """List the folded days of a cluster, oldest first."""
    from pulsar_advisor.storage.history import folded_days

    root = place.open()
    days, unreadable = folded_days(root)
    none = [] if days or unreadable else [_no_day(root)]
    for line in unreadable:
        log(line)
    print_json(days) if json else say_lines([one.line for one in days] or none)


def verify_days(*, place: LedgerPlace = LedgerPlace()) -> None:
    """Compare all folded days with their hashes, also in the ledger; ends with exit code 3 if one differs."""
    from pulsar_advisor.stages.verify_history import run as verify

    root = place.open()
    days, found = verify(root, place.existing_ledger())
    with result_of(DataNotFit.exit_code if found else 0):
        say_lines(found or [f"{count(days, 'day')} as written" if days else _no_day(root)])


def export_days(
    folder: str, /, *, place: Place = Place(), pseudonyms: Annotated[bool, Flag] = False, json: Json = False
) -> None:
    """Copy all folded days into another root, where trend, diff and index show them.

    Parameters
    ----------
    folder
        The other root: a path or an object-store URL.
    pseudonyms
        Number the cluster, tenants, namespaces, brokers and policies; settings, releases and times stay.
    """
    from pulsar_advisor.stages.export_history import run as export

    written = list(export(place.open(), folder, pseudonyms=pseudonyms))
    print_json(written) if json else say_lines(day.line for day in written)


def trend(*, place: Place = Place(), days: WholeNumber = DEFAULT_DAYS, json: Json = False) -> None:
    """Show how evenly the load was spread over the last folded days, how that is changing, and what moved.

    Parameters
    ----------
    days
        The number of days.
    """
    from pulsar_advisor.history.trend import trend_lines
    from pulsar_advisor.stages.trend import run as read_trend

    TREND_DAYS.check(days)
    root = place.open()
    read, found = read_trend(root, days)
    print_json(found) if json else say_lines(trend_lines(found, root.cluster, read))


def diff(earlier: str, later: str = LATEST, /, *, place: Place = Place(), json: Json = False) -> None:
    """Show what differs between two snapshots: who grew, what moved and why, which settings changed.

    Parameters
    ----------
    earlier
        A snapshot's id, or a folded day: its last snapshot.
    later
        The same, or 'latest'.
    """
    from pulsar_advisor.history.events import UNKNOWN
    from pulsar_advisor.stages.diff import run as compare
    from pulsar_advisor.storage.history import day_with

    root = place.open()
    found = compare(root, earlier, later)
    unexplained = any(event.cause == UNKNOWN for event in found.events)
    days = [day_with(root.snapshot(one)) for one in (found.earlier, found.later)]
    # Days of the first release that folded any don't show it either.
    if unexplained and not all(day is not None and "events" in day.tables for day in days):
        log(f"only folded days show who moved a bundle: {reader().fold_days}")
    print_json(found) if json else say_lines(difference_lines(found, root.cluster))


def index(*, place: LedgerPlace = LedgerPlace(), days: WholeNumber = DEFAULT_DAYS) -> None:
    """Write index.html into the root: all its clusters on one page, the worst on top.

    Parameters
    ----------
    days
        The number of folded days per cluster.
    """
    from pulsar_advisor.stages.index import run as write_index

    TREND_DAYS.check(days)
    place = place.of_all_clusters()
    root = place.open()
    root.require_there()
    say(write_index(root, days, place.ledger_url_if_any()))


def _no_day(root: Root) -> str:
    """What is said of a cluster without a folded day. Raises `UsageError` if the root has others only."""
    root.require_known()
    return f"no day of cluster '{root.cluster}' was folded yet"
