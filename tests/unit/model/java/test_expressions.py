"""Java's regular expressions: what is read alike, what is refused, and that none takes long."""

from __future__ import annotations

import itertools
import time
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.model.java import expressions as java_expressions
from pulsar_advisor.model.java.expressions import matched


def matches(expression: str, name: str) -> bool:
    found = matched([expression], [name])
    assert not found.unusable
    return bool(found.matches[0])


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        (r"\Qa.b\E\d", "a.b1"),
        (r"\Qa.b", "a.b"),
        (r"[\Q]\E]", "]"),
        (r"\Q[[&&{\E", "[[&&{"),
        (r"\\Qa", r"\Qa"),
        (r"(?<host>a)b", "ab"),
        (r"a++b", "aab"),
        (r"(?i)EAST", "east"),
        (r"(?i:E)ast", "east"),
        (r"a\\p", r"a\p"),
        (r"(?<=a)b|ab", "ab"),
        (r"(?!prod-).*", "test-1"),
        (r"(?>a+)b", "aab"),
        (r"[a||b]+", "a|b"),
    ],
)
def test_syntax_that_is_read_alike_is_applied(expression: str, name: str) -> None:
    assert matches(expression, name)


@pytest.mark.parametrize(
    "expression",
    [
        r"\p{Alpha}+",
        "[a-z&&[^b]]+",
        "[a-z[0-9]]",
        r"\h",
        r"a\z",
        r"\v",
        r"\0101",
        r"\141",
        r"\g",
        r"\ma",
        "{",
        "a{,2}",
        "a(?i)b",
        "(?u)a",
        "(?|a|b)",
        "(?P<x>a)",
        "(?R)",
        "(a)(?1)",
        "(?:a){e<=1}",
    ],
)
def test_syntax_that_java_reads_in_another_way_is_refused(expression: str) -> None:
    found = matched([expression], ["a", "b", "ab"])
    assert found.unusable == {
        expression: "it uses syntax that is not supported here, or that Java interprets differently"
    }
    assert not found.matches.any()


@pytest.mark.parametrize("expression", ["*", "(", "[z-a]", "a**", r"\E", r"\y"])
def test_what_is_no_expression_in_java_either_is_refused_with_the_place(expression: str) -> None:
    assert "at position" in matched([expression], ["a"]).unusable[expression]


def test_an_expression_nested_too_deeply_is_unusable() -> None:
    expression = "(" * 5000 + ")" * 5000
    assert matched([expression], ["a"]).unusable == {expression: "it is nested too deeply"}


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("(?:a{600}){600}", "with what it repeats written out, it has more than 100,000 characters"),
        ("(?:a{600}[])]){600}", "with what it repeats written out, it has more than 100,000 characters"),
        ("(?x)(?:a{600}#)\n){600}", "it uses syntax that is not supported here"),
        (f"a{{{'9' * 5000}}}", "with what it repeats written out, it has more than 100,000 characters"),
        (f"a{{1,{'9' * 5000}}}", "Exceeds the limit"),
        ("|".join(["a"] * 50_001), "it has more than 100,000 characters"),
    ],
)
def test_an_expression_that_would_take_memory_without_bound_is_unusable(expression: str, why: str) -> None:
    found = matched([expression], ["a"])
    assert found.unusable[expression].startswith(why)
    assert not found.matches.any()


def test_an_expression_with_many_small_counts_is_applied() -> None:
    addresses = "|".join(f"10\\.0\\.[0-9]{{1,3}}\\.{last}[0-9]{{2}}(:[0-9]{{4}}){{1}}" for last in range(300))
    assert matched([addresses], ["10.0.17.299:8080"]).matches.all()


def test_a_name_is_matched_as_a_whole_by_any_of_the_expressions() -> None:
    assert matched(["a", "b.*", "("], ["a", "ab", "bc", ""]).matches.tolist() == [True, False, True, False]


def test_digits_and_letters_are_ascii_as_in_java() -> None:
    assert matched([r"\w+-\d"], ["é-1", "a-٣", "a-3"]).matches.tolist() == [False, False, True]


@given(st.text(max_size=20).filter(lambda text: r"\E" not in text + "\\"))
def test_quoted_text_matches_itself_alone(text: str) -> None:
    assert matched([rf"\Q{text}\E"], [text, f"{text}x"]).matches.tolist() == [True, False]


@pytest.mark.parametrize("expression", [r"([\w/-]+)*!", r"([\w/-]+)*[!?]", "(a|aa)+[!?]"])
def test_no_expression_takes_long(expression: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java_expressions, "TIME_LIMIT_S", 0.05)
    found = matched([expression, "b"], ["a" * 61, "b"])
    assert found.matches.tolist() == [False, True]
    assert set(found.unusable) <= {expression}


def test_an_expression_that_takes_too_long_is_unusable_for_all_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java_expressions, "TIME_LIMIT_S", 0.05)
    found = matched(["(a|aa)+[!?]"], ["a!", "a" * 61])
    assert found.matches.tolist() == [False, False]
    assert found.unusable == {"(a|aa)+[!?]": f"matching took more than 0.05 s at '{'a' * 61}' and was stopped"}


def test_a_process_that_is_stopped_for_a_while_is_no_slow_expression(monkeypatch: pytest.MonkeyPatch) -> None:
    hours = itertools.count(step=3600)
    monkeypatch.setattr(time, "monotonic", lambda: next(hours))
    assert matched(["b.*"], ["a", "b", "bc"]).matches.tolist() == [False, True, True]


@pytest.mark.parametrize(
    ("expression", "others_tried"),
    [
        ("tenant/.*", []),
        ("tenants*/.*", []),
        ("tenant-{0,1}/.*", []),
        ("tenant/.*|other/.*", ["other/a"]),
        ("(?i)TENANT/.*", ["other/a"]),
        ("o?tenant/.*", ["other/a"]),
    ],
)
def test_names_that_begin_otherwise_than_the_expression_are_not_tried(
    expression: str, others_tried: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []
    pattern = SimpleNamespace(fullmatch=lambda name, timeout: tried.append(name))
    monkeypatch.setattr(java_expressions, "_compiled", lambda expression: pattern)
    matched([expression], ["tenant/a", "other/a"])
    assert tried == ["tenant/a", *others_tried]
