"""Java's sorted map: the first key, also where the comparison isn't transitive."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.model.java.tree import first_in_tree


@given(st.lists(st.integers(0, 50), min_size=1, max_size=200))
def test_by_a_transitive_comparison_the_first_of_the_greatest_is_first(figures: list[int]) -> None:
    assert first_in_tree(len(figures), lambda new, old: figures[new] > figures[old]) == figures.index(max(figures))


def test_by_an_intransitive_comparison_a_key_may_never_be_compared_with_the_first_one() -> None:
    # The third key makes the second one the root, so the last one, which would precede the first, goes to the right.
    figures = [0, 9, 8, 15]
    assert first_in_tree(len(figures), lambda new, old: figures[new] - figures[old] > 10) == 0
