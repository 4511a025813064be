"""The settings of one cluster, and where each is from.

The defaults of its release are overridden by the broker's runtime configuration, that by the dynamic values of the
metadata store, and those by a user's what-if.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from pulsar_advisor.model.configuration.class_names import (
    LOAD_MANAGERS,
    pairing_key,
    placement_in_force,
    simple_name,
    why_manager_does_not_start,
    why_modular_does_not_start,
)
from pulsar_advisor.model.configuration.defaults import (
    NEWEST,
    Scalar,
    behaviour_of,
    default_of,
    has,
    is_dynamic,
    listed_release,
    newer_than_known,
    release_with,
)
from pulsar_advisor.model.configuration.releases import release_number
from pulsar_advisor.model.configuration.setting_texts import (
    Unparsable,
    captured_value,
    parse,
    runtime_value,
    what_if_value,
)
from pulsar_advisor.model.configuration.settings import FIELD_OF_KEY, SETTING_KEYS, LoadBalancerSettings, texts_of

WHAT_IF: Final = "what-if"
"""The origin of a value that a user replaced."""
NOT_CAPTURED: Final = "not captured"
"""The origin of a value that an earlier pulsar-advisor did not keep."""
SPLIT_AND_MERGE_LIMITS: Final = tuple(
    (f"scalableTopicSplit{figure}Threshold", f"scalableTopicMerge{figure}Threshold")
    for figure in ("MsgRateIn", "MsgRateOut", "BytesRateIn", "BytesRateOut")
)
"""Of segments of scalable topics, in the order of a topic's figures."""


@dataclass(frozen=True)
class ResolvedSettings:
    """The settings of one cluster and the origin of each."""

    values: LoadBalancerSettings
    origins: Mapping[str, str]
    """Pulsar's key -> `default <release>`, `runtime`, `dynamic`, `what-if`, or `not captured`."""
    release: str
    """The listed release whose defaults were used."""
    caveats: tuple[str, ...]
    """What puts the whole answer in doubt, in whole sentences: values that only a what-if has, a release newer than
    those listed."""
    notes: tuple[str, ...]
    """What else a reader should know, in whole sentences: a release that isn't listed, values that Pulsar could not
    parse or does not check, a strategy that it replaces."""

    @property
    def texts(self) -> dict[str, str]:
        """The captured values by Pulsar's keys, sorted, as its files spell them."""
        return {key: text for key, text in texts_of(self.values).items() if self.origins[key] != NOT_CAPTURED}


def resolve_settings(
    pulsar_version: str | None,
    runtime: Mapping[str, str] | None = None,
    dynamic: Mapping[str, str] | None = None,
    what_if: Mapping[str, str] | None = None,
) -> ResolvedSettings:
    """The settings of a cluster of this version; the mappings are Pulsar's keys with their text values.

    Dynamic values that are blank, or of keys that the release doesn't have, are ignored, as Pulsar ignores them
    (`BrokerService.configValueChanged`, 3.0.7 to 5.0.1); a what-if may set such keys. A broker has every key in its
    runtime configuration, even if the nearest listed release lacks it: 4.0.11 got a key of 4.2. A value out of range
    is used, as Pulsar uses it, and noted.

    Raises `UsageError` for a what-if that is unknown, unreadable or out of range, and `DataNotFit` for a release that
    is unknown or below 2.11, for a runtime value that no broker can have, and for NaN or an infinite number.
    """
    behaviour = behaviour_of(pulsar_version)
    number, release = release_number(pulsar_version), listed_release(str(pulsar_version))
    notes = []
    if number <= release_number(NEWEST) and pulsar_version != release:
        used = "the defaults" if behaviour == number else "the defaults and the decisions"
        notes.append(f"Pulsar {pulsar_version} is not listed: using {used} of {release}.")
    known = {key for key in SETTING_KEYS if has(release, key) or key in (runtime or {})}
    texts: dict[str, Scalar] = {}
    origins: dict[str, str] = {}
    for key in FIELD_OF_KEY:
        source = release_with(key, release)
        texts[key] = default_of(source, key)
        origins[key] = f"default {source}"
    for key, text in (runtime or {}).items():
        if key in SETTING_KEYS:
            value, note = runtime_value(key, text)
            notes += note
            texts[key], origins[key] = value, "runtime"
    for split, merge in SPLIT_AND_MERGE_LIMITS:
        if split in (runtime or {}) and merge not in (runtime or {}):  # by a pulsar-advisor that kept only the former
            texts[merge], origins[merge] = 0, NOT_CAPTURED
    for key, text in (dynamic or {}).items():
        if key not in known:
            continue
        if not text.strip():
            notes.append(f"Dynamic {key} is blank: brokers keep what they started with.")
            continue
        if not is_dynamic(release_with(key, release), key):
            notes.append(
                f"{key}={text} is stored as a dynamic value, but {release} reads this key only at start-up: ignored."
            )
            continue
        try:
            value, note = captured_value(key, text, "dynamic")
        except Unparsable as expected:
            notes.append(f"Dynamic {key}='{text}' is not {expected}: Pulsar keeps {texts[key]}.")
            continue
        notes += note
        texts[key], origins[key] = value, "dynamic"
    assumed = []
    for key, text in (what_if or {}).items():
        if (value := what_if_value(key, text)) != texts[key]:
            assumed.append(f"{key}={_spelt(value)} in place of {_spelt(texts[key])}")
        texts[key], origins[key] = value, WHAT_IF
        if key not in known:
            notes.append(f"{key} does not exist in {release}; the what-if sets it anyway.")
    values = LoadBalancerSettings.model_validate({"behaviour": behaviour, **texts})
    notes += _not_as_configured(values)
    if values.scalable_topic_auto_scale_enabled and (why := why_controllers_idle(values)):
        unless = "unless policies of their namespaces or topics override it"
        notes.append(f"Controllers of scalable topics neither split nor merge segments, {unless}: {why}.")
    other = f"This assumes other settings than the cluster's: {', '.join(assumed)}."
    caveats = (*([other] if assumed else []), *newer_than_known(str(pulsar_version)))
    return ResolvedSettings(values, origins, release, caveats, tuple(notes))


