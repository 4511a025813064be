"""The load balancer's settings as one cluster has them: typed, by Pulsar's key names, each with its origin.

Defaults per release were read from the released `ServiceConfiguration` classes (2.11.0 to 5.0.0-M1). That of 5.0.1 is
not published: what changed since 5.0.0-M1 is from Pulsar's documentation ("Configuration default changes from Pulsar
4.x to 5.0.x"), as each entry's `source` says. These override them, each overriding the one before: the broker's runtime
configuration, the dynamic values of the metadata store, and a user's what-if.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from pulsar_advisor.model.configuration.class_names import (
    LOAD_MANAGERS,
    pairing_key,
    placement_in_force,
    simple_name,
    why_modular_does_not_start,
)
from pulsar_advisor.model.errors import DataNotFit, UsageError
from pulsar_advisor.model.text.some_of import nearest

Scalar = bool | int | float | str | list[str] | None


@dataclass(frozen=True)
class Range:
    """The values that make sense, ends included: a what-if outside is refused, a cluster's own value used and noted."""

    low: float
    high: float


Flag = bool
Percent = Annotated[int, Range(0, 100)]
Count = Annotated[int, Range(0, 2**31 - 1)]
Ratio = Annotated[float, Range(0.0, 1.0)]
Factor = Annotated[float, Range(0.0, 100.0)]
Amount = Annotated[float, Range(0.0, 1e15)]
CountOrMinusOne = Annotated[int, Range(-1, 2**31 - 1)]
Text = str
Names = tuple[str, ...]


