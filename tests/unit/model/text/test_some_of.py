from __future__ import annotations

import pytest

from pulsar_advisor.model.text.some_of import count, some_of


@pytest.mark.parametrize(
    ("number", "expected"), [(0, ""), (1, "b0"), (3, "b0, b1, b2"), (30, "b0, b1, b10 and 27 more")]
)
def test_the_first_three_are_named_and_the_others_counted(number: int, expected: str) -> None:
    assert some_of([f"b{i}" for i in reversed(range(number))]) == expected


@pytest.mark.parametrize(("number", "expected"), [(0, "0 bundles"), (1, "1 bundle"), (1234, "1,234 bundles")])
def test_a_number_of_things_is_grouped_by_thousands(number: int, expected: str) -> None:
    assert count(number, "bundle") == expected
