"""What differs between a plan and the same one computed again."""

from __future__ import annotations

import pytest

from pulsar_advisor.execution.consent.origin import require_same
from pulsar_advisor.model.errors import Refused
from unit.execution.doubles import make_plan, unload_step


def test_of_two_long_texts_the_part_that_differs_is_shown() -> None:
    broker = "pulsar-broker-1.pulsar-broker.messaging.svc.cluster.local:8080"
    computed, written = (
        make_plan([unload_step(reason=f"{broker}: smoothed usage {usage} has reached mean plus threshold 65.48%")])
        for usage in ("70.00%", "99.00%")
    )
    expected = r"is ….{14}usage 99.00% has reached.*…, but ….{14}usage 70.00% has reached.*… in the computed plan\."
    with pytest.raises(Refused, match=expected):
        require_same(written, computed)


def test_of_two_lists_of_different_lengths_the_lengths_are_shown() -> None:
    written, computed = make_plan([unload_step(1), unload_step(2)]), make_plan([unload_step(1)])
    with pytest.raises(Refused, match="steps has 2 entries, but 1 in the computed plan"):
        require_same(written, computed)
