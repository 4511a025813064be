"""What a split algorithm is given."""

from __future__ import annotations

import pytest

from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.errors import DataNotFit
from pulsar_advisor.splitting.bundle_split_option import Quotas
from unit.splitting.options import option, topics


def test_topics_that_are_not_completely_known_are_refused_with_what_to_do() -> None:
    assert len(option(topics(1, 2)).known_topics()) == 2
    with pytest.raises(DataNotFit, match=r"0x00000000_0xffffffff .*capture the topic lists"):
        option(None).known_topics()


def test_quotas_are_those_of_the_settings() -> None:
    what_if = {
        "loadBalancerNamespaceBundleMaxMsgRate": "500",
        "loadBalancerNamespaceBundleMaxBandwidthMbytes": "20",
        "flowOrQpsDifferenceThresholdPercentage": "5",
    }
    assert Quotas.from_settings(resolve_settings("4.0.8", what_if=what_if).values) == Quotas(500, 20, 5)
