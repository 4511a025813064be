"""The sentence at the top of the page, and the commands below it."""

from __future__ import annotations

import shlex
from dataclasses import replace

from pulsar_advisor.documents.recommendation import Advice
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.plans.goal import ROLL, Goal
from pulsar_advisor.model.plans.names import short
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.model.plans.sealed import digest_of
from pulsar_advisor.model.strategy.decision import Split
from pulsar_advisor.planning.plans.own_balancer import would_pulsar_act
from pulsar_advisor.planning.proposals.fitness import Refusal
from pulsar_advisor.planning.proposals.proposal import Move
from pulsar_advisor.reporting.verdict import Verdict
from states import QUARTERS
from unit.reporting.skewed import (
    BROKERS,
    Inputs,
    balanced_inputs,
    bundle_row,
    check,
    checks_of,
    make_plan,
    quiet_plan,
    recommendation_of,
    skewed_inputs,
    skewed_settings,
    skewed_state,
    validation_of,
)


def verdict_on(plan: Plan, *, advised: bool = True, root_url: str = "data", dag: str | None = None) -> Verdict:
    """The verdict on one plan, advised whatever it is worth."""
    inputs = skewed_inputs().with_plans(plan)
    row = inputs.recommendation.combinations[0]
    if advised:
        inputs = inputs.recommending(advice=Advice(plan=row.plan, digest=row.digest, sentence=""))
    return inputs.page(root_url=root_url, dag=dag).verdict


def move(bundle: str, source: int, destination: int) -> Move:
    return Move(bundle_row(skewed_state(), bundle), source, destination, "because", near_tie=False)


def plan_of(*moves: Move, splits: tuple[Split, ...] = ()) -> Plan:
    return make_plan(skewed_state(), skewed_settings(), moves=moves, splits=splits)


def headline(verdict: Verdict) -> str:
    return verdict.headline.replace("\u00a0", " ")


def test_the_headline_says_what_the_plan_does_and_brings() -> None:
    assert headline(skewed_inputs().page().verdict) == (
        f"Unload 2 bundles from {BROKERS[0]}: the busiest broker should fall from 91.0% (CPU) to 50.5%, at worst to "
        "53.5%. Then split 1 bundle of shop/orders, which can't be undone."
    )


def test_what_pulsar_does_by_itself_is_the_same_only_beside_a_plan() -> None:
    settings = resolve_settings("4.0.8", what_if={"loadBalancerBrokerThresholdShedderPercentage": "15"})
    to_the_hottest = move(f"shop/payments/{QUARTERS[1]}", 2, 0)
    plan = make_plan(skewed_state(), settings, moves=(to_the_hottest,))
    assert verdict_on(plan).pulsar == "Pulsar itself would act the same way"
    assert verdict_on(plan, advised=False).pulsar == "Pulsar itself would act"


def test_beside_a_goal_only_that_pulsar_lacks_it_is_said_as_it_may_act_for_its_own_reasons() -> None:
    plan = plan_of(move(f"shop/orders/{QUARTERS[0]}", 0, 3))
    says = would_pulsar_act(skewed_settings(), "modular", "drain", has_moves=True, has_splits=False)
    decision = plan.decision.model_copy(update={"would_pulsar_act": says})
    drain = plan.model_copy(update={"decision": decision, "goal": Goal("drain", (BROKERS[0],))})
    assert verdict_on(drain).pulsar == "Pulsar itself would not do this: none of its strategies has this goal"
    nothing = quiet_plan(skewed_state(), skewed_settings(), "drain", "It has no bundles.")
    nothing = nothing.model_copy(update={"goal": drain.goal})
    assert not verdict_on(nothing, advised=False).pulsar


def test_a_plan_that_only_splits_says_nothing_of_unloads_that_pulsar_makes() -> None:
    hot = bundle_row(skewed_state(), f"shop/orders/{QUARTERS[2]}")
    settings = resolve_settings("4.0.8", what_if={"loadBalancerAutoBundleSplitEnabled": "false"})
    split = Split(hot, "range_equally_divide", (0xA0000000,), "too many", near_tie=False)
    plan = make_plan(skewed_state(), settings, splits=(split,))
    assert verdict_on(plan).pulsar == "Pulsar itself would not split: loadBalancerAutoBundleSplitEnabled=false"


def test_a_reason_that_names_its_shedder_is_not_introduced_by_it() -> None:
    state, settings, why = skewed_state(), skewed_settings(), "ThresholdShedder does not act within 10 cycles"
    plan = quiet_plan(state, settings, "ThresholdShedder", f"{why}.")
    other = quiet_plan(state, settings, "OverloadShedder", "No broker is above 85 %.")
    verdict = skewed_inputs().with_plans(plan, other).page().verdict
    assert headline(verdict).endswith(f"Pulsar itself does nothing either. {why}.")


def test_all_of_the_advice_is_said() -> None:
    """Beside a plan that only splits, it says what else can be done about the busiest broker."""
    advice = "Split 1 bundle of shop/orders, which can't be undone. b1 is at 91.0% (CPU): `split` finds 2 unloads."
    assert skewed_inputs().recommending(advice).page().verdict.headline == advice


