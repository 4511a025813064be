"""A step's grade follows from the checks about what it reads, and from nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pulsar_advisor.model.cluster.cluster_state import AVERAGES_ORIGINS, ClusterState
from pulsar_advisor.model.cluster.inputs import Input
from pulsar_advisor.planning.plans.confidence import Grading, StepCheck

A, B, C = 0, 1, 2
FIRST = 0
READS: frozenset[Input] = frozenset({"broker_usage", "bundle_traffic"})


def check(name: str = "brokers.cpu", **changes: Any) -> StepCheck:
    """A check about the usage of brokers that failed, for everybody unless said otherwise."""
    usual: dict[str, Any] = {
        "title": "It holds.",
        "severity": "info",
        "scope": "broker",
        "about": frozenset({"broker_usage"}),
        "success": False,
        "failing": None,
    }
    return StepCheck(name, **{**usual, **changes})


def grade(state: ClusterState, *checks: StepCheck, reads: frozenset[Input] = READS, near_tie: bool = False) -> Any:
    return Grading(state, checks, reads).grade(FIRST, (A, C), near_tie=near_tie)


def test_a_step_without_a_doubt_is_sure(state: ClusterState) -> None:
    passed = check(success=True, failing=frozenset())
    assert grade(state, passed) == Grading(state, [passed], READS).grade(FIRST, (A, B), near_tie=False)
    assert (grade(state, passed).confidence, grade(state, passed).doubts) == ("high", ())


def test_it_rests_on_the_checks_about_what_it_reads_and_on_those_about_everything(state: ClusterState) -> None:
    checks = (
        check("brokers.usage", success=True),
        check("topics.names", about=frozenset({"topic_names"}), success=True),
        check("capture.skew", about=None, success=True),
        check("policies.namespaces", about=frozenset()),
    )
    assert Grading(state, checks, READS).rests_on == ("brokers.usage", "capture.skew")
    assert grade(state, *checks).failed_checks == ()


@pytest.mark.parametrize(
    ("scope", "name", "failed"),
    [
        ("broker", "a:8080", True),
        ("broker", "c:8080", True),
        ("broker", "b:8080", False),
        ("namespace", "t/hot", True),
        ("namespace", "t/idle", False),
        ("bundle", "t/hot/0x00000000_0x40000000", True),
        ("bundle", "t/hot/0x40000000_0x80000000", False),
    ],
)
def test_a_check_failed_for_a_step_if_it_failed_for_a_row_the_step_touches(
    state: ClusterState, scope: str, name: str, failed: bool
) -> None:
    found = grade(state, check("c", scope=scope, failing=frozenset({name})))
    assert (found.failed_checks, found.confidence) == ((("c",), "medium") if failed else ((), "high"))


def test_an_information_that_names_nobody_may_concern_any_step(state: ClusterState) -> None:
    found = grade(state, check("c", failing=None))
    assert (found.confidence, found.failed_checks) == ("medium", ("c",))
    assert [doubt.sentence for doubt in found.doubts] == ["By check c this does not hold: It holds."]


def test_a_failed_warning_about_what_a_step_touches_leaves_little(state: ClusterState) -> None:
    over_the_limit = check("brokers.cpu_percent", severity="warning", failing=frozenset({"a:8080"}))
    assert grade(state, over_the_limit).confidence == "low"


def test_a_failed_warning_that_nobody_can_be_blamed_for_leaves_little(state: ClusterState) -> None:
    skew = check("capture.skew", severity="warning", scope="cluster", about=None)
    assert grade(state, skew).confidence == "low"


def test_a_decision_of_the_last_digits_is_a_toss(state: ClusterState) -> None:
    found = grade(state, check("c"), near_tie=True)
    assert found.confidence == "low"
    assert [doubt.confidence for doubt in found.doubts] == ["low", "medium"]


@pytest.mark.parametrize("origin", AVERAGES_ORIGINS)
def test_averages_of_one_snapshot_are_medium_for_who_reads_averages(state: ClusterState, origin: str) -> None:
    state.bundles.averages_origin[FIRST] = AVERAGES_ORIGINS.index(origin)
    sure = "high" if origin in ("bundle_data", "folded") else "medium"
    assert grade(state, reads=READS | {"short_term_averages"}).confidence == sure
    assert grade(state).confidence == "high"


def test_the_substitute_for_a_missing_input_is_named(state: ClusterState) -> None:
    lacking = replace(state, missing={"settings": "settings: 401", "topic_names": "403"})
    found = grade(lacking, reads=READS | {"settings"})
    assert found.confidence == "medium"
    assert [doubt.sentence for doubt in found.doubts] == [
        "settings is missing (settings: 401); used instead: Pulsar's defaults."
    ]


def test_a_strategy_of_another_load_manager_is_medium_at_most(state: ClusterState) -> None:
    found = Grading(state, (), READS, derived="TransferShedder").grade(FIRST, (A, C), near_tie=False)
    assert found.confidence == "medium"
    assert "TransferShedder" in found.doubts[0].sentence


def test_samples_that_no_snapshot_shows_are_a_doubt_for_who_reads_averages(state: ClusterState) -> None:
    state.bundles.unknown_samples[FIRST] = 2
    found = grade(state, reads=READS | {"short_term_averages"})
    assert found.confidence == "medium"
    assert [doubt.sentence for doubt in found.doubts] == [
        "The figures of 2 samples in its averages are assumed: no snapshot shows them."
    ]
    assert grade(state).confidence == "high"
