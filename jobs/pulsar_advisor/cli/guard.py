"""The verbs about a cluster's own balancer that runs switched off: `guard`, `guard restore`, `guard leave`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from pulsar_advisor.cli.options import Json, YourName
from pulsar_advisor.cli.output import log, print_json, result_of, say_lines
from pulsar_advisor.cli.places import LedgerPlace, Reach
from pulsar_advisor.execution.person import person_on_command_line
from pulsar_advisor.model.errors import BalancerStillOff, Refused

if TYPE_CHECKING:
    from pulsar_advisor.execution.ledger.ledger import Ledger


def show(*, place: LedgerPlace = LedgerPlace(), json: Json = False) -> None:
    """Show what runs switched off on a cluster and could not restore; ends with exit code 8 if there is anything.

    Reads only the ledger.
    """
    with _opened(place) as (book, names):
        _say_what_is_off(book, names, json=json)


def restore(
    *, as_: Annotated[str | None, Parameter(name="--as")] = None, reach: Reach = Reach(), json: Json = False
) -> None:
    """Switch a cluster's own balancer on again, where a run left it off; ends with exit code 8 while it is off.

    What someone else has set since stays as it is.

    Parameters
    ----------
    as_
        Your name, if a plain `false`, which an earlier release or somebody else may have written, is to be undone too,
        or what a run wrote that the ledger lacks.
    """
    with _opened(reach.place) as (book, names):
        from pulsar_advisor.stages.apply import restore_balancer

        person = None if as_ is None else person_on_command_line(as_)
        refusals: list[Refused] = []
        for name in names:  # all that Pulsar has called the cluster; what is off under an earlier name hides no other
            try:
                restore_balancer(name, book, reach.admin(), log, person)
            except Refused as refused:
                refusals.append(refused)
        if refusals:
            raise refusals[0]
        _say_what_is_off(book, names, json=json)


def leave(*, as_: YourName, place: LedgerPlace = LedgerPlace(), json: Json = False) -> None:
    """Leave a cluster's own balancer as it is: nothing will restore what runs have left off so far. Sends nothing."""
    with _opened(place) as (book, names):
        from pulsar_advisor.execution.run.guard.left_off import leave_as_it_is

        for name in names:
            leave_as_it_is(book, name, person_on_command_line(as_))
        _say_what_is_off(book, names, json=json)


def _say_what_is_off(ledger: Ledger, names: list[str], *, json: bool) -> None:
    from pulsar_advisor.execution.run.guard.left_off import LeftOff, left_off, warning

    left = [(name, switch) for name in names for switch in left_off(ledger, name)]
    with result_of(BalancerStillOff.exit_code if left else 0):
        if json:
            print_json([LeftOff(**vars(switch), cluster_name=name) for name, switch in left])
        else:
            nothing = "the ledger has no plan of this cluster: no run left anything off"
            say_lines([warning(switch, name) for name, switch in left] or ["nothing is left off" if names else nothing])


@contextmanager
def _opened(place: LedgerPlace) -> Iterator[tuple[Ledger, list[str]]]:
    """The ledger, and Pulsar's own names for the cluster. Raises `Refused` without one, and as `require_known`."""
    from pulsar_advisor.execution.ledger.lists import cluster_names

    root = place.open()
    with place.ledger_if_any() as book:
        if book is None:
            raise Refused(
                f"cluster '{root.cluster}' has no ledger, so no run was ever recorded: name one with --ledger URL"
            )
        names = sorted(cluster_names(book, root.cluster))
        if not names:
            root.require_known()
        yield book, names
