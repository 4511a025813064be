"""A recommendation needs no folder and no Spark: a state, the settings, and the plans of each shedder."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from pulsar_advisor.documents.recommendation import Recommendation
from pulsar_advisor.model.cluster.cluster_state import ClusterState, IsolationPolicy
from pulsar_advisor.model.configuration.resolved_settings import ResolvedSettings, resolve_settings
from pulsar_advisor.model.plans.goal import ROLL, Goal
from pulsar_advisor.model.plans.plan import Plan, PlanInputs
from pulsar_advisor.model.plans.sealed import digest_of
from pulsar_advisor.planning.advice.compare import Score, score
from pulsar_advisor.planning.proposals.limits import Limits
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.planning.situation import Situation
from pulsar_advisor.recommendation.left_alone import LeftAlone
from pulsar_advisor.recommendation.recommendation import recommendation
from pulsar_advisor.recommendation.shedder_answers import ShedderAnswers
from scenarios.scenario import FOLDER, Scenario
from states import QUARTERS, BrokerRow, BundleRow, cluster_state

MANIFEST = "0" * 64
INPUTS = PlanInputs(manifest_sha256=MANIFEST, validation_sha256="1" * 64)
SETTINGS = resolve_settings("4.0.8")
REQUEST = Request(shedder="ThresholdShedder", placement="LeastLongTermMessageRate")
CHANGE = {"loadBalancerSheddingEnabled": "true"}
SPLITS_ONLY = {"loadBalancerNamespaceBundleMaxMsgRate": "900", "loadBalancerSheddingEnabled": "false"}
NOTHING_IS_LARGE_ENOUGH = {"loadBalancerBundleUnloadMinThroughputThreshold": "1000000"}


def cluster(*owners: str, **given: object) -> ClusterState:
    """Brokers a, b and c; each bundle takes a fifth of a CPU."""
    bundles = [
        BundleRow("shop/orders", range_, f"{owner}:8080", (500.0, 500.0, 5e6, 5e6), topics=1)
        for range_, owner in zip(QUARTERS, owners, strict=True)
    ]
    shares = {broker: owners.count(broker) for broker in "abc"}
    brokers = [
        BrokerRow(
            f"{broker}:8080",
            cpu=(20.0 * share + 1, 100.0),
            traffic=(500.0 * share, 500.0 * share, 5e6 * share, 5e6 * share),
            topics=share,
        )
        for broker, share in shares.items()
    ]
    return cluster_state(brokers, bundles, **given)  # type: ignore[arg-type]


def of_ten_topics_each(*, loaded: bool = True) -> ClusterState:
    """A cluster of four bundles with ten topics each, whose figures are zeros."""
    topics = [f"persistent://shop/orders/{number}" for number in range(40)]
    state = cluster("a", "b", "c", "c", topics=topics)
    state.bundles.topics[:] = 10
    return replace(state, topics=replace(state.topics, loaded=np.full(40, loaded), traffic=np.zeros((40, 4))))


def before_a_was_replaced(state: ClusterState) -> ClusterState:
    """An earlier snapshot, in which another broker was there in place of a."""
    return replace(state, snapshot="20261121T082000Z", brokers=replace(state.brokers, ids=("a:1", "b:8080", "c:8080")))


def recommended(
    state: ClusterState,
    *changes: Mapping[str, str],
    request: Request = REQUEST,
    settings: ResolvedSettings = SETTINGS,
    earlier: Sequence[ClusterState] = (),
) -> tuple[Recommendation, dict[str, Plan]]:
    def resolve(what_if: Mapping[str, str]) -> ResolvedSettings:
        return resolve_settings("4.0.8", what_if=what_if)

    situation = Situation.of(state, settings, earlier)
    alone = LeftAlone.simulated(situation, changes, resolve, request.seed, None, ())
    plans: dict[str, Plan] = {}
    scores: list[Score] = []
    for number, shedder in enumerate(request.shedders):
        part = request.of(shedder)
        answers = ShedderAnswers.of(part, situation, with_splits=number == 0)
        for made in answers.plans(INPUTS, ()):
            if isinstance(made, Plan):
                plans[made.title] = made
                made = score(made, situation.fit, file=made.title, digest=digest_of(made))
            scores.append(made)
    return recommendation(alone, scores, request, plans.__getitem__, MANIFEST), plans


def test_of_a_hot_broker_the_plan_that_relieves_it_is_advised_and_the_first_option() -> None:
    document, plans = recommended(cluster("a", "a", "a", "a"))
    [plan] = plans.values()
    assert plan.steps
    assert (document.advice.plan, document.advice.digest) == (plan.title, digest_of(plan))
    assert (document.options or ())[0].plan == plan.title
    assert "loadBalancerBrokerThresholdShedderPercentage" in (document.settings or {})


def test_where_only_splits_are_advised_a_verb_that_moves_parts_comes_first() -> None:
    state = of_ten_topics_each()
    state.topics.traffic[:] = state.bundles.traffic[0] / 10
    document, plans = recommended(state, settings=resolve_settings("4.0.8", what_if=SPLITS_ONLY))
    assert not plans[str(document.advice.plan)].unloads
    assert document.advice.sentence.startswith(
        "c:8080 is at 41.0% (CPU), 13.3 points above the mean: `split` finds 2 splits and 2 unloads: c:8080 may "
    )
    options = document.options or ()
    assert options[0].sentence == "Unload 2 bundles and split 2 bundles as `split` would"
    assert [(option.kind, option.digest) for option in options[1:]] == [
        ("split", document.advice.digest),
        ("nothing", None),
    ]


def test_only_one_shedder_of_a_request_answers_about_splits() -> None:
    situation = Situation.of(cluster("a", "b", "c", "c"), SETTINGS)
    first, other = (ShedderAnswers.of(REQUEST, situation, with_splits=is_first) for is_first in (True, False))
    assert len(first.proposals) == len(other.proposals) + 1


def test_no_split_is_advised_or_found_while_something_ails_the_cluster() -> None:
    state, settings = of_ten_topics_each(), resolve_settings("4.0.8", what_if=SPLITS_ONLY)
    healthy, _ = recommended(state, settings=settings)
    ill, plans = recommended(state, settings=settings, earlier=[before_a_was_replaced(state)])
    assert healthy.advice.plan is not None
    assert [plan for plan in plans.values() if plan.executable_steps and not plan.unloads], "it is listed"
    assert ill.advice.plan is None
    asked = [any("should be split" in finding.sentence for finding in each.findings) for each in (healthy, ill)]
    assert asked == [True, False]


def test_no_split_is_advised_or_found_of_a_bundle_that_one_topic_makes_hot() -> None:
    state = of_ten_topics_each()
    for bundle in range(4):
        state.topics.traffic[int(np.flatnonzero(state.topics.bundle == bundle)[0])] = (500.0, 500.0, 5e6, 5e6)
    settings = resolve_settings("4.0.8", what_if={"loadBalancerNamespaceBundleMaxMsgRate": "900"})
    document, plans = recommended(state, settings=settings)
    assert [plan for plan in plans.values() if plan.executable_steps and not plan.unloads]
    assert document.advice.plan is None
    assert [option.kind for option in document.options or ()] == ["nothing"]
    assert not [finding for finding in document.findings if "should be split" in finding.sentence]


def test_no_split_is_advised_of_a_bundle_that_is_idle_now_though_what_pulsar_does_is_said() -> None:
    state = of_ten_topics_each(loaded=False)
    state.bundles.traffic[3] = 0.0
    state.bundles.long_term[3] = (40_000.0, 40_000.0, 4e7, 4e7)
    document, plans = recommended(state)
    assert [plan for plan in plans.values() if plan.executable_steps and not plan.unloads]
    assert document.advice.plan is None
    assert document.advice.sentence.endswith(" and 1 split.")
    assert any(" would be split, in vain: 80,000.0 messages/s " in finding.sentence for finding in document.findings)


def test_no_split_is_advised_that_pulsar_makes_by_itself_and_goes_on_from() -> None:
    """It can't be undone, and the first option is to wait."""
    giant, idle = (40_000.0, 40_000.0, 4e7, 4e7), (0.0, 0.0, 0.0, 0.0)
    first, *others = QUARTERS
    state = cluster_state(
        [BrokerRow("a:8080", cpu=(80.0, 100.0), traffic=giant, topics=20), BrokerRow("b:8080", cpu=(5.0, 100.0))],
        [
            BundleRow("shop/orders", first, "a:8080", giant, topics=20),
            *(BundleRow("shop/orders", range_, "a:8080", idle) for range_ in others),
        ],
        topics=[f"persistent://shop/orders/t{number}" for number in range(80)],
    )
    document, plans = recommended(state)
    assert any(plan.executable_steps[0].action == "split" for plan in plans.values())
    assert (document.options or ())[0].kind == "own_balancer"
    assert document.advice.plan is None
    assert "Pulsar's own ThresholdShedder settles in cycle 2" in document.advice.sentence


