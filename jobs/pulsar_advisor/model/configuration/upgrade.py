"""What an upgrade does to the load balancer's settings: those that were set stay, the others take the new default.

A broker's runtime configuration holds every value, set or not, so a value that equals the default counts as never set.
If a carried-over file names it all the same, it stays set, and the new default doesn't apply.
Source: Pulsar's documentation, "Configuration default changes from Pulsar 4.x to 5.0.x".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pulsar_advisor.model.cluster.cluster_state import LoadManagerKind
from pulsar_advisor.model.configuration.defaults import is_deprecated
from pulsar_advisor.model.configuration.releases import is_later
from pulsar_advisor.model.configuration.resolved_settings import ResolvedSettings, resolve_settings
from pulsar_advisor.model.configuration.settings import SETTING_KEYS, text_of
from pulsar_advisor.model.errors import DataNotFit, UsageError
from pulsar_advisor.model.load.resource_usage import HEAP_WEIGHT, counts_heap

SetBy = Literal["dynamic", "file", "default"]


@dataclass(frozen=True, kw_only=True)
class UpgradedSetting:
    """One setting before and after an upgrade; values as Pulsar's files spell them."""

    key: str
    set_by: SetBy
    """What decides before the upgrade: a dynamic value, the brokers' configuration, or the release."""
    before: str
    after: str
    origin_after: str
    """As in a report: `default <release>`, `runtime` or `dynamic`."""
    obsolete: bool
    """Whether it is set although the new release has it for old configurations only."""

    @property
    def changes(self) -> bool:
        """Whether the upgrade changes it."""
        return self.before != self.after


@dataclass(frozen=True)
class SettingsUpgrade:
    """A cluster's settings before and after an upgrade, and after it with today's values set."""

    before: ResolvedSettings
    after: ResolvedSettings
    pinned: ResolvedSettings
    settings: tuple[UpgradedSetting, ...]
    """By key, those that change first."""
    in_files: Mapping[str, str]
    """What the brokers' configuration visibly sets: the values that differ from today's defaults."""
    pins: Mapping[str, str]
    """What to set in files so that no value changes that is read, but for those of `unveiled`."""

    @property
    def unveiled(self) -> tuple[UpgradedSetting, ...]:
        """Those with a dynamic value that only the new release reads: no file overrides it."""
        return tuple(one for one in self.settings if one.changes and one.origin_after == "dynamic")


def settings_upgrade(
    version: str | None, runtime: Mapping[str, str], dynamic: Mapping[str, str], to: str, load_manager: LoadManagerKind
) -> SettingsUpgrade:
    """What becomes of the settings of a cluster of this version; texts by Pulsar's keys, as for `resolve_settings`.

    Raises as `resolve_settings`, and `UsageError` unless `to` is a later release than the cluster's.
    """
    before = resolve_settings(version, runtime, dynamic)
    try:
        later = is_later(to, version)
    except DataNotFit as error:
        raise UsageError(f"--to {to} is not a Pulsar version: name a release, such as 5.0.1") from error
    if not later:
        raise UsageError(f"--to {to} is not an upgrade: the cluster runs {version}; name a later one, such as 5.0.1")
    unset, configured = resolve_settings(version).values, resolve_settings(version, runtime).values
    changed = {key for key in SETTING_KEYS if unset.value(key) != configured.value(key)}
    in_files = {key: text for key, text in runtime.items() if key in changed}
    after = resolve_settings(to, in_files, dynamic)

    def set_by(key: str) -> SetBy:
        if before.origins[key] == "dynamic":
            return "dynamic"
        return "file" if key in in_files else "default"

    settings = [
        UpgradedSetting(
            key=key,
            set_by=set_by(key),
            before=text_of(before.values.value(key)),
            after=text_of(after.values.value(key)),
            origin_after=after.origins[key],
            obsolete=set_by(key) != "default" and is_deprecated(after.release, key),
        )
        for key in before.texts
    ]
    settings.sort(key=lambda one: not one.changes)
    unread = () if counts_heap(load_manager, after.values) else (HEAP_WEIGHT,)
    pins = {
        one.key: one.before
        for one in settings
        if one.changes and one.origin_after != "dynamic" and one.key not in unread
    }
    pinned = resolve_settings(to, {**in_files, **pins}, dynamic)
    return SettingsUpgrade(before, after, pinned, tuple(settings), in_files, pins)
