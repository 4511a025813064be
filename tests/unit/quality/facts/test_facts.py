"""What facts take from the settings."""

from __future__ import annotations

import pytest

from pulsar_advisor.quality.facts.facts import two_passes_ms


@pytest.mark.parametrize(
    ("runtime", "dynamic", "interval_s"),
    [
        ({}, {}, 60),
        ({"statsUpdateFrequencyInSecs": "300"}, {}, 300),
        ({"statsUpdateFrequencyInSecs": "300"}, {"statsUpdateFrequencyInSecs": "30"}, 300),
        ({"statsUpdateFrequencyInSecs": "soon"}, {}, 60),
    ],
)
def test_figures_may_repeat_for_two_passes_of_the_brokers_statistics(
    runtime: dict[str, str], dynamic: dict[str, str], interval_s: int
) -> None:
    assert two_passes_ms(("4.0.8", runtime, dynamic)) == 2 * 1000 * interval_s
