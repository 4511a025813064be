"""split: only what makes a target reachable is cut, at the hashes of topics, and the plan says where each part goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from pulsar_advisor.model.cluster.bundle_range import contains, parse_range, topic_hash
from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.model.plans.plan import Step
from pulsar_advisor.planning.advice.goal_sentence import goal_sentence
from pulsar_advisor.planning.kinds import split
from pulsar_advisor.planning.kinds.choosing import Choice
from pulsar_advisor.planning.kinds.goal_outcome import goal_outcome
from pulsar_advisor.planning.kinds.room import Room
from states import WHOLE
from unit.planning.kinds.clusters import MESSAGES, cluster, executable, host, planned

SPLIT = Goal("split", (), 0.4)


def hot(sizes: Sequence[float], **others: list[float]) -> ClusterState:
    """Broker a has only the bundle of `t/a-0`, whose topics have these sizes; the others have bundles of one topic."""
    state = cluster({"a": [sum(sizes)], **others}, topics=[topic(number) for number in range(len(sizes))])
    size_of = {topic(number): size for number, size in enumerate(sizes)}
    rates = np.array([size_of[str(name)] * MESSAGES for name in state.topics.names])
    state.bundles.topics[0] = len(sizes)
    return replace(state, topics=replace(state.topics, traffic=np.outer(rates, np.ones(4))))


def topic(number: int) -> str:
    return f"persistent://t/a-0/topic-{number}"


def splits(steps: Sequence[Step]) -> list[Step]:
    return [step for step in steps if step.action == "split"]


def test_a_bundle_too_large_for_any_broker_is_cut_and_a_part_of_it_moves() -> None:
    state = hot([6.0] * 10, b=[10.0], c=[10.0])
    state.bundles.consumers[0] = 10
    plan = planned(state, Goal("split", (), 0.5))
    cut, *unloads = executable(plan)
    assert (cut.action, cut.bundle, cut.algorithm) == ("split", WHOLE, "specified_positions_divide")
    assert len(unloads) == len(cut.children) - 1 == 1
    assert unloads[0].bundle in cut.children
    assert unloads[0].after == (cut.id,)
    assert host(unloads[0].destination) in "bc"
    assert (plan.predicted.after.maximum_ratio or 1.0) <= 0.5
    assert plan.decision.figures["usage_ratio_by_moves"] == pytest.approx(0.6)
    assert "t/a-0 then has 2 of at most 128 bundles" in plan.decision.caveats[0]
    assert plan.decision.figures["clients_of_children"] == 5
    assert goal_sentence(plan).startswith("To split, cut 1 bundle and move 1 bundle to 1 broker: ")


def test_a_target_that_is_missed_although_bundles_are_cut_is_said_and_what_stays_whole() -> None:
    """Of the part that stays, neither half is a bundle: they are named as what they are."""
    plan = planned(hot([18.0, 12.0, 10.0, 10.0, 10.0], b=[10.0], c=[10.0]), Goal("split", (), 0.28))
    stays = "can't be split: it has 1 topic with load, and each part needs one."
    assert plan.decision.caveats[1:] == (
        "The busiest broker only gets to 38.0%, not to 28.0%.",
        f"t/a-0/0xbb83e493_0xf3b8fa53, a part of t/a-0/{WHOLE}, {stays}",
        f"t/a-0/0x438ba5ab_0x78073d66, a part of t/a-0/{WHOLE}, {stays}",
        f"t/a-0/0xf3b8fa53_0xffffffff, a part of t/a-0/{WHOLE}, {stays}",
    )
    assert splits(plan.steps)[0].children[-1] == "0xbb83e493_0xffffffff"
    assert goal_outcome(plan) == "in part"


def test_a_part_that_took_the_room_is_cut_again_for_a_bundle_of_another_broker_that_is_whole() -> None:
    """The half that a gives leaves no room on c for one of b's bundles of one topic each; three tenths do."""
    plan = planned(hot([4.0] * 10, b=[15.0, 15.0], c=[]), Goal("split", (), 0.29))
    assert goal_outcome(plan) == "reached"


