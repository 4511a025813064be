"""What an operator wants for a cluster, beyond what Pulsar's strategies would do."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import ClassVar, Final

from pulsar_advisor.model.text.some_of import count, some_of

ROLL: Final = "roll"
"""The plan kind of a rolling restart."""


@dataclass(frozen=True)
class Goal:
    """A plan kind, the brokers or bundles it is about, and the usages (0..1) it is to respect."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}  # as a part of a plan

    kind: str
    """A name in the registry of plan kinds."""
    brokers: tuple[str, ...] = ()
    """As the operator names them; in a plan their ids, sorted, or in the order in which they are restarted."""
    target_ratio: float | None = None
    """The usage that those brokers are to reach; None: the kind's own choice."""
    ceiling_ratio: float | None = None
    """No destination is to end above this usage; in a plan never None."""
    onto: tuple[str, ...] = ()
    """The only brokers that may take bundles, like `brokers`; empty: every broker."""
    bundles: tuple[str, ...] = ()
    """As the operator names them; in a plan their full names, sorted."""

    @property
    def title(self) -> str:
        """`drain broker-3:8080`; `roll 3 brokers, broker-2:8080 first`; `move t/n/0x..._0x... onto broker-3:8080`."""
        if self.kind == ROLL:
            return f"{self.kind} {count(len(self.brokers), 'broker')}, {self.brokers[0]} first"
        if self.bundles:
            return f"{self.kind} {some_of(self.bundles)} onto {some_of(self.onto)}"
        return f"{self.kind} {some_of(self.brokers)}".rstrip()

    @property
    def command(self) -> str:
        """As an operator types it: `fill a:8080 d:8080 --to 60%`; `move t/n/0x..._0x... --onto a:8080`."""
        onto = [word for broker in self.onto for word in ("--onto", broker)]
        usages = {"--to": self.target_ratio, "--ceiling": self.ceiling_ratio}
        limits = [word for option, ratio in usages.items() if ratio is not None for word in (option, f"{ratio:.0%}")]
        return shlex.join((self.kind, *self.brokers, *self.bundles, *onto, *limits))
