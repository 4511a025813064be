"""The release of the advisor that runs."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Final

DISTRIBUTION: Final = "pulsar-rebalance-advisor"


def running_release() -> str:
    """The version of the installed package; empty where Spark got only our files (`--py-files`)."""
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return ""