def test_no_bundle_is_cut_again_where_that_leaves_as_much_above_the_target() -> None:
    plan = planned(hot([5.0, 10.0, 20.0, 30.0, 10.0], b=[40.0], c=[30.0]), Goal("split", (), 0.5))
    assert plan.predicted.after.maximum_ratio == pytest.approx(0.6)
    assert [len(step.children) for step in splits(plan.steps)] == [2]


def test_every_child_has_topics_and_the_load_of_those() -> None:
    sizes = [float(size) for size in range(1, 13)]
    plan = planned(hot(sizes, b=[10.0], c=[10.0]), SPLIT)
    [cut] = splits(plan.steps)
    moved = 0.0
    for child in cut.children:
        inside = [size for number, size in enumerate(sizes) if contains(*parse_range(child), topic_hash(topic(number)))]
        assert inside
        unloads = [step for step in plan.steps if step.bundle == child]
        for step in unloads:
            assert (step.expect.topics, step.expect.msg_rate_per_s) == (
                len(inside),
                pytest.approx(2 * MESSAGES * sum(inside)),
            )
            moved += sum(inside)
    assert (plan.predicted.after.brokers["a:8080"].usage_ratio or 0.0) == pytest.approx((sum(sizes) - moved) / 100)


def test_what_moves_can_do_is_not_cut() -> None:
    plan = planned(cluster({"a": [29.0, 29.0], "b": [10.0], "c": [10.0]}), SPLIT)
    assert plan.steps == ()
    assert plan.decision.why_nothing == "moves alone bring every broker within 40.0%: use `balance --to 40%`"


def test_balance_is_named_without_a_target_where_none_was_given() -> None:
    plan = planned(cluster({"a": [10.0] * 4, "b": [10.0] * 2}), Goal("split"))
    assert (plan.decision.why_nothing or "").endswith(": use `balance`")


def test_where_every_broker_is_within_the_target_nothing_is_named() -> None:
    plan = planned(cluster({"a": [10.0], "b": [10.0]}), SPLIT)
    assert plan.decision.why_nothing == "every broker is within 40.0%"


def test_a_hot_topic_is_not_cut_off() -> None:
    plan = planned(hot([58.0, 1.0, 1.0], b=[10.0], c=[10.0]), SPLIT)
    assert plan.steps == ()
    assert "can't be split: 97% of its load is one topic's" in plan.decision.caveats[0]


def test_a_namespace_with_its_maximum_of_bundles_is_left_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    state = hot([6.0] * 10, b=[10.0], c=[10.0])
    from unit.planning.kinds import clusters

    limited = clusters.resolve_settings("4.0.8", what_if={"loadBalancerNamespaceMaximumBundles": "1"})
    monkeypatch.setattr(clusters, "SETTINGS", limited)
    plan = planned(state, SPLIT)
    assert plan.steps == ()
    assert "t/a-0 has 1 bundle, and its maximum is 1" in plan.decision.caveats[0]


def test_a_bundle_is_cut_into_as_many_parts_as_it_takes() -> None:
    plan = planned(hot([5.0] * 18, b=[1.0], c=[1.0]), Goal("split", (), 0.35))
    [cut] = splits(plan.steps)
    assert len(cut.children) >= 3
    assert (plan.predicted.after.maximum_ratio or 1.0) <= 0.35


def test_a_bundle_without_known_load_of_topics_is_left_whole() -> None:
    plan = planned(cluster({"a": [60.0], "b": [10.0], "c": [10.0]}), SPLIT)
    assert plan.steps == ()
    assert "can't be split: the load of 1 topic in it isn't known" in plan.decision.caveats[0]


def test_a_bundle_whose_topics_are_not_all_known_is_left_whole() -> None:
    state = replace(hot([6.0] * 10, b=[10.0], c=[10.0]), unlisted_namespaces=frozenset({"t/a-0"}))
    plan = planned(state, SPLIT)
    assert plan.steps == ()
    assert "the topic names of its namespace are not completely known" in plan.decision.caveats[0]


def test_topics_known_to_have_no_load_are_no_parts() -> None:
    state = hot([60.0, 0.0], b=[10.0], c=[10.0])
    assert "it has 1 topic with load, and each part needs one" in planned(state, SPLIT).decision.caveats[0]


