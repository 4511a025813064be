"""How far off models of a broker's CPU usage are: each is fitted to all of its reports but one, and predicts that one.

`proportional` takes all of it to follow the messages, `base_load` leaves out a base, and `calibrated` gives a message
and a byte a price each, on top of a base, by non-negative least squares. Plans are predicted by `base_load`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import CPU, ClusterState, Floats
from pulsar_advisor.model.load.base_load import FEWEST_SAMPLES, non_negative_line, steady_samples, varied


@dataclass(frozen=True)
class ModelErrors:
    """Mean absolute errors, as shares of the brokers' CPU."""

    reports: int
    """Reports that were predicted."""
    proportional_ratio: float
    base_load_ratio: float
    calibrated_ratio: float


def model_errors(moments: Sequence[ClusterState]) -> ModelErrors | None:
    """The errors over a cluster's states in the order of time; None without a broker that has varied reports enough."""
    if not moments:
        return None
    limits = dict(zip(moments[-1].brokers.ids, moments[-1].brokers.limit[:, CPU], strict=True))
    errors = [
        _errors(np.array(samples, dtype=np.float64)) / limits[broker]
        for broker, samples in steady_samples(moments).items()
        if len(samples) > FEWEST_SAMPLES and limits.get(broker, 0.0) > 0
    ]
    found = np.concatenate([*errors, np.empty((0, 3))])
    return ModelErrors(len(found), *(float(mean) for mean in found.mean(axis=0))) if len(found) else None


def _errors(samples: Floats) -> Floats:
    """(k, 3): the error of each model for each sample (rate, throughput, usage) that a fit to the others predicts."""
    errors = []
    for one in range(len(samples)):
        others = np.delete(samples, one, axis=0)
        if varied(others[:, 0]):
            predicted = _predicted(others, samples[one])
            errors.append([abs(usage - samples[one, 2]) for usage in predicted])
    return np.array(errors, dtype=np.float64).reshape(-1, 3)


def _predicted(others: Floats, asked: Floats) -> tuple[float, float, float]:
    from scipy.optimize import nnls

    rates, _, usages = others.T
    share = max(float(rates @ usages / (rates @ rates)), 0.0)
    (base, slope), _ = non_negative_line(rates, usages)
    figures = np.column_stack((np.ones(len(others)), others[:, :2]))
    scale = np.maximum(figures.max(axis=0), 1.0)
    prices, _ = nnls(figures / scale, usages)
    calibrated = float(np.array([1.0, *asked[:2]]) / scale @ prices)
    return share * asked[0], base + slope * asked[0], calibrated
