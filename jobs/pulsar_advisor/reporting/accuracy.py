"""How often predictions of Pulsar's decisions were right, measured with recorded decisions of live brokers.

`make replay-decisions` prints these figures, `docs/accuracy.md` explains them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pulsar_advisor.model.configuration.kinds import LoadManagerKind
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


MEASURED: Final[Mapping[tuple[str, LoadManagerKind], Measured]] = {
    ("ThresholdShedder", "modular"): Measured("4.0.8", decisions=9, exact=8, bundles=9, named=9),
    ("UniformLoadShedder", "modular"): Measured("4.0.8", decisions=9, exact=9, bundles=27, named=27),
    ("OverloadShedder", "modular"): Measured("4.0.8", decisions=10, exact=10, bundles=10, named=10),
    ("AvgShedder", "modular"): Measured("4.0.8", decisions=19, exact=12, bundles=33, named=30),
    ("SimpleLoadManagerImpl", "simple"): Measured("4.0.8", decisions=7, exact=7, bundles=7, named=7),
    ("TransferShedder", "extensible"): Measured("4.2.4", decisions=8, exact=6, bundles=22, named=20),
}


def accuracy(shedder: str, load_manager: LoadManagerKind) -> str:
    """How often a prediction for this strategy was right, for a reader; empty if Pulsar doesn't have the strategy."""
    if not deciding(shedder, "")[0].first_release:
        return ""
    found = MEASURED.get((shedder, load_manager))
    if found is None:
        return (
            f"Predictions of {shedder} on the {load_manager.capitalize()} manager were not measured with live brokers."
        )
    return (
        f"On live {found.release} brokers, {found.exact} of {found.decisions} recorded decisions of {shedder} were "
        f"predicted exactly, and {found.named} of {found.bundles} unloaded bundles were named."
    )
