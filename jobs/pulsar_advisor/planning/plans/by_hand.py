"""The call of a step as a command of Pulsar's own `pulsar-admin`, for those who carry a plan out by hand."""

from __future__ import annotations

import re
import shlex
from typing import Final

from pulsar_advisor.model.plans.plan import Step

SPECIFIED_POSITIONS_SINCE: Final = (2, 11)
"""The release (major, minor) that first splits at given positions."""


def release_of(pulsar_version: str) -> tuple[int, int] | None:
    """Major and minor number; None if the version begins with neither."""
    match = re.match(r"([0-9]{1,9})\.([0-9]{1,9})", pulsar_version)
    return (int(match[1]), int(match[2])) if match else None


def takes_positions(pulsar_version: str) -> bool:
    """Whether a split may name its positions; before that, a bundle can only be halved."""
    return (release_of(pulsar_version) or ()) >= SPECIFIED_POSITIONS_SINCE


def pulsar_admin(step: Step, pulsar_version: str) -> str:
    """The command for a shell; nothing in it checks what `apply` checks before the call.

    Source: `CmdNamespaces` of 2.10 to 4.2. Each position is an option of its own: since 3.3 (picocli) the tool doesn't
    divide a list at its commas.
    """
    words = ["pulsar-admin", "namespaces"]
    # Without the dashes, the tool takes such a name for an option.
    namespace = ["--", step.namespace] if step.namespace.startswith("-") else [step.namespace]
    if step.action == "unload":
        words += ["unload", "--bundle", step.bundle]
        words += ["--destinationBroker", step.destination] if step.destination is not None else []
        return shlex.join([*words, *namespace])
    words += ["split-bundle", "--bundle", step.bundle, "--split-algorithm-name"]
    # As `apply` sends it: at the positions that the plan names, whichever algorithm found them.
    positions = [int(boundary, 16) for boundary in step.boundaries] if takes_positions(pulsar_version) else []
    words += ["specified_positions_divide"] if positions else ["range_equally_divide"]
    for position in positions:
        words += ["--split-boundaries", str(position)]
    return shlex.join([*words, *namespace])
