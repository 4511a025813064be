"""The reviewed table of outcomes, `outcomes.tsv`: one line per corruption, in the order in which they are generated."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from corruptions.generated import Corruption
from corruptions.outcomes import Outcome

TABLE: Final = Path(__file__).with_name("outcomes.tsv")
_COLUMNS: Final = ("load manager", "surface", "field", "corruption", "outcome", "by")

Key = tuple[str, str, str, str]


def key_of(corruption: Corruption) -> Key:
    """What identifies a line."""
    return corruption.load_manager, corruption.surface, corruption.field, corruption.kind


def reviewed() -> dict[Key, Outcome]:
    """The outcomes as they were reviewed."""
    if not TABLE.exists():
        return {}
    with TABLE.open(encoding="utf-8", newline="") as lines:
        rows = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        return {(row[0], row[1], row[2], row[3]): Outcome(row[4], row[5]) for row in rows if row != list(_COLUMNS)}


def write(corruptions: Iterable[Corruption], outcomes: Mapping[Key, Outcome]) -> None:
    """Write the outcomes that are known, and no others."""
    keys = [key for key in map(key_of, corruptions) if key in outcomes]
    rows = [_COLUMNS, *((*key, outcomes[key].verdict, outcomes[key].by) for key in keys)]
    text = "".join("\t".join(" ".join(cell.split()) for cell in row) + "\n" for row in rows)
    TABLE.write_text(text, encoding="utf-8")
