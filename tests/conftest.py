"""What applies to every test level."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterable

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: Iterable[pytest.Item]) -> None:
    """Mark all cases of a test marked `sampled(every=N)` but each Nth as slow, before the marks decide what runs."""
    cases = Counter[str]()
    for item in items:
        sampled = item.get_closest_marker("sampled")
        if sampled is not None and not any(map(item.get_closest_marker, ("slow", "full"))):
            test = item.nodeid.partition("[")[0]
            if cases[test] % sampled.kwargs["every"]:
                item.add_marker(pytest.mark.slow)
            cases[test] += 1


def pytest_collection_finish() -> None:
    """Freeze what collecting tests created: it lives to the end, and every garbage collection would scan it."""
    gc.freeze()
