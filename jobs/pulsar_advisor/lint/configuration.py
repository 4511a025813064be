"""Whether settings are in force: everywhere, in this release, under this load manager."""

from __future__ import annotations

from typing import Final

from pulsar_advisor.lint.rule import Case, Violation, info, warning
from pulsar_advisor.model.configuration.class_names import pairing_key
from pulsar_advisor.model.configuration.resolved_settings import is_release_default, setting_value
from pulsar_advisor.model.configuration.settings import OF_THE_HOST, SETTING_KEYS
from pulsar_advisor.model.text.some_of import some_of
from pulsar_advisor.placement import filters
from pulsar_advisor.placement.filters import semantic_version
from pulsar_advisor.placement.registry import PLACEMENTS
from pulsar_advisor.planning.requests.what_if import OF_ITS_OWN_BALANCER
from pulsar_advisor.shedding.registry import SHEDDERS

_OF_LOAD_MANAGERS: Final = OF_ITS_OWN_BALANCER | {
    *filters.SETTING_KEYS,
    "loadBalancerBrokerOverloadedThresholdPercentage",
}
"""What the Modular and the Extensible manager read themselves, whatever their strategies are."""


@warning(
    source="PulsarService.startLoadManagementService; conf/standalone.conf sets it to false",
    remedy="set loadBalancerEnabled=true and restart the brokers",
)
def load_balancer_is_enabled(case: Case) -> Violation | None:
    """The load balancer is enabled.

    Without it brokers publish no reports: bundles stay where they are, and new ones are placed blindly.
    """
    if case.settings.load_balancer_enabled:
        return None
    return Violation("loadBalancerEnabled is false", {"loadBalancerEnabled": "true"})


@info(
    source="ModularLoadManagerImpl.doLoadShedding, UnloadScheduler, SimpleLoadManagerImpl.doLoadShedding",
    remedy="set loadBalancerSheddingEnabled=true, unless plans do the balancing",
)
def shedding_is_enabled(case: Case) -> Violation | None:
    """Shedding is enabled.

    Otherwise nothing moves by itself.
    """
    if case.settings.load_balancer_shedding_enabled:
        return None
    return Violation("loadBalancerSheddingEnabled is false", {"loadBalancerSheddingEnabled": "true"})


@warning(
    source="ServiceConfiguration: each broker reads its own file",
    remedy="finish the upgrade, or else give all brokers the same values: any of them may become the leader",
)
def brokers_agree(case: Case) -> Violation | None:
    """All brokers have the same load balancing settings.

    The leader's count for decisions, each broker's own for its reports, and any broker can become the leader.
    """
    releases = dict(zip(case.state.brokers.ids, case.state.brokers.versions, strict=True))
    differing = []
    for key in sorted(SETTING_KEYS - OF_THE_HOST):
        known = {broker: settings for broker, settings in case.runtime.items() if key in settings}
        values = {settings[key] for settings in known.values()}
        if len(values) > 1:
            by_release = all(is_release_default(key, releases.get(one), settings) for one, settings in known.items())
            why = ", each its release's default" if by_release else ""
            differing.append(f"{key} ({' or '.join(sorted(values))}{why})")
    return Violation(some_of(differing)) if differing else None


@info(source="the released ServiceConfiguration classes (2.11.0 to 5.0.1)", remedy="delete them, or upgrade")
def dynamic_values_are_in_force(case: Case) -> Violation | None:
    """Every dynamic value of a load balancing key is in force.

    This release ignores a dynamic value of a key that it doesn't have, or reads only when it starts.
    """
    ignored = [
        f"{key}={value}"
        for key, value in sorted(case.dynamic.items())
        if key in SETTING_KEYS and case.resolved.origins[key] not in ("dynamic", "what-if")
    ]
    return Violation(f"ignored: {some_of(ignored)}") if ignored else None


@info(
    source="the strategies' SETTING_KEYS, from reading and running Pulsar's classes (2.11.0 to 5.0.1)",
    remedy="remove the keys, or choose the strategy that reads them",
)
def settings_are_read(case: Case) -> Violation | None:
    """Every strategy setting that was changed is read by a strategy in use, or by the load manager.

    A key of another strategy looks like tuning and changes nothing.
    """
    strategies = (*SHEDDERS, *PLACEMENTS)
    read = {key for one in strategies if one.name in case.own for key in one.setting_keys}
    if not set(case.own) <= {one.name for one in strategies}:
        return None  # what a class of the operator's own reads isn't known
    if case.state.load_manager != "simple":
        read |= _OF_LOAD_MANAGERS
    unread = {key for one in strategies for key in one.setting_keys} - read - {pairing_key(case.settings.behaviour)}
    release = case.resolved.release
    texts = {key: value for values in case.runtime.values() for key, value in values.items()}
    changed = sorted(
        key
        for key in unread & (texts.keys() | case.dynamic.keys())
        if case.is_set(key)
        and setting_value(key, release, runtime=texts, dynamic=case.dynamic) != setting_value(key, release)
    )
    if not changed:
        return None
    keys = "it" if len(changed) == 1 else "them"
    shedder, placement = case.own
    who = f"neither {shedder} nor {placement} reads" if shedder != placement else f"{shedder} doesn't read"
    return Violation(f"{some_of(changed)}: {who} {keys}")


@warning(
    source="BrokerVersionFilter, ModularLoadManagerImpl.selectBroker (2.11.0 to 5.0.1)",
    remedy="finish the upgrade, or set preferLaterVersions=false meanwhile",
    load_managers=("modular", "extensible"),
)
def older_brokers_get_bundles(case: Case) -> Violation | None:
    """Brokers of every version in the cluster get bundles.

    With preferLaterVersions only the brokers of the newest version do, which overloads the first upgraded one. Where
    the Modular manager distributes bundles evenly, it does that first.
    """
    settings = case.settings
    if case.state.load_manager == "modular" and settings.load_balancer_distribute_bundles_evenly_enabled:
        return None
    texts = [case.state.brokers.versions[row] for row in case.rows.tolist()]
    versions = {text: version for text in texts if (version := semantic_version(text)) is not None}
    # Where a version can't be read, Pulsar's filter fails, and every broker gets bundles.
    unreadable = not versions.keys() >= set(texts)
    if not settings.prefer_later_versions or unreadable or len(set(versions.values())) < 2:
        return None
    in_order = sorted(versions, key=versions.__getitem__)
    newest = sum(versions[text] == versions[in_order[-1]] for text in texts)
    older = ", ".join(text for text in in_order if versions[text] < versions[in_order[-1]])
    return Violation(
        f"{newest} of {len(texts)} brokers, with {in_order[-1]}, get all bundles; those with {older} get none",
        {"preferLaterVersions": "false"},
    )
