import json

import pytest

from pulsar_advisor.cli import exit_code
from pulsar_advisor.documents.document import as_json
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.quality.explain import explain


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
    assert json.loads(capsys.readouterr().out) == as_json(explain("bundles.one_owner"))


def test_a_code_that_one_table_has_is_enough() -> None:
    assert explain("one_owner") == explain("bundles.one_owner")


def test_an_unknown_check_is_answered_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"no check 'bundles.one_ownr'; the nearest is 'bundles.one_owner'"):
        explain("bundles.one_ownr")
    with pytest.raises(UsageError, match=r"no check 'one_ownr'; the nearest is 'one_owner'"):
        explain("one_ownr")
    with pytest.raises(UsageError, match=r"no check 'nope'; docs/checks.md lists all checks"):
        explain("nope")


def test_a_code_of_several_tables_needs_the_table() -> None:
    with pytest.raises(UsageError, match=r"brokers\.unique, bundles\.unique"):
        explain("unique")
