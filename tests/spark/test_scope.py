"""What is unfit or missing in a real capture, through to the plans: who takes no part, what it costs, what is sure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pulsar_advisor.documents.recommendation import Recommendation
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.reporting.page import ReportPage
from pulsar_advisor.stages.normalize import run as normalize
from pulsar_advisor.stages.recommend import run
from pulsar_advisor.stages.report import report_page
from pulsar_advisor.stages.validate import run as validate
from pulsar_advisor.storage.plans import read_plan
from pulsar_advisor.storage.root import PLANS, Root
from spark.mutations import RECORDED, Capture, clean_capture

pytestmark = [pytest.mark.spark, pytest.mark.full]


@dataclass(frozen=True)
class Advised:
    """A capture after `recommend`."""

    recommendation: Recommendation
    plans: tuple[Plan, ...]
    page: ReportPage


def advised(spark: SparkSession, root: Root, capture: Capture, request: Request) -> Advised:
    snapshot = capture.raw.write(root)
    normalize(spark, snapshot)
    assert validate(spark, snapshot).success
    document = run(lambda: spark, snapshot, request)
    names = [row.plan for row in document.combinations if row.plan]
    plans = tuple(read_plan(str(snapshot.folder(PLANS) / name)) for name in names)
    return Advised(document, plans, report_page(snapshot))


def hottest_first(capture: Capture) -> list[str]:
    def cpu(broker: str) -> float:
        usage: Mapping[str, float] = capture.report(broker)["cpu"]
        return usage["usage"] / usage["limit"]

    return sorted(capture.raw.head["identity"]["broker_ids"], key=cpu, reverse=True)


@pytest.fixture(scope="module")
def with_a_liar(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Advised, str, str]:
    """The idlest broker's CPU is no number, and the one between it and the hottest doesn't know its network card."""
    capture = clean_capture(RECORDED)
    _, blind, liar = hottest_first(capture)
    capture.report(liar)["cpu"]["usage"] = "NaN"
    for way in ("bandwidthIn", "bandwidthOut"):
        capture.report(blind)[way]["limit"] = 0.0
    root = Root(str(tmp_path_factory.mktemp("liar")), "test")
    return advised(spark, root, capture, Request(placement="LeastLongTermMessageRate")), blind, liar


def test_a_broker_whose_figures_fail_is_neither_source_nor_destination(
    with_a_liar: tuple[Advised, str, str],
) -> None:
    found, _, liar = with_a_liar
    unloads = [step for plan in found.plans for step in plan.steps if step.action == "unload"]
    assert unloads
    assert all(liar not in (step.source, step.destination) for step in unloads)
    assert list(found.recommendation.coverage.excluded_brokers) == [liar]


def test_the_report_says_what_share_could_not_be_judged(with_a_liar: tuple[Advised, str, str]) -> None:
    found, _, liar = with_a_liar
    coverage = found.recommendation.coverage
    assert 0.5 < coverage.judged_ratio < 1.0 and 0.5 < coverage.judged_msg_rate_ratio < 1.0
    assert coverage.unmeasured_bundles == 0
    messages, bytes_ = 1 - coverage.judged_msg_rate_ratio, 1 - coverage.judged_ratio
    lost = f"{messages:.1%} of the messages and {bytes_:.1%} of the bytes could not be judged."
    assert found.page.trust.coverage.sentence == f"{lost} Left out: {liar}."


def test_a_step_rests_on_the_checks_about_what_it_reads(with_a_liar: tuple[Advised, str, str]) -> None:
    found, blind, _ = with_a_liar
    [plan] = [plan for plan in found.plans if plan.shedder == "MinimalMoveShedder"]
    unload = next(step for step in plan.steps if step.action == "unload")
    assert unload.destination == blind
    assert {"brokers.cpu_usage", "brokers.bandwidth_in_limit"} <= set(plan.rests_on["unload"])
    assert "topics.msg_rate_in" not in plan.rests_on["unload"]
    assert "brokers.bandwidth_in_limit" in unload.failed_checks
    assert "brokers.cpu_usage" not in unload.failed_checks
    assert unload.confidence == "medium"
    unknown = (
        "By check brokers.bandwidth_in_limit this does not hold: The speed of the network card is known (incoming)."
    )
    assert unknown in {doubt.sentence for doubt in unload.doubts}


@pytest.mark.parametrize("view", ["fresh", "published"])
def test_a_broker_above_its_limit_is_advised_on_as_pulsar_sees_it(
    spark: SparkSession, tmp_path: Any, view: Any
) -> None:
    capture = clean_capture(RECORDED)
    hottest = hottest_first(capture)[0]
    for source in ("rest", "zookeeper"):
        cpu = capture.report(hottest, source)["cpu"]
        cpu["usage"] = 1.24 * cpu["limit"]
    eager = {"minUnloadMessage": "0", "minUnloadMessageThroughput": "0", "maxUnloadPercentage": "0.5"}
    request = Request(shedder="AvgShedder", placement="AvgShedder", splits=False, what_if=eager, view=view)
    found = advised(spark, Root(str(tmp_path), "test"), capture, request)
    [plan] = found.plans
    unloads = [step for step in plan.steps if step.action == "unload"]
    assert unloads and {step.source for step in unloads} == {hottest}
    assert {step.confidence for step in unloads} == {"low"}
    assert all("brokers.cpu_percent" in step.failed_checks for step in unloads)
    assert not found.recommendation.coverage.excluded_brokers
    assert not found.recommendation.coverage.decides
    assert not found.page.verdict.headline.startswith("Do nothing")
    assert any("a limit is too low" in finding.sentence for finding in found.recommendation.findings)


def test_what_is_missing_is_refused_by_name_and_the_rest_goes_on(spark: SparkSession, tmp_path: Any) -> None:
    capture = clean_capture(RECORDED)
    for surface in ("isolation_policies", "topic_names"):
        del capture.raw.lines[surface]
        capture.not_read(surface, "500")
    by_topics = {"defaultNamespaceBundleSplitAlgorithm": "topic_count_equally_divide"}
    request = Request(shedder="ThresholdShedder", placement="LeastLongTermMessageRate", what_if=by_topics)
    found = advised(spark, Root(str(tmp_path), "test"), capture, request)
    assert [(row.strategy, row.role, row.missing) for row in found.recommendation.refusals] == [
        ("ThresholdShedder", "shedder", "isolation_policies"),
        ("LeastLongTermMessageRate", "placement", "isolation_policies"),
        ("topic_count_equally_divide", "splitting", "topic_names"),
    ]
    assert [plan.steps for plan in found.plans] == [()]
    assert found.page.verdict.headline == (
        "No unload can be judged: isolation_policies is missing (isolation_policies: 500)."
    )
