"""The load managers and the views of a cluster by name, for modules that must not load numpy."""

from __future__ import annotations

from typing import Final, Literal

View = Literal["fresh", "published"]
"""Figures as the brokers have them now, or as the leader sees them in ZooKeeper."""
WantedView = Literal["judged", View]
"""The views to choose from: `judged` is the one that was validated, `fresh` if any broker was asked."""
LoadManagerKind = Literal["modular", "simple", "extensible"]
EVERY_MANAGER: Final[tuple[LoadManagerKind, ...]] = ("modular", "simple", "extensible")
