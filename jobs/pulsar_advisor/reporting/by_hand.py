"""The call of a step as a command of Pulsar's own `pulsar-admin`, for those who carry a plan out by hand."""

from __future__ import annotations

import shlex
from typing import Final

from pulsar_advisor.model.plan import Step

_HALVES: Final = "range_equally_divide"
"""For releases before 2.11, which take no positions."""


def pulsar_admin(step: Step) -> str:
    """The command (options as of 4.0) for a shell; nothing in it checks what `apply` checks before the call."""
    words = ["pulsar-admin", "namespaces"]
    if step.action == "unload":
        words += ["unload", "--bundle", step.bundle]
        words += ["--destinationBroker", step.destination] if step.destination is not None else []
    else:
        # As `apply` sends it: at the positions that the plan names, whichever algorithm found them.
        words += ["split-bundle", "--bundle", step.bundle, "--split-algorithm-name"]
        positions = ",".join(str(int(boundary, 16)) for boundary in step.boundaries)
        words += ["specified_positions_divide", "--split-boundaries", positions] if positions else [_HALVES]
    return shlex.join([*words, step.namespace])
