"""The canonical form is that of RFC 8785, whichever encoder writes it."""

from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.model.canonical_json import CanonicalizationError, canonical_json

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


@pytest.mark.parametrize("value", [2**53, float("nan"), ["\ud800"], ["a", 2**60], {"a": ["\udfff", "b"]}])
def test_what_has_no_canonical_form_is_an_error(value: Any) -> None:
    with pytest.raises(CanonicalizationError):
        canonical_json(value)
