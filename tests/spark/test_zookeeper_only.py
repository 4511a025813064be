"""A real capture as ZooKeeper alone would have given it, through to a plan: made from what brokers published."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pulsar_advisor.model.errors import DataNotFit
from pulsar_advisor.planning.proposals.configured import CONFIGURED
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.stages.normalize import run as normalize
from pulsar_advisor.stages.recommend import run
from pulsar_advisor.stages.report import report_page
from pulsar_advisor.stages.validate import run as validate
from pulsar_advisor.storage.plans import read_plan
from pulsar_advisor.storage.root import PLANS, Root, Snapshot
from pulsar_advisor.tables.read_table import read_table
from pulsar_advisor.tables.state import cluster_state
from snapshots import RawSnapshot
from spark.mutations import RECORDED, clean_capture

pytestmark = [pytest.mark.spark, pytest.mark.full]

TOLD_BY_BROKERS_ONLY = ("load_reports", "settings", "topic_stats")
REASON = "only brokers report it, and no admin URL was given"
BY_LOAD = {"defaultNamespaceBundleSplitAlgorithm": "flow_or_qps_equally_divide"}


def of_zookeeper_alone() -> RawSnapshot:
    whole = clean_capture(RECORDED).raw
    lines = {
        surface: [line for line in of_surface if line.get("source") != "rest" and line.get("origin") != "runtime"]
        for surface, of_surface in whole.lines.items()
        if not surface.startswith("topic_stats")
    }
    lines["settings"] = [{"origin": "dynamic", "broker": None, "values": {"loadBalancerSheddingEnabled": "true"}}]
    missing = [
        {"surface": surface, "broker": None, "namespace": None, "reason": REASON} for surface in TOLD_BY_BROKERS_ONLY
    ]
    return RawSnapshot(lines, whole.head | {"sources": {"admin_urls": [], "zookeeper": True}, "missing": missing})


@pytest.fixture(scope="module")
def validated(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    snapshot = of_zookeeper_alone().write(Root(str(tmp_path_factory.mktemp("zookeeper")), "test"))
    normalize(spark, snapshot)
    result = validate(spark, snapshot)
    failed = {one.check: one.severity for one in result.results if not one.success}
    assert failed == {
        "bundles.reported_is_loaded": "info",
        "problems.optional_surfaces": "warning",
        "settings.some": "warning",
    }
    return snapshot


def test_the_one_view_is_what_brokers_published(validated: Snapshot) -> None:
    views = {view for table in ("brokers", "bundles") for view in read_table(validated, table)["view"].to_pylist()}
    assert views == {"published"}
    assert cluster_state(validated).brokers.complete.all()


def test_unloads_are_planned_from_it_and_splits_by_load_refused(spark: SparkSession, validated: Snapshot) -> None:
    request = Request(shedder="MinimalMoveShedder", placement="LeastLongTermMessageRate", what_if=BY_LOAD)
    recommendation = run(lambda: spark, validated, request)
    plan = read_plan(str(validated.folder(PLANS) / str(recommendation.advice.plan)))
    assert (plan.view, recommendation.view) == ("published", "published")
    unloads = [step for step in plan.steps if step.action == "unload" and step.executable]
    assert unloads
    unknown = f"settings is missing (settings: {REASON}); used instead: Pulsar's defaults."
    assert all(unknown in {doubt.sentence for doubt in step.doubts} for step in unloads)
    assert [(row.strategy, row.missing) for row in recommendation.refusals] == [
        ("flow_or_qps_equally_divide", "topic_traffic")
    ]
    page = report_page(validated)
    assert page.trust.coverage.judged_ratio == 1.0
    assert any(finding.sentence.startswith("No broker was read") for finding in page.findings)


def test_brokers_of_5_0_whose_configuration_is_missing_are_judged_by_its_defaults(
    spark: SparkSession, tmp_path: Path
) -> None:
    raw = of_zookeeper_alone()
    releases = {"pulsar_version": "5.0.1", "pulsar_versions": dict.fromkeys(raw.head["pulsar_versions"], "5.0.1")}
    snapshot = RawSnapshot(raw.lines, raw.head | releases).write(Root(str(tmp_path), "test"))
    normalize(spark, snapshot)
    validate(spark, snapshot)
    recommendation = run(lambda: spark, snapshot, Request(CONFIGURED, CONFIGURED, splits=False))
    assert [(row.shedder, row.placement) for row in recommendation.combinations] == [("AvgShedder", "AvgShedder")]
    page = report_page(snapshot)
    assert page.findings[0].sentence.startswith("No broker was read")
    (shedder,) = [row for row in page.settings if row.key == "loadBalancerLoadSheddingStrategy"]
    assert shedder.origin == "default 5.0.1"


def test_a_fresh_view_is_not_to_be_had(validated: Snapshot) -> None:
    with pytest.raises(DataNotFit, match="from ZooKeeper alone and has the published view only"):
        cluster_state(validated, "fresh")
