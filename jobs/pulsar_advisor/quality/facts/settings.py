"""The facts that the suite of settings uses."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from pulsar_advisor.model.configuration.class_names import LOAD_MANAGERS
from pulsar_advisor.placement.registry import PLACEMENTS
from pulsar_advisor.shedding.registry import SHEDDERS
from pulsar_advisor.splitting.registry import SPLIT_ALGORITHMS


def facts_of_settings(settings: DataFrame, brokers: DataFrame) -> DataFrame:
    """Facts: from_a_broker as 0 or 1, how often a value appears, whether a configured class is Pulsar's own, what
    assigns topics to bundles, whether a configured load manager is the one that the broker's report names.
    """

    known = {
        "loadManagerClassName": tuple(LOAD_MANAGERS.values()),
        "loadBalancerLoadSheddingStrategy": tuple(strategy.class_name for strategy in SHEDDERS),
        "loadBalancerLoadPlacementStrategy": tuple(strategy.class_name for strategy in PLACEMENTS),
        "defaultNamespaceBundleSplitAlgorithm": tuple(strategy.name for strategy in SPLIT_ALGORITHMS),
    }
    one_of = " ".join(
        f"when key = '{key}' then substring_index(value, '.', -1) in {names}" for key, names in known.items()
    )
    running = brokers.select("broker", sf.col("load_manager_class_name").alias("running_manager"))
    return settings.join(running, "broker", "left").withColumns(
        {
            "from_a_broker": sf.expr("int(origin = 'runtime')"),
            "occurrences": sf.expr("count(*) over (partition by origin, broker, key)"),
            "class_is_known": sf.expr(f"case {one_of} end"),
            "is_the_running_manager": sf.expr(
                "if(key = 'loadManagerClassName' and running_manager is not null, value = running_manager, null)"
            ),
            "topic_assigner": sf.expr("if(key = 'topicBundleAssignmentStrategy', nullif(value, ''), null)"),
        }
    )
