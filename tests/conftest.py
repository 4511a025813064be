"""What applies to every test level."""

from __future__ import annotations

import gc


def pytest_collection_finish() -> None:
    """Freeze what collecting tests created: it lives to the end, and every garbage collection would scan it."""
    gc.freeze()
