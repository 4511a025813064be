"""How many generated examples a property is tried with."""

from __future__ import annotations

from typing import Any

from hypothesis import settings

SAMPLED = "ci"
"""Hypothesis's profile of `make test`: the same examples in every run, so more of them would find no more."""

_LEAST = 5


def examples(most: int, **others: Any) -> settings:
    """Up to `most` new ones in every full run, a quarter of them where tests are sampled; `others`: Hypothesis's."""
    sampled = settings.get_current_profile_name() == SAMPLED
    return settings(max_examples=max(most // 4, _LEAST) if sampled else most, deadline=None, **others)
