"""What an operator wants of a cluster, where it isn't what strategies of Pulsar's would do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pulsar_advisor.model.text.some_of import some_of


@dataclass(frozen=True)
class Goal:
    """A plan kind, the brokers it is about, and the usages (0..1) it is to respect."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}  # as a part of a plan

    kind: str
    """A name in the registry of plan kinds."""
    brokers: tuple[str, ...] = ()
    """As the operator names them; in a plan their ids, sorted."""
    target_ratio: float | None = None
    """The usage that those brokers are to reach; None: the kind's own choice."""
    ceiling_ratio: float | None = None
    """No destination is to end above this usage; in a plan never None."""
    onto: tuple[str, ...] = ()
    """The only brokers that may take bundles, like `brokers`; empty: every broker."""

    @property
    def title(self) -> str:
        """`drain broker-3:8080`."""
        return f"{self.kind} {some_of(self.brokers)}".rstrip()
