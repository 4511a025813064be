"""Facts that the suites judge, one at a time."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from pulsar_advisor.quality.facts.brokers import apart, common_clock
from pulsar_advisor.quality.facts.problems import facts_of_problems

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    ("clocks_ms", "common_ms"),
    [
        ([0, 0, -300_000], 0),
        ([0, -300_000], 0),
        ([0, 300_000], 0),
        ([0, -300_000, 300_000, 300_000], 0),
        ([300_000, 300_000], 300_000),
        ([None, -(2**63)], -(2**63)),
        ([None], None),
    ],
)
def test_of_two_clocks_that_disagree_the_one_nearer_to_ours_is_the_common_one(
    spark: SparkSession, clocks_ms: list[int | None], common_ms: int | None
) -> None:
    brokers = spark.createDataFrame([(clock_ms,) for clock_ms in clocks_ms], "clock_ahead_ms bigint")
    assert brokers.agg(common_clock()).head() == (common_ms,)


@pytest.mark.parametrize(
    ("store_was_read", "failing"), [(True, ["bundle_data", "topic_names"]), (False, ["topic_names"])]
)
def test_what_only_a_metadata_store_has_is_missing_only_if_one_was_read(
    spark: SparkSession, store_was_read: bool, failing: list[str]
) -> None:
    rows = [("missing", "bundle_data", None), ("missing", "topic_names", None), ("not_available", "leader", None)]
    problems = spark.createDataFrame(rows, "problem string, surface string, broker string")
    facts = facts_of_problems(problems, "fresh", store_was_read=store_was_read)
    assert [row["surface"] for row in facts.where("optional_is_missing").collect()] == failing


def test_what_bundles_do_not_account_for_does_not_depend_on_their_order(spark: SparkSession) -> None:
    def total_and_ratio(rates: list[float]) -> tuple[float, float]:
        bundles = spark.createDataFrame([(rate,) for rate in rates], "rate double").coalesce(1)
        (found,) = bundles.selectExpr("sum(rate)", apart("1D", "sum(rate)")).collect()
        return found[0], found[1]

    assert total_and_ratio([0.1, 0.2, 0.3]) == (0.6000000000000001, 0.4)
    assert total_and_ratio([0.3, 0.2, 0.1]) == (0.6, 0.4)
