"""What people call a plan: the first digits of its digest, and what made it."""

from __future__ import annotations

from typing import Final

from pulsar_advisor.model.strategy.entry import combination

SHORT: Final = 8
"""Digits of a digest that people read and type."""


def short(digest: str) -> str:
    """The first digits of a digest, as people read and type it: `c8b31b82`."""
    return digest.removeprefix("sha256:")[:SHORT]


def title_of(shedder: str, placement: str, undoes: str | None) -> str:
    """What made a plan without a goal: its strategies, or the plan that it undoes, by its digest."""
    return f"undo of {short(undoes)}" if undoes else combination(shedder, placement)
