"""Brokers before and after, their thresholds, and the shares of what runs on them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from pulsar_advisor.documents.recommendation import Advice
from pulsar_advisor.reporting.brokers import broker_rows, hot_brokers
from pulsar_advisor.reporting.html import render_html
from pulsar_advisor.reporting.markdown import render_markdown
from states import QUARTERS
from unit.reporting.reading import read
from unit.reporting.skewed import BROKERS, balanced_inputs, huge_inputs, skewed_inputs


def test_brokers_are_sorted_by_usage() -> None:
    assert [row.id for row in skewed_inputs().page().brokers.rows] == list(BROKERS)


def test_the_resource_that_decides_is_named() -> None:
    assert {row.deciding_resource for row in skewed_inputs().page().brokers.rows} == {"cpu"}


def test_the_thresholds_are_overload_and_mean_plus_what_the_shedder_allows() -> None:
    inputs = skewed_inputs()
    overload, above_mean = inputs.page().brokers.thresholds
    assert (overload.label, overload.ratio) == ("overloaded", 0.85)
    mean = inputs.plans[0].predicted.before.mean_ratio
    assert mean is not None
    assert (above_mean.label, above_mean.ratio) == ("mean + 15%", pytest.approx(mean + 0.15))


def test_shares_are_parts_of_the_brokers_own_totals() -> None:
    inputs = skewed_inputs()
    hot = inputs.page().hot[0]
    assert hot.broker.id == BROKERS[0]
    assert sum(share.msg_rate_share or 0.0 for share in hot.bundles) == pytest.approx(1.0)
    assert hot.bundles[0].name == f"shop/orders/{QUARTERS[2]}"
    assert hot.bundles[0].step == "step-004"


def test_a_broker_that_reports_no_traffic_gives_no_share() -> None:
    inputs = skewed_inputs()
    page = inputs.with_brokers(traffic=np.zeros_like(inputs.state.brokers.traffic)).page()
    assert {share.msg_rate_share for hot in page.hot for share in hot.bundles} == {None}


def test_topics_that_are_not_loaded_make_nothing_hot() -> None:
    page = skewed_inputs().page()
    assert sum(hot.topics_total for hot in page.hot) == int(skewed_inputs().state.topics.loaded.sum())


def test_every_broker_is_there_with_what_it_owns() -> None:
    inputs = huge_inputs(brokers=120, bundles_per_broker=10)
    page = inputs.page()
    assert (len(page.brokers.rows), page.brokers.total, len(page.hot)) == (120, 120, 120)
    assert sum(hot.bundles_total for hot in page.hot) == int((inputs.state.bundles.owner >= 0).sum())


def test_the_resource_that_decides_is_that_of_the_plan_whatever_its_weight() -> None:
    page = skewed_inputs().page()
    assert {hot.decided_by for hot in page.hot} == {"CPU"}
    inputs = skewed_inputs()
    usage = inputs.state.brokers.usage.copy()
    usage[:, 0] /= 2  # what plans start from is not always what was reported
    assert {row.deciding_resource for row in inputs.with_brokers(usage=usage).page().brokers.rows} == {"cpu"}


def test_brokers_that_were_set_aside_are_in_no_figure_of_the_spread() -> None:
    page = skewed_inputs().with_brokers(complete=np.array([True, True, True, False])).page()
    counted = [row.before_ratio for row in page.brokers.rows if row.complete]
    assert page.brokers.before.minimum == min(counted, key=lambda ratio: ratio or 0.0)


def test_a_step_that_can_not_be_carried_out_is_not_in_the_plan_of_a_bundle() -> None:
    inputs = skewed_inputs()
    first, *others = inputs.plans[0].steps
    plan = inputs.plans[0].model_copy(update={"steps": (first.model_copy(update={"executable": False}), *others)})
    state = inputs.state
    shares = hot_brokers(state, broker_rows(state, plan), plan)[0].bundles
    assert {share.name: share.step for share in shares}[first.bundle_name] is None


def test_a_prediction_names_the_plan_that_is_not_advised() -> None:
    inputs = skewed_inputs()
    assert inputs.page().brokers.predicted == "after the plan"
    page = inputs.recommending(advice=Advice(plan=None, digest=None, sentence="Do nothing.")).page()
    assert page.brokers.predicted == (
        "after the plan of ThresholdShedder with LeastLongTermMessageRate, which is not advised"
    )
    assert balanced_inputs().page().brokers.predicted == "if nothing is done"


def test_what_is_no_number_makes_no_broker_hot() -> None:
    inputs = skewed_inputs()
    traffic = inputs.state.bundles.traffic.copy()
    owned = np.flatnonzero(inputs.state.bundles.owner == 0)
    traffic[owned[0]], traffic[owned[1]] = np.nan, np.inf
    state = replace(inputs.state, bundles=replace(inputs.state.bundles, traffic=traffic))
    page = replace(inputs, state=state).page()
    shown = {share.name for hot in page.hot for share in hot.bundles}
    assert not shown & {state.bundle_name(int(row)) for row in owned[:2]}
    assert all(math.isfinite(tenant.throughput_share or 0.0) for tenant in page.tenants)


def test_what_sets_a_broker_apart_is_in_every_form() -> None:
    page = skewed_inputs().page()
    gone = replace(page.brokers.rows[0], leader=True, available=False, complete=False)
    shown = replace(page, brokers=replace(page.brokers, rows=(gone, *page.brokers.rows[1:])))
    assert f"`{gone.id}` (leader, not registered, figures incomplete)" in render_markdown(shown)
    assert f"{gone.id} leader not registered figures incomplete" in " ".join(read(render_html(shown)).text.split())
