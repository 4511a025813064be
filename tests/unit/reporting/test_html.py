"""What a reader of the HTML page sees, and what the page can't be made to do."""

from __future__ import annotations

import base64
import random
import re
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from html import unescape
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pytest

from pulsar_advisor.lint.judge import LintFinding
from pulsar_advisor.model.plans.names import short
from pulsar_advisor.model.plans.sealed import digest_of
from pulsar_advisor.planning.advice.findings import Finding
from pulsar_advisor.planning.kinds.goal_outcome import GoalOutcome
from pulsar_advisor.planning.plans.by_hand import pulsar_admin
from pulsar_advisor.reporting.figures import percent
from pulsar_advisor.reporting.html import render_html
from pulsar_advisor.reporting.markdown import render_markdown
from pulsar_advisor.reporting.provenance import Fact
from states import QUARTERS
from unit.reporting.reading import Reading, read
from unit.reporting.skewed import (
    BROKERS,
    Inputs,
    balanced_inputs,
    check,
    hostile_inputs,
    huge_inputs,
    recommendation_of,
    skewed_inputs,
    validation_of,
)


@pytest.fixture(scope="module")
def inputs() -> Inputs:
    return skewed_inputs()


@pytest.fixture(scope="module")
def html(inputs: Inputs) -> str:
    return render_html(inputs.page())


@pytest.fixture(scope="module")
def reading(html: str) -> Reading:
    return read(html)


def test_the_headline_is_the_verdict(inputs: Inputs, reading: Reading) -> None:
    assert inputs.page().verdict.headline.replace("\u00a0", " ") in reading.text


def test_the_spread_says_that_it_leaves_out_brokers_that_were_set_aside(inputs: Inputs, reading: Reading) -> None:
    one_aside = inputs.with_brokers(complete=np.array([False, True, True, True]))
    assert "Usage of all brokers" in reading.text
    assert "Usage of registered brokers with complete figures" in read(render_html(one_aside.page())).text


def test_a_step_that_the_page_leaves_out_is_named_without_a_link() -> None:
    page = huge_inputs(brokers=60, bundles_per_broker=40).page()
    reading = read(render_html(page))
    targets = {f"#{attributes['id']}" for _, attributes in reading.elements if "id" in attributes}
    links = {attributes["href"] for _, attributes in reading.elements if "href" in attributes}
    assert page.unloads.total > 200
    assert links <= targets
    assert "step-201" in reading.text


def test_every_broker_has_the_plans_usage_before_and_after(inputs: Inputs, reading: Reading) -> None:
    predicted = inputs.plans[0].predicted
    for broker in BROKERS:
        _, before, after, *_ = reading.row(broker)
        assert before == percent(predicted.before.brokers[broker].usage_ratio)
        assert after == percent(predicted.after.brokers[broker].usage_ratio)


def test_the_figures_of_a_shedder_are_told_apart_from_predictions(inputs: Inputs) -> None:
    page = replace(inputs.page(), figures=(Fact("maximum usage ratio after", "0.498"),))
    assert (
        "The strategy's own figures; predictions on this page are those of base_load . maximum usage ratio after 0.498"
        in read(render_html(page)).text
    )


def test_the_commands_name_the_advised_plan_and_its_digest(inputs: Inputs, reading: Reading) -> None:
    plan = inputs.plans[0]
    assert f"pulsar-advisor approve {short(digest_of(plan))} --as NAME" in reading.text
    assert digest_of(plan) in reading.text


def test_a_link_to_a_step_leads_somewhere(reading: Reading) -> None:
    ids = {attributes["id"] for _, attributes in reading.elements if "id" in attributes}
    links = {attributes["href"] for _, attributes in reading.elements if "href" in attributes}
    assert {"#step-001", "#step-002", "#step-004"} <= links
    assert {link.removeprefix("#") for link in links} <= ids


