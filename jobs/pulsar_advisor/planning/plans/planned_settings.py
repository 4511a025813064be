"""The settings that a plan rests on, as it records them."""

from __future__ import annotations

from pulsar_advisor.model.configuration.settings import ResolvedSettings, text_of
from pulsar_advisor.model.plans.plan import PlannedSetting


def planned_settings(settings: ResolvedSettings, keys: frozenset[str]) -> dict[str, PlannedSetting]:
    """Settings by Pulsar's key as texts (lists joined by commas, unset is empty), each with its origin."""
    values = settings.values.model_dump(mode="json", by_alias=True)
    return {key: PlannedSetting(value=text_of(values[key]), origin=settings.origins[key]) for key in sorted(keys)}