def test_of_a_broker_whose_rate_has_just_risen_all_answers_begin_with_the_usage_that_plans_begin_with() -> None:
    now = cluster("a", "a", "a", "b")
    brokers = now.brokers
    # The rate of a has doubled within a minute, of which its CPU shows a part only.
    partly, half = np.array([[36.0], [21.0], [1.0]]), np.array([[0.5], [1.0], [1.0]])
    usage = np.hstack((partly, brokers.usage[:, 1:]))
    before = replace(
        now,
        captured_at_ms=now.captured_at_ms - 60_000,
        brokers=replace(
            brokers,
            usage=brokers.usage * half,
            traffic=brokers.traffic * half,
            report_updated_at_ms=brokers.report_updated_at_ms - 60_000,
        ),
    )
    document, plans = recommended(
        replace(now, brokers=replace(brokers, usage=usage)),
        request=replace(REQUEST, shedder="MinimalMoveShedder"),
        earlier=[before],
    )
    [plan] = plans.values()
    highest = plan.predicted.before.maximum_ratio
    assert highest is not None and highest > 0.5
    assert document.options is not None
    assert [(option.maximum_ratio or 0.0) + (option.gain_ratio or 0.0) for option in document.options] == pytest.approx(
        [highest] * 2
    )
    assert any(f" is the busiest broker at {highest:.1%} " in finding.sentence for finding in document.findings)


