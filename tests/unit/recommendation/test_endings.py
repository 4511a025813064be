"""What Pulsar's own balancer does, in words."""

from __future__ import annotations

from typing import Any

import documents
from pulsar_advisor.documents.recommendation import Foresight
from pulsar_advisor.documents.simulation import SimulatedScore
from pulsar_advisor.recommendation.endings import balancing, by_itself
from pulsar_advisor.simulation.trials import Trial


def score(**given: Any) -> SimulatedScore:
    strategies = {"shedder": "ThresholdShedder", "placement": "LeastLongTermMessageRate", "what_if": ""}
    return SimulatedScore(**documents.ending(**strategies, **given))


def foresight(own: SimulatedScore | None, **given: Any) -> Foresight:
    return Foresight.model_validate({"cycles": 60, "own": own, "error": None, "acting": (), "plan": None, **given})


def test_what_pulsar_does_by_itself_is_one_sentence() -> None:
    acting, quiet = score(), score(unloads=0, settles_in_cycles=0)
    off = ("loadBalancerSheddingEnabled",)
    assert by_itself(foresight(acting)) == (
        True,
        "In one simulation, Pulsar's own ThresholdShedder settles in cycle 2 (1 min) after 2 unloads.",
    )
    splitting = by_itself(foresight(score(unloads=0, splits=1)))
    assert splitting.sentence.endswith(" settles in cycle 2 (1 min) after 1 split.")
    daily = by_itself(foresight(score(settles_in_cycles=1001, settles_in_minutes=1_440_000.0)))
    assert daily.sentence.endswith(" settles in cycle 1001 (1,440,000 min) after 2 unloads.")
    assert by_itself(foresight(quiet)) == (False, "Pulsar's own ThresholdShedder does nothing either.")
    doubted = by_itself(foresight(score(worst_ended="repeats"))).sentence
    assert doubted.endswith(" settles in cycle 2 (1 min) after 2 unloads; it may oscillate.")
    assert by_itself(foresight(acting, switched_off_by=off)) == (
        False,
        "Pulsar itself sheds no load: loadBalancerSheddingEnabled=false.",
    )
    assert by_itself(foresight(None, error="No averages.")).sentence.endswith("can't be simulated: No averages.")


def test_pulsars_balancer_as_an_option_holds_at_the_worse_end_too() -> None:
    own = score(worst_ended="unfinished", lowest_maximum_ratio=0.5, highest_maximum_ratio=0.64)
    [option] = balancing(foresight(own), (), "4.0.8")
    assert option.ends == "settles in cycle 2 (1 min), but may not settle"
    assert option.condition == "the load stays as it is, and Pulsar's random choices turn out as simulated"
    assert option.merit.highest_maximum_ratio == 0.64


def test_only_a_change_that_ends_better_than_today_is_an_option() -> None:
    changed = score()
    worse, same, better = (
        Trial(change={"key": verdict}, error=None, today=score(), score=changed, verdict=verdict)
        for verdict in ("worse", "same", "better")
    )
    [option] = balancing(foresight(None), (worse, same, better), "4.0.8")
    assert option.change == {"key": "better"}
