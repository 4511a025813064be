"""Who reads a message: the next step is a command for somebody in a shell, and something to press in Airflow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, Literal


@dataclass(frozen=True, kw_only=True)
class Reader:
    """What a reader is asked to do, in words that follow `to go on`, `or` or a colon."""

    resume_run: str
    """Go on with a run of the plan `{digest}` that ended early."""
    end_run: str
    """End a run of the plan `{digest}` for good."""
    approve: str
    """Approve a plan, by these `{words}`."""
    apply_plan: str
    """Carry out the approved plan `{digest}`, which is no roll."""
    go_on_with_roll: str
    """Carry out the approved roll `{digest}`."""
    drain_again: str
    """Go on with the roll `{digest}`, whose drained broker may have bundles again."""
    plan_turn_again: str
    """Go on with the roll `{digest}`, whose last turn can't be resumed."""
    stop_roll: str
    """Pause a roll, or end it for good."""
    end_roll: str
    """End a roll for good."""
    restore_balancer: str
    """Switch on again what a run left off."""
    decide_about_balancer: str
    """Say whether what may be somebody else's setting is restored or left."""
    audit: str
    """See whether the ledger is as it was written."""
    name_heads: str
    """Say where heads of the ledger are kept, out of its owner's reach."""
    name_ledger: str
    """Say where the ledger is."""
    name_admin_url: str
    """Say where the cluster's admin API is."""
    name_store: str
    """Say which metadata store the brokers use now."""
    fold_days: str
    """Fold all days of a cluster."""
    see_plans: str
    see_snapshots: str
    """Find out which snapshots there are."""
    knows_consents_by: Literal["flag", "title"]


IN_A_SHELL: Final = Reader(
    resume_run="`pulsar-advisor apply {digest} --resume`",
    end_run="end it with `pulsar-advisor apply {digest} --abort`",
    approve="`pulsar-advisor {words}`",
    apply_plan="`pulsar-advisor apply {digest}` carries it out",
    go_on_with_roll="`pulsar-advisor roll continue {digest}` carries it out",
    drain_again="pulsar-advisor roll continue {digest}",
    plan_turn_again="`pulsar-advisor roll continue {digest} --anew` plans the turn again",
    stop_roll="`roll pause` pauses it, `roll end` ends it",
    end_roll="end it with `roll end`",
    restore_balancer="`pulsar-advisor guard restore`",
    decide_about_balancer="`pulsar-advisor guard restore --as NAME` restores it, `guard leave --as NAME` leaves it",
    audit="run `pulsar-advisor audit`",
    name_heads="give --heads or --head",
    name_ledger="name one with --ledger URL",
    name_admin_url="give --admin-url http://broker:8080, or name it in a profile of the config file",
    name_store="give --metadata-store with the brokers' metadataStoreUrl, or no metadata store",
    fold_days="run `history fold --all`",
    see_plans="`pulsar-advisor plans` lists them",
    see_snapshots="`pulsar-advisor snapshots list` shows which there are",
    knows_consents_by="flag",
)

_reader: ContextVar[Reader] = ContextVar("reader", default=IN_A_SHELL)


def reader() -> Reader:
    """Who reads messages now: somebody in a shell, unless `read_by` says otherwise."""
    return _reader.get()


@contextmanager
def read_by(somebody: Reader) -> Iterator[None]:
    """Messages made within the block are for this reader."""
    token = _reader.set(somebody)
    try:
        yield
    finally:
        _reader.reset(token)