class LoadBalancerSettings(BaseModel):
    """The settings that affect decisions here, and those shown beside them in a report. Aliases are Pulsar's keys.

    The misspelt keys (`...Bandwith...`, `loadBalanceShedding...`) are Pulsar's own. What Pulsar calls a percentage but
    reads as a ratio (`loadBalancerHistoryResourcePercentage`, `maxUnloadPercentage`) is a ratio here too.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel)

    behaviour: tuple[int, int, int]
    """The release whose decisions are modelled, such as (4, 0, 8); strategies compare it with releases of changes."""

    load_manager_class_name: Text
    load_balancer_enabled: Flag
    load_balancer_shedding_enabled: Flag
    load_balancer_shedding_interval_minutes: Count
    load_balancer_shedding_grace_period_minutes: Count
    load_balancer_load_shedding_strategy: Text
    load_balancer_load_placement_strategy: Text
    load_balancer_placement_strategy: Text
    load_balancer_shedding_excluded_namespaces: Names
    load_balancer_shedding_bundles_with_policies_enabled: Flag

    load_balancer_report_update_threshold_percentage: Percent
    load_balancer_report_update_min_interval_millis: Count
    load_balancer_report_update_max_interval_minutes: Count
    load_balancer_host_usage_check_interval_minutes: Count
    load_balancer_resource_quota_update_interval_minutes: Count
    load_balancer_override_broker_nic_speed_gbps: Annotated[float | None, Range(0.0, 10_000.0)]
    load_balancer_override_broker_nics: Names
    stats_update_frequency_in_secs: Count
    stats_update_initial_delay_in_secs: Count

    load_balancer_cpu_resource_weight: Factor = Field(alias="loadBalancerCPUResourceWeight")
    load_balancer_memory_resource_weight: Factor
    load_balancer_direct_memory_resource_weight: Factor
    load_balancer_bandwidth_in_resource_weight: Factor
    load_balancer_bandwidth_out_resource_weight: Factor
    load_balancer_bandwith_in_resource_weight: Factor
    load_balancer_bandwith_out_resource_weight: Factor
    load_balancer_history_resource_percentage: Ratio

    load_balancer_broker_overloaded_threshold_percentage: Percent
    load_balancer_broker_underloaded_threshold_percentage: Percent
    load_balancer_broker_comfort_load_level_percentage: Percent
    load_balancer_broker_threshold_shedder_percentage: Percent
    load_balancer_bundle_unload_min_throughput_threshold: Amount
    lower_boundary_shedding_enabled: Flag

    load_balancer_msg_rate_difference_shedder_threshold: Amount
    load_balancer_msg_throughput_multiplier_difference_shedder_threshold: Amount
    min_unload_message: Count
    min_unload_message_throughput: Count
    max_unload_percentage: Ratio
    max_unload_bundle_num_per_shedding: CountOrMinusOne

    load_balancer_avg_shedder_low_threshold: Percent
    load_balancer_avg_shedder_high_threshold: Percent
    load_balancer_avg_shedder_hit_count_low_threshold: Count
    load_balancer_avg_shedder_hit_count_high_threshold: Count

    load_balancer_broker_load_target_std: Ratio
    load_balancer_shedding_condition_hit_count_threshold: Count
    load_balancer_transfer_enabled: Flag
    load_balancer_max_number_of_broker_shedding_per_cycle: Count
    load_balance_shedding_delay_in_seconds: Count
    load_balancer_broker_load_data_ttl_in_seconds: Count = Field(alias="loadBalancerBrokerLoadDataTTLInSeconds")
    load_balancer_max_number_of_bundles_in_bundle_load_report: Count
    load_balancer_debug_mode_enabled: Flag

    load_balancer_distribute_bundles_evenly_enabled: Flag
    load_balancer_average_resource_usage_difference_threshold_percentage: Percent
    load_balancer_broker_max_topics: Count
    prefer_later_versions: Flag
    failure_domains_enabled: Flag

    load_balancer_auto_bundle_split_enabled: Flag
    load_balancer_auto_unload_split_bundles_enabled: Flag
    load_balancer_namespace_bundle_max_topics: Count
    load_balancer_namespace_bundle_max_sessions: Count
    load_balancer_namespace_bundle_max_msg_rate: Count
    load_balancer_namespace_bundle_max_bandwidth_mbytes: Count
    load_balancer_namespace_maximum_bundles: Count
    load_balancer_split_interval_minutes: Count
    load_balancer_max_number_of_bundles_to_split_per_cycle: Count
    load_balancer_namespace_bundle_split_condition_hit_count_threshold: Count
    flow_or_qps_difference_threshold_percentage: Percent
    supported_namespace_bundle_split_algorithms: Names
    default_namespace_bundle_split_algorithm: Text
    topic_bundle_assignment_strategy: Text
    default_number_of_namespace_bundles: Count
    max_num_partitions_per_partitioned_topic: Count
    scalable_topic_auto_scale_enabled: Flag
    scalable_topic_max_segments: Count
    scalable_topic_split_msg_rate_in_threshold: Amount
    scalable_topic_split_msg_rate_out_threshold: Amount
    scalable_topic_split_bytes_rate_in_threshold: Count
    scalable_topic_split_bytes_rate_out_threshold: Count
    namespace_bundle_unloading_timeout_ms: Count
    metadata_store_operation_timeout_seconds: Count

    @property
    def overloaded_ratio(self) -> float:
        """Usage (0..1) above which a broker is overloaded."""
        return self.load_balancer_broker_overloaded_threshold_percentage / 100


WHAT_IF: Final = "what-if"
"""The origin of a value that a user replaced."""


@dataclass(frozen=True)
class ResolvedSettings:
    """The settings of one cluster and the origin of each."""

    values: LoadBalancerSettings
    origins: Mapping[str, str]
    """Pulsar's key -> `default <release>`, followed by ` (document)` if it wasn't read from a class, `runtime`,
    `dynamic` or `what-if`."""
    release: str
    """The listed release whose defaults were used."""
    caveats: tuple[str, ...]
    """What puts the whole answer in doubt, in whole sentences: values that only a what-if has, a release newer than
    those listed, defaults from a document."""
    notes: tuple[str, ...]
    """What else a reader should know, in whole sentences: a release that isn't listed, values that Pulsar could not
    parse or does not check, a strategy that it replaces."""


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
    number, release = release_number(pulsar_version), _listed_release(str(pulsar_version))
    notes = []
    if number <= release_number(NEWEST) and pulsar_version != release:
        used = "the defaults" if behaviour == number else "the defaults and the decisions"
        notes.append(f"Pulsar {pulsar_version} is not listed: using {used} of {release}.")
    known = _defaults()[release].keys() | (runtime or {}).keys()
    texts: dict[str, Scalar] = {}
    origins: dict[str, str] = {}
    for key in _FIELD_OF_KEY:
        source = _release_with(key, release)
        texts[key] = _defaults()[source][key]
        origins[key] = f"default {source}{_FROM_A_DOCUMENT if _source(source, key) == _DOCUMENT else ''}"
    for key, text in (runtime or {}).items():
        if key in _FIELD_OF_KEY:
            value, note = _runtime_value(key, text)
            notes += note
            texts[key], origins[key] = value, "runtime"
    for key, text in (dynamic or {}).items():
        if key not in _FIELD_OF_KEY or key not in known:
            continue
        if not text.strip():
            notes.append(f"Dynamic {key} is blank: brokers keep what they started with.")
            continue
        if not is_dynamic(_release_with(key, release), key):
            notes.append(
                f"{key}={text} is stored as a dynamic value, but {release} reads this key only at start-up: ignored."
            )
            continue
        try:
            value, note = _captured_value(key, text, "dynamic")
        except _Unparsable as expected:
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
    caveats = (*_assumed(assumed), *newer_than_known(str(pulsar_version)), *_documented(release, texts, origins))
    return ResolvedSettings(values, origins, release, caveats, tuple(notes))


def _assumed(values: Sequence[str]) -> list[str]:
    """A sentence if a what-if replaces values of the cluster."""
    return [f"This assumes other settings than the cluster's: {', '.join(values)}."] if values else []


def newer_than_known(pulsar_version: str) -> list[str]:
    """A sentence if the release is newer than all listed ones. Raises `DataNotFit` for a text that isn't a release."""
    if release_number(pulsar_version) <= release_number(NEWEST):
        return []
    return [
        f"Pulsar {pulsar_version} is newer than {NEWEST}, the newest release known here: it is judged by the defaults "
        f"and the decisions of {NEWEST}. Look for a newer pulsar-advisor."
    ]


