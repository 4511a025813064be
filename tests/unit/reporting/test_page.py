"""How a page is put together."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pulsar_advisor.documents.recommendation import Advice
from pulsar_advisor.model.errors import StorageError
from pulsar_advisor.model.plans.sealed import digest_of
from pulsar_advisor.model.strategy.entry import combination
from pulsar_advisor.planning.proposals.proposal import Move
from pulsar_advisor.reporting.options import NOTHING
from states import QUARTERS
from unit.reporting.skewed import (
    balanced_inputs,
    bundle_row,
    make_plan,
    quiet_plan,
    recommendation_of,
    skewed_inputs,
    skewed_settings,
)


def test_an_advised_plan_that_is_not_there_is_an_error_that_names_it() -> None:
    inputs = skewed_inputs()
    with pytest.raises(StorageError, match=digest_of(inputs.plans[0])):
        replace(inputs, plans=inputs.plans[1:]).page()


def test_where_nothing_is_advised_the_clusters_own_combination_speaks() -> None:
    inputs = balanced_inputs()
    page = inputs.with_plans(*reversed(inputs.plans)).page()
    assert "ThresholdShedder:" in page.verdict.headline


def test_combinations_are_listed_advice_first_and_those_without_a_plan_last() -> None:
    rows = skewed_inputs().page().combinations
    assert [row.shedder for row in rows] == [
        "ThresholdShedder",
        "OverloadShedder",
        "UniformLoadShedder",
        "TransferShedder",
    ]
    assert [row.advised for row in rows] == [True, False, False, False]
    assert [row.configured for row in rows] == [True, False, False, False]


def test_combinations_that_differ_in_nothing_are_one_row() -> None:
    inputs = skewed_inputs()
    rows = inputs.recommendation.combinations
    again = (replace(row, placement="RoundRobinBrokerSelector") for row in rows)
    found = inputs.recommending(combinations=(*again, *rows)).page()
    assert [row.shedder for row in found.combinations] == [row.shedder for row in inputs.page().combinations]
    assert found.combinations[0].placement == "LeastLongTermMessageRate"
    assert all(len(row.alike) == 1 for row in found.combinations)
    assert found.combinations[0].alike == ("ThresholdShedder with RoundRobinBrokerSelector",)


def test_an_extensible_clusters_own_combination_is_marked_whatever_modular_classes_are_set() -> None:
    inputs = skewed_inputs()
    combinations = tuple(
        replace(row, placement="extensions.LeastResourceUsageWithWeight") for row in inputs.recommendation.combinations
    )
    extensible = replace(inputs, state=replace(inputs.state, load_manager="extensible"))
    page = extensible.recommending(combinations=combinations).page()
    assert [row.shedder for row in page.combinations if row.configured] == ["TransferShedder"]


def test_warnings_are_the_first_findings() -> None:
    findings = [("info", "c"), ("warning", "a"), ("warning", "b")]
    inputs = balanced_inputs()
    page = replace(inputs, recommendation=recommendation_of(inputs.plans, findings=findings)).page()
    assert [finding.sentence for finding in page.findings] == ["a", "b", "c"]


def test_settings_are_grouped_by_origin_and_overrides_are_marked() -> None:
    rows = skewed_inputs().page().settings
    assert [row.origin for row in rows[:3]] == ["what-if", "dynamic", "runtime"]
    assert [row.key for row in rows if row.overrides] == [
        "loadBalancerBrokerThresholdShedderPercentage",
        "loadBalancerNamespaceBundleMaxMsgRate",
    ]


def test_the_provenance_names_snapshot_digest_manifest_and_release() -> None:
    inputs = skewed_inputs()
    facts = {fact.label: fact.value for fact in inputs.page().provenance}
    assert facts["Snapshot"] == inputs.state.snapshot
    assert facts["Plan digest"] == digest_of(inputs.plans[0])
    assert facts["Manifest SHA-256"] == inputs.recommendation.manifest_sha256
    assert facts["Pulsar Rebalance Advisor"] == "0.1.0"
    assert "Ledger head" not in facts


def test_the_head_of_the_ledger_is_among_the_provenance() -> None:
    facts = {fact.label: fact.value for fact in skewed_inputs().page(ledger_head="7:c0ffee").provenance}
    assert facts["Ledger head"] == "7:c0ffee"


def test_the_limits_of_a_plan_are_among_the_provenance() -> None:
    inputs = skewed_inputs()
    assert "Limits" not in {fact.label for fact in inputs.page().provenance}
    limits = {"max_splits": 10, "max_unloads": 1, "exclude_namespaces": ("t/n", "u")}
    limited = [plan.model_copy(update={"limits": limits}) for plan in inputs.plans]
    page = inputs.with_plans(*limited).page()
    assert {fact.label: fact.value for fact in page.provenance}["Limits"] == ("max unloads 1, exclude namespaces t/n u")


def test_a_plan_without_steps_counts_as_nothing_to_do() -> None:
    inputs = balanced_inputs()
    plan = quiet_plan(inputs.state, skewed_settings(), "ThresholdShedder", "all is well")
    advice = Advice(plan=None, digest=digest_of(plan), sentence="Nothing.")
    page = inputs.with_plans(plan, advice=advice).page()
    assert page.verdict.kind == "nothing"
    assert page.unloads.total == 0


def test_large_figures_of_a_shedder_have_all_their_digits() -> None:
    inputs = skewed_inputs()
    figures = {"rate": 1234567.8, "mean_usage_ratio": 0.48123, "limit": None}
    plan = inputs.plans[0]
    plan = plan.model_copy(update={"decision": plan.decision.model_copy(update={"figures": figures})})
    page = inputs.with_plans(plan).page()
    assert [fact.value for fact in page.figures] == ["1,234,568", "0.4812", "not finite"]


def test_a_plan_has_one_name_in_the_table_of_options_and_in_that_of_combinations() -> None:
    inputs = skewed_inputs()
    moves = (Move(bundle_row(inputs.state, f"shop/orders/{QUARTERS[0]}"), 0, 3, "because", near_tie=False),)
    alike = [
        make_plan(inputs.state, skewed_settings(), moves=moves, shedder=shedder, placement=placement)
        for shedder, placement in (("ThresholdShedder", "AvgShedder"), ("OverloadShedder", "LeastLongTermMessageRate"))
    ]
    page = inputs.with_plans(inputs.plans[0], *alike).page()
    assert page.options is not None
    named = {combination(row.shedder, row.placement) for row in page.combinations}
    assert named == {one.name for one in page.options.tradeoffs} - {NOTHING}
