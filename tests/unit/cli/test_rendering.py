"""What a terminal shows of answers."""

from __future__ import annotations

from dataclasses import replace

from pulsar_advisor.cli.rendering import explanation_lines
from pulsar_advisor.documents.explanation import ExplanationOfSnapshot
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


def test_where_no_move_helps_the_verb_that_counts_brokers_is_named_and_none_is_advised() -> None:
    capacity = "there is one broker, at 20.0%: no bundle can go anywhere"
    assert list(explanation_lines(replace(EXPLANATION, capacity=capacity)))[2] == (
        "Nothing is gained by moving bundles: there is one broker, at 20.0%: no bundle can go anywhere. "
        "What the load needs: pulsar-advisor scale"
    )