def _documented(release: str, texts: Mapping[str, Scalar], origins: Mapping[str, str]) -> list[str]:
    """A sentence if defaults that were not read from a class are in force."""
    found = [f"{key}={_spelt(texts[key])}" for key, origin in origins.items() if origin.endswith(_FROM_A_DOCUMENT)]
    if not found:
        return []
    return [
        f"No broker's configuration says {', '.join(found)}: these defaults of {release} are from Pulsar's "
        "documentation, not from its classes. Capture a broker's configuration to be sure."
    ]


def _spelt(value: Scalar) -> str:
    return simple_name(value) if isinstance(value, str) else json.dumps(value)


def why_not_modular(values: LoadBalancerSettings) -> str | None:
    """Why brokers that are configured with the Modular manager don't run it, a sentence; None if they do."""
    if simple_name(values.load_manager_class_name) != LOAD_MANAGERS["modular"]:
        return None
    return why_modular_does_not_start(
        values.load_balancer_load_shedding_strategy,
        values.load_balancer_load_placement_strategy,
        getattr(values, field_of(pairing_key(values.behaviour))),
        values.behaviour,
    )


def _not_as_configured(values: LoadBalancerSettings) -> list[str]:
    """A sentence if the Modular manager or its placement strategy is configured, but not in force."""
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
    release = NEWEST if pulsar_version is None else _listed_release(pulsar_version)
    if key not in _defaults()[release]:
        return _defaults()[_first_release_with(key)][key]
    value = _defaults()[release][key]
    for texts, counts in ((runtime, True), (dynamic, is_dynamic(release, key))):
        if counts and texts is not None and texts.get(key, "").strip():
            with suppress(_Unparsable):
                value = _parse(key, texts[key])
    return value


_RELEASE = re.compile(r"(\d{1,9})\.(\d{1,9})(?:\.(\d{1,9}))?", re.ASCII)
_MILESTONE = re.compile(r"-M(\d{1,9})", re.ASCII)


