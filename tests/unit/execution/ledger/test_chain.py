"""The hashes of the ledger are those of RFC 8785, whatever writes the text that they are taken of."""

from __future__ import annotations

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.execution.ledger.chain import Value, chained, hashes_of, row_hash
from pulsar_advisor.model.plans.canonical_json import canonical_json

NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,20}", fullmatch=True)
VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.floats(allow_nan=False, allow_infinity=False)
)


def sha256(value: object) -> str:
    return hashlib.sha256(canonical_json(value)).hexdigest()


@given(st.dictionaries(NAMES, VALUES))
def test_a_row_is_hashed_as_canonical_json_without_its_nulls(row: dict[str, Value]) -> None:
    assert row_hash(row) == sha256({name: value for name, value in row.items() if value is not None})


@given(st.text(st.characters(exclude_categories=["Cs"])), st.dictionaries(NAMES, VALUES))
def test_an_event_is_chained_to_the_one_before(previous: str, event: dict[str, Value]) -> None:
    assert chained(previous, row_hash(event)) == sha256({"previous": previous, "event": row_hash(event)})


@given(st.dictionaries(NAMES, VALUES))
def test_rows_of_the_same_columns_are_hashed_like_one_row(row: dict[str, Value]) -> None:
    values = list(row.values())
    fractions = any(isinstance(value, float) for value in values)
    assert hashes_of(list(row), fractions)([values, values]) == [row_hash(row)] * 2


def test_a_fraction_without_a_canonical_form_has_no_hash() -> None:
    assert hashes_of(["usage"], fractions=True)([(float("inf"),), (float("nan"),)]) == ["", ""]


def test_every_character_has_its_canonical_form() -> None:
    everything = "".join(map(chr, (*range(0xD800), *range(0xE000, 0x110000))))
    assert row_hash({"text": everything}) == sha256({"text": everything})


def test_a_number_that_has_no_canonical_form_has_a_hash_that_nothing_matches() -> None:
    assert row_hash({"at_ms": 2**60}) != row_hash({"at_ms": 2**60 + 1})
