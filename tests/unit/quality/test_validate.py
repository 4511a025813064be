"""The parameters of the suites, by the settings of the cluster."""

import pytest

from pulsar_advisor.quality.validate import parameters_of


@pytest.mark.parametrize(("interval", "oldest"), [("15", 16), ("0", 1), ("-5", 1)])
def test_a_report_may_be_a_minute_older_than_its_interval(interval: str, oldest: int) -> None:
    runtime = {"loadBalancerReportUpdateMaxIntervalMinutes": interval}
    assert parameters_of(("4.0.8", runtime, {})) == {"oldest_report_minutes": oldest}
