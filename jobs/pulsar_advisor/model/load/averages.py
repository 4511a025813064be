"""Pulsar's moving averages of a bundle: their figures, and what they are after more samples.

Pulsar adds one sample at a time; the closed form here differs from that in the last digits.
Source: `TimeAverageMessageData.update`, `BundleData`, `ModularLoadManagerImpl.getBundleDataOrDefault` (2.11.0 to
5.0.1).
"""

from __future__ import annotations

from typing import Any, Final, TypedDict

import numpy as np
import numpy.typing as npt

from pulsar_advisor.model.cluster.cluster_state import Floats, Integers

SHORT_TERM_MAX_SAMPLES: Final = 10
"""A plain mean up to this many samples, then an exponential average of weight 1 / 10."""
LONG_TERM_MAX_SAMPLES: Final = 1000
MAX_SAMPLES: Final = {"short_term": SHORT_TERM_MAX_SAMPLES, "long_term": LONG_TERM_MAX_SAMPLES}
"""By the name of the average; the number of samples that it has is the field `<name>_samples`."""

DEFAULT_FIGURES: Final = (50.0, 50.0, 50_000.0, 50_000.0)
"""Order of FIGURES: Pulsar's defaults for a bundle that no broker has reported and that has no stored averages."""


class Averages(TypedDict):
    """Both averages of each bundle (m, 4) and their numbers of samples (m), by the names of the fields."""

    short_term: Floats
    short_term_samples: Integers
    long_term: Floats
    long_term_samples: Integers


def with_samples(bundles: Any, rows: npt.NDArray[np.intp], sample: Floats, number: Integers | int) -> Averages:
    """The fields of averages after some rows got `number` (at least one) more samples, each equal to its `sample`.

    `bundles`: anything with the fields that `MAX_SAMPLES` names.
    """

    def after(term: str) -> tuple[Floats, Integers]:
        average, samples = getattr(bundles, term).copy(), getattr(bundles, f"{term}_samples").copy()
        average[rows], samples[rows] = folded(average[rows], samples[rows], sample, number, MAX_SAMPLES[term])
        return average, samples

    (short, short_samples), (long, long_samples) = after("short_term"), after("long_term")
    return Averages(short_term=short, short_term_samples=short_samples, long_term=long, long_term_samples=long_samples)


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
        # A first sample replaces whatever default was there, even NaN.
        moved = np.where(kept == 0, sample, sample + (average - sample) * kept)
    return moved, counted