def release_number(text: str | None) -> tuple[int, int, int]:
    """The three numbers of a release, to compare it; a milestone counts as its release. Raises `DataNotFit`."""
    if text is None:
        raise DataNotFit(
            "no broker says which release of Pulsar it runs, so its defaults are unknown: see `doctor`, then "
            "capture again"
        )
    match = _RELEASE.match(text)
    if match is None:
        raise DataNotFit(
            f"'{text}' is not a Pulsar version; expected a release such as 4.0.8. Is the capture of a Pulsar cluster?"
        )
    return int(match[1]), int(match[2]), int(match[3] or 0)


def is_later(pulsar_version: str | None, than: str | None) -> bool:
    """Whether one release comes after another; a milestone comes before its release.

    Raises `DataNotFit` for a text that isn't a release.
    """
    return _place(pulsar_version) > _place(than)


def _place(text: str | None) -> tuple[tuple[int, int, int], float]:
    number = release_number(text)
    milestone = _MILESTONE.search(str(text))
    return number, math.inf if milestone is None else int(milestone[1])


def behaviour_of(pulsar_version: str | None) -> tuple[int, int, int]:
    """The release whose decisions are modelled for a version: the listed one, or a later one of its line.

    What maintenance releases changed since is known from Pulsar's release notes (docs/parity.md). Raises `DataNotFit`
    as `resolve_settings` does.
    """
    number = release_number(pulsar_version)
    if number[:2] < release_number(_OLDEST)[:2]:
        raise DataNotFit(
            f"Pulsar {pulsar_version} is older than 2.11: there are tables of this cluster but no recommendations. "
            "Upgrade the cluster to get recommendations"
        )
    listed = release_number(_listed_release(str(pulsar_version)))
    return max(listed, number) if number[:2] == listed[:2] else listed


def _listed_release(pulsar_version: str) -> str:
    """The listed release of the nearest line at or below, the oldest if there is none or the version is unreadable.

    A milestone comes before the releases of its line.
    """
    match = _RELEASE.match(pulsar_version)
    if match is None:
        return _OLDEST
    number = release_number(pulsar_version)
    digits = 3 if _MILESTONE.match(pulsar_version, match.end()) else 2
    at_or_below = [one for one in _defaults() if release_number(one)[:digits] <= number[:digits]]
    return max(at_or_below, key=release_number, default=_OLDEST)


@cache
def _document() -> dict[str, dict[str, dict[str, Scalar]]]:
    text = (
        resources.files("pulsar_advisor.model.configuration")
        .joinpath("defaults_by_version.json")
        .read_text(encoding="utf-8")
    )
    document: dict[str, dict[str, dict[str, Scalar]]] = json.loads(text)
    return document


@cache
def _defaults() -> dict[str, dict[str, Scalar]]:
    """Release -> key -> default value."""
    return {release: {key: entry["default"] for key, entry in keys.items()} for release, keys in _document().items()}


_OLDEST: Final = min(_defaults(), key=release_number)
NEWEST: Final = max(_defaults(), key=release_number)
"""The newest release whose defaults and decisions are known."""

_DOCUMENT: Final = "document"
_FROM_A_DOCUMENT: Final = f" ({_DOCUMENT})"


def _source(release: str, key: str) -> Scalar:
    """What a default was read from: `class`, the `class of` another release, or a `document`."""
    return _document()[release][key]["source"]


def is_dynamic(release: str, key: str) -> bool:
    """Whether brokers of a listed release accept a dynamic value of a key."""
    return bool(_document()[release].get(key, {}).get("dynamic"))


_READ_AT_START: Final = frozenset(
    {
        "loadBalancerLoadSheddingStrategy",
        "loadBalancerHostUsageCheckIntervalMinutes",
        "loadBalancerReportUpdateMinIntervalMillis",
    }
)
"""Brokers accept and show a dynamic value of these, but use the one that they started with. Source:
`ModularLoadManagerImpl.initialize`, `UnloadScheduler`, `LinuxBrokerHostUsageImpl`, `PulsarService` (4.0.8)."""


