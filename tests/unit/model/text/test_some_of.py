from __future__ import annotations

import pytest

from pulsar_advisor.model.text.some_of import beginning, count, lasting, nearest, some_of

NAMES = ("ThresholdShedder", "OverloadShedder")


@pytest.mark.parametrize(("text", "shown"), [("", ""), ("abcd", "abcd"), ("abcde", "abc…")])
def test_a_long_text_is_cut_visibly(text: str, shown: str) -> None:
    assert beginning(text, 4) == shown


@pytest.mark.parametrize(
    ("number", "expected"), [(0, ""), (1, "b0"), (3, "b0, b1, b2"), (30, "b0, b1, b10 and 27 more")]
)
def test_the_first_three_are_named_and_the_others_counted(number: int, expected: str) -> None:
    assert some_of([f"b{i}" for i in reversed(range(number))]) == expected


@pytest.mark.parametrize(("number", "expected"), [(0, "0 bundles"), (1, "1 bundle"), (1234, "1,234 bundles")])
def test_a_number_of_things_is_grouped_by_thousands(number: int, expected: str) -> None:
    assert count(number, "bundle") == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "0 s"),
        (65.2, "66 s"),
        (600, "10 min"),
        (6 * 3600, "6.0 h"),
        (6 * 3600 + 1, "6.1 h"),
        (9 * 86_400 + 1, "9.1 days"),
    ],
)
def test_what_lasts_longer_than_a_round_time_does_not_read_like_it(seconds: float, expected: str) -> None:
    assert lasting(seconds) == expected


@pytest.mark.parametrize(("name", "said"), [("OverlodShedder", "; the nearest is 'OverloadShedder'"), ("nope", "")])
def test_a_typing_error_is_answered_with_what_was_meant_and_anything_else_with_nothing(name: str, said: str) -> None:
    assert nearest(name, NAMES) == said
