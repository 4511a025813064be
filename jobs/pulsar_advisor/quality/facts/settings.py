"""The facts that the suite of settings uses."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from pulsar_advisor.model.configuration.class_names import LOAD_MANAGER_CLASSES
from pulsar_advisor.model.configuration.kinds import LoadManagerKind
from pulsar_advisor.placement.registry import PLACEMENTS
from pulsar_advisor.shedding.registry import SHEDDERS
from pulsar_advisor.splitting.registry import SPLIT_ALGORITHMS
from pulsar_advisor.tables.frames import few_rows


def facts_of_settings(
    settings: DataFrame, brokers: DataFrame, load_managers: Mapping[str, LoadManagerKind]
) -> DataFrame:
    """Facts: from_the_leader as 0 or 1 (from any broker if none leads), how often a value appears, whether a configured
    class is Pulsar's own, what assigns topics to bundles, whether a configured load manager is the one that the
    broker's report names and comes from.

    `load_managers`: which one each broker runs. A report only repeats the class that its broker started with.
    """

    known = {
        "loadManagerClassName": tuple(LOAD_MANAGER_CLASSES.values()),
        "loadBalancerLoadSheddingStrategy": tuple(one.java_class for one in SHEDDERS if one.java_class),
        "loadBalancerLoadPlacementStrategy": tuple(one.java_class for one in PLACEMENTS),
        "defaultNamespaceBundleSplitAlgorithm": tuple(strategy.name for strategy in SPLIT_ALGORITHMS),
    }
    one_of = " ".join(f"when key = '{key}' then value in {names}" for key, names in known.items())
    simple = sf.col("broker").isin([broker for broker, kind in load_managers.items() if kind == "simple"])
    running = brokers.select("broker", "is_leader", sf.col("load_manager_class_name").alias("running_manager"))
    leading = few_rows(brokers.agg(sf.coalesce(sf.max("is_leader"), sf.lit(False)).alias("is_led")))
    joined = settings.join(running, "broker", "left").crossJoin(leading).withColumn("is_simple", simple)
    return joined.selectExpr(
        "*",
        "int(origin = 'runtime' and (is_leader or not is_led)) as from_the_leader",
        "count(*) over (partition by origin, broker, key) as occurrences",
        f"case {one_of} end as class_is_known",
        "if(key = 'loadManagerClassName' and running_manager is not null, value = running_manager "
        f"and (not is_simple or value = '{LOAD_MANAGER_CLASSES['simple']}'), null) as is_the_running_manager",
        "if(key = 'topicBundleAssignmentStrategy', nullif(value, ''), null) as topic_assigner",
    )