def test_a_split_alone_has_to_be_accepted_as_a_split_only() -> None:
    hot = bundle_row(skewed_state(), f"shop/orders/{QUARTERS[2]}")
    split = Split(hot, "range_equally_divide", (0xA0000000,), "too many", near_tie=False)
    verdict = verdict_on(plan_of(splits=(split,)))
    assert "--splits" in verdict.commands[1].lines[-1]
    assert "--accept-worse" not in verdict.commands[1].lines[-1]
    assert verdict.warnings == ()


def test_the_confidence_is_that_of_the_least_certain_executable_step() -> None:
    verdict = skewed_inputs().page().verdict
    assert verdict.confidence == "low"
    assert {tally.text: tally.number for tally in verdict.confidences} == {"high": 2, "low": 1}


def test_steps_that_cant_be_carried_out_are_counted_by_reason() -> None:
    (obstacle,) = skewed_inputs().page().verdict.not_executable
    assert (obstacle.text, obstacle.number) == ("the bundle has no owner", 1)


def test_a_maximum_that_does_not_fall_has_to_be_accepted() -> None:
    verdict = verdict_on(plan_of(move(f"shop/payments/{QUARTERS[0]}", 1, 0)))
    assert "rises from 91" in verdict.warnings[0]
    assert "--accept-worse" in verdict.commands[1].lines[-1]


def test_a_broker_lifted_over_the_overload_threshold_has_to_be_accepted() -> None:
    all_there = [f"shop/orders/{quarter}" for quarter in QUARTERS[:3]]
    verdict = verdict_on(plan_of(*(move(bundle, 0, 3) for bundle in all_there)))
    (warning,) = verdict.warnings
    assert warning.startswith(f"{BROKERS[3]} would rise above the overload threshold of 85")


def test_a_plan_that_only_helps_asks_for_no_consent() -> None:
    verdict = verdict_on(plan_of(move(f"shop/orders/{QUARTERS[0]}", 0, 3)))
    assert verdict.warnings == ()
    assert "--accept-worse" not in verdict.commands[1].lines[-1]
    assert "--splits" not in verdict.commands[1].lines[-1]


def test_a_command_survives_any_root() -> None:
    verdict = verdict_on(plan_of(move(f"shop/orders/{QUARTERS[0]}", 0, 3)), root_url="it's here; rm")
    words = shlex.split(verdict.commands[0].continued)
    assert words == ["export", "PULSAR_ADVISOR_ROOT=it's here; rm", "PULSAR_ADVISOR_CLUSTER=test"]


def test_a_plan_that_was_carried_out_is_not_offered_for_approval_again() -> None:
    said = skewed_inputs().page(why_not_again="was already carried out, in run 3: capture again").verdict.commands
    assert [command.lines[0].split()[:2] for command in said][1:] == [["pulsar-advisor", "runs"]]
    assert said[1].purpose.startswith("This plan was already carried out, in run 3: capture again. To see")


def test_commands_name_the_plan_by_the_first_digits_of_its_digest() -> None:
    plan = plan_of(move(f"shop/orders/{QUARTERS[0]}", 0, 3))
    verdict = verdict_on(plan)
    prefix = digest_of(plan).removeprefix("sha256:")[:8]
    assert verdict.commands[1].continued == f"pulsar-advisor approve {prefix} --as NAME"
    assert verdict.commands[4].continued == f"pulsar-advisor apply {prefix}"


def test_in_airflow_no_shell_is_needed() -> None:
    plan = skewed_inputs().page(dag="pulsar_rebalance__prod").verdict
    pressed, approved = plan.commands
    assert "trigger pulsar_rebalance__prod with this digest" in pressed.purpose
    assert pressed.lines == (skewed_inputs().recommendation.advice.digest,)
    assert approved.purpose.endswith("required actions, and ticks Allow the splits and Accept steps of low confidence")


def test_a_roll_is_carried_out_by_the_commands_of_a_roll() -> None:
    roll = plan_of(move(f"shop/orders/{QUARTERS[0]}", 0, 3)).model_copy(update={"shedder": ROLL})
    digits = short(digest_of(roll))
    _, approve, _, *then = (command.continued for command in verdict_on(roll).commands)
    assert approve == f"pulsar-advisor approve {digits} --as NAME"
    assert then == [f"pulsar-advisor roll continue {digits}", f"pulsar-advisor roll status {digits}"]
    pressed, _ = verdict_on(roll, dag="pulsar_rolling_restart").commands
    assert pressed.purpose == "Trigger pulsar_rolling_restart with this digest"


def test_an_approval_is_somebody_elses_to_give() -> None:
    approve = verdict_on(plan_of(move(f"shop/orders/{QUARTERS[0]}", 0, 3))).commands[1]
    assert approve.purpose == "Approve exactly this plan, as somebody other than its proposer, from another account"