def _spelt(value: Scalar) -> str:
    return simple_name(value) if isinstance(value, str) else json.dumps(value)


def why_not_modular(values: LoadBalancerSettings) -> str | None:
    """Why brokers that are configured with the Modular manager don't run it, a sentence; None if they do."""
    if simple_name(values.load_manager_class_name) != LOAD_MANAGERS["modular"]:
        return None
    return why_modular_does_not_start(
        values.load_balancer_load_shedding_strategy,
        values.load_balancer_load_placement_strategy,
        values.value(pairing_key(values.behaviour)),
        values.behaviour,
    )


def why_controllers_idle(values: LoadBalancerSettings) -> str | None:
    """The limits that keep controllers from splitting and merging segments of scalable topics; None if they may.

    Source: `AutoScaleConfig.validated` (5.0.0-M1, 5.0.1).
    """
    for split, merge in SPLIT_AND_MERGE_LIMITS:
        upper, lower = values.value(split), values.value(merge)
        if lower < 0:
            return f"{merge}={lower:.15g} must not be negative"
        if lower >= upper:
            return f"{split}={upper:.15g} must be above {merge}={lower:.15g}"
    return None


def _not_as_configured(values: LoadBalancerSettings) -> list[str]:
    """A sentence if the load manager, or the Modular one's placement strategy, is configured but not in force."""
    if why := why_manager_does_not_start(values.load_manager_class_name, values.behaviour):
        return [f"{why}."]
    if why := why_not_modular(values):
        return [f"{why[0].upper()}{why[1:]}."]
    shedder, placement = values.load_balancer_load_shedding_strategy, values.load_balancer_load_placement_strategy
    used = placement_in_force(shedder, placement, values.behaviour)
    if used == placement or simple_name(values.load_manager_class_name) != LOAD_MANAGERS["modular"]:
        return []
    return [
        f"The brokers place with {simple_name(used)}: {simple_name(placement)} is not a placement "
        f"strategy for {simple_name(shedder)}."
    ]


def is_release_default(key: str, pulsar_version: str | None, runtime: Mapping[str, str]) -> bool:
    """Whether a broker of this version has the default that its release is known for, by its runtime configuration."""
    release = NEWEST if pulsar_version is None else listed_release(pulsar_version)
    return has(release, key) and bool(setting_value(key, pulsar_version, runtime) == setting_value(key, pulsar_version))


def setting_value(
    key: str,
    pulsar_version: str | None = None,
    runtime: Mapping[str, str] | None = None,
    dynamic: Mapping[str, str] | None = None,
) -> Any:
    """One setting of a cluster, for use before all settings can be resolved; without texts, the default.

    Never raises. A version that is unreadable or below all listed releases counts as the oldest, a missing version as
    the newest, and a text that Pulsar could not parse changes nothing.
    """
    release = NEWEST if pulsar_version is None else listed_release(pulsar_version)
    value: Scalar = default_of(release_with(key, release), key)
    if not has(release, key):
        return value
    for texts, counts in ((runtime, True), (dynamic, is_dynamic(release, key))):
        if counts and texts is not None and texts.get(key, "").strip():
            with suppress(Unparsable):
                value = parse(key, texts[key])
    return value
