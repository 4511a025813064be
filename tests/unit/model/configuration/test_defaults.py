"""The defaults of the listed releases."""

from __future__ import annotations

from pulsar_advisor.model.configuration.defaults import ALLOWED_KEYS
from pulsar_advisor.model.configuration.settings import SETTING_KEYS


def test_what_may_be_captured_covers_what_decides() -> None:
    assert SETTING_KEYS <= ALLOWED_KEYS
    assert not any("password" in key.lower() or "token" in key.lower() for key in ALLOWED_KEYS)
