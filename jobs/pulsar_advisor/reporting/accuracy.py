"""How often predictions of Pulsar's decisions were right, measured with recorded decisions of live brokers.

`make replay-decisions` prints these figures, `docs/accuracy.md` explains them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pulsar_advisor.model.configuration.kinds import LoadManagerKind
from pulsar_advisor.model.configuration.releases import is_later
from pulsar_advisor.planning.plans.deciding import deciding


@dataclass(frozen=True)
class Measured:
    """One strategy's predictions, each from a single snapshot, compared with what one release's brokers did."""

    release: str
    decisions: int
    exact: int
    """Decisions for which exactly the unloaded bundles were named."""
    bundles: int
    named: int
    """Unloaded bundles that were named."""


MEASURED: Final[Mapping[tuple[str, LoadManagerKind], tuple[Measured, ...]]] = {
    ("ThresholdShedder", "modular"): (
        Measured("4.0.8", decisions=9, exact=8, bundles=9, named=9),
        Measured("5.0.1", decisions=4, exact=2, bundles=6, named=5),
    ),
    ("UniformLoadShedder", "modular"): (Measured("4.0.8", decisions=9, exact=9, bundles=27, named=27),),
    ("OverloadShedder", "modular"): (Measured("4.0.8", decisions=10, exact=10, bundles=10, named=10),),
    ("AvgShedder", "modular"): (
        Measured("4.0.8", decisions=19, exact=12, bundles=33, named=30),
        Measured("5.0.1", decisions=5, exact=3, bundles=20, named=17),
    ),
    ("SimpleLoadManagerImpl", "simple"): (Measured("4.0.8", decisions=7, exact=7, bundles=7, named=7),),
    ("TransferShedder", "extensible"): (
        Measured("4.2.4", decisions=8, exact=6, bundles=22, named=20),
        Measured("5.0.1", decisions=6, exact=5, bundles=29, named=24),
    ),
}
"""By release, the oldest first."""


def accuracy(shedder: str, load_manager: LoadManagerKind, pulsar_version: str) -> str:
    """How often a prediction for this strategy was right, for a reader; empty if Pulsar doesn't have the strategy.

    Of the releases measured, it is the last one up to the cluster's, or else the first.
    """
    if not deciding(shedder, "")[0].first_release:
        return ""
    measured = MEASURED.get((shedder, load_manager))
    if measured is None:
        return (
            f"Predictions of {shedder} on the {load_manager.capitalize()} manager were not measured with live brokers."
        )
    found = next((one for one in reversed(measured) if not is_later(one.release, pulsar_version)), measured[0])
    return (
        f"On live {found.release} brokers, {found.exact} of {found.decisions} recorded decisions of {shedder} were "
        f"predicted exactly, and {found.named} of {found.bundles} unloaded bundles were named."
    )
