"""Checks that the files that Airflow reads, which are copied separately, belong to the installed release."""

from __future__ import annotations

from importlib.metadata import version

from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.model.release import DISTRIBUTION


def require_release(release: str, file: str) -> None:
    """Raise `UsageError` if a DAG file or the plugin's file belongs to another release than the installed package."""
    installed = version(DISTRIBUTION)
    if release != installed:
        raise UsageError(
            f"{file} is of release {release}, and the installed package {DISTRIBUTION} of {installed}: take "
            "dags/ and plugins/ from the release that is installed"
        )
