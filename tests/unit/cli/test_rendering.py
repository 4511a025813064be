"""What a terminal shows of answers."""

from __future__ import annotations

from dataclasses import replace

from pulsar_advisor.cli.rendering import explanation_lines, verify_lines
from pulsar_advisor.documents.explanation import ExplanationOfSnapshot
from pulsar_advisor.documents.verify_result import UsageCheck, VerifyResult
from pulsar_advisor.planning.plans.own_balancer import ACTS_ALIKE

EXPLANATION = ExplanationOfSnapshot(
    shedder="ThresholdShedder",
    placement="LeastLongTermMessageRate",
    kind="cluster",
    name="",
    acts=True,
    sentence="ThresholdShedder unloads 1 bundle from a:8080.",
    capacity=None,
    acts_in_cycle=1,
    chain=(),
    flips=(),
    tried=(),
    cluster="demo",
    snapshot="20261121T083000Z",
    manifest_sha256="00",
    view="fresh",
    what_if={},
    pulsar=ACTS_ALIKE,
)
ACTS = "ThresholdShedder unloads 1 bundle from a:8080. (cycle 1)"


def test_that_pulsar_does_not_act_comes_before_what_its_strategies_would_do() -> None:
    off = "Pulsar itself would not act: loadBalancerSheddingEnabled=false"
    assert list(explanation_lines(EXPLANATION))[:2] == [ACTS, f"{ACTS_ALIKE}."]
    assert list(explanation_lines(replace(EXPLANATION, pulsar=off)))[:2] == [f"{off}.", ACTS]


def test_what_an_explanation_assumes_comes_first() -> None:
    assumed = "This assumes other settings than the cluster's: loadBalancerSheddingEnabled=true in place of false."
    assert list(explanation_lines(replace(EXPLANATION, caveats=(assumed,))))[:2] == [assumed, ACTS]


def test_where_no_move_helps_the_verb_that_counts_brokers_is_named_and_none_is_advised() -> None:
    capacity = "there is one broker, at 20.0%: no bundle can go anywhere"
    assert list(explanation_lines(replace(EXPLANATION, capacity=capacity)))[2] == (
        "Nothing is gained by moving bundles: there is one broker, at 20.0%: no bundle can go anywhere. "
        "What the load needs: pulsar-advisor scale"
    )


def test_verify_calls_no_unknown_usage_as_predicted_and_ends_with_every_deviation() -> None:
    usage = [("b-1", 0.5, None, True), ("b-2", None, 0.4, True), ("b-3", 0.5, None, False), ("b-4", 0.5, 0.45, True)]
    result = VerifyResult(
        digest="sha256:00",
        run=1,
        snapshot="20261121T083000Z",
        as_predicted=False,
        deviations=("b-3 is not a broker of the snapshot, predicted: 50.0%",),
        steps_not_confirmed=(),
        usage_judged=True,
        usage_tolerance_ratio=0.1,
        bundles=(),
        brokers=tuple(
            UsageCheck(broker=broker, predicted=predicted, actual=actual, as_predicted=as_predicted)
            for broker, predicted, actual, as_predicted in usage
        ),
    )
    assert list(verify_lines(result)) == [
        "run 1, compared with snapshot 20261121T083000Z",
        "a usage counts as predicted up to 10.0 points away",
        "not judged   b-1 unknown, predicted 50.0%",
        "not judged   b-2 40.0%, predicted unknown",
        "as predicted b-4 45.0%, predicted 50.0%",
        "DEVIATES     b-3 is not a broker of the snapshot, predicted: 50.0%",
    ]
