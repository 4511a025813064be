"""What happened between two snapshots, and who did it as far as it can be known."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from moments import FIRST, SECOND, THIRD, moment
from pulsar_advisor.history import events
from pulsar_advisor.history.events import ConfirmedStep, Event, events_between
from pulsar_advisor.history.moment import Moment
from pulsar_advisor.model.cluster.bundle_range import parse_range

A, B = "a:8080", "b:8080"
LOWER, UPPER = "t/n/0x00000000_0x20000000", "t/n/0x20000000_0x40000000"


def causes(earlier: Moment, later: Moment, *steps: ConfirmedStep) -> Mapping[str, str | None]:
    return {event.subject: event.cause for event in events_between(earlier, later, steps) if event.kind == "move"}


def test_nothing_happened_between_equal_snapshots() -> None:
    assert events_between(moment(1, {FIRST: A, SECOND: None}), moment(2, {FIRST: A, SECOND: None})) == []


@pytest.mark.parametrize(("counted", "cause"), [(7, "own"), (6, "unknown"), (5, "operator")])
def test_the_leaders_count_says_whether_its_own_cycle_moved_them(counted: int, cause: str) -> None:
    before = moment(1, {FIRST: A, SECOND: A}, unloads=5)
    assert causes(before, moment(2, {FIRST: B, SECOND: B}, unloads=counted)) == {FIRST: cause, SECOND: cause}


def test_a_move_that_a_plan_made_needs_no_count() -> None:
    before, after = moment(1, {FIRST: A, SECOND: A}, unloads=5), moment(9, {FIRST: B, SECOND: B}, unloads=6)
    step = ConfirmedStep(before.at_ms + 1, FIRST, "c8b31b82")
    assert causes(before, after, step) == {FIRST: "plan:c8b31b82", SECOND: "own"}


def test_a_step_of_another_time_explains_nothing() -> None:
    before, after = moment(1, {FIRST: A}, unloads=5), moment(2, {FIRST: B}, unloads=6)
    steps = [ConfirmedStep(before.at_ms - 1, FIRST, "earlier"), ConfirmedStep(after.at_ms + 10**6, FIRST, "later")]
    assert causes(before, after, *steps) == {FIRST: "own"}


def test_what_a_restarted_broker_lost_moved_by_its_restart() -> None:
    events = events_between(
        moment(1, {FIRST: A, SECOND: B}, started={A: 1, B: 1}, unloads=5),
        moment(2, {FIRST: B, SECOND: B}, started={A: 2, B: 1}, unloads=5),
    )
    assert events == [Event("broker_restarted", A), Event("move", FIRST, A, B, "restart")]


@pytest.mark.parametrize("back", [{}, {A: 0.5}], ids=["still away", "back"])
def test_what_a_broker_that_had_gone_still_owned_moved_by_its_restart(back: dict[str, float]) -> None:
    gone = moment(1, {FIRST: A, SECOND: B}, usage={B: 0.5}, unloads=5)
    after = moment(2, {FIRST: B, SECOND: B}, usage={B: 0.5, **back}, unloads=5)
    assert causes(gone, after) == {FIRST: "restart"}


def test_brokers_that_come_and_go_are_named() -> None:
    events = events_between(moment(1, {}, usage={A: 0.5}), moment(2, {}, usage={B: 0.5}))
    assert events == [Event("broker_joined", B), Event("broker_lost", A)]


def test_a_count_of_another_process_says_nothing() -> None:
    before = moment(1, {FIRST: A}, started={B: 1}, unloads=9)
    assert causes(before, moment(2, {FIRST: B}, started={B: 2}, unloads=1)) == {FIRST: "unknown"}


def test_where_the_balancer_is_off_somebody_else_moved_it() -> None:
    off = {"loadBalancerSheddingEnabled": "false"}
    assert causes(moment(1, {FIRST: A}, settings=off), moment(2, {FIRST: B}, settings=off)) == {FIRST: "operator"}


def test_a_bundle_that_became_several_was_split() -> None:
    events = events_between(moment(1, {FIRST: A, SECOND: A}), moment(2, {LOWER: A, UPPER: A, SECOND: A}))
    assert events == [Event("split", FIRST, None, "0x00000000_0x20000000,0x20000000_0x40000000", "unknown")]


def test_what_many_bundles_became_is_found_without_comparing_all_with_all(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[str]()
    monkeypatch.setattr(events, "parse_range", lambda text: asked.append(text) or parse_range(text))
    width, number = 0x01000000, 100
    whole = [f"t/n/0x{place * width:08x}_0x{(place + 1) * width:08x}" for place in range(number)]
    halves = [f"t/n/0x{place * width // 2:08x}_0x{(place + 1) * width // 2:08x}" for place in range(2 * number)]
    found = events_between(moment(1, dict.fromkeys(whole, A)), moment(2, dict.fromkeys(halves, A)))
    assert [event.after for event in found] == [
        ",".join(half.rpartition("/")[2] for half in halves[2 * place : 2 * place + 2]) for place in range(number)
    ]
    assert len(asked) < 20 * number


def test_a_split_is_one_while_a_broker_still_reports_the_bundle_that_was_split() -> None:
    before, later = moment(1, {FIRST: A, SECOND: A}), moment(3, {LOWER: A, UPPER: A, SECOND: A})
    meanwhile = moment(2, {FIRST: A, LOWER: A, UPPER: None, SECOND: A})
    assert [(event.kind, event.subject) for event in events_between(before, meanwhile)] == [("split", FIRST)]
    assert events_between(meanwhile, later) == []


def test_a_namespace_whose_boundaries_could_not_be_read_is_not_another_one() -> None:
    whole, owned = moment(1, {FIRST: A, SECOND: None, THIRD: A}), moment(2, {FIRST: A})
    assert events_between(whole, owned) == events_between(owned, whole) == []


def test_a_namespace_that_was_made_anew_was_not_split() -> None:
    events = events_between(moment(1, {LOWER: A, UPPER: A}), moment(2, {FIRST: A, SECOND: A}))
    assert events == [Event("namespace_born", "t/n", None, "2"), Event("namespace_gone", "t/n", "2")]


def test_a_changed_setting_is_named_with_both_values() -> None:
    before, after = ({"defaultNumberOfNamespaceBundles": value, "added": "x"} for value in ("4", "16"))
    del before["added"]
    events = events_between(moment(1, {THIRD: A}, settings=before), moment(2, {THIRD: A}, settings=after))
    assert events == [Event("setting", "defaultNumberOfNamespaceBundles", "4", "16")]


REPLICATED = ("replication", "t/n", "us")


def test_a_policy_that_changed_was_changed_by_hand() -> None:
    before = moment(1, {THIRD: A}, policies=[("isolation_policy", "shop", "{}"), REPLICATED])
    after = moment(2, {THIRD: A}, policies=[("anti_affinity", "t/n", "group"), ("replication", "t/n", "eu,us")])
    assert events_between(before, after) == [
        Event("anti_affinity", "t/n", None, "group", "operator"),
        Event("isolation_policy", "shop", "{}", None, "operator"),
        Event("replication", "t/n", "us", "eu,us", "operator"),
    ]


def test_the_policies_of_a_namespace_that_comes_or_goes_did_not_change() -> None:
    before = moment(1, {THIRD: A}, policies=[REPLICATED])
    after = moment(2, {THIRD: A}, policies=[("anti_affinity", "t/m", "group"), ("replication", "t/m", "us")])
    assert events_between(before, after) == []


def test_policies_that_were_not_known_did_not_change() -> None:
    known, unknown = moment(1, {THIRD: A}, policies=[REPLICATED]), moment(2, {THIRD: A})
    assert events_between(unknown, known) == events_between(known, unknown) == []


def test_of_a_moment_from_a_monitoring_system_only_what_it_knows_is_compared() -> None:
    exported = replace(moment(1, {FIRST: A, LOWER: A}, started={A: 1, B: 1}), imported=True)
    captured = moment(2, {FIRST: B, SECOND: A}, started={A: 2, B: 2})
    assert [(event.kind, event.subject) for event in events_between(exported, captured)] == [("move", FIRST)]
    assert [(event.kind, event.subject) for event in events_between(captured, exported)] == [("move", FIRST)]
