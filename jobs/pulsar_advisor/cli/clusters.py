"""The verbs that read a cluster without storing a snapshot: doctor, brokers."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter

from pulsar_advisor.cli.options import Flag, Json, whole_numbers
from pulsar_advisor.cli.output import log, print_json, result_of
from pulsar_advisor.cli.places import Connection, Place
from pulsar_advisor.cli.usage import refuse_together
from pulsar_advisor.storage.root import LATEST


def doctor(*, place: Place = Place(), connection: Connection = Connection(), json: Json = False) -> None:
    """Say whether a capture would work: what can be reached and read, with which role, and what can't be computed."""
    from rich.console import Console

    from pulsar_advisor.cli.screens import print_diagnosis
    from pulsar_advisor.stages.doctor import run as diagnose

    diagnosis = diagnose(connection.options(place), place.open_if_named())
    with result_of(diagnosis.exit_code):
        print_json(diagnosis) if json else print_diagnosis(diagnosis, Console())


def brokers(
    *,
    place: Place = Place(),
    snapshot: str | None = None,
    connection: Connection = Connection(),
    live: Annotated[bool, Flag] = False,
    watch: Annotated[tuple[int, ...] | None, Parameter(consume_multiple=(0, 1), converter=whole_numbers)] = None,
    json: Json = False,
) -> None:
    """Show the tables of `pulsar-perf monitor-brokers`, from a snapshot or from the cluster itself.

    Parameters
    ----------
    snapshot
        A snapshot's id; by default the latest.
    live
        Ask the cluster now; implied by --admin-url, by --watch, and by --profile without --snapshot.
    watch
        Repeat every N seconds (60 without a number), until interrupted.
    """
    from rich.console import Console

    from pulsar_advisor.cli.screens import print_tables
    from pulsar_advisor.monitor.loads import load_now, watched
    from pulsar_advisor.monitor.tables import broker_tables
    from pulsar_advisor.stages.brokers import run as load_in_snapshot

    refuse_together({"--snapshot": snapshot is not None, "--live": live})
    refuse_together({"--snapshot": snapshot is not None, "--watch": watch is not None})
    refuse_together({"--snapshot": snapshot is not None, "a connection (--admin-url)": connection.is_given})
    asks = live or watch is not None or connection.is_given or (place.profile is not None and snapshot is None)
    if not asks:
        loads = iter([load_in_snapshot(place.at(LATEST if snapshot is None else snapshot))])
    else:
        options = connection.options(place)
        loads = watched(lambda: load_now(options), None if watch is None else next(iter(watch), 60), log)
    console = Console()
    for load in loads:
        if watch is not None and not json:
            console.clear()  # does nothing without a terminal
        print_json(broker_tables(load)) if json else print_tables(load, console)
        sys.stdout.flush()  # so that a reader of a pipe gets each document immediately
