"""Moving averages of bundles and brokers, and when a broker of the Modular manager publishes its report.

Source: `TimeAverageMessageData`, `BundleData`, `TimeAverageBrokerData`, `ModularLoadManagerImpl.getBundleDataOrDefault`
and `needBrokerDataUpdate` (2.11.0 to 5.0.1).
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from pulsar_advisor.model.cluster_state import FIGURES, Floats, Integers
from pulsar_advisor.model.settings import LoadBalancerSettings

SHORT_TERM_MAX_SAMPLES: Final = 10
LONG_TERM_MAX_SAMPLES: Final = 1000

DEFAULT_FIGURES: Final = (50.0, 50.0, 50_000.0, 50_000.0)
"""Order of FIGURES: what Pulsar takes for a bundle nobody has reported yet and nothing is stored of."""


def add_sample(averages: Floats, samples: Integers, sample: Floats, max_samples: int) -> tuple[Floats, Integers]:
    """Averages and numbers of samples with one more sample; a row per bundle, columns in order of FIGURES.

    A plain mean until `max_samples`, then an exponential average of weight 1 / max_samples. The first sample replaces
    whatever stood there as a default.
    """
    count = np.minimum(samples + 1, max_samples)
    weight = count[:, np.newaxis]
    with np.errstate(invalid="ignore", over="ignore"):
        return ((weight - 1) * averages + sample) / weight, count


def broker_averages(bundles: Floats, known: np.ndarray[tuple[int], np.dtype[np.bool_]], default: Floats) -> Floats:
    """Sum of a broker's bundles (a row each, order of FIGURES), `default` standing for those without averages."""
    counted = np.where(known[:, np.newaxis], bundles, default)
    return np.asarray(np.add.accumulate(np.vstack((np.zeros(len(FIGURES)), counted)), axis=0)[-1])


def percent_change(old: float, new: float) -> float:
    """How far a figure moved: 0 where both are 0, +infinity where only the old one is."""
    if old == 0:
        return 0.0 if new == 0 else math.inf
    return 100 * abs((old - new) / old)


def needs_publishing(
    old: tuple[float, float, int, float],
    new: tuple[float, float, int, float],
    age_ms: int,
    settings: LoadBalancerSettings,
) -> bool:
    """Whether a broker publishes its report again, `age_ms` after the last time.

    `old` and `new` are message rate (in + out), throughput (in + out), number of bundles, weighted maximum (ratio).
    """
    if age_ms > settings.load_balancer_report_update_max_interval_minutes * 60_000:
        return True
    changes = [percent_change(before, now) for before, now in zip(old[:3], new[:3], strict=True)]
    usage_change = 100 * abs(old[3] - new[3])
    return max(usage_change, *changes) > settings.load_balancer_report_update_threshold_percentage
