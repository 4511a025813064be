"""Triggers with which the database refuses changes to a ledger that no release of the advisor makes.

Migrations create them, and the audit compares the ones it finds with these, so changing a trigger needs a new revision.
The owner of the database can drop them: they stop mistakes and ordinary users, and the audit finds the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

Dialect = Literal["sqlite", "postgresql"]


@dataclass(frozen=True)
class Trigger:
    """A trigger of a table: when it fires, on which condition, and its error message."""

    name: str
    table: str
    when: str
    why: str
    condition: str = ""
    each: Literal["ROW", "STATEMENT"] = "ROW"

    def create(self, dialect: Dialect) -> str:
        """The statement that creates it; PostgreSQL needs `POSTGRESQL_FUNCTION` first."""
        on = f"CREATE TRIGGER {self.name} BEFORE {self.when} ON {self.table}"
        only = f" WHEN ({self.condition})" if self.condition else ""
        if dialect == "sqlite":
            return f"{on}{only} BEGIN SELECT RAISE(ABORT, '{self.why}'); END"
        return f"{on} FOR EACH {self.each}{only} EXECUTE FUNCTION ledger_refuses('{self.why}')"


@dataclass(frozen=True)
class _Rules:
    key: str
    fixed: tuple[str, ...] = ()
    """Columns that are written only once. Empty: the row never changes."""
    final: str = ""
    """The condition under which a row may no longer change."""


_RULES: Final[Mapping[str, _Rules]] = {
    "events": _Rules("id"),
    "plans": _Rules("digest"),
    "proposals": _Rules("id"),
    "approvals": _Rules(
        "id",
        (
            *("id", "digest", "approver", "source", "at_ms", "expires_at_ms", "comment"),
            *("allows_splits", "accepts_worse", "accepts_low_confidence", "throttle"),
        ),
        "OLD.withdrawn_at_ms IS NOT NULL",
    ),
    "runs": _Rules(
        "id", ("id", "digest", "cluster_name", "started_at_ms"), "OLD.state IN ('done', 'refused', 'aborted')"
    ),
    "steps": _Rules("id", ("id", "run_id", "step_id", "bundle"), "OLD.state IN ('confirmed', 'failed', 'skipped')"),
    "verifications": _Rules("id"),
    "verified_bundles": _Rules("id"),
    "verified_brokers": _Rules("id"),
    "seals": _Rules("id"),
}

TABLES: Final = tuple(_RULES)
TABLES_SINCE_0005: Final = ("events", "plans", "proposals", "approvals", "runs", "steps")
TABLES_SINCE_0006: Final = ("verifications", "verified_bundles", "verified_brokers")
TABLES_SINCE_0007: Final = ("seals",)

POSTGRESQL_BODY: Final = "BEGIN RAISE EXCEPTION '%', TG_ARGV[0]; END"
POSTGRESQL_FUNCTION: Final = (
    f"CREATE FUNCTION ledger_refuses() RETURNS trigger LANGUAGE plpgsql AS $$ {POSTGRESQL_BODY} $$"
)


def triggers(table: str, dialect: Dialect) -> Iterator[Trigger]:
    """The triggers of a table: they forbid removing or replacing rows and changing recorded values."""
    rules = _RULES[table]
    yield Trigger(f"{table}_no_delete", table, "DELETE", "rows of the ledger are never removed")
    if dialect == "sqlite":
        # REPLACE removes a row without firing a delete trigger; a trigger before the insert still sees the row.
        known = f"EXISTS (SELECT 1 FROM {table} WHERE {rules.key} = NEW.{rules.key})"
        yield Trigger(f"{table}_no_replace", table, "INSERT", "rows of the ledger are never replaced", known)
    else:
        why = "rows of the ledger are never removed"
        yield Trigger(f"{table}_no_truncate", table, "TRUNCATE", why, each="STATEMENT")
    differs = "IS NOT" if dialect == "sqlite" else "IS DISTINCT FROM"
    changed = " OR ".join(f"NEW.{column} {differs} OLD.{column}" for column in rules.fixed)
    yield Trigger(f"{table}_fixed", table, "UPDATE", "what the ledger recorded never changes", changed)
    if rules.final:
        yield Trigger(f"{table}_final", table, "UPDATE", "what has ended never changes", rules.final)
