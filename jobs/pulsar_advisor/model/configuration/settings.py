"""The load balancer's settings, typed, by Pulsar's key names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from pulsar_advisor.model.configuration.defaults import Scalar


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
    load_balancer_namespace_bundle_max_sessions: CountOrMinusOne
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
    max_num_partitions_per_partitioned_topic: CountOrMinusOne
    scalable_topic_auto_scale_enabled: Flag
    scalable_topic_max_segments: Count
    scalable_topic_split_msg_rate_in_threshold: Amount
    scalable_topic_split_msg_rate_out_threshold: Amount
    scalable_topic_split_bytes_rate_in_threshold: Count
    scalable_topic_split_bytes_rate_out_threshold: Count
    scalable_topic_merge_msg_rate_in_threshold: Amount
    scalable_topic_merge_msg_rate_out_threshold: Amount
    scalable_topic_merge_bytes_rate_in_threshold: Count
    scalable_topic_merge_bytes_rate_out_threshold: Count
    namespace_bundle_unloading_timeout_ms: Count
    metadata_store_operation_timeout_seconds: Count

    @property
    def overloaded_ratio(self) -> float:
        """Usage (0..1) above which a broker is overloaded."""
        return self.load_balancer_broker_overloaded_threshold_percentage / 100

    def value(self, key: str) -> Any:
        """The value of one of Pulsar's keys."""
        return getattr(self, FIELD_OF_KEY[key])


FIELD_OF_KEY: Final[Mapping[str, str]] = {
    str(field.alias): name for name, field in LoadBalancerSettings.model_fields.items() if name != "behaviour"
}
"""Pulsar's key -> the field of `LoadBalancerSettings` that holds it."""
SETTING_KEYS: Final[frozenset[str]] = frozenset(FIELD_OF_KEY)
"""Pulsar's keys that are resolved; `planning.requests.what_if` decides which of them a what-if may set."""
OF_THE_HOST: Final = frozenset({"loadBalancerOverrideBrokerNicSpeedGbps", "loadBalancerOverrideBrokerNics"})
"""Pulsar's keys in which brokers on different machines may differ."""


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


def range_of(key: str) -> tuple[float, float]:
    """The lowest and the highest number that a what-if may set for a numeric key."""
    allowed = allowed_range(key)
    assert allowed is not None
    return allowed.low, allowed.high


def allowed_range(key: str) -> Range | None:
    """The range of a key with numbers."""
    metadata = LoadBalancerSettings.model_fields[FIELD_OF_KEY[key]].metadata
    return next((item for item in metadata if isinstance(item, Range)), None)


def is_flag(key: str) -> bool:
    """Whether a key is true or false."""
    return LoadBalancerSettings.model_fields[FIELD_OF_KEY[key]].annotation is bool
