import ast
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import documents
from pulsar_advisor.lint.judge import judge, proposals
from pulsar_advisor.lint.registry import RULES
from pulsar_advisor.lint.rule import Rule
from pulsar_advisor.model.configuration.kinds import LoadManagerKind
from pulsar_advisor.model.errors import AdvisorError
from pulsar_advisor.planning.requests.what_if import check_what_if
from pulsar_advisor.simulation.scores import Ending
from pulsar_advisor.simulation.trials import Comparison, Trial
from unit.any_cluster import Rows, rows
from unit.lint.cases import case
from unit.properties import examples

HERE = Path(__file__).parent


def test_warnings_come_first() -> None:
    found = judge(case(*[80.0] * 10, 0.0))
    severities = [finding.severity for finding in found]
    assert severities == sorted(severities, key=lambda severity: severity != "warning")
    assert {"idle_broker_is_noticed", "new_namespaces_get_bundles_for_all_brokers"} <= {one.rule for one in found}


@examples(150)
@given(
    rows(),
    st.sampled_from(get_args(LoadManagerKind)),
    st.sampled_from(["ThresholdShedder", "OverloadShedder", "UniformLoadShedder", "AvgShedder"]),
)
def test_figures_that_are_no_numbers_break_no_rule(of: Rows, load_manager: LoadManagerKind, shedder: str) -> None:
    """Lint works on what was never validated."""
    brokers, bundles = of
    with np.errstate(all="ignore"):
        found = judge(case(brokers=brokers, bundles=bundles, load_manager=load_manager, shedder=shedder))
    assert {finding.severity for finding in found} <= {"warning", "info"}


def test_rules_of_another_load_manager_are_left_out() -> None:
    for manager in ("modular", "simple", "extensible"):
        of_manager = {rule.name for rule in RULES if manager in rule.load_managers}
        assert {finding.rule for finding in judge(case(4, 2, load_manager=manager))} <= of_manager


def test_a_cluster_without_brokers_breaks_no_rule_about_them() -> None:
    assert [finding.rule for finding in judge(case())] == ["shedder_and_placement_agree"], "which is about settings"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_every_rule_says_what_holds_why_and_what_to_do(rule: Rule) -> None:
    assert all((rule.title, rule.why, rule.source, rule.remedy))
    assert not rule.title.endswith(".")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_every_rule_has_a_case_that_keeps_it_and_one_that_does_not(rule: Rule) -> None:
    """The module's tests name the rule, with a violation and with None."""
    module = HERE / f"test_{rule.find.__module__.rpartition('.')[2]}.py"
    names = {node.attr for node in ast.walk(ast.parse(module.read_text())) if isinstance(node, ast.Attribute)}
    assert rule.name in names


def test_names_are_unique() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES)


def test_a_proposed_change_is_one_that_a_recommendation_can_try() -> None:
    found = judge(case(*[80.0] * 10, 0.0))
    changes = [change for finding in found for change in finding.change.items()]
    assert changes
    for key, value in changes:
        check_what_if(key, value)


def test_only_what_is_better_than_today_is_proposed_and_the_best_comes_first() -> None:
    findings = [one for one in judge(case(*[80.0] * 10, 0.0, settings={"loadBalancerEnabled": "false"})) if one.change]
    keys = [tuple(finding.change) for finding in findings]
    assert len(keys) >= 2

    def tried(verdicts: dict[int, tuple[Comparison, float]]) -> list[Trial]:
        return [
            Trial(
                change=findings[row].change,
                error=None,
                verdict=verdict,
                score=Ending(**documents.ending(last_usage_maximum_ratio=ratio)),
            )
            for row, (verdict, ratio) in verdicts.items()
        ]

    kept: dict[int, tuple[Comparison, float]] = dict.fromkeys(range(len(findings)), ("worse", 0.1)) | {
        1: ("better", 0.5)
    }
    found = proposals(findings, tried(kept))
    assert [bool(finding.change) for finding in found].count(True) == 1
    assert tuple(found[0].change) == keys[1] or found[0].severity != findings[1].severity
    assert all(finding.effect is not None for finding in found)
    of_no_balance = [findings[0], replace(findings[1], severity="info"), *findings[2:]]
    assert proposals(of_no_balance, tried(kept))[0].severity == "warning"
    # A warning whose change is known to gain nothing hides none that wasn't refuted.
    untried = {row: kept[row] for row in kept if findings[row].severity != "warning" or row == 0}
    warnings = [one for one in proposals(findings, tried(untried)) if one.severity == "warning"]
    assert warnings[-1].finding.rule == findings[0].rule
    failed = [Trial.failed(findings[row].change, AdvisorError("can't be simulated")) for row in untried]
    assert [one.finding.rule for one in proposals(findings, failed)] == [one.rule for one in findings]
    assert [one.finding for one in proposals(findings, [])] == findings
