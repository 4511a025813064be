"""The JSON Schemas of docs/schemas/: one for each document that the code writes, and real documents keep to them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from published import SCHEMAS, faults, published
from pulsar_advisor.execution.ledger.tables import STEP_STATES
from pulsar_advisor.model.plans.sealed import dump_plan
from pulsar_advisor.reporting.json import json_chunks
from unit.reporting.skewed import Inputs, balanced_inputs, hostile_inputs, skewed_inputs

JOBS = Path(__file__).parents[2] / "jobs" / "pulsar_advisor"
WRITTEN = re.compile(r'^ *[A-Z_]*SCHEMA: \S+ = "(pulsar-advisor/[a-z-]+/\d+)"$', re.MULTILINE)


@pytest.fixture(params=[skewed_inputs, balanced_inputs, hostile_inputs], scope="module")
def inputs(request: pytest.FixtureRequest) -> Inputs:
    found: Inputs = request.param()
    return found


@pytest.mark.parametrize("path", sorted(SCHEMAS.glob("*.json")), ids=lambda path: path.stem)
def test_a_schema_is_valid_and_named_like_its_file(path: Path) -> None:
    schema = json.loads(path.read_bytes())
    Draft202012Validator.check_schema(schema)
    assert schema["$id"] == f"pulsar-advisor/{'/'.join(path.stem.rsplit('-', 1))}"


@pytest.mark.parametrize(
    ("document", "part", "field"),
    [
        ("plan", "Step", "doubts"),
        ("plan", "Goal", "target_ratio"),
        ("report", "BrokerRow", "deciding_resource"),
        ("scale", "Machine", "needed"),
        ("approval-policy", "Criteria", "min_gain_ratio"),
    ],
)
def test_a_schema_says_what_the_code_says_a_field_means(document: str, part: str, field: str) -> None:
    [schema] = (schema for name, schema in published().items() if name.startswith(f"pulsar-advisor/{document}/"))
    assert schema["$defs"][part]["properties"][field]["description"]


def test_the_states_of_a_step_are_those_of_the_ledger() -> None:
    state = published()["pulsar-advisor/apply-result/3"]["$defs"]["AppliedStep"]["properties"]["state"]
    assert state["enum"] == list(STEP_STATES)


def test_every_document_that_the_code_writes_has_a_schema() -> None:
    written = {name for path in JOBS.rglob("*.py") for name in WRITTEN.findall(path.read_text(encoding="utf-8"))}
    assert len(written) > 15
    assert written == set(published())


def test_the_page_of_formats_names_versions_that_are_written() -> None:
    page = (SCHEMAS.parent / "formats.md").read_text(encoding="utf-8")
    tree = page.partition("## The root")[2].split("```")[1]
    named = set(re.findall(r" ([a-z-]+/\d+)$", tree, re.MULTILINE))
    assert len(named) > 5
    assert {f"pulsar-advisor/{name}" for name in named} <= set(published())


def test_a_report_keeps_to_its_schema(inputs: Inputs) -> None:
    assert not faults(json.loads("".join(json_chunks(inputs.page()))))


def test_a_report_with_figures_that_are_no_numbers_keeps_to_its_schema() -> None:
    inputs = skewed_inputs()
    bundles, topics = inputs.state.bundles, inputs.state.topics
    unknown = [np.where([True, False, False, True], np.nan, table.traffic) for table in (bundles, topics)]
    state = replace(
        inputs.state, bundles=replace(bundles, traffic=unknown[0]), topics=replace(topics, traffic=unknown[1])
    )
    assert not faults(json.loads("".join(json_chunks(replace(inputs, state=state).page()))))


def test_a_plan_keeps_to_its_schema(inputs: Inputs) -> None:
    for plan in inputs.plans:
        assert not faults(json.loads(dump_plan(plan)))


def test_a_field_that_is_missing_new_or_of_another_type_is_found(inputs: Inputs) -> None:
    document = json.loads(dump_plan(inputs.plans[0]))
    assert faults({name: value for name, value in document.items() if name != "steps"})
    assert faults({**document, "colour": "red"})
    assert faults({**document, "seed": "one"})
