"""The settings that a plan rests on, as it records them."""

from __future__ import annotations

from typing import Any

from pulsar_advisor.model.configuration.settings import ResolvedSettings
from pulsar_advisor.model.plans.plan import PlannedSetting


def planned_settings(settings: ResolvedSettings, keys: frozenset[str]) -> dict[str, PlannedSetting]:
    """Settings by Pulsar's key as texts (lists joined by commas, unset is empty), each with its origin."""
    values = settings.values.model_dump(mode="json", by_alias=True)

    def text(value: Any) -> str:
        if isinstance(value, list):
            return ",".join(value)
        if isinstance(value, bool):
            return str(value).lower()
        return "" if value is None else str(value)

    return {key: PlannedSetting(value=text(values[key]), origin=settings.origins[key]) for key in sorted(keys)}
