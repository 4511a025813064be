"""A plan's settings: what it was computed with, as far as it was captured."""

from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.planning.plans.planned_settings import planned_settings


def test_a_limit_that_an_earlier_capture_lacks_is_no_setting_of_the_plan() -> None:
    split, merge = "scalableTopicSplitMsgRateInThreshold", "scalableTopicMergeMsgRateInThreshold"
    settings = resolve_settings("5.0.1", {split: "300"})
    planned = planned_settings(settings, frozenset((split, merge)))
    assert {key: (each.value, each.origin) for key, each in planned.items()} == {split: ("300.0", "runtime")}
