"""Waits until the brokers' own load reports say that one of them is hot."""

from __future__ import annotations

import time
from statistics import mean

from harness.admin_api import AdminApi
from harness.cluster import cpu_percents

MARGIN_PERCENT = 10
"""ThresholdShedder's default distance from the average, and the harness's setting."""
SKEW_LIMIT_S = 240
POLL_INTERVAL_S = 2


class NoSkew(Exception):
    """The brokers' CPU did not get as unequal as the load should make it."""


def wait_for_skew(admin: AdminApi) -> dict[str, float]:
    """CPU usage per broker id (0..100), once the highest is more than `MARGIN_PERCENT` points above the mean.

    Takes up to two minutes after the load is steady: brokers sample their CPU once a minute and report the average
    since the last sample.

    Raises:
        NoSkew: not within `SKEW_LIMIT_S`.
    """
    deadline = time.monotonic() + SKEW_LIMIT_S
    while True:
        usage = cpu_percents(admin)
        if max(usage.values()) > mean(usage.values()) + MARGIN_PERCENT:
            return usage
        if time.monotonic() > deadline:
            raise NoSkew(f"After {SKEW_LIMIT_S} s CPU usage is {usage}; is the load running, is the CPU sensor on?")
        time.sleep(POLL_INTERVAL_S)
