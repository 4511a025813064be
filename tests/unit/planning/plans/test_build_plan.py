"""A plan says what each step must find, what it should bring about, and what can't be carried out and why."""

from dataclasses import replace

import numpy as np
import pytest

from pulsar_advisor.model.cluster.cluster_state import NO_ROW, ClusterState, PublishedLoad
from pulsar_advisor.model.configuration.resolved_settings import ResolvedSettings, resolve_settings
from pulsar_advisor.model.load.base_load import DEFAULT_RATIO
from pulsar_advisor.model.plans.sealed import digest_of
from pulsar_advisor.model.strategy.decision import Split
from pulsar_advisor.planning.plans.build_plan import build_plan
from pulsar_advisor.planning.plans.confidence import StepCheck
from pulsar_advisor.planning.proposals.limits import Limits
from pulsar_advisor.planning.proposals.proposal import Move, Proposal
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.planning.situation import Situation
from pulsar_advisor.planning.usage.noise import DEFAULT_RATIO as NOISE_RATIO
from states import BrokerRow, BundleRow, cluster_state
from unit.planning.made_plans import INPUTS, plan_of

FIRST, SECOND, UNOWNED = 0, 1, 5
NOWHERE = -1


def move(bundle: int, destination: int = 2, source: int = 0) -> Move:
    return Move(bundle, source, destination, "because", near_tie=False)


def split(bundle: int, *boundaries: int) -> Split:
    return Split(bundle, "range_equally_divide", boundaries, "because", near_tie=False)


