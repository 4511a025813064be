from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

import pytest

from pulsar_advisor.execution.consent.approval import approve, propose
from pulsar_advisor.execution.ledger.approvals import Terms
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.throttle import ApplyThrottle, throttle_from_json
from pulsar_advisor.model.errors import Refused, StorageError
from pulsar_advisor.model.plans.sealed import digest_of
from unit.execution.actors import ALICE, BOB, FOUR_EYES, run
from unit.execution.doubles import FakeCluster, make_plan, unload_step

APPROVED = ApplyThrottle(
    max_age_s=3600,
    on_drift="skip",
    pause_s=5.0,
    canary_hold_s=30.0,
    error_budget=2,
    in_flight=4,
    per_source=3,
    per_destination=3,
    per_namespace=3,
    topics_per_minute=500,
)
PLAN = make_plan([unload_step()])

STRICTER = [
    ("max_age_s", 3599),
    ("on_drift", "stop"),
    ("pause_s", 5.1),
    ("canary_hold_s", 31.0),
    ("error_budget", 1),
    ("guard", True),
    ("in_flight", 3),
    ("per_source", 2),
    ("per_destination", 2),
    ("per_namespace", 2),
    ("topics_per_minute", 499),
]
LOOSER = [
    ("max_age_s", 3601),
    ("pause_s", 4.9),
    ("canary_hold_s", 29.0),
    ("error_budget", 3),
    ("in_flight", 5),
    ("per_source", 4),
    ("per_destination", 4),
    ("per_namespace", 4),
    ("topics_per_minute", 501),
    ("topics_per_minute", None),
]


@pytest.mark.parametrize(("name", "value"), STRICTER)
def test_a_limit_can_be_made_stricter(name: str, value: object) -> None:
    assert asdict(APPROVED.with_changes({name: value})) == {**asdict(APPROVED), name: value}


@pytest.mark.parametrize(("name", "value"), LOOSER)
def test_a_limit_can_not_be_made_looser(name: str, value: object) -> None:
    option = {"pause_s": "pause_between"}.get(name, name).removesuffix("_s").replace("_", "-")
    with pytest.raises(Refused, match=rf"--{option} \S+ was requested, but \S+ was approved"):
        APPROVED.with_changes({name: value})


def test_a_looser_limit_is_named_as_one_gives_it() -> None:
    with pytest.raises(
        Refused, match="stricter: --pause-between 1s was requested, but 5s was approved; --canary-hold 10s"
    ):
        APPROVED.with_changes({"pause_s": 1.0, "canary_hold_s": 10.0})


def test_a_run_that_ends_on_drift_can_not_be_made_to_skip() -> None:
    with pytest.raises(Refused, match="--on-drift skip was requested, but stop was approved"):
        ApplyThrottle().with_changes({"on_drift": "skip"})


def test_a_guard_that_was_approved_can_not_be_left_out() -> None:
    with pytest.raises(Refused, match="--guard False was requested, but True was approved"):
        ApplyThrottle(guard=True).with_changes({"guard": False})


def test_every_limit_is_said_to_the_approver() -> None:
    sentences = " ".join(APPROVED.sentences())
    assert len(list(APPROVED.sentences())) == len(fields(ApplyThrottle))
    assert all(text in sentences for text in ("1h", "5 s", "30 s", "2 failed", "is left out", "4 steps", "500"))


@pytest.mark.parametrize(
    ("chosen", "sentence"),
    [
        ({"guard": True}, "the cluster's own balancer is switched off during the run"),
        ({"guard": False}, "the cluster's own balancer is left as it is"),
        ({"on_drift": "stop"}, "a step that the cluster no longer matches ends the run"),
        ({"in_flight": 1, "pause_s": 5}, "5 s between two calls"),
        ({"in_flight": 2, "pause_s": 5}, "5 s between two waves of calls"),
        ({"in_flight": 1}, "at most 1 step is in flight"),
        ({"error_budget": 1}, "1 failed step after the first is tolerated"),
        ({"error_budget": 2}, "2 failed steps after the first are tolerated"),
        ({"in_flight": 2}, "at most 2 steps are in flight"),
        ({"topics_per_minute": 500}, "at most 500 topics per minute are unloaded"),
    ],
)
def test_each_choice_is_said_to_the_approver_as_it_was_made(chosen: dict[str, Any], sentence: str) -> None:
    assert sentence in ApplyThrottle(**chosen).sentences()


def test_one_of_each_is_said_in_the_singular() -> None:
    sentences = list(ApplyThrottle(per_source=1, per_destination=1, per_namespace=1, topics_per_minute=1).sentences())
    assert sentences[6:10] == [
        "at most 1 of them leaves the same broker",
        "at most 1 of them goes to the same broker",
        "at most 1 of them is of the same namespace",
        "at most 1 topic per minute is unloaded",
    ]


@pytest.mark.parametrize(("age_s", "text"), [(90 * 86_400, "90d"), (5_400, "90m"), (0, "0s")])
def test_an_age_is_said_as_one_gives_it(age_s: int, text: str) -> None:
    assert (
        next(ApplyThrottle(max_age_s=age_s).sentences()) == f"nothing is sent once the snapshot is more than {text} old"
    )


def test_without_a_wish_one_step_goes_after_the_other() -> None:
    usual = ApplyThrottle()
    assert (usual.in_flight, usual.per_source, usual.per_destination, usual.per_namespace) == (1, 2, 2, 2)


def test_a_run_takes_the_hold_after_its_first_step_and_a_pause_after_each_other_one() -> None:
    assert [APPROVED.takes_s(calls) for calls in (0, 1, 3)] == [0.0, 30.0, 40.0]


@pytest.mark.parametrize("throttle", [ApplyThrottle(), APPROVED])
def test_the_ledger_gives_back_what_it_was_given(throttle: ApplyThrottle) -> None:
    assert throttle_from_json(throttle.as_json()) == throttle


def test_an_approval_of_an_earlier_release_has_the_defaults() -> None:
    assert throttle_from_json(None) == ApplyThrottle()


@pytest.mark.parametrize("text", ["{", "[]", "7", '{"speed": 1}', '{"pause_s": -1}', '{"pause_s": "long"}'])
def test_limits_in_the_ledger_that_are_none_are_named(text: str) -> None:
    with pytest.raises(StorageError, match="the limits of an approval in the ledger can't be read"):
        throttle_from_json(text)


def test_a_run_goes_no_faster_than_was_approved(ledger: Ledger, cluster: FakeCluster) -> None:
    propose(ledger, PLAN, ALICE)
    throttle = ApplyThrottle(canary_hold_s=120.0)
    approve(ledger, PLAN, digest=digest_of(PLAN), approver=BOB, policy=FOUR_EYES, terms=Terms(throttle=throttle))
    with pytest.raises(Refused, match="--canary-hold 1m was requested, but 2m was approved"):
        run(PLAN, ledger, cluster, canary_hold_s=60.0)
    assert cluster.writes == []
