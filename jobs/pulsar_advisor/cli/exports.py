"""The verb that hands a plan on to other tools: plans export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from pulsar_advisor.admin.home import with_home
from pulsar_advisor.cli.opened_plans import named_plan
from pulsar_advisor.cli.options import PlanName
from pulsar_advisor.cli.output import log, say
from pulsar_advisor.cli.places import LedgerPlace
from pulsar_advisor.model.errors import StorageError


def export(
    plan: PlanName,
    /,
    *,
    format: Literal["pulsar-admin", "curl", "json"] = "pulsar-admin",
    output: Annotated[Path | None, Parameter(name=("-o", "--output"))] = None,
    place: LedgerPlace = LedgerPlace(),
) -> None:
    """Write a plan as a script to read and run step by step, without the advisor: its calls, with a check around each.

    Parameters
    ----------
    format
        A script of pulsar-admin commands, a script of curl commands, or the calls as JSON.
    output
        File to write, else stdout.
    """
    from upath import UPath

    from pulsar_advisor.execution.by_hand import exported, recorded_against
    from pulsar_advisor.execution.ledger.opening import ledger_if_any
    from pulsar_advisor.storage.files import write_output

    document, recorded = named_plan(plan, place.open(), place), ""
    try:
        with ledger_if_any(place.ledger_url_if_any()) as book:
            recorded = "" if book is None else recorded_against(book, document)
    except StorageError as error:  # who exports a plan may have no access to the ledger
        log(f"can't read what became of the plan: {error}")
    text = exported(document, format, recorded)
    if recorded:
        log(f"note: {recorded}")
    if output is None:
        say(text.rstrip("\n"))
        return
    file = with_home(output)
    write_output(UPath(file), (text.encode(),))
    log(f"written: {file}")
