"""What a registry entry offers."""

from __future__ import annotations

import pytest

from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.model.strategy.entry import Strategy, find

ENTRY = Strategy(
    name="OverloadShedder",
    module="pulsar_advisor.shedding.overload_shedder",
    summary="One line.",
    load_managers=("modular",),
    first_release="1.18",
)


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="no shedder 'OverlodShedder'; the nearest is 'OverloadShedder'"):
        find((ENTRY,), "OverlodShedder", "shedder")


def test_an_entry_loads_its_module_and_knows_what_it_reads() -> None:
    assert find((ENTRY,), "OverloadShedder", "shedder").load().__name__ == ENTRY.module
    assert "loadBalancerBrokerOverloadedThresholdPercentage" in ENTRY.setting_keys
    assert "broker_usage" in ENTRY.reads