def test_an_unload_expects_its_owner_and_the_namespaces_boundaries(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    [step] = plan_of(state, settings, (move(FIRST),)).steps
    assert (step.expect.owner, step.destination, step.executable) == ("a:8080", "c:8080", True)
    assert step.expect.boundaries == ("0x00000000", "0x40000000", "0x80000000", "0xc0000000", "0xffffffff")


def test_a_plan_names_what_controllers_go_by_only_where_topics_are_scalable(settings: ResolvedSettings) -> None:
    brokers, bundles = [BrokerRow("a:8080")], [BundleRow("t/n", "0x00000000_0xffffffff", "a:8080")]
    for topic in ("persistent://t/n/views", "segment://t/n/clicks/0000-ffff-3"):
        plan = plan_of(cluster_state(brokers, bundles, topics=[topic]), settings, ())
        assert ("scalableTopicMaxSegments" in plan.settings) == topic.startswith("segment")


def test_the_prediction_after_the_plan_counts_every_executable_unload(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    predicted = plan_of(state, settings, (move(FIRST),)).predicted
    assert predicted.before.maximum_ratio == 0.9
    assert predicted.after.brokers["a:8080"].bundles == 2
    assert round(predicted.after.brokers["a:8080"].usage_ratio or 0, 6) == pytest.approx(
        0.9 - (0.9 - DEFAULT_RATIO) * 1000 / 1800, abs=1e-6
    )
    assert predicted.after.brokers["a:8080"].lowest_usage_ratio == pytest.approx(
        (predicted.after.brokers["a:8080"].usage_ratio or 0.0) - NOISE_RATIO
    )
    assert predicted.after.highest_maximum_ratio == pytest.approx(0.9)


def test_a_broker_that_the_plan_leaves_alone_is_predicted_within_noise(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    untouched = plan_of(state, settings, (move(FIRST),)).predicted.after.brokers["b:8080"]
    assert (untouched.lowest_usage_ratio, untouched.highest_usage_ratio) == pytest.approx(
        ((untouched.usage_ratio or 0.0) - NOISE_RATIO, (untouched.usage_ratio or 0.0) + NOISE_RATIO)
    )


def test_how_far_the_source_falls_is_a_doubt_where_one_snapshot_is_all_there_is(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    (step,) = plan_of(state, settings, (move(FIRST),)).steps
    assert step.confidence == "medium"
    assert any(doubt.sentence.startswith("How far a:8080 falls depends on") for doubt in step.doubts)


def test_the_split_of_a_bundle_that_is_unloaded_first_expects_the_new_owner(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    unload, cut = plan_of(state, settings, (move(FIRST),), (split(FIRST, 0x20000000),)).steps
    assert cut.after == (unload.id,)
    assert cut.expect.owner == "c:8080"
    assert cut.children == ("0x00000000_0x20000000", "0x20000000_0x40000000")


def test_a_split_that_the_last_digits_settled_is_a_toss(state: ClusterState, settings: ResolvedSettings) -> None:
    toss, sure = plan_of(
        state, settings, splits=(replace(split(FIRST, 0x20000000), near_tie=True), split(SECOND, 0x60000000))
    ).steps
    assert [doubt.sentence for doubt in toss.doubts] == ["A near-tie decided."]
    assert (toss.confidence, sure.confidence) == ("low", "high")


def test_the_second_split_of_a_namespace_expects_the_boundaries_of_the_first(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    first, second = plan_of(state, settings, splits=(split(FIRST, 0x20000000), split(SECOND, 0x60000000))).steps
    assert "0x20000000" not in first.expect.boundaries
    assert "0x20000000" in second.expect.boundaries
    assert second.after == (first.id,)


def test_what_pulsar_would_do_but_we_must_not_is_marked_in_the_plan(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    [step] = plan_of(state, settings, (move(UNOWNED, source=0),)).steps
    assert (step.executable, step.not_executable_because) == (False, "the bundle has no owner")
    assert plan_of(state, settings, (move(UNOWNED),)).predicted.after == plan_of(state, settings).predicted.after


def test_a_bundle_whose_figures_are_unfit_gets_no_executable_step(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    state.bundles.usable[FIRST] = False
    [step] = plan_of(state, settings, (move(FIRST),)).steps
    assert step.not_executable_because == "validation found the figures of this bundle unfit"


def test_a_split_without_a_boundary_can_not_be_carried_out(state: ClusterState, settings: ResolvedSettings) -> None:
    [step] = plan_of(state, settings, splits=(split(FIRST),)).steps
    assert step.not_executable_because == "range_equally_divide finds no boundary inside the bundle"


def test_limits_leave_out_what_pulsar_ranks_last(state: ClusterState, settings: ResolvedSettings) -> None:
    limited = plan_of(state, settings, (move(FIRST), move(SECOND)), limits=Limits(max_unloads=1))
    assert [step.bundle for step in limited.steps] == ["0x00000000_0x40000000"]
    assert limited.limits == {"max_splits": 10, "max_unloads": 1}


def test_an_unload_without_a_destination_moves_no_load_in_the_prediction(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    plan = plan_of(replace(state, load_manager="simple"), settings, (move(FIRST, NOWHERE),))
    assert plan.steps[0].destination is None
    before, after = plan.predicted.before.brokers, plan.predicted.after.brokers
    assert {name: (one.usage_ratio, one.bundles) for name, one in after.items()} == {
        name: (one.usage_ratio, one.bundles) for name, one in before.items()
    }


def test_before_3_0_a_destination_is_predicted_and_not_sent(state: ClusterState) -> None:
    old = replace(state, pulsar_version="2.11.0")
    plan = plan_of(old, resolve_settings("2.11.0"), (move(FIRST),), (split(FIRST, 0x20000000),))
    unload, cut = plan.steps
    assert (unload.destination, unload.executable, list(unload.predicted.brokers)) == (None, True, ["a:8080", "c:8080"])
    assert plan.predicted.after.brokers["c:8080"].bundles == plan.predicted.before.brokers["c:8080"].bundles + 1
    [doubt] = [one for one in unload.doubts if "c:8080" in one.sentence]
    assert doubt.confidence == "medium"
    assert doubt.sentence == (
        "Pulsar 2.11.0 doesn't keep the destination of an unload. It would choose c:8080 now, and chooses when a "
        "client looks a topic up."
    )
    assert "its owner can't be known" in str(cut.not_executable_because)


def test_the_same_inputs_give_the_same_digest(state: ClusterState, settings: ResolvedSettings) -> None:
    assert digest_of(plan_of(state, settings, (move(FIRST),))) == digest_of(plan_of(state, settings, (move(FIRST),)))
    assert digest_of(plan_of(state, settings, (move(FIRST),))) != digest_of(plan_of(state, settings, (move(SECOND),)))


def test_switches_of_the_cluster_are_named_and_never_silence_the_plan(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    off = resolve_settings("4.0.8", dynamic={"loadBalancerSheddingEnabled": "false"})
    plan = plan_of(state, off, (move(FIRST),))
    assert plan.decision.would_pulsar_act == "Pulsar itself would not act: loadBalancerSheddingEnabled=false"
    assert plan.settings["loadBalancerSheddingEnabled"].origin == "dynamic"
    assert plan.steps[0].executable


def test_what_the_shedder_computed_is_in_the_plan_as_plain_figures(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    figures = {"mean_usage_ratio": 0.4, "moves": 3, "gap": float("nan"), "proven": True, "scores": {"a:8080": 1.0}}
    proposal = Proposal("ThresholdShedder", "LeastLongTermMessageRate", (), (), (), None, "nothing", figures)
    plan = build_plan(Situation.of_fit(state, settings), proposal, Request(), INPUTS)
    assert plan.decision.figures == {"mean_usage_ratio": 0.4, "moves": 3, "gap": None, "proven": "true"}


def test_unloads_and_splits_rest_on_the_checks_about_what_their_own_strategies_read(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    usage = StepCheck("usage", "U.", "info", "broker", frozenset({"broker_usage"}), False, frozenset({"c:8080"}))
    averages = StepCheck("averages", "A.", "warning", "bundle", frozenset({"long_term_averages"}), True, frozenset())
    plan = plan_of(state, settings, (move(FIRST),), (split(SECOND, 0x60000000),), checks=(usage, averages))
    assert plan.rests_on == {"unload": ("averages", "usage"), "split": ("averages",)}
    unload, cut = plan.steps
    assert (unload.failed_checks, unload.confidence) == (("usage",), "medium")
    assert (cut.failed_checks, cut.confidence) == ((), "high")


def extensible(state: ClusterState) -> ClusterState:
    return replace(state, load_manager="extensible")


def doubts_about(margin: float, state: ClusterState, settings: ResolvedSettings, *history: ClusterState) -> list[str]:
    moves = (replace(move(FIRST), margin=margin),)
    plan = plan_of(state, settings, moves, shedder="TransferShedder", earlier=history)
    return [doubt.sentence for doubt in plan.steps[0].doubts if "margin" in doubt.sentence]


def test_a_decision_by_less_than_brokers_need_not_publish_is_in_doubt_where_only_they_know(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    (sentence,) = doubts_about(0.02, extensible(state), settings)
    assert "by a margin of 2.0%" in sentence
    assert "changed by 10.0%" in sentence
    assert doubts_about(0.2, extensible(state), settings) == []
    # The other managers' leaders read reports, and so does the published view.
    assert doubts_about(0.02, state, settings) == []


def test_an_earlier_snapshot_shows_what_changed_since(state: ClusterState, settings: ResolvedSettings) -> None:
    now = extensible(state)
    same = replace(now, snapshot="20261121T080000Z")
    assert doubts_about(0.02, now, settings, same) == []
    busier = replace(same, brokers=replace(same.brokers, traffic=same.brokers.traffic * 1.05))
    (sentence,) = doubts_about(0.02, now, settings, busier)
    assert "changed by 4.8%" in sentence


def test_an_unload_that_awaits_a_publication_is_in_doubt(state: ClusterState, settings: ResolvedSettings) -> None:
    plan = plan_of(state, settings, (replace(move(FIRST), awaits=("a:8080",)),))
    [doubt] = [doubt for doubt in plan.steps[0].doubts if "new load" in doubt.sentence]
    assert doubt.confidence == "medium"
    assert doubt.sentence.startswith("Pulsar unloads it only if a:8080 will have published a new load by the next")


def test_an_unload_whose_destination_is_drawn_among_others_and_its_own_broker_is_in_doubt(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    drawn = replace(move(FIRST), possible=(0, 2))
    [doubt] = [one for one in plan_of(state, settings, (drawn,)).steps[0].doubts if "draw" in one.sentence]
    assert doubt.confidence == "medium"
    assert doubt.sentence.endswith("among 2 brokers, and leaves it where it is if it draws a:8080.")
    # A Simple leader unloads the bundle before anyone places it.
    elsewhere = plan_of(replace(state, load_manager="simple"), settings, (drawn,))
    assert not [one for one in elsewhere.steps[0].doubts if "draw" in one.sentence]


def test_a_destination_that_hangs_on_what_brokers_publish_is_in_doubt(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    load = PublishedLoad(np.full(3, 0.5), np.full(3, 1e6), np.full(len(state.bundles), NO_ROW))
    published = replace(extensible(state), published_load=load)
    either, sure = (
        plan_of(published, settings, (replace(move(FIRST), possible=possible),)).steps[0].doubts
        for possible in ((1, 2), (2,))
    )
    [sentence] = [doubt.sentence for doubt in either if "instead" in doubt.sentence]
    assert sentence == "Pulsar may choose b:8080 instead, on what brokers publish before the next cycle."
    assert not [doubt for doubt in sure if "instead" in doubt.sentence]


def test_what_a_plan_predicts_starts_from_the_usage_that_belongs_to_the_message_rate(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    # A minute ago c had half of its messages, and its CPU usage is still that of then.
    now, then = (
        replace(
            state,
            brokers=replace(
                state.brokers,
                traffic=state.brokers.traffic * [[1.0], [1.0], [share]],
                report_updated_at_ms=np.full(3, at_ms),
            ),
        )
        for share, at_ms in ((1.0, 120_000), (0.5, 60_000))
    )
    alone, informed = plan_of(now, settings), plan_of(now, settings, earlier=(then,))
    before, after = (plan.predicted.before.brokers["c:8080"] for plan in (alone, informed))
    assert before.usage_ratio == pytest.approx(0.2)
    base = informed.predicted.base["c:8080"].ratio
    assert after.usage_ratio == pytest.approx(base + 2 * (0.2 - base))
    # What the broker reports stays possible.
    assert after.lowest_usage_ratio == pytest.approx(0.2)


def test_a_step_that_needs_more_than_all_of_a_resource_says_so(state: ClusterState, settings: ResolvedSettings) -> None:
    state.brokers.usage[2, 0] = 300.0
    (step,) = plan_of(state, settings, (move(FIRST),)).steps
    (sentence,) = [doubt.sentence for doubt in step.doubts if "would need" in doubt.sentence]
    assert sentence.startswith("c:8080 would need 122% of a resource, 125% at most")
    assert step.confidence == "low"


def test_a_plan_says_what_limits_leave_out_of_what_a_shedder_would_unload(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    decision = plan_of(state, settings, (move(FIRST), move(SECOND)), limits=Limits(max_unloads=1)).decision
    assert decision.caveats == ("The limits leave out 1 of ThresholdShedder's 2 unloads: 1 by --max-unloads 1.",)
    assert decision.why_nothing is None


def test_limits_that_leave_nothing_are_why_a_plan_does_nothing(state: ClusterState, settings: ResolvedSettings) -> None:
    moves, excluded = (move(FIRST), move(SECOND)), Limits(exclude_brokers=("a:8080",))
    assert plan_of(state, settings, moves, limits=excluded).decision.why_nothing == (
        "The limits leave out all 2 unloads: 2 by --exclude-broker or --exclude-namespace."
    )
    cut = (split(FIRST, 0x20000000),)
    assert plan_of(state, settings, splits=cut, limits=Limits(max_splits=0)).decision.why_nothing == (
        "The limits leave out the only split: 1 by --max-splits 0."
    )
