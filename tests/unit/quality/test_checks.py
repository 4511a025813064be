import json
import re
from pathlib import Path

import pytest

from pulsar_advisor.cli import exit_code
from pulsar_advisor.documents.document import as_json
from pulsar_advisor.model.cluster.inputs import INPUTS, Input
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.quality.checks import TABLES, Check, checks, named, suites, suites_sha256

REPOSITORY = Path(__file__).parents[3]


def test_every_suite_in_the_folder_is_run() -> None:
    assert {path.stem for path in (REPOSITORY / "expectations").glob("*.json")} == set(TABLES)


def test_names_are_unique() -> None:
    names = [check.name for check in checks()]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("check", checks(), ids=lambda check: check.name)
def test_a_check_states_what_holds_why_it_matters_and_what_to_do(check: Check) -> None:
    assert check.severity in ("critical", "warning", "info")
    assert check.scope in ("cluster", "broker", "namespace", "bundle")
    assert all(text.endswith(".") for text in (check.title, check.reason, check.action))


def test_reasons_name_pulsars_issues_and_proposals_at_the_end_of_a_sentence() -> None:
    named = [check.reason for check in checks() if re.search(r"#\d|PIP|pulsar/(pull|issues)", check.reason)]
    assert named
    for reason in named:
        rest = re.sub(r" \((apache/pulsar#[1-9]\d*|PIP-[1-9]\d*)\)\.(?= |$)", ".", reason)
        assert not re.search(r"#\d|PIP|pulsar/", rest), reason


def test_one_table_at_most_is_queried() -> None:
    """Two tables are judged at a time, and for a query Great Expectations gives each one's rows the same name."""
    types = {table: {one["type"] for one in suite} for table, suite in suites().items()}
    assert [table for table in types if "unexpected_rows_expectation" in types[table]] == ["settings"]


def test_what_can_be_confined_never_stops_the_line() -> None:
    assert {check.scope for check in checks() if check.severity == "critical"} == {"cluster"}


def test_only_critical_checks_stop_the_line() -> None:
    for check in checks():
        assert (check.effect == "stop") == (check.severity == "critical"), check.name


PULSAR_PASSES_OVER = {
    "brokers.available": "the leader drops the data of brokers that are no longer registered",
    "brokers.reported": "the leader has nothing about a broker without a report",
    "bundles.owner_is_active": "only brokers that are registered and report give bundles",
    "bundles.ring_from_below": "NamespaceBundles refuses ranges that don't cover the ring",
    "bundles.ring_to_above": "NamespaceBundles refuses ranges that don't cover the ring",
    "namespaces.boundaries_ascend": "NamespaceBundles refuses such boundaries",
    "namespaces.boundaries_readable": "NamespaceBundles refuses such boundaries",
}


@pytest.mark.parametrize("check", [one for one in checks() if one.effect == "confine"], ids=lambda check: check.name)
def test_nothing_is_set_aside_but_what_pulsar_passes_over_and_what_cannot_be_computed_with(check: Check) -> None:
    assert (check.severity, check.scope != "cluster") == ("warning", True)
    is_no_figure = '"max_value": 1000000000000000.0' in check.expectation and '"min_value"' in check.expectation
    counts_impossible_ones = '"column": "impossible_counts", "max_value": 0' in check.expectation
    assert check.name in PULSAR_PASSES_OVER or is_no_figure or counts_impossible_ones


def test_checks_are_about_inputs_that_strategies_read() -> None:
    assert {name for check in checks() for name in check.about or ()} <= INPUTS.keys()


@pytest.mark.parametrize("name", INPUTS)
def test_every_input_has_a_check_about_it(name: Input) -> None:
    assert any(name in (check.about or ()) for check in checks())


def test_queries_double_the_braces_they_mean() -> None:
    # Great Expectations sends a query through str.format: an undoubled brace makes the check fail with an error inside.
    for suite in suites().values():
        for expectation in suite:
            query = str(expectation["kwargs"].get("unexpected_rows_query", "{batch}"))
            assert query.format(batch="rows").count("{") == query.count("{{")


def test_suites_are_formatted_as_they_are_reviewed() -> None:
    for path in (REPOSITORY / "expectations").glob("*.json"):
        text = path.read_text()
        assert text == json.dumps(json.loads(text), indent=1, ensure_ascii=False) + "\n", path.name


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b'{"expectations": [', "Expecting value"),
        (b'{"expectations": [{"type": "t"}]}', "meta"),
        (b'{"expectations": [{"type": "t", "kwargs": {}, "severity": "grave", "meta": {}}]}', "code"),
    ],
)
def test_a_mistake_in_a_suite_is_named_with_its_file(monkeypatch: pytest.MonkeyPatch, content: bytes, why: str) -> None:
    monkeypatch.setattr("pulsar_advisor.quality.checks._content", lambda _table: content)
    monkeypatch.setattr("pulsar_advisor.quality.checks.suites", suites.__wrapped__)
    with pytest.raises(
        UsageError, match=rf"expectations/brokers\.json is not a suite of checks \(.*{why}.*: correct it"
    ):
        checks.__wrapped__()


def test_the_digest_of_the_suites_is_a_sha256() -> None:
    assert len(suites_sha256()) == 64


def test_a_check_is_explained_without_a_snapshot(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["validate", "--explain", "bundles.one_owner"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("bundles.one_owner: ")
    for entry in (
        "severity    warning",
        "scope       bundle",
        "why  ",
        "action      ",
        "source      expectations/bundles",
    ):
        assert entry in shown


def test_an_entry_is_printed_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["validate", "--explain", "bundles.one_owner", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == as_json(named("bundles.one_owner").entry)


def test_a_code_that_one_table_has_is_enough() -> None:
    assert named("one_owner") == named("bundles.one_owner")


def test_an_unknown_check_is_answered_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"no check 'bundles.one_ownr'; the nearest is 'bundles.one_owner'"):
        named("bundles.one_ownr")
    with pytest.raises(UsageError, match=r"no check 'one_ownr'; the nearest is 'one_owner'"):
        named("one_ownr")
    with pytest.raises(UsageError, match=r"no check 'nope'; docs/checks.md lists all checks"):
        named("nope")


def test_a_code_of_several_tables_needs_the_table() -> None:
    with pytest.raises(UsageError, match=r"brokers\.unique, bundles\.unique"):
        named("unique")
