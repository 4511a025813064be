"""A typing error is answered with what was meant, anything else with nothing."""

from pulsar_advisor.model.text.nearest import nearest

NAMES = ("ThresholdShedder", "OverloadShedder")


def test_a_name_that_is_close_is_suggested() -> None:
    assert nearest("OverlodShedder", NAMES) == "; the nearest is 'OverloadShedder'"


def test_nothing_is_suggested_where_nothing_is_close() -> None:
    assert nearest("nope", NAMES) == ""
