"""Keeps what the differential tests counted, and prints it as a table at the end."""

from __future__ import annotations

import pytest

from parity.differential import Comparison, table

COMPARISONS = pytest.StashKey[list[Comparison]]()


@pytest.fixture
def tally(request: pytest.FixtureRequest) -> list[Comparison]:
    """The comparisons of this session so far."""
    return request.config.stash.setdefault(COMPARISONS, [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    comparisons = terminalreporter.config.stash.get(COMPARISONS, [])
    if comparisons:
        terminalreporter.section("our engine against Pulsar's Java classes")
        terminalreporter.write_line("\n".join(table(comparisons)))
