"""Lines for a terminal."""

from __future__ import annotations

import pytest

from pulsar_advisor.reporting.wrapping import wrapped, wrapped_lines


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("short", "short"),
        ("a sentence that is longer", "a sentence that is\n  longer"),
        ("  yes a: has reached it", "  yes a: has reached\n    it"),
        ("remedy  set it to another", "remedy  set it to\n        another"),
        ("tenant/namespace/0x00000000_0x80000000", "tenant/namespace/0x00000000_0x80000000"),
        ("1. pulsar-advisor drain a:8080 --onto b", "1. pulsar-advisor drain a:8080 --onto b"),
        ("that is too small: pulsar-advisor scale --to 60%", "that is too small:\n  pulsar-advisor scale --to 60%"),
        ("see what is `pulsar-advisor x`", "see what is\n  `pulsar-advisor x`"),
        ("one two three: pulsar-advisor x", "one two three:\n  pulsar-advisor x"),
        ("export PULSAR_ADVISOR_ROOT=/a B=c", "export PULSAR_ADVISOR_ROOT=/a B=c"),
        ("it is pulsar-advisor/plan/5, as others are", "it is\n  pulsar-advisor/plan/5,\n  as others are"),
        ("the topic 中文主题 is hot", "the topic 中文主题\n  is hot"),
        ("a policy: printf '%s' 'a: b' >x", "a policy:\n  printf '%s' 'a: b' >x"),
    ],
)
def test_a_line_is_broken_between_words_and_its_command_stays_whole(line: str, shown: str) -> None:
    assert wrapped(line, 20) == shown


def test_a_command_stays_on_the_last_line_if_it_fits() -> None:
    assert wrapped("a long sentence: pulsar-advisor x", 30) == "a long sentence:\n  pulsar-advisor x"
    assert wrapped("a longer sentence than that: pulsar-advisor x", 26) == (
        "a longer sentence than\n  that: pulsar-advisor x"
    )


def test_a_first_word_that_is_too_long_keeps_its_indent() -> None:
    assert wrapped("    tenant/orders/0x00000000_0x80000000 is hot", 20, 4) == (
        "    tenant/orders/0x00000000_0x80000000\n    is hot"
    )


def test_what_goes_to_a_file_stays_whole() -> None:
    line = "word " * 100
    assert wrapped_lines([line, "b"], None) == f"{line}\nb"


def test_the_columns_of_a_label_are_kept() -> None:
    assert wrapped("Own balancer   does nothing here", 31, 15) == "Own balancer   does nothing\n               here"


def test_a_label_leaves_half_a_narrow_terminal_to_the_text() -> None:
    assert wrapped("Own balancer   does nothing", 20, 15) == "Own balancer   does\n          nothing"