def test_of_a_cluster_that_no_strategy_evens_nothing_is_advised_though_its_plan_is_listed() -> None:
    document, plans = recommended(cluster("a", "b", "c", "c"))
    assert document.advice.plan is None
    assert [row.plan for row in document.combinations] == list(plans)
    assert document.advice.sentence.startswith("No strategy would act on these figures.")
    assert document.advice.sentence.endswith(
        "c:8080 is at 41.0% (CPU), 13.3 points above the mean, and `balance`, `relieve c:8080` and `split`, also with "
        "`--to 37%`, find nothing that lowers it by more than noise. `relieve c:8080`: no other broker has room for a "
        "bundle. `split`: shop/orders/0x80000000_0xc0000000 can't be split: the load of 1 topic in it isn't known."
    )


def test_what_a_verb_finds_where_no_strategy_acts_is_the_first_option_though_no_plan_of_it_is_written() -> None:
    small = resolve_settings("4.0.8", what_if=NOTHING_IS_LARGE_ENOUGH)
    document, plans = recommended(cluster("a", "a", "a", "b"), settings=small)
    assert document.advice.plan is None and not any(plan.steps for plan in plans.values())
    found, nothing = document.options or ()
    assert f"{found.sentence.split(' as ')[1].removesuffix(' would')} finds 1 unload" in document.advice.sentence
    assert (found.kind, found.plan, found.digest, found.cost.unloads) == ("move", None, None, 1)
    assert found.confidence is None, "no step of it has been graded"
    assert found.gain_ratio is not None and found.gain_ratio > document.noise_floor.ratio
    assert nothing.condition == "the busiest broker has room for the load to come"


def test_beside_no_advice_there_are_no_options() -> None:
    state = cluster("a", "a", "a", "b")
    small = resolve_settings("4.0.8", what_if=NOTHING_IS_LARGE_ENOUGH)
    (judged, _), (unjudged, _) = (
        recommended(
            replace(state, bundles=replace(state.bundles, usable=np.array([fit, True, True, True]))), settings=small
        )
        for fit in (True, False)
    )
    assert (judged.is_unjudged, unjudged.is_unjudged) == (False, True)
    assert "No advice without it" in unjudged.advice.sentence
    assert judged.options and unjudged.options == ()


def test_of_a_cluster_that_takes_no_goal_no_verb_is_named() -> None:
    state = cluster("a", "b", "c", "c")
    state.brokers.usage[0] = 0.0
    none = {"loadBalancerBrokerOverloadedThresholdPercentage": "0"}
    document, _ = recommended(state, settings=resolve_settings("4.0.8", what_if=none))
    assert " c:8080 is at 41.0% (CPU), above the overload threshold of 0%." in document.advice.sentence
    assert "`" not in document.advice.sentence
    for keeps_no_destination, settings in (
        (replace(state, load_manager="simple"), SETTINGS),
        (replace(state, pulsar_version="2.11.0"), resolve_settings("2.11.0")),
    ):
        document, _ = recommended(keeps_no_destination, settings=settings)
        assert " c:8080 is at 41.0% (CPU), 20.3 points above the mean." in document.advice.sentence
        assert [one.sentence for one in document.findings if "no topic of users" in one.sentence] == []


def test_no_plan_is_advised_that_takes_a_broker_above_what_it_has_on_the_way() -> None:
    state = Scenario.read(FOLDER / "isolation.yaml").state
    document, plans = recommended(state, request=replace(REQUEST, placement="AvgShedder", splits=False))
    [plan] = plans.values()
    assert plan.predicted.after.highest_maximum_ratio is not None
    assert plan.predicted.after.highest_maximum_ratio < 0.88
    assert (document.advice.plan, len(document.options or ())) == (None, 1)
    assert document.advice.sentence.startswith(
        "Each worthwhile plan overloads a broker on the way, as b:8080 to 122.1%. a:8080 is at 88.0%"
    )


