"""What a terminal shows of answers."""

from __future__ import annotations

from dataclasses import replace

from moments import FIRST, SECOND, THIRD, moment
from pulsar_advisor.cli.rendering import difference_lines, explanation_lines, lint_lines, plan_table, verify_lines
from pulsar_advisor.documents.explanation import ExplanationOfSnapshot
from pulsar_advisor.documents.verify_result import UsageCheck, VerifyResult
from pulsar_advisor.execution.ledger.plan_states import PlanState
from pulsar_advisor.history.difference import Difference, Growth, difference
from pulsar_advisor.history.events import OWN
from pulsar_advisor.lint.judge import FindingWithEffect
from pulsar_advisor.model.text.plain_text import NO_BREAK
from pulsar_advisor.planning.plans.own_balancer import ACTS_ALIKE

A, B = "a:8080", "b:8080"
UNREADABLE = PlanState(
    digest="sha256:c8b31b82",
    snapshot="20261121T083000Z",
    shedder="",
    placement="",
    executable_steps=0,
    maximum_before=None,
    maximum_after=None,
    state="proposed",
    steps_sha256="00",
    undoes=None,
    advised=False,
    problem="its document can't be read: it is empty",
)
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
ACTS = "ThresholdShedder unloads 1 bundle from a:8080 in cycle 1."


def test_a_setting_to_try_stays_one_word_in_a_shell() -> None:
    """A class of one's own may be an inner one."""
    texts = dict.fromkeys(("rule", "sentence", "title", "why", "remedy", "source"), "")
    finding = FindingWithEffect(**texts, severity="info", change={"k": "a.B$C"}, effect=None)
    [line] = [line.split(maxsplit=1)[1] for line in lint_lines([finding]) if line.lstrip().startswith("try")]
    assert line == "pulsar-advisor recommend --set 'k=a.B$C'"


def test_a_plan_that_can_not_be_read_says_so_where_others_have_their_strategies() -> None:
    another = replace(UNREADABLE, digest="sha256:d0000000")
    head, *lines = plan_table([UNREADABLE, another], each=False)
    assert [line[head.index("strategy") :] for line in lines] == [UNREADABLE.problem] * 2


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
        "Moving bundles gains nothing: there is one broker, at 20.0%: no bundle can go anywhere. "
        "To see what the load needs: pulsar-advisor scale"
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
        "a usage within 10.0 points of the prediction counts as predicted",
        "not judged   b-1 unknown, predicted 50.0%",
        "not judged   b-2 40.0%, predicted unknown",
        "as predicted b-4 45.0%, predicted 50.0%",
        "DEVIATES     b-3 is not a broker of the snapshot, predicted: 50.0%",
    ]


def test_a_move_has_the_cause_that_the_days_between_know() -> None:
    before, after = moment(1, {FIRST: A, SECOND: A}), moment(2, {FIRST: B, SECOND: B})
    lines = difference_lines(difference(before, after, {FIRST: "plan:c8b31b82"}), "prod")
    assert "  moves 2: 1 by 1 plan, 1 unexplained" in lines
    assert f"    {FIRST}: {A} -> {B} (plan:c8b31b82)" in lines
    assert f"    {SECOND}: {A} -> {B} (unknown)" in lines


def test_a_move_by_the_leader_is_called_so_where_moves_are_counted_and_where_they_are_listed() -> None:
    before, after = moment(1, {FIRST: A}), moment(2, {FIRST: B})
    lines = difference_lines(difference(before, after, {FIRST: OWN}), "prod")
    assert "  moves 1: 1 by the leader" in lines
    assert f"    {FIRST}: {A} -> {B} (by the leader)" in lines


def test_a_changed_setting_is_shown_with_both_values() -> None:
    before, after = (moment(1, {THIRD: A}, settings={"minUnloadMessage": value}) for value in ("1000", "10"))
    assert "    minUnloadMessage: 1000 -> 10" in difference_lines(difference(before, after, {}), "prod")


def test_a_changed_policy_is_shown_with_both_values() -> None:
    us, eu = (moment(1, {THIRD: A}, policies=[("replication", "t/n", value)]) for value in ("us", "eu"))
    assert "    replication t/n: us -> eu" in difference_lines(difference(us, eu, {}), "prod")


def test_another_leader_is_named_beside_what_else_happened() -> None:
    before, after = replace(moment(1, {FIRST: A}), leader=A), moment(2, {FIRST: A}, usage={B: 0.5})
    lines = difference_lines(difference(before, after, {}), "prod")
    assert lines[lines.index("  also") + 1 :] == ["    broker lost a:8080", f"    leader: {A} -> {B}"]


def test_people_see_ten_of_a_kind() -> None:
    names = [f"t/n{place}/0x00000000_0xffffffff" for place in range(12)]
    found = difference(moment(1, dict.fromkeys(names, A)), moment(2, dict.fromkeys(names, B)), {})
    assert "    and 2 others: see --json" in difference_lines(found, "prod")


def test_small_traffic_has_its_unit_and_what_reads_the_same_is_not_listed() -> None:
    namespaces = (Growth("t/small", 1000.0, 4000.0), Growth("t/same", 1e9, 1e9 + 1))
    found = Difference("1", "2", namespaces, (Growth(A, 0.5, 0.625), Growth(B, 0.5, 0.5001)), ())
    text = "\n".join(difference_lines(found, "prod")).replace(NO_BREAK, " ")
    assert "    t/small: 1.00 kB/s -> 4.00 kB/s\n" in text
    assert f"    {A}: 50.0% -> 62.5%\n" in text
    assert "t/same" not in text
    assert B not in text
