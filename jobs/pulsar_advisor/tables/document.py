"""Prints `docs/tables.md`: `python -m pulsar_advisor.tables.document > docs/tables.md`."""

from __future__ import annotations

import sys

from pulsar_advisor.tables.schemas import CHECKS, TABLES, Table

_HEAD = """# Tables

Made by `python -m pulsar_advisor.tables.document` from the schemas; don't edit.

`normalize` writes these tables as Parquet under `tables/<table>/cluster=<c>/snapshot=<id>/`, readable by any engine;
the comments below are in the files too. They are complete once `tables/result/…/result.json` exists. A column marked
with `*` is never null. Times are epoch milliseconds (`_ms`), rates are per second.

Two views stand side by side in `brokers` and `bundles`. `fresh` holds what each broker answered over REST: the last
statistics pass. `published` holds what ZooKeeper had, up to 15 minutes old: what the leader acts on; of an Extensible
cluster, what its brokers told the leader while they were listened to (`--service-url`). A snapshot of ZooKeeper alone
has no `fresh` view, one of the admin API alone no `published` view. Ownership and boundaries are
the same in both, as read at the end of the capture. Heartbeat and SLA-monitor namespaces have no boundaries document;
Pulsar gives them one bundle with the full range, so their bundle is `in_boundaries`: it counts among its broker's
bundles, and it is never moved.
"""

_VALIDATION = """`validate` writes one more in the same place, its result as a table, complete once
`validation/…/result.json` exists:
"""


def tables_page() -> str:
    """The page as Markdown."""
    return "\n".join([_HEAD, *(_section(table) for table in TABLES), _VALIDATION, _section(CHECKS)])


def _section(table: Table) -> str:
    key = ", ".join(f"`{column}`" for column in table.key)
    rows = [
        f"| `{column.name}`{'' if column.nullable else ' *'} | {column.type} | {column.comment} |"
        for column in table.columns
    ]
    return "\n".join(
        [
            f"## {table.name}",
            "",
            f"A row is {table.row}." + (f" Unique by {key}." if key else ""),
            "",
            "| column | type | meaning, unit, source |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )


if __name__ == "__main__":
    sys.stdout.write(tables_page())
