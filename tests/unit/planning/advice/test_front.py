"""A point is on the front if no other is as good in both and better in one."""

from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.planning.advice.front import on_front

points = st.lists(st.tuples(st.integers(0, 5).map(float), st.integers(0, 5).map(float)), max_size=8)


def test_cheaper_or_better_is_on_the_front() -> None:
    assert on_front([(0, 0.9), (5, 0.6), (9, 0.6), (7, 0.7), (20, 0.5)]) == (True, True, False, False, True)


@given(points)
def test_the_front_beats_every_other_point(found: list[tuple[float, float]]) -> None:
    marks = on_front(found)
    front = [point for point, mark in zip(found, marks, strict=True) if mark]
    for point, mark in zip(found, marks, strict=True):
        beaten = any(other[0] <= point[0] and other[1] <= point[1] and other != point for other in front)
        assert mark != beaten
