"""What holds of every level."""

from __future__ import annotations

import gc


def pytest_collection_finish() -> None:
    """Set aside what collecting made: it lasts until the end, and each collection of garbage would look through it."""
    gc.freeze()
