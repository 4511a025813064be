"""The settings that a plan records: what its strategies read, what they are measured against, and every what-if."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pulsar_advisor.model.configuration.resolved_settings import ResolvedSettings
from pulsar_advisor.model.plans.plan import PlannedSetting
from pulsar_advisor.placement import filters
from pulsar_advisor.planning.plans.deciding import deciding
from pulsar_advisor.planning.requests.what_if import OF_ITS_OWN_BALANCER
from pulsar_advisor.splitting.registry import SPLIT_ALGORITHMS, SPLIT_DECIDERS

if TYPE_CHECKING:
    from pulsar_advisor.planning.requests.request import Request

ALWAYS_IN_A_PLAN: Final = OF_ITS_OWN_BALANCER | {
    "loadBalancerAutoUnloadSplitBundlesEnabled",
    "loadBalancerBrokerOverloadedThresholdPercentage",
    "defaultNamespaceBundleSplitAlgorithm",
}
"""Switches, the cluster's own strategies, and the settings against which every combination is measured."""


def setting_keys(shedder: str, placement: str, request: Request) -> frozenset[str]:
    """Pulsar's keys that a plan of these strategies records; with them it can be computed again."""
    used = (*deciding(shedder, placement), *SPLIT_DECIDERS, *SPLIT_ALGORITHMS)
    return ALWAYS_IN_A_PLAN.union(filters.SETTING_KEYS, request.what_if, *(entry.setting_keys for entry in used))


def planned_settings(settings: ResolvedSettings, keys: frozenset[str]) -> dict[str, PlannedSetting]:
    """Captured settings by Pulsar's key as texts (lists joined by commas, unset is empty), each with its origin."""
    return {
        key: PlannedSetting(value=text, origin=settings.origins[key])
        for key, text in settings.texts.items()
        if key in keys
    }
