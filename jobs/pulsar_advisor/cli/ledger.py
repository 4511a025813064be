"""The verbs that examine the ledger itself: audit."""

from __future__ import annotations

from pulsar_advisor.cli.options import Json
from pulsar_advisor.cli.output import print_json, result_of, say_lines
from pulsar_advisor.cli.places import HeadsPlaces, LedgerPlace
from pulsar_advisor.model.errors import Refused
from pulsar_advisor.model.text.some_of import count


def verify_ledger(
    *,
    place: LedgerPlace = LedgerPlace(),
    heads: HeadsPlaces = HeadsPlaces(),
    head: str | None = None,
    json: Json = False,
) -> None:
    """Look for edits, removals, reordering and contradictions in the ledger; ends with exit code 5 if there are any.

    Parameters
    ----------
    head
        An earlier head of this ledger (NUMBER:HASH); those in a folder of --heads are found automatically. Only a head
        shows that everything was wiped, an older copy restored, or the whole chain rewritten.
    """
    from pulsar_advisor.execution.ledger.address import ledger_url, without_secrets
    from pulsar_advisor.execution.ledger.audit import audit
    from pulsar_advisor.execution.ledger.chain import ChainHead
    from pulsar_advisor.execution.ledger.heads import kept

    known = [] if head is None else [ChainHead.parse(head)]
    known += kept(heads.existing(place))
    with place.ledger_if_any() as book:
        if book is None:
            where = without_secrets(ledger_url(place.ledger_url()))
            removed = f", and heads of one are kept up to event {known[-1].event}: it was removed" if known else ""
            raise Refused(f"there is no ledger at {where}{removed}; name the one to audit with --ledger URL")
        result = audit(book, known)
    with result_of(result.exit_code):
        if json:
            print_json(result)
        else:
            verdict = count(len(result.findings), "finding") if result.findings else "as it was written"
            say_lines([result.compared, *result.findings, f"head: {result.head}", verdict])
