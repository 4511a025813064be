"""What every strategy on offer keeps to, whatever it does."""

from __future__ import annotations

from types import ModuleType

from pulsar_advisor.model.outcomes import Outcome


def outcomes_of(strategy: ModuleType) -> list[Outcome]:
    """All answers that a strategy's module names."""
    kinds = [kind for kind in vars(strategy).values() if isinstance(kind, type) and issubclass(kind, Outcome)]
    return [outcome for kind in kinds for outcome in kind]