def test_where_no_part_has_room_within_the_target_the_least_one_that_helps_is_named() -> None:
    state = hot([30.0, 30.0], b=[25.0], c=[25.0])
    assert planned(state, SPLIT).decision.why_nothing == (
        "no split lowers the busiest broker with all others within 40.0%: use `split --to 56%`"
    )
    assert len(splits(planned(state, replace(SPLIT, target_ratio=0.56)).steps)) == 1
    assert planned(state, replace(SPLIT, target_ratio=0.55)).steps == ()


def test_more_load_than_the_brokers_can_share_needs_no_search() -> None:
    plan = planned(hot([6.0] * 10, b=[50.0], c=[50.0]), SPLIT)
    assert plan.steps == ()
    assert plan.decision.why_nothing == (
        "even if load could be divided at will, the busiest broker would be at 53.3%, above 40.0%"
    )


def test_only_a_few_of_the_bundles_that_stay_whole_are_named() -> None:
    sizes = {f"a{number}": [60.0] for number in range(5)}
    plan = planned(cluster({**sizes, **{f"b{number}": [] for number in range(9)}}), SPLIT)
    assert [caveat.partition(":")[0] for caveat in plan.decision.caveats] == [
        *(f"t/a{number}-0/{WHOLE} can't be split" for number in range(3)),
        "2 more bundles of busy brokers can't be split either.",
    ]


def test_the_extensible_manager_cuts_in_two_only() -> None:
    state = replace(hot([5.0] * 18, b=[1.0], c=[1.0]), load_manager="extensible")
    beyond = planned(state, Goal("split", (), 0.35))
    assert beyond.steps == ()
    assert any("cuts a bundle in two" in caveat for caveat in beyond.decision.caveats)
    [cut] = splits(planned(state, Goal("split", (), 0.55)).steps)
    assert len(cut.children) == 2


def chosen(monkeypatch: pytest.MonkeyPatch, *places: tuple[int, ...]) -> None:
    """Makes the choice once there are enough parts: where those of each bundle of a go (rows); before, nothing goes."""

    def balanced(room: Room, target: float) -> Choice:
        after, parts = room.up_to(target), room.bundles_of([0])
        if len(parts) == sum(map(len, places)):
            for row, to in zip(sorted(parts), (to for of_one in places for to in of_one), strict=True):
                if to:
                    after.move(row, to)
            return Choice(after, {}, reached=True, cost=1, least=1)
        return Choice(after, {}, reached=False, cost=0, least=None)

    monkeypatch.setattr(split, "_balanced", balanced)


def test_parts_that_stay_together_are_no_split(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen(monkeypatch, (1, 1))
    state = hot([6.0] * 10, b=[])
    state.brokers.limit[1] *= 2
    plan = planned(state, replace(SPLIT, target_ratio=0.55))
    assert plan.steps == ()
    assert plan.decision.why_nothing == "no split gets the busiest broker below the 60.0% that moves reach alone"


def test_a_part_of_one_topic_takes_load(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen(monkeypatch, (0, 1))
    [cut] = splits(planned(hot([30.0, 30.0], b=[]), SPLIT).steps)
    assert cut.reason.endswith("; of its parts, 1 topic takes 30.0% of a:8080; 1 topic takes 30.0% of b:8080")


def test_a_bundle_whose_parts_go_together_goes_with_all_its_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen(monkeypatch, (0, 1), (1, 1))
    names = [f"persistent://t/a-{bundle}/topic-{number}" for bundle in range(2) for number in range(8)]
    state = cluster({"a": [30, 20], "b": []}, topics=names, clients={"a": [8, 8], "b": []})
    state.bundles.topics[:] = 8
    rates = np.repeat([30, 20], 8) * MESSAGES / 8
    plan = planned(replace(state, topics=replace(state.topics, traffic=np.outer(rates, np.ones(4)))), SPLIT)
    assert [(step.action, step.namespace) for step in plan.steps if not step.after] == [
        ("unload", "t/a-1"),
        ("split", "t/a-0"),
    ]
    assert plan.decision.figures["clients"] == 8


def test_unloads_and_splits_count_against_their_limits() -> None:
    state = hot([6.0] * 10, b=[10.0], c=[10.0])
    assert planned(state, SPLIT, max_splits=0).steps == ()
    plan = planned(state, SPLIT, max_topics=1)
    assert [step.action for step in executable(plan)] == ["split"]
    assert plan.decision.caveats[-1].endswith(" by --max-topics 1.")