def test_wishes_that_cant_be_carried_out_are_not_called_balance() -> None:
    unowned = move(f"public/default/{QUARTERS[2]}", 0, 2)
    verdict = verdict_on(plan_of(unowned), advised=False)
    assert verdict.kind == "not_executable"
    assert headline(verdict) == (
        "Nothing can be done: ThresholdShedder would unload 1 bundle, but the bundle has no owner."
    )
    assert verdict.commands == ()


def test_nothing_to_do_comes_with_the_reason_of_the_clusters_own_shedder() -> None:
    verdict = balanced_inputs().page().verdict
    assert verdict.kind == "nothing"
    assert headline(verdict) == (
        "Do nothing: no strategy would act on these figures. Pulsar itself does nothing either. ThresholdShedder: No "
        "broker is more than 15 % above the mean of 48.1 %: the highest is at 55.0 %."
    )


def test_a_reason_the_advice_already_gives_is_not_repeated() -> None:
    plan = quiet_plan(skewed_state(), skewed_settings(), "ThresholdShedder", "All is well.")
    assert headline(verdict_on(plan, advised=False)) == (
        "Do nothing: no strategy would act on these figures. All is well. Pulsar itself does nothing either."
    )


def test_for_a_goal_the_advice_is_the_whole_answer() -> None:
    quiet = quiet_plan(skewed_state(), skewed_settings(), "drain", "It has no bundles.")
    verdict = verdict_on(quiet.model_copy(update={"goal": Goal("drain", (BROKERS[0],))}))
    assert verdict.kind == "nothing"
    assert "It has no bundles" not in headline(verdict)


def test_reasons_for_doubt_are_sorted_gravest_first() -> None:
    state, settings = skewed_state(), skewed_settings()
    orders = [bundle_row(state, f"shop/orders/{text}") for text in QUARTERS[:2]]
    moves = tuple(Move(bundle, 0, 3, "because", near_tie=bundle == orders[1]) for bundle in orders)
    failing = checks_of(("brokers.bandwidth_in_limit", BROKERS[3]))
    verdict = verdict_on(make_plan(state, settings, moves=moves, checks=failing))
    assert [(doubt.text, doubt.number) for doubt in verdict.doubts] == [
        ("A near-tie decided.", 1),
        ("By check brokers.bandwidth_in_limit this does not hold: Its limit is known.", 2),
    ]


def test_steps_of_low_confidence_have_to_be_accepted() -> None:
    toss = replace(move(f"shop/orders/{QUARTERS[0]}", 0, 3), near_tie=True)
    assert "--accept-low-confidence" in verdict_on(plan_of(toss)).commands[1].lines[-1]
    sure = verdict_on(plan_of(replace(toss, near_tie=False)))
    assert "--accept-low-confidence" not in sure.commands[1].lines[-1]


def test_what_could_not_be_judged_is_not_called_balance() -> None:
    refusal = Refusal(
        strategy="ThresholdShedder",
        role="shedder",
        missing="isolation_policies",
        reason="isolation_policies: 500",
        sentence="ThresholdShedder can't be judged.",
    )
    plan = quiet_plan(skewed_state(), skewed_settings(), "ThresholdShedder", refusal.sentence)
    advice = Advice(plan=None, digest=None, sentence="No unload can be judged: isolation_policies is missing.")
    page = skewed_inputs().with_plans(plan, refusals=(refusal,), advice=advice).page()
    assert (page.verdict.kind, page.verdict.headline) == ("not_fit", advice.sentence)
    assert [(row.strategy, row.missing) for row in page.refusals] == [("ThresholdShedder", "isolation_policies")]
    assert page.answers.silences == ()


def too_little_judged(inputs: Inputs, advice: str) -> Inputs:
    why = "Too little can be judged: a is silent."
    return inputs.recommending(advice, coverage=replace(inputs.recommendation.coverage, decides=True, why=why))


def test_where_too_little_could_be_judged_nothing_else_is_said_of_the_cluster() -> None:
    advice = "Too little can be judged: a is silent. No advice without it."
    page = too_little_judged(balanced_inputs(), advice).page()
    assert (page.verdict.kind, page.verdict.headline) == ("not_fit", advice)
    assert (page.verdict.pulsar, page.options, page.next) == ("", None, None)


def test_a_plan_for_the_rest_comes_after_what_could_not_be_judged() -> None:
    advice = "Too little can be judged: a is silent. For the rest: Unload 2 bundles."
    verdict = too_little_judged(skewed_inputs(), advice).page().verdict
    assert (verdict.kind, verdict.headline) == ("act", advice)


def test_a_check_that_did_not_pass_is_not_stated_as_true() -> None:
    failed = [check(f"a.{name}", f"{name} holds", severity="critical", success=False) for name in "ABCDE"]
    inputs = replace(skewed_inputs(), validation=validation_of(*failed))
    assert headline(inputs.page().verdict) == (
        "No advice: the data must not be used. Did not pass: A holds; B holds; C holds; 2 more checks."
    )


def test_where_every_strategy_fails_there_is_no_advice_rather_than_nothing_to_do() -> None:
    inputs = skewed_inputs()
    failed = recommendation_of((), errors={"Own": "there is no shedder 'Own'"})
    assert replace(inputs, plans=(), recommendation=failed).page().verdict.kind == "not_fit"
