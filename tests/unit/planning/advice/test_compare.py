"""The advice prefers the lowest busiest broker, then calm, then the cluster's own choice."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.configuration.resolved_settings import ResolvedSettings
from pulsar_advisor.model.plans.plan import Step
from pulsar_advisor.model.plans.sealed import digest_of
from pulsar_advisor.planning.advice.compare import (
    Score,
    advise,
    clients_of,
    dominating,
    on_front,
    ranked_by_effect,
    score,
)
from pulsar_advisor.planning.proposals.proposal import Move
from unit.planning.made_plans import plan_of
from unit.properties import examples

OWN = ("ThresholdShedder", "LeastLongTermMessageRate")


def row(shedder: str, after: float, unloads: int = 1, splits: int = 0, spread: float = 0.1) -> Score:
    return Score(
        shedder=shedder,
        placement=OWN[1],
        plan=f"{shedder}.json",
        digest="sha256:0",
        steps=unloads + splits,
        unloads=unloads,
        splits=splits,
        not_executable=0,
        maximum_before=0.9,
        maximum_after=after,
        standard_deviation_before=0.3,
        standard_deviation_after=spread,
        moved_throughput_bytes_per_s=1.0,
        acts_in_cycle=1,
        why_nothing=None,
        error=None,
    )


def advised(*rows: Score) -> str | None:
    found = advise(rows, OWN)
    return found.shedder if found else None


def test_the_lowest_predicted_maximum_wins() -> None:
    assert advised(row("A", 0.7), row("B", 0.6)) == "B"


def test_a_difference_below_a_tenth_of_a_percent_is_decided_by_the_spread() -> None:
    assert advised(row("A", 0.6001, spread=0.2), row("B", 0.6002, spread=0.1)) == "B"


def test_a_difference_below_the_noise_floor_is_decided_by_what_is_disturbed() -> None:
    cheap, dear = replace(row("A", 0.61, unloads=9), topics=5), replace(row("B", 0.60), topics=50, consumers=3)
    assert advise([dear, cheap], OWN, 0.02) == cheap
    assert advise([dear, cheap], OWN, 0.005) == dear


def test_a_gain_below_the_noise_floor_is_not_advised() -> None:
    small = row("A", 0.89999, unloads=200)
    assert advise([small], OWN, 0.02) is None


def test_plans_that_do_the_same_have_the_same_steps_digest(state: ClusterState, settings: ResolvedSettings) -> None:
    def made(bundle: int, destination: int, reason: str) -> Score:
        plan = plan_of(state, settings, (Move(bundle, 0, destination, reason, near_tie=False),))
        return score(plan, state, file="plan.json", digest=digest_of(plan))

    state.bundles.producers[:], state.bundles.consumers[:] = 4, 5
    one, other, elsewhere = made(0, 1, "because"), made(0, 1, "for another reason"), made(0, 2, "because")
    assert one.steps_sha256 == other.steps_sha256 != elsewhere.steps_sha256
    assert (one.topics, one.producers, one.consumers, one.cost.disturbed) == (3, 4, 5, 12)
    assert one.confidence is not None
    assert one.moved_throughput_bytes_per_s == state.bundles.traffic[0, 2:].sum()
    nothing = plan_of(state, settings, ())
    assert score(nothing, state, file="plan.json", digest=digest_of(nothing)).steps_sha256 is None, "alike with none"


def test_the_parts_of_a_split_bundle_have_their_share_of_its_clients(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    plan = plan_of(state, settings, (Move(0, 0, 1, "because", near_tie=False),))
    (whole,) = plan.steps
    state.bundles.producers[:], state.bundles.consumers[:], state.bundles.topics[:] = 30, 12, 3
    cut = whole.model_copy(update={"id": "cut", "action": "split", "children": ("0x00000000_0x20000000", "0x1_0x2")})

    def part(topics: int) -> Step:
        expected = whole.expect.model_copy(update={"topics": topics})
        return whole.model_copy(update={"id": str(topics), "bundle": cut.children[topics - 1], "expect": expected})

    parts = plan.model_copy(update={"steps": (cut, part(1), part(2))})
    assert clients_of(plan, state) == {whole.id: (30, 12)}
    assert clients_of(parts, state) == {"1": (10, 4), "2": (20, 8)}
    scored = score(parts, state, file="", digest="")
    assert (scored.producers, scored.consumers) == (30, 12)


def test_of_plans_that_differ_by_noise_one_that_is_better_at_the_worse_end_is_advised() -> None:
    risky = replace(row("A", 0.60), topics=1, highest_maximum_after=0.88)
    safe = replace(row("B", 0.61), topics=9, highest_maximum_after=0.65)
    assert advise([risky, safe], OWN, 0.02) == safe
    assert advise([replace(risky, highest_maximum_after=0.66), safe], OWN, 0.02).shedder == "A"  # type: ignore[union-attr]
    assert advise([risky, safe], OWN, 0.005) == risky


@given(
    plans=st.lists(st.tuples(st.floats(0.4, 0.95), st.integers(1, 5), st.integers(0, 2)), min_size=1, max_size=5),
    worse=st.floats(0, 0.2),
    floor=st.sampled_from([0.0, 0.03]),
)
@examples(100)
def test_a_plan_that_is_worse_than_the_advised_one_changes_nothing(
    plans: list[tuple[float, int, int]], worse: float, floor: float
) -> None:
    rows = [row(f"S{number}", *plan) for number, plan in enumerate(plans)]
    found = advise(rows, OWN, floor)
    if found is not None and found.maximum_after is not None:
        beaten = replace(found, shedder="Z", maximum_after=found.maximum_after + worse, topics=1, unloads=9)
        assert advise([beaten, *reversed(rows)], OWN, floor) == found


def test_between_equals_the_fewer_unloads_win_then_the_clusters_own_shedder() -> None:
    assert advised(row("A", 0.6, unloads=2), row("B", 0.6, unloads=1)) == "B"
    assert advised(row("A", 0.6), row("ThresholdShedder", 0.6)) == "ThresholdShedder"


def test_a_plan_that_makes_things_no_better_is_never_advised() -> None:
    assert advised(row("A", 0.9), row("B", 0.95)) is None


def test_where_no_move_helps_a_plan_that_only_splits_is_advised() -> None:
    assert advised(row("A", 0.95, splits=1), row("B", 0.9, unloads=0, splits=1)) == "B"


def test_a_split_is_advised_only_if_it_reaches_more_than_noise() -> None:
    moves, split = replace(row("A", 0.61), topics=50), row("B", 0.60, splits=1)
    assert advise([moves, split], OWN, 0.02) == moves
    assert advise([moves, split], OWN, 0.005) == split


def test_a_plan_is_dominated_by_one_before_it_that_reaches_as_much_and_costs_no_more() -> None:
    def plan(name: str, **given: object) -> Score:
        return replace(row(name, 0.6, unloads=3), **{"topics": 10, "steps_sha256": name, **given})

    def dominates(*others: Score, floor_ratio: float = 0.02) -> Score | None:
        ranked = ranked_by_effect([base, *others], OWN, floor_ratio)
        return dominating(base, ranked, floor_ratio)

    base = plan("A")
    cheaper = plan("B", maximum_after=0.61, topics=9)
    assert dominates(cheaper) == cheaper
    assert dominates(plan("C", maximum_after=0.5, unloads=4)) is None
    assert dominates(plan("D", topics=9, splits=1)) is None
    assert dominates(plan("E", standard_deviation_after=0.2, topics=9)) is None
    assert dominates(plan("A0", steps_sha256="A")) is None
    assert dominating(plan("F", unloads=0), [cheaper], 0.02) is None


def test_a_split_without_known_figures_is_advised_where_nothing_else_is() -> None:
    split = replace(row("A", 0.9, unloads=0, splits=1), maximum_before=None, maximum_after=None)
    assert advised(split) == "A"
    assert advised(replace(split, maximum_before=0.8, maximum_after=0.9)) is None


def test_cheaper_or_better_is_on_the_front() -> None:
    assert on_front([(0, 0.9), (5, 0.6), (9, 0.6), (7, 0.7), (20, 0.5)]) == (True, True, False, False, True)


@given(st.lists(st.tuples(st.integers(0, 5).map(float), st.integers(0, 5).map(float)), max_size=8))
def test_the_front_beats_every_other_point(found: list[tuple[float, float]]) -> None:
    marks = on_front(found)
    front = [point for point, mark in zip(found, marks, strict=True) if mark]
    for point, mark in zip(found, marks, strict=True):
        beaten = any(other[0] <= point[0] and other[1] <= point[1] and other != point for other in front)
        assert mark != beaten