def takes_effect_at_once(release: str, key: str) -> bool:
    """Whether brokers of a listed release use a dynamic value of a key without a restart."""
    return is_dynamic(release, key) and key not in _READ_AT_START


def _release_with(key: str, release: str) -> str:
    """The release itself if it has a key, else the first one that does."""
    return release if key in _defaults()[release] else _first_release_with(key)


def _first_release_with(key: str) -> str:
    return min((release for release, keys in _defaults().items() if key in keys), key=release_number)


_FIELD_OF_KEY: Final[dict[str, str]] = {
    str(field.alias): name for name, field in LoadBalancerSettings.model_fields.items() if name != "behaviour"
}

SETTING_KEYS: Final[frozenset[str]] = frozenset(_FIELD_OF_KEY)
"""Pulsar's keys that are resolved; `planning.requests.what_if` decides which of them a what-if may set."""

OF_THE_HOST: Final = frozenset({"loadBalancerOverrideBrokerNicSpeedGbps", "loadBalancerOverrideBrokerNics"})
"""Pulsar's keys in which brokers on different machines may differ."""

ALLOWED_KEYS: Final[frozenset[str]] = frozenset(key for keys in _defaults().values() for key in keys)
"""Pulsar's keys that may be stored from a broker's configuration: none of them can contain a secret."""


def storable(texts: Mapping[str, str]) -> dict[str, str]:
    """What of a configuration may be stored, sorted by key: the rest may hold any secret."""
    return {key: texts[key] for key in sorted(texts.keys() & ALLOWED_KEYS)}


def is_deprecated(release: str, key: str) -> bool:
    """Whether a listed release has one of Pulsar's keys only for the sake of old configurations."""
    return bool(_document()[release].get(key, {}).get("deprecated"))


def text_of(value: Scalar | tuple[str, ...]) -> str:
    """A value as Pulsar's files spell it: lists joined by commas, empty if unset."""
    if isinstance(value, list | tuple):
        return ",".join(value)
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def texts_of(settings: LoadBalancerSettings) -> dict[str, str]:
    """All values by Pulsar's keys, as its files spell them."""
    values = settings.model_dump(by_alias=True, exclude={"behaviour"})
    return {key: text_of(value) for key, value in sorted(values.items())}


def is_known(key: str, behaviour: tuple[int, int, int]) -> bool:
    """Whether a release that decides as `behaviour` has one of Pulsar's keys."""
    release = max((one for one in _defaults() if release_number(one) <= behaviour), key=release_number)
    return key in _defaults()[release]


def field_of(key: str) -> str:
    """The field of `LoadBalancerSettings` that holds one of Pulsar's keys."""
    return _FIELD_OF_KEY[key]


def range_of(key: str) -> tuple[float, float]:
    """The lowest and the highest number that a what-if may set for a numeric key."""
    allowed = _range(key)
    assert allowed is not None
    return allowed.low, allowed.high


def _range(key: str) -> Range | None:
    metadata = LoadBalancerSettings.model_fields[_FIELD_OF_KEY[key]].metadata
    return next((item for item in metadata if isinstance(item, Range)), None)


_NUMBER = re.compile(r"[+-]?(NaN|Infinity|(\d{1,99}\.?\d{0,99}|\.\d{1,99})([eE][+-]?\d{1,9})?[dDfF]?)", re.ASCII)
"""As Java's `Double.valueOf` reads it, without its hexadecimal form."""
_WHOLE_NUMBER = re.compile(r"[+-]?0{0,99}\d{1,19}", re.ASCII)


class _Unparsable(ValueError):
    """A text that doesn't fit the key's type; the message says what was expected."""


