from __future__ import annotations

from pathlib import Path

import pytest

from pulsar_advisor.cli.places import CLUSTER_VARIABLE, ROOT_VARIABLE


@pytest.fixture(autouse=True)
def nothing_configured(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without a config file, and no variables; the config file's path."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    for variable in (ROOT_VARIABLE, CLUSTER_VARIABLE):
        monkeypatch.delenv(variable, raising=False)
    return home / ".config" / "pulsar-advisor" / "config.toml"
