"""A bundle's short-term and long-term averages after any number of equal samples.

Pulsar adds one sample at a time; the closed form here differs from that in the last digits.
Source: `TimeAverageMessageData.update` (2.11.0 to 5.0.1).
"""

from __future__ import annotations

import numpy as np

from pulsar_advisor.model.cluster_state import Floats, Integers


def folded(
    average: Floats, samples: Integers, sample: Floats, number: Integers | int, max_samples: int
) -> tuple[Floats, Integers]:
    """Averages (m, 4) and their numbers of samples after `number` (at least one) more, all equal to `sample` (m, 4).

    `number` is one for all, or one for each. The average is a plain mean up to `max_samples`; then each sample weighs
    1 / `max_samples`.
    """
    in_mean = np.clip(max_samples - samples, 0, number)
    counted = samples + in_mean
    weight = np.divide(samples, counted, out=np.zeros(len(samples)), where=counted > 0)
    kept = (weight * (1 - 1 / max_samples) ** (number - in_mean))[:, None]
    with np.errstate(invalid="ignore", over="ignore"):
        # A first sample replaces whatever default was there, which may be no number.
        moved = np.where(kept == 0, sample, sample + (average - sample) * kept)
    return moved, counted