def test_no_two_elements_share_an_id(reading: Reading) -> None:
    ids = [attributes["id"] for _, attributes in reading.elements if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_every_table_names_its_columns(reading: Reading) -> None:
    parts = [tag for tag, _ in reading.elements if tag in ("table", "thead", "tbody")]
    assert all(after == "thead" for tag, after in pairwise(parts) if tag == "table")


@pytest.mark.parametrize("of", [skewed_inputs, balanced_inputs, hostile_inputs])
def test_no_heading_skips_a_level(of: Callable[[], Inputs]) -> None:
    levels = [int(name[1]) for name, _ in read(render_html(of().page())).elements if re.fullmatch("h[1-6]", name)]
    assert levels[0] == 1
    assert all(following <= level + 1 for level, following in pairwise(levels))


def test_the_parts_of_a_chart_are_nothing_to_a_screen_reader(html: str) -> None:
    drawings = re.findall(r"<svg.*?</svg>", html, re.DOTALL)
    assert drawings
    assert not [drawing for drawing in drawings if "aria-" in drawing or "role=" in drawing]


def test_a_step_that_cant_be_carried_out_says_why(reading: Reading) -> None:
    assert "Can't be carried out: the bundle has no owner." in reading.text


def test_a_split_is_shown_apart_with_its_children(inputs: Inputs, reading: Reading) -> None:
    split = inputs.plans[0].steps[-1]
    assert "Splits cannot be undone" in reading.text
    topics = [int(reading.row(child)[1]) for child in split.children]
    assert sum(topics) == split.expect.topics


def test_the_chart_is_described_in_words(reading: Reading) -> None:
    described = [attributes["aria-label"] for _, attributes in reading.elements if attributes.get("role") == "img"]
    tradeoff, words = described
    assert "Chart of 3\N{NO-BREAK SPACE}choices by the topics and clients they disturb" in tradeoff
    assert f"Highest before: {BROKERS[0]} at 91.0%" in words


def test_the_options_come_first_with_effect_cost_and_condition(html: str, reading: Reading) -> None:
    assert html.index('id="options"') < html.index('id="brokers"')
    assert "Holds if the bundles are where the snapshot found them, and the load stays as it is." in reading.text
    assert "nothing is disturbed." in reading.text
    assert reading.row("2")[1].startswith("OverloadShedder with LeastLongTermMessageRate")


def test_a_dynamic_or_what_if_value_is_listed_before_the_defaults(reading: Reading) -> None:
    keys = [row[0] for row in reading.rows if row and row[0].startswith(("loadBalancer", "default"))]
    assert keys[:2] == ["loadBalancerBrokerThresholdShedderPercentage", "loadBalancerNamespaceBundleMaxMsgRate"]


def test_what_could_not_be_evaluated_is_not_called_failed(reading: Reading) -> None:
    results = [row[0] for row in reading.rows if row and row[0] in ("failed", "not evaluated")]
    assert results == ["not evaluated", "failed"]
    assert "column bandwidth_out_limit is missing" in reading.text


def test_the_page_loads_nothing_and_runs_nothing_but_its_own_script(reading: Reading, html: str) -> None:
    assert_harmless(reading)
    policy = next(a["content"] for _, a in reading.elements if a.get("http-equiv") == "Content-Security-Policy")
    [script] = re.findall("<script>(.*?)</script>", html, re.DOTALL)
    its_hash = base64.b64encode(sha256(script.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{its_hash}'"


def test_names_from_the_cluster_stay_text() -> None:
    reading = read(render_html(hostile_inputs().page()))
    assert_harmless(reading)
    assert "<script>alert(1)</script>" in reading.text
    assert "</style><img src=x onerror=alert(1)>" in reading.text


def test_characters_that_reverse_or_erase_text_are_written_out() -> None:
    html = render_html(hostile_inputs().page())
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200b\x00-\x08\x0b-\x1f\x7f]", html)
    assert "\\u202e" in html


def test_an_answer_of_nothing_says_why_and_offers_no_command() -> None:
    reading = read(render_html(balanced_inputs().page()))
    assert "Do nothing: no strategy would act on these figures." in reading.text
    assert "No broker is above 85 %: the highest is at" in reading.text
    assert "pulsar-advisor approve" not in reading.text


@pytest.mark.parametrize(
    ("severity", "options", "outcome", "kicker", "kind"),
    [
        ("info", True, None, "Nothing to do", "nothing"),
        ("warning", True, None, "No plan", "unsolved"),
        ("warning", False, "reached", "Nothing to do", "nothing"),
        ("info", False, "missed", "No plan", "unsolved"),
    ],
)
def test_only_where_all_is_well_the_page_is_green_whatever_the_words(
    severity: Literal["warning", "info"], options: bool, outcome: GoalOutcome | None, kicker: str, kind: str
) -> None:
    inputs = balanced_inputs()
    known: dict[str, Any] = {"findings": (Finding(severity, "a is at 60%."),), "goal_outcome": outcome}
    known["options"] = inputs.recommendation.options if options else ()
    page = inputs.recommending("All is as it is.", **known).page()
    text = render_html(page)
    assert f'<p class="kicker">{kicker}</p>' in text
    assert f'class="verdict {kind}"' in text
    assert page.is_unsolved is (kind == "unsolved")


def test_without_any_plan_the_page_says_that_usage_is_not_known() -> None:
    inputs = replace(
        balanced_inputs(), plans=(), recommendation=recommendation_of((), errors={"ThresholdShedder": "no"})
    )
    reading = read(render_html(inputs.page()))
    assert "No strategy produced a plan, so usage before and after is unknown." in reading.text
    assert "Could not be judged: no" in reading.text


def test_data_that_must_not_be_used_give_no_advice(inputs: Inputs) -> None:
    overlap = check("bundles.ranges_tile", "Bundles cover the ring", severity="critical", success=False)
    reading = read(render_html(replace(inputs, validation=validation_of(overlap)).page()))
    assert "No advice: the data must not be used. Did not pass: Bundles cover the ring." in reading.text
    assert "pulsar-advisor approve" not in reading.text


def test_the_order_of_the_answers_does_not_change_the_page(inputs: Inputs, html: str) -> None:
    shuffled = random.Random(5).sample(inputs.outcomes, len(inputs.outcomes))
    assert render_html(replace(inputs, outcomes=shuffled).page()) == html


def test_drift_has_its_section_only_where_there_is_something_to_compare_with(inputs: Inputs) -> None:
    page = inputs.page()
    assert "Drift" not in read(render_html(page)).text
    assert "1 broker was added" in read(render_html(replace(page, drift=("1 broker was added",)))).text
    assert "Nothing changed." in read(render_html(replace(page, drift=()))).text


@pytest.mark.slow
def test_a_thousand_brokers_and_a_hundred_thousand_bundles_stay_readable() -> None:
    html = render_html(huge_inputs().page())
    reading = read(html)
    assert len(html) < 1_000_000
    assert "40 of 1,000\u00a0brokers shown" in html
    assert "200 of 500\u00a0unloads shown" in html
    assert "more with less load" not in reading.text  # they may have the same, or none
    assert len(reading.rows) < 2_000


def test_the_bundles_that_make_a_broker_hot_come_with_their_share(inputs: Inputs, reading: Reading) -> None:
    state = inputs.state
    largest = reading.row(f"shop/orders/{QUARTERS[2]}")
    of_broker = (state.bundles.traffic[6, :2].sum()) / state.brokers.traffic[0, :2].sum()
    assert state.bundle_name(6) == f"shop/orders/{QUARTERS[2]}"
    assert largest[2] == percent(of_broker)


_TAGS = {
    *(
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "header",
        "main",
        "section",
        "nav",
        "a",
        "h1",
        "h2",
        "h3",
        "h4",
    ),
    *("p", "div", "span", "b", "em", "br", "code", "pre", "ul", "ol", "li", "dl", "dt", "dd", "figure", "figcaption"),
    *("table", "caption", "thead", "tbody", "tr", "th", "td", "details", "summary"),
    *("svg", "g", "path", "line", "text", "rect", "defs", "clippath", "tspan"),
}


def assert_harmless(reading: Reading) -> None:
    """Only elements that show something, nothing that loads, runs (but for one script) or leads out of the page."""
    tags = [tag for tag, _ in reading.elements]
    assert tags.count("script") == 1
    assert {*tags} <= {*_TAGS, "script"}
    for tag, attributes in reading.elements:
        assert not [name for name in attributes if name.startswith("on") or name in ("src", "srcset", "action", "data")]
        assert attributes.get("href", "#").startswith("#")
        assert re.fullmatch(r"(--of: \d+\.\d%)?", attributes.get("style", "")), (tag, attributes["style"])
        if tag != "svg":
            assert not any(name.startswith("xmlns") for name in attributes)
    assert not re.search(r"url\(|@import|expression|//", "".join(reading.styles))


def test_a_violated_rule_is_shown_with_its_remedy_and_the_what_if_that_tries_it(inputs: Inputs) -> None:
    finding = LintFinding(
        rule="idle_broker_is_noticed",
        severity="warning",
        sentence="b3 is at 0.0%, the mean is 72.7%",
        title="An idle broker makes ThresholdShedder act",
        why="It compares busy brokers with the mean only.",
        remedy="set lowerBoundarySheddingEnabled=true",
        change={"lowerBoundarySheddingEnabled": "true"},
        source="PIP-220",
    )
    text = read(render_html(replace(inputs, lint=(finding,)).page())).text
    assert "b3 is at 0.0%, the mean is 72.7%." in text
    assert "Remedy: set lowerBoundarySheddingEnabled=true." in text
    assert "Try it as a what-if: lowerBoundarySheddingEnabled=true" in text


def test_the_commands_by_hand_are_those_of_the_executable_steps_in_the_order_of_the_plan(
    inputs: Inputs, html: str
) -> None:
    [listed] = re.findall(r'<pre[^>]*aria-label="pulsar-admin commands">(.*?)</pre>', html, re.DOTALL)
    commands = [unescape(line) for line in listed.strip().splitlines()]
    assert commands == [pulsar_admin(step, "4.0.8") for step in inputs.plans[0].steps if step.executable]


def test_the_caption_of_the_chart_names_what_its_own_brokers_share() -> None:
    page = skewed_inputs().page()
    ids = [*(f"b-{number}.a.x.org:8080" for number in range(40)), "b-40.b.x.org:8080"]
    rows = tuple(replace(page.brokers.rows[0], id=id, before_ratio=0.9 - i / 100) for i, id in enumerate(ids))
    html = render_html(replace(page, brokers=replace(page.brokers, rows=rows, total=len(rows))))
    assert "Names are shown without <code>.a.x.org:8080</code>" in html


def test_there_is_no_chart_of_brokers_of_which_nothing_is_predicted() -> None:
    page = skewed_inputs().page()
    rows = tuple(replace(row, before_ratio=None, after_ratio=None) for row in page.brokers.rows)
    html = render_html(replace(page, brokers=replace(page.brokers, rows=rows, total=len(rows))))
    assert "Bar chart of usage" not in html


def test_a_dominated_plan_names_the_better_one_in_every_form() -> None:
    page = skewed_inputs().page()
    first = replace(page.combinations[0], dominated_by="A with B", not_executable=1, steps=0, unloads=0, alike=())
    dominated = replace(page, combinations=(first, *page.combinations[1:]))
    for text in (read(render_html(dominated)).text, render_markdown(dominated)):
        said = text.replace("\u00a0", " ")
        assert "1 step can't be carried out. Dominated by A with B." in said
        assert "no worse in any figure" not in said
