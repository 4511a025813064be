"""A recorded cluster that evolves on Spark, through to its tables."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.simulation.request import SimulationRequest, grid
from pulsar_advisor.stages.normalize import run as normalize
from pulsar_advisor.stages.simulate import run
from pulsar_advisor.stages.validate import run as validate
from pulsar_advisor.storage.root import RESULT, Root
from pulsar_advisor.tables.simulation_schemas import SIMULATIONS
from spark.mutations import RECORDED, clean_capture

pytestmark = [pytest.mark.spark, pytest.mark.full]

MINIMUM = "loadBalancerBundleUnloadMinThroughputThreshold"


def test_the_tables_of_a_grid(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> None:
    snapshot = clean_capture(RECORDED).raw.write(Root(str(tmp_path_factory.mktemp("simulated")), "test"))
    normalize(spark, snapshot)
    assert validate(spark, snapshot).success
    request = SimulationRequest(
        Request("ThresholdShedder", "configured"), grid=grid([f"{MINIMUM}=0.001,1000"]), cycles=30
    )
    document = run(lambda: spark, snapshot, request)
    assert (snapshot.folder("simulations/result") / RESULT).exists()
    acts, rests = sorted(document.scores, key=lambda score: -score.unloads)
    assert (acts.what_if, rests.what_if) == (f"{MINIMUM}=0.001", f"{MINIMUM}=1000")
    assert acts.unloads > rests.unloads == 0
    tables = {
        table.name: pq.read_table(snapshot.folder(f"simulations/{table.name}").path, partitioning=None)
        for table in SIMULATIONS
    }
    assert tables["scores"].num_rows == 2
    assert tables["moves"].num_rows == acts.unloads
    assert {len(tables["splits"]), acts.splits, rests.splits} == {0}
    assert tables["cycles"].num_rows == sum(score.cycles + 1 for score in document.scores)
    owners = {row["bundle"]: row["destination"] for row in tables["moves"].to_pylist()}
    assert set(owners.values()) <= set(clean_capture(RECORDED).raw.head["identity"]["broker_ids"])


def test_a_bundle_with_too_many_topics_is_split_and_its_children_are_recorded(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    snapshot = clean_capture(RECORDED).raw.write(Root(str(tmp_path_factory.mktemp("split")), "test"))
    normalize(spark, snapshot)
    assert validate(spark, snapshot).success
    request = SimulationRequest(
        Request("ThresholdShedder", "configured"),
        what_if={"loadBalancerAutoBundleSplitEnabled": "true", "loadBalancerNamespaceBundleMaxTopics": "2"},
        cycles=2,
    )
    [score] = run(lambda: spark, snapshot, request).scores
    rows = pq.read_table(snapshot.folder("simulations/splits").path, partitioning=None).to_pylist()
    assert score.splits > 0
    assert len(rows) == 2 * score.splits
    assert {row["bundle"].rpartition("/")[0] for row in rows} == {row["child"].rpartition("/")[0] for row in rows}
    assert all(row["topics"] >= 0 and "topics exceed the limit of 2" in row["reason"] for row in rows)