def _parse(key: str, text: str) -> Scalar:
    """A text as Pulsar's `FieldParser` reads it for a key of this type (flags aren't trimmed)."""
    annotation = LoadBalancerSettings.model_fields[_FIELD_OF_KEY[key]].annotation
    if annotation is bool:
        return text.lower() == "true"
    text = text.strip()
    if annotation is str:
        return text
    if annotation == Names:
        inner = text.removeprefix("[").removesuffix("]")
        return [name.strip() for name in inner.split(",") if name.strip()]
    if annotation is int:
        bits = 64 if _document()[_first_release_with(key)][key]["type"] == "long" else 32
        if not _WHOLE_NUMBER.fullmatch(text) or not -(2 ** (bits - 1)) <= int(text) < 2 ** (bits - 1):
            raise _Unparsable(f"a whole number of {bits} bits")
        return int(text)
    if annotation is not float:
        # The runtime configuration spells an unset optional value `Optional.empty`, a set one `Optional[1.0]`.
        if text.lower() in ("", "null", "none", "optional.empty"):
            return None
        text = text.removeprefix("Optional[").removesuffix("]")
    if not _NUMBER.fullmatch(text):
        raise _Unparsable("a number")
    return float(text.rstrip("dDfF"))


_LEAST_PERIODS: Final = {
    "statsUpdateFrequencyInSecs": 1,
    "loadBalancerReportUpdateMinIntervalMillis": 1,
    "loadBalancerResourceQuotaUpdateIntervalMinutes": 1,
}
"""Below these a broker doesn't start. Source: `ServiceConfiguration` (`minValue`), `PulsarService` (periods of
`scheduleAtFixedRate`); Pulsar checks no other number (4.0.8)."""


def _captured_value(key: str, text: str, origin: str) -> tuple[Scalar, list[str]]:
    """A value as a broker has it, and what is odd about it: an invalid flag is false. Raises `_Unparsable`."""
    if _is_flag(key) and text.lower() not in ("true", "false"):
        return False, [f"{origin.capitalize()} {key}='{text}' is not a flag: Pulsar reads it as false."]
    value = _parse(key, text)
    return value, _out_of_range(key, value, origin)


def _runtime_value(key: str, text: str) -> tuple[Scalar, list[str]]:
    """The same for a running broker's configuration. Raises `DataNotFit` if no broker can have it."""
    try:
        value, notes = _captured_value(key, text, "runtime")
    except _Unparsable as expected:
        raise DataNotFit(
            f"the captured runtime configuration holds {key}='{text}', but Pulsar expects {expected}; capture again"
        ) from None
    if isinstance(value, int) and value < _LEAST_PERIODS.get(key, value):
        raise DataNotFit(
            f"the captured runtime configuration holds {key}={text}: no broker starts with it; capture again"
        )
    return value, notes


def _is_flag(key: str) -> bool:
    return LoadBalancerSettings.model_fields[_FIELD_OF_KEY[key]].annotation is bool


def _out_of_range(key: str, value: Scalar, origin: str) -> list[str]:
    """A note if a number is outside the range that makes sense. Raises `DataNotFit` if it isn't finite."""
    allowed = _range(key)
    if allowed is None or not isinstance(value, int | float) or allowed.low <= value <= allowed.high:
        return []
    if not math.isfinite(value):
        raise DataNotFit(f"{origin} {key}={value} can't be compared with anything: set a number, then capture again")
    return [
        f"{origin.capitalize()} {key}={value:.15g} is outside {allowed.low:.15g} to {allowed.high:.15g}: Pulsar "
        "doesn't check it, so this advice uses it too."
    ]


def what_if_value(key: str, text: str) -> Scalar:
    """The value that a what-if sets, in any release. Raises `UsageError` if the key is unknown or the text unusable."""
    if key not in _FIELD_OF_KEY:
        raise UsageError(f"'{key}' is not a setting that affects recommendations{nearest(key, _FIELD_OF_KEY)}")
    text = text.strip()
    if _is_flag(key) and text.lower() not in ("true", "false"):
        raise UsageError(f"{key}='{text}' is not usable; expected true or false")
    try:
        value = _parse(key, text)
    except _Unparsable as expected:
        raise UsageError(f"{key}='{text}' is not usable; expected {expected}") from None
    allowed = _range(key)
    if allowed and isinstance(value, int | float) and not allowed.low <= value <= allowed.high:
        raise UsageError(f"{key}={text} is out of range; expected {allowed.low:.15g} to {allowed.high:.15g}")
    return value
