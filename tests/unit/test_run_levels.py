"""The runner of the test levels: what it counts, what it says, and when it fails."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import run_levels

pytestmark = pytest.mark.slow

PASSING = "def test_holds(): pass\n"
FAILING = "def test_breaks(): assert 1 == 2\n"
SKIPPING = "import pytest\n\ndef test_needs_brokers(): pytest.skip('no brokers here')\n"
MARKED = """\
import pytest

def test_quick(): pass

@pytest.mark.slow
def test_slow(): assert 1 == 2

@pytest.mark.full
def test_long(): pass
"""
SAMPLED = """\
import pytest

@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("case", range(5))
def test_cases(case): pass
"""
TEARDOWN_FAILING = """\
import pytest

@pytest.fixture
def broken():
    yield
    raise RuntimeError('left something behind')

def test_uses_it(broken): pass
"""


@pytest.fixture
def tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("PULSAR_ADVISOR_REQUIRE_LIVE", raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # loading all of them takes a second each time
    options = "-p no:cacheprovider -p _hypothesis_pytestplugin"
    (tmp_path / "pytest.ini").write_text(
        f"[pytest]\nmarkers =\n slow: long\n full: longer\n sampled: some\naddopts = {options}\n"
    )
    return tmp_path


def add(tests: Path, level: str, source: str) -> None:
    (tests / level).mkdir()
    (tests / level / "test_sample.py").write_text(source)


def test_a_failing_level_does_not_keep_the_next_one_from_running(
    tests: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    add(tests, "parity", FAILING)
    add(tests, "e2e", PASSING)

    assert run_levels.main(["parity", "e2e"], tests) == 1

    *_, last = capfd.readouterr().out.splitlines()
    assert last == "1 passed, 1 failed, 0 skipped"


def test_a_level_without_tests_is_skipped_and_not_an_error(tests: Path, capfd: pytest.CaptureFixture[str]) -> None:
    add(tests, "parity", PASSING)

    assert run_levels.main(["parity", "dags"], tests) == 0

    summary = capfd.readouterr().out.partition("=== summary ===")[2]
    assert "dags         SKIPPED" in summary
    assert "no tests in dags/" in summary


def test_nothing_at_all_to_run_is_an_error(tests: Path) -> None:
    assert run_levels.main([], tests) == 1


def test_the_reason_of_a_skip_is_told(tests: Path, capfd: pytest.CaptureFixture[str]) -> None:
    add(tests, "live", SKIPPING)

    run_levels.main(["live"], tests)

    summary = capfd.readouterr().out.partition("=== summary ===")[2]
    assert "live         SKIPPED" in summary
    assert "1 skipped: no brokers here" in summary


def test_skipped_live_tests_fail_where_brokers_are_required(
    tests: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PULSAR_ADVISOR_REQUIRE_LIVE", "1")
    add(tests, "parity", PASSING)
    add(tests, "live", SKIPPING)

    assert run_levels.main(["parity", "live"], tests) == 1

    assert "live         FAILED" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("options", "last"), [([], "1 passed, 0"), (["--slow"], "0 passed, 1"), (["--full"], "2 passed, 1")]
)
def test_tests_marked_slow_or_full_run_only_on_demand(
    tests: Path, capfd: pytest.CaptureFixture[str], options: list[str], last: str
) -> None:
    add(tests, "parity", MARKED)

    run_levels.main([*options, "parity"], tests)

    assert capfd.readouterr().out.splitlines()[-1].startswith(last)


@pytest.mark.parametrize(("options", "last"), [([], "2 passed"), (["--slow"], "3 passed")])
def test_of_a_sampled_test_each_nth_case_is_not_slow(
    tests: Path, capfd: pytest.CaptureFixture[str], options: list[str], last: str
) -> None:
    shutil.copy(Path(run_levels.__file__).with_name("conftest.py"), tests)
    add(tests, "parity", SAMPLED)

    run_levels.main([*options, "parity"], tests)

    assert capfd.readouterr().out.splitlines()[-1].startswith(last)


def test_a_test_that_fails_in_its_teardown_counts_once_and_as_failed(
    tests: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    add(tests, "parity", TEARDOWN_FAILING)

    assert run_levels.main(["parity"], tests) == 1

    assert capfd.readouterr().out.splitlines()[-1] == "0 passed, 1 failed, 0 skipped"


def test_a_file_that_cannot_be_imported_counts_as_failed(tests: Path, capfd: pytest.CaptureFixture[str]) -> None:
    add(tests, "parity", "import no_such_module_anywhere\n")

    assert run_levels.main(["parity"], tests) == 1

    assert capfd.readouterr().out.splitlines()[-1] == "0 passed, 1 failed, 0 skipped"


SEES_THE_OTHER = """\
from pathlib import Path
from threading import Event

def test_both_run_at_once():
    {mine}.touch()
    assert any({other}.exists() or Event().wait(0.05) for _ in range(4800))
"""


def test_levels_run_beside_each_other_and_the_output_of_each_comes_in_one_piece(
    tests: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    marks = {level: f"Path({str(tests / level)!r}, 'runs')" for level in ("parity", "live")}
    add(tests, "parity", SEES_THE_OTHER.format(mine=marks["parity"], other=marks["live"]))
    add(tests, "live", SEES_THE_OTHER.format(mine=marks["live"], other=marks["parity"]))

    assert run_levels.main(["parity", "live"], tests) == 0

    _, *pieces = capfd.readouterr().out.partition("\n=== summary")[0].split("\n=== ")
    assert sorted(piece.partition(" ===")[0] for piece in pieces) == ["live", "parity"]
    assert all("1 passed" in piece for piece in pieces)


def test_a_level_that_does_not_exist_is_a_usage_error(tests: Path) -> None:
    with pytest.raises(SystemExit) as failure:
        run_levels.main(["nightly"], tests)

    assert failure.value.code == 2
