"""Figures and names in words."""

from __future__ import annotations

import pytest

from pulsar_advisor.reporting.figures import UNKNOWN, change, count, message_rate, moment, percent, sentence, throughput


@pytest.mark.parametrize(
    ("bytes_per_s", "text"),
    [
        (0.0, "0 B/s"),
        (10.2, "10.2 B/s"),
        (100.4, "100 B/s"),
        (999.4, "999 B/s"),
        (999.6, "1.00 kB/s"),
        (12_345.0, "12.3 kB/s"),
        (104_000_000.0, "104 MB/s"),
        (2_500_000_000_000.0, "2,500 GB/s"),
        (None, "unknown"),
    ],
)
def test_throughput_has_three_digits_and_decimal_units(bytes_per_s: float | None, text: str) -> None:
    assert throughput(bytes_per_s).replace("\u00a0", " ") == text


@pytest.mark.parametrize(
    ("rate", "text"),
    [(0.0, "0 msg/s"), (0.5, "0.5 msg/s"), (3.14, "3.1 msg/s"), (10.4, "10 msg/s"), (12_345.6, "12,346 msg/s")],
)
def test_small_message_rates_keep_a_decimal(rate: float, text: str) -> None:
    assert message_rate(rate).replace("\u00a0", " ") == text


def test_a_missing_ratio_is_unknown() -> None:
    assert (percent(0.7134), percent(None)) == ("71.3%", "unknown")


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (0.71, 0.55, "falls from 71.0% to 55.0%"),
        (0.55, 0.71, "rises from 55.0% to 71.0%"),
        (0.712, 0.709, "falls from 71.2% to 70.9%"),
        (0.7121, 0.7119, "stays at 71.2%"),
    ],
)
def test_a_change_takes_the_digits_it_needs(before: float, after: float, text: str) -> None:
    assert change(before, after).replace("\u00a0", " ") == text


def test_a_count_agrees_with_its_noun() -> None:
    assert (count(1, "step"), count(1234, "step")) == ("1\u00a0step", "1,234\u00a0steps")


def test_a_sentence_gets_one_full_stop() -> None:
    assert [sentence(text) for text in ("Done", "Done.", "Done?", "Done!")] == ["Done.", "Done.", "Done?", "Done!"]


@pytest.mark.parametrize("figure", [None, float("nan"), float("inf")])
def test_a_figure_that_is_no_number_is_unknown(figure: float | None) -> None:
    assert {percent(figure), message_rate(figure), throughput(figure)} == {UNKNOWN}


def test_what_rounds_to_zero_has_no_sign() -> None:
    assert percent(-0.00004) == "0.0%"
    assert percent(-0.004, 0) == "0%"


@pytest.mark.parametrize(
    ("epoch_ms", "text"),
    [
        (1_795_249_800_000, "2026-11-21 08:30:00 UTC"),
        (253_402_300_800_000, "253402300800000 ms"),
        (-(2**63), "-9223372036854775808 ms"),
    ],
)
def test_a_moment_beyond_all_years_is_shown_as_its_number(epoch_ms: int, text: str) -> None:
    assert moment(epoch_ms) == text
