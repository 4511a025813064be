"""Waits until the brokers' own figures show a load: all of it, or that one of them is hot."""

from __future__ import annotations

import time
from collections.abc import Mapping
from statistics import mean

from harness import sensor
from harness.admin_api import AdminApi
from harness.errors import NoFigures, NoSkew
from harness.workload import Workload

MARGIN_PERCENT = 10
"""ThresholdShedder's default distance from the average, and the harness's setting."""
SETTLED_PERCENT = 5
"""How near the reported usage must be to what the message rate gives."""
SKEW_LIMIT_S = 240
FIGURES_LIMIT_S = 180
SAMPLED_CPU_PERCENT = 1
BACKPRESSURE_RATIO = 0.2
"""How far a producer's rate over one statistics pass may be from what it is meant to be."""
POLL_INTERVAL_S = 2


def cpu_percents(admin: AdminApi) -> dict[str, float]:
    """CPU usage per broker id (0..100) as the load manager has it, under any load manager."""
    return {broker_id: _cpu_percent(admin, url) for url, broker_id in zip(admin.urls, admin.broker_ids, strict=True)}


def _cpu_percent(admin: AdminApi, url: str) -> float:
    for metric in admin.read("/broker-stats/metrics", url=url):
        if "brk_lb_cpu_usage" in metric["metrics"]:
            return float(metric["metrics"]["brk_lb_cpu_usage"])
    # The Simple load manager publishes no such metric, but a load report (which the Extensible one doesn't).
    cpu = admin.read("/broker-stats/load-report", url=url)["systemResourceUsage"]["cpu"]
    return float(100 * cpu["usage"] / cpu["limit"])


def wait_for_figures(admin: AdminApi, workload: Workload) -> None:
    """Wait until two passes of statistics showed all of the load, and the CPU that is sampled each minute shows it.

    Raises:
        NoFigures: not within `FIGURES_LIMIT_S`.
    """
    wanted_per_s = workload.messages_per_s
    deadline = time.monotonic() + FIGURES_LIMIT_S
    while (
        abs(_messages_in_per_s(admin) - wanted_per_s) > BACKPRESSURE_RATIO * wanted_per_s
        or min(cpu_percents(admin).values()) < SAMPLED_CPU_PERCENT
    ):
        if time.monotonic() > deadline:
            raise NoFigures(f"The brokers never showed {wanted_per_s:.0f} messages/s, or no CPU for it.")
        time.sleep(POLL_INTERVAL_S)
    time.sleep(2 * float(admin.read("/brokers/configuration/runtime")["statsUpdateFrequencyInSecs"]))


def _messages_in_per_s(admin: AdminApi) -> float:
    return sum(float(stats["msgRateIn"]) for url in admin.urls for stats in admin.topics(url).values())


def wait_for_skew(admin: AdminApi) -> dict[str, float]:
    """CPU usage per broker id, once it is settled and the highest is over `MARGIN_PERCENT` points above the mean.

    Brokers sample their CPU once a minute and report the average since the last sample, so the first report after the
    load got steady still has the quiet time before in it: this takes one to two minutes.

    Raises:
        NoSkew: not within `SKEW_LIMIT_S`.
    """
    return wait_until_settled(admin, dict.fromkeys(admin.urls, sensor.Machine()), MARGIN_PERCENT)


def wait_until_settled(
    admin: AdminApi, machines: Mapping[str, sensor.Machine], margin_percent: float = 0
) -> dict[str, float]:
    """CPU usage per broker id, once it is what the message rates give on these machines (by admin URL).

    And once the highest is over this many points above the mean. Raises as `wait_for_skew`.
    """
    deadline = time.monotonic() + SKEW_LIMIT_S
    while True:
        usage = cpu_percents(admin)
        expected = _expected_percents(admin, machines)
        settled = all(abs(usage[broker_id] - expected[broker_id]) < SETTLED_PERCENT for broker_id in expected)
        if settled and max(usage.values()) >= mean(usage.values()) + margin_percent:
            return usage
        if time.monotonic() > deadline:
            raise NoSkew(
                f"After {SKEW_LIMIT_S} s the brokers report CPU {_rounded(usage)} percent; their message rates give "
                f"{_rounded(expected)}. Is the load running? Is the CPU sensor on? Under the simple load manager "
                "nothing makes a broker hot on purpose."
            )
        time.sleep(POLL_INTERVAL_S)


def _expected_percents(admin: AdminApi, machines: Mapping[str, sensor.Machine]) -> dict[str, float]:
    return {
        broker_id: 100 * machines[url].cores_used(sensor.messages_per_s(admin, url)) / machines[url].cores
        for url, broker_id in zip(admin.urls, admin.broker_ids, strict=True)
    }


def _rounded(percents: dict[str, float]) -> dict[str, int]:
    return {broker_id: round(percent) for broker_id, percent in percents.items()}
