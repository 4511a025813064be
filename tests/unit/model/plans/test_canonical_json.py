"""The canonical form is that of RFC 8785, whichever encoder writes it."""

from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.model.plans.canonical_json import CanonicalizationError, canonical_json

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.lists(st.text()) | st.dictionaries(st.text(), inner),
)


@given(VALUES)
def test_it_is_what_the_library_writes(value: Any) -> None:
    assert canonical_json(value) == rfc8785.dumps(value)


@pytest.mark.parametrize(
    "value",
    [[""], ["", ""], ['","'], ['a","b', "c"], ['"', "a"], ["a\\", "b"], ["a", 1], ["\x7f", "a"], ["é", "a"]],
    ids=repr,
)
def test_texts_of_any_kind_are_escaped_in_a_list(value: list[Any]) -> None:
    assert canonical_json(value) == rfc8785.dumps(value)


@pytest.mark.parametrize("exponent", range(-8, 24))
@pytest.mark.parametrize("digits", [1.0, 1.5, 9.999999999999998, -7.0])
def test_floats_are_written_as_by_ecmascript(digits: float, exponent: int) -> None:
    value = digits * 10.0**exponent
    assert canonical_json({"a": value}) == rfc8785.dumps({"a": value})


@pytest.mark.parametrize(
    "value",
    [2**53, -(2**53), float("nan"), ["\ud800"], ["a", 2**60], {"a": ["\udfff", "b"]}, {"a": {"\ud800": 1}}],
)
def test_what_has_no_canonical_form_is_an_error(value: Any) -> None:
    with pytest.raises(CanonicalizationError):
        canonical_json(value)