def test_do_nothing_is_said_of_the_load_alone_where_a_finding_warns() -> None:
    sentences = {}
    for policies in ((), (IsolationPolicy("vip", ("shop/orders",), ("a",), (), 1, 80),)):
        state = cluster("a", "a", "b", "b", isolation_policies=policies)
        state.brokers.usage[2] = state.brokers.usage[1]
        document, _ = recommended(state)
        sentences[bool(policies)] = document.advice.sentence
    assert sentences[False].startswith("Do nothing: no strategy would act")
    assert sentences[True].startswith("Do nothing about the load, but see the findings: no strategy would act")


def test_what_ails_a_cluster_is_said_before_the_advice_but_not_before_the_answer_to_a_goal() -> None:
    state = cluster("a", "a", "a", "b")
    gone = before_a_was_replaced(state)
    said = "Registered in snapshot 20261121T082000Z, and no longer: a:1. "
    healthy, ill = recommended(state)[0], recommended(state, earlier=[gone])[0]
    assert ill.advice.sentence == f"{said}{healthy.advice.sentence}"
    drain = replace(REQUEST, goal=Goal("drain", ("b:8080",)))
    answer = recommended(state, earlier=[gone], request=drain)[0]
    assert said not in answer.advice.sentence
    assert said.strip() in [finding.sentence for finding in answer.findings]


def test_limits_that_leave_nothing_of_a_plan_are_why_nothing_is_advised() -> None:
    document, _ = recommended(
        cluster("a", "a", "a", "a"), request=replace(REQUEST, splits=False, limits=Limits(exclude_brokers=("a:8080",)))
    )
    assert document.advice.sentence.startswith(
        "Within the limits no strategy would act on these figures. The limits leave out "
    )
    assert " above the mean, and is excluded by --exclude-broker. " in document.advice.sentence


def test_what_limits_leave_out_of_the_advised_plan_is_a_finding_though_another_strategy_is_configured() -> None:
    own = {"loadBalancerLoadSheddingStrategy": "org.apache.pulsar.broker.loadbalance.impl.OverloadShedder"}
    document, plans = recommended(
        cluster("a", "a", "a", "a"),
        request=Request(placement="LeastLongTermMessageRate", limits=Limits(max_unloads=1)),
        settings=resolve_settings("4.0.8", own),
    )
    (caveat,) = plans[str(document.advice.plan)].decision.caveats
    assert caveat == "The limits leave out 1 of MinimalMoveShedder's 2 unloads: 1 by --max-unloads 1."
    assert caveat in {finding.sentence for finding in document.findings}


def test_a_roll_whose_later_turn_leaves_bundles_behind_is_reached_in_part() -> None:
    policy = IsolationPolicy("vip", ("shop/orders",), ("b",), (), 1, 100)
    goal = Goal(ROLL, ("a:8080", "b:8080", "c:8080"), ceiling_ratio=0.85)
    for policies, outcome in (((), "reached"), ((policy,), "in part")):
        document, _ = recommended(
            cluster("a", "b", "b", "c", isolation_policies=policies), request=Request(goal=goal, splits=False)
        )
        assert document.goal_outcome == outcome


def test_nothing_is_said_of_the_balancer_after_a_rolls_first_turn_as_it_stays_off() -> None:
    goals = Goal(ROLL, ("a:8080", "b:8080", "c:8080"), ceiling_ratio=0.85), Goal("drain", ("a:8080",))
    documents = [recommended(cluster("a", "b", "b", "c"), request=Request(goal=each))[0] for each in goals]
    foresights = [document.foresight for document in documents if document.foresight is not None]
    assert [foresight.plan is None for foresight in foresights] == [True, False]


def test_a_strategy_without_its_input_is_refused_and_why_pulsar_itself_cannot_be_simulated_is_said() -> None:
    document, plans = recommended(cluster("a", "a", "a", "a", missing={"bundle_traffic": "nobody was asked"}))
    assert not any(plan.steps for plan in plans.values())
    assert {one.missing for one in document.refusals} == {"bundle_traffic"}
    assert "nobody was asked" in str(document.foresight.error)


def test_what_pulsar_itself_does_names_the_seed_that_it_was_simulated_with() -> None:
    document, _ = recommended(cluster("a", "a", "b", "c"), request=replace(REQUEST, seed=7))
    assert document.foresight is not None
    assert document.foresight.own is not None
    assert (document.advice.plan, document.foresight.own.seed) == (None, 7)


def test_each_change_of_settings_is_tried_beside_the_plans() -> None:
    document, _ = recommended(cluster("a", "a", "a", "a"), CHANGE)
    assert [trial.change for trial in document.trials] == [CHANGE]
