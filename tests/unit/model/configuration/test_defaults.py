"""The defaults of the listed releases."""

from __future__ import annotations

import json
from importlib.resources import files

from pulsar_advisor.model import configuration
from pulsar_advisor.model.configuration.defaults import ALLOWED_KEYS
from pulsar_advisor.model.configuration.settings import SETTING_KEYS


def test_every_default_says_what_it_was_read_from() -> None:
    document = json.loads((files(configuration) / "defaults_by_version.json").read_text())
    sources = {release: {entry["source"] for entry in keys.values()} for release, keys in document.items()}
    assert sources.pop("5.0.1") == {"document", "class of 5.0.0-M1"}
    assert set().union(*sources.values()) == {"class"}


def test_what_may_be_captured_covers_what_decides() -> None:
    assert SETTING_KEYS <= ALLOWED_KEYS
    assert not any("password" in key.lower() or "token" in key.lower() for key in ALLOWED_KEYS)
