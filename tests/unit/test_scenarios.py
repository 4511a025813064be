"""The corpus of `scenarios`: what holds of every answer about every cluster, and what is expected of some."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import pytest
import yaml

from scenarios import brute_force, scenario
from scenarios.asked import Asked
from scenarios.brute_force import BruteForce
from scenarios.facts import facts, holds
from scenarios.properties import PROPERTIES, computed
from scenarios.scenario import FOLDER, Scenario, all_scenarios

SCENARIOS = {one.name: one for one in all_scenarios()}
SLOW = frozenset({"explanations_can_be_read"})
"""Properties that ask for hundreds of plans."""
SAMPLED = 6
"""Each how many scenarios one isn't slow: what is asked of a scenario is planned once for all properties."""


def _expected_failures() -> dict[tuple[str, str], str]:
    """(scenario, property or question) -> the part of the product that doesn't meet it yet."""
    path = FOLDER.parent / "expected_failures.yaml"
    if not path.exists():
        return {}
    document = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    return {
        (one, name): part
        for part, failures in document.items()
        for name, scenarios in failures.items()
        for one in scenarios
    }


EXPECTED_FAILURES = _expected_failures()


def _cases() -> Iterator[Any]:
    for place, (name, cluster) in enumerate(SCENARIOS.items()):
        for what in (*PROPERTIES, *(one.ask for one in cluster.expect)):
            marks = [pytest.mark.full] if what in SLOW else [pytest.mark.slow] if place % SAMPLED else []
            if part := EXPECTED_FAILURES.pop((name, what), None):
                marks.append(pytest.mark.xfail(reason=f"not met yet by {part}", strict=True))
            yield pytest.param(name, what, marks=marks, id=f"{name}: {what}")


CASES = list(_cases())


@lru_cache(maxsize=2)
def _asked(name: str) -> tuple[Asked, BruteForce]:
    return Asked(SCENARIOS[name]), BruteForce(SCENARIOS[name])


def complaints(name: str, what: str) -> list[str]:
    """What is wrong with the answers about a scenario, by a property or by what is expected of a question."""
    asked, brute = _asked(name)
    if what in PROPERTIES:
        return list(PROPERTIES[what](asked, brute))
    found = []
    for expectation in SCENARIOS[name].expect:
        if expectation.ask == what:
            of = facts(what, asked, brute)
            found += [f"not: {clause} ({expectation.why})" for clause in expectation.accept if not holds(clause, of)]
            found += [f"never: {clause} ({expectation.why})" for clause in expectation.never if holds(clause, of)]
            if found:
                found.append(f"the answer: {dict(of)}")
    return found


@pytest.mark.parametrize(("name", "what"), CASES)
def test_an_expert_would_sign_it(name: str, what: str) -> None:
    assert complaints(name, what) == []


def test_every_expected_failure_names_a_test() -> None:
    assert EXPECTED_FAILURES == {}


def test_the_brute_force_owes_nothing_to_what_it_judges() -> None:
    imported = [
        (node.module or "") if isinstance(node, ast.ImportFrom) else node.names[0].name
        for module in (brute_force, scenario)
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert not [name for name in imported if name.startswith("pulsar_advisor.") and ".model." not in name]


def test_the_corpus_is_large_enough_and_says_why() -> None:
    assert len(SCENARIOS) >= 40
    expectations = [one for cluster in SCENARIOS.values() for one in cluster.expect]
    assert all(one.why and (one.accept or one.never) for one in expectations)


@pytest.mark.full
def test_the_brute_force_answers_more_questions_than_are_answered_by_hand() -> None:
    by_hand = sum(len(cluster.expect) for cluster in SCENARIOS.values())
    assert sum(len(computed(BruteForce(cluster))) for cluster in SCENARIOS.values()) > by_hand


def test_a_question_is_expected_something_of_once() -> None:
    for cluster in SCENARIOS.values():
        asks = [one.ask for one in cluster.expect]
        assert len(asks) == len(set(asks)), cluster.name


def test_an_unknown_word_in_a_scenario_is_refused(tmp_path: Any) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text("title: t\nbrokers: {a: {cpus: 90}}\n")
    with pytest.raises(TypeError, match="cpus"):
        Scenario.read(path)


def test_a_clause_about_an_unknown_fact_is_refused() -> None:
    with pytest.raises(KeyError, match="moved"):
        holds("moved is 3", {"moves": 3})
    with pytest.raises(KeyError, match="RELATION"):
        holds("moves equals 3", {"moves": 3})
