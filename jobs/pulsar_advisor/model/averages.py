"""The figures that Pulsar's moving averages are made with. The tables fold samples by them.

Source: `TimeAverageMessageData`, `BundleData`, `ModularLoadManagerImpl.getBundleDataOrDefault` (2.11.0 to 5.0.1).
"""

from __future__ import annotations

from typing import Final

SHORT_TERM_MAX_SAMPLES: Final = 10
"""A plain mean up to this many samples, then an exponential average of weight 1 / 10."""
LONG_TERM_MAX_SAMPLES: Final = 1000

DEFAULT_FIGURES: Final = (50.0, 50.0, 50_000.0, 50_000.0)
"""Order of FIGURES: Pulsar's defaults for a bundle that no broker has reported and that has no stored averages."""
