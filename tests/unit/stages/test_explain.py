"""`explain` on a snapshot that three real brokers of 4.0.8 gave."""

from __future__ import annotations

from pathlib import Path

from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.stages import explain
from pulsar_advisor.storage.root import Root

LIVE = Root(str(Path(__file__).parents[2] / "data/earlier/root"), "live").snapshot("20261122T093126Z")


def test_a_switch_that_is_off_is_said_although_the_shedder_would_do_nothing_either() -> None:
    off = Request("configured", "configured", what_if={"loadBalancerSheddingEnabled": "false"})
    found = explain.run(LIVE, off, "cluster", "")
    assert (found.acts, found.pulsar) == (False, "Pulsar itself would not act: loadBalancerSheddingEnabled=false")


def test_the_settings_that_a_what_if_assumes_are_said() -> None:
    assumed = Request("configured", "configured", what_if={"loadBalancerBrokerThresholdShedderPercentage": "1"})
    found = explain.run(LIVE, assumed, "cluster", "")
    assert (
        "This assumes other settings than the cluster's: loadBalancerBrokerThresholdShedderPercentage=1 in place of 10."
        in found.caveats
    )
