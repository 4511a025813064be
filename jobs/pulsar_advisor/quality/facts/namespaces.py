"""The facts that the suite of namespaces uses."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from pulsar_advisor.model.configuration.resolved_settings import setting_value
from pulsar_advisor.tables.frames import few_rows
from pulsar_advisor.tables.settings_inputs import SettingsInputs

_DOMAINS_ENABLED: Final = "failureDomainsEnabled"


def facts_of_namespaces(namespaces: DataFrame, brokers: DataFrame, settings: SettingsInputs) -> DataFrame:
    """Facts: unreadable bounds, ranges that the document doesn't declare, the order of the bounds; for namespaces in an
    anti-affinity group, its size, whether failure domains matter to it, and if so, brokers without a domain.
    """
    enabled = bool(setting_value(_DOMAINS_ENABLED, *settings))
    domains = brokers.selectExpr(
        "count(failure_domain) as brokers_in_domains",
        "count_if(available and failure_domain is null) as brokers_in_none",
    )
    return (
        namespaces.where("not deleted")
        .crossJoin(few_rows(domains))
        .withColumn("group", sf.expr("if(trim(anti_affinity_group) = '', null, lower(anti_affinity_group))"))
        .selectExpr(
            "*",
            "size(filter(boundaries, b -> b is null)) as unreadable_boundaries",
            "size(boundaries) - 1D - declared_bundles as undeclared_ranges",
            "size(boundaries) >= 2 and boundaries = array_sort(array_distinct(boundaries)) as boundaries_ascend",
            "if(group is not null, count(*) over (partition by group), null) as group_namespaces",
            f"if(group is not null and brokers_in_domains > 0, {enabled}, null) as domains_are_counted",
            f"if(group is not null and {enabled}, brokers_in_none, null) as brokers_without_domain",
        )
    )
