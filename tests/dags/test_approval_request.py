"""What an approver reads is the plan, and nothing that a name in it would like to show instead."""

from __future__ import annotations

import pytest
from markdown_it import MarkdownIt

from pulsar_advisor.execution.consent.approval import Before
from pulsar_advisor.execution.throttle import ApplyThrottle
from pulsar_advisor.model.cluster.cluster_state import IsolationPolicy
from pulsar_advisor.model.plans.goal import ROLL, Goal
from pulsar_advisor.model.plans.plan import Plan, PlannedSetting, Prediction
from pulsar_advisor.model.plans.sealed import digest_of
from pulsar_advisor_airflow.approval_request import STEPS_SHOWN, lines, subject
from pulsar_advisor_airflow.configuration import page_link, report_link
from unit.execution.doubles import B1, UPPER, forecast, make_plan, unload_step
from unit.planning.kinds.clusters import cluster, planned

EVIL = "a`|\n\n# Approved already\n[click](https://evil) <img src=x> **b** https://evil \x1b[2J\u202e"

NOW = forecast({B1: 0.8})
OPEN = forecast({B1: 0.5}).model_copy(update={"highest_maximum_ratio": 0.8})


def plan() -> Plan:
    step = unload_step().model_copy(update={"namespace": EVIL, "reason": EVIL, "source": EVIL, "destination": EVIL})
    made = make_plan([step])
    identity = made.identity.model_copy(update={"cluster_name": EVIL})
    settings = {EVIL: PlannedSetting(value=EVIL, origin="what-if")}
    names = {"cluster": EVIL, "identity": identity, "shedder": EVIL, "snapshot": EVIL, "settings": settings}
    return made.model_copy(update=names)


def a_roll() -> Plan:
    decision = plan().decision.model_copy(update={"figures": {"moves_of_a_bundle": EVIL}})
    return plan().model_copy(update={"shedder": ROLL, "goal": Goal(ROLL, (EVIL,)), "decision": decision})


@pytest.mark.parametrize("evil", [plan(), a_roll()], ids=["plan", "roll"])
def test_no_name_becomes_markup(evil: Plan) -> None:
    link = report_link("demo", evil.snapshot)
    shown = "\n".join(lines(evil, ApplyThrottle(), 4, EVIL, link))
    page = MarkdownIt("commonmark", {"html": True}).enable("table").render(shown)
    assert page.count("<tr>") == 2
    assert page.count("<a ") == page.count(f'<a href="{link}">') == 1
    assert not [tag for tag in ("<h1", "<img", "<strong>b<") if tag in page]
    assert not [character for character in "\x1b\u202e" if character in page]


def test_the_subject_is_one_plain_line() -> None:
    assert subject(plan()).isprintable()


def test_who_approves_what_is_left_of_a_plan_is_shown_that_and_the_run_before() -> None:
    plan = make_plan([unload_step(1), unload_step(2, UPPER)])
    recorded = Before(runs=(7,), ended=frozenset({"step-001"}))
    shown = "\n".join(lines(plan, ApplyThrottle(), 4, "alice", "/reports/x", recorded=recorded))
    assert "- **carried out in part**, in run 7: only what is left is sent" in shown
    assert "**alice** proposes 1 unload and 0 splits" in shown
    assert "| 1 | step-002 |" in shown
    assert "step-001" not in shown
    assert "is sent first" not in shown


def test_who_approves_a_plan_reads_how_many_steps_are_not_shown_and_how_many_not_sent() -> None:
    steps = [unload_step(number, namespace=f"shop/{number}") for number in range(STEPS_SHOWN + 2)]
    unowned = unload_step(99, UPPER, executable=False, not_executable_because="unowned")
    plan = make_plan([*steps, unowned])
    shown = "\n".join(lines(plan, ApplyThrottle(), 4, "alice", "/reports/x"))
    assert "- 1 step of the plan can't be carried out and won't be sent\n" in shown
    assert shown.count("| step-") == STEPS_SHOWN
    assert "step-099" not in shown
    page = page_link("clusters", plan.cluster, "plans", digest_of(plan))
    assert shown.endswith(f"\n… and 2 more: see [the plan]({page}).")


def test_who_approves_a_plan_is_shown_what_its_proposer_assumed() -> None:
    assumed = {"loadBalancerCPUResourceWeight": PlannedSetting(value="2", origin="what-if")}
    shown = "\n".join(lines(make_plan([unload_step()], settings=assumed), ApplyThrottle(), 4, "alice", "/reports/x"))
    assert "- **assumes other settings** than the cluster's: `loadBalancerCPUResourceWeight=2`" in shown


def test_who_approves_a_plan_reads_that_it_may_be_of_no_use() -> None:
    plan = make_plan([unload_step()], predicted=Prediction(model="base_load", before=NOW, after=OPEN))
    shown = lines(plan, ApplyThrottle(), 4, "alice", "/reports/x")
    assert "- highest usage: 80.0% → 50.0%, at worst 80.0% (predicted)" in shown


@pytest.mark.parametrize("hours", ["0.5", "4", "167.5"])
def test_who_approves_a_plan_is_shown_for_how_long(hours: str) -> None:
    assert f"- approved for {hours} h: nothing is sent later" in lines(
        make_plan([unload_step()]), ApplyThrottle(), float(hours), "alice", "/reports/x"
    )


@pytest.mark.parametrize(("most", "times"), [(1, "1 time"), (2, "2 times")])
def test_who_approves_a_roll_reads_how_often_a_bundle_may_move(most: int, times: str) -> None:
    decision = plan().decision.model_copy(update={"figures": {"moves_of_a_bundle": most}})
    roll = plan().model_copy(update={"shedder": ROLL, "goal": Goal(ROLL, ("a",)), "decision": decision})
    assert f"move no bundle more than {times} in all\n" in "\n".join(lines(roll, ApplyThrottle(), 24, "al", "/r"))


def test_who_approves_a_roll_is_told_that_a_later_turn_leaves_bundles_behind() -> None:
    policy = IsolationPolicy("vip", ("t/b-0",), ("b",), (), 1, 100)
    roll = planned(cluster({"a": [10], "b": [10], "c": [10]}, policies=[policy]), Goal(ROLL, ("a", "b")))
    shown = "\n".join(lines(roll, ApplyThrottle(), 24, "alice", "/reports/x"))
    assert "- **Goal reached only in part: roll 2 brokers, a" in shown


def test_who_approves_reads_that_the_release_is_newer_than_known() -> None:
    newer = make_plan([unload_step()], pulsar_version="9.1.0")
    assert "- **note**: Pulsar 9.1.0 is newer than " in "\n".join(
        lines(newer, ApplyThrottle(), 4, "alice", "/reports/x")
    )
