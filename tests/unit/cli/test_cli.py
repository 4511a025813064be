"""Every failure a user can meet is one clear line and the exit code of the shell contract."""

from __future__ import annotations

import gc
import importlib.metadata
import io
import json
import os
import queue
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import pytest
from upath import UPath

import documents
from pulsar_advisor.cli import app, exit_code, main, signals
from pulsar_advisor.cli.output import log, print_json, result_of, say
from pulsar_advisor.cli.usage import shown_default
from pulsar_advisor.documents.validation import Validation
from pulsar_advisor.execution.consent.approval import propose
from pulsar_advisor.execution.ledger.opening import open_ledger
from pulsar_advisor.model.errors import Deviates
from pulsar_advisor.model.plans.sealed import dump_plan
from pulsar_advisor.storage.files import write_file
from pulsar_advisor.storage.lease import held
from pulsar_advisor.storage.root import MANIFEST, Root
from unit.execution.actors import ALICE
from unit.execution.doubles import make_plan, unload_step

NOBODY_LISTENS = "http://127.0.0.1:1"


def ends(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = exit_code(words)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "Traceback" not in shown.err
    return code, shown.err


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["frobnicate"], 2, 'Unknown command "frobnicate"'),
        (["frobnicate"], 2, "See `pulsar-advisor --help`."),
        (["capture"], 2, "--root"),
        (["approve", "--root", "r", "--cluster", "c"], 2, "PLAN is missing"),
        (["normalize", "--root", "r", "--cluster"], 2, "--cluster requires a value"),
        (["recommend", "--root", "r", "--cluster", "c", "all"], 2, "`recommend` does not take 'all': omit it"),
        (["plans", "exprt", "c8b31b82"], 2, "`plans` does not take 'exprt'; the nearest is 'export'\n"),
        (["snapshots", "list", "x", "--root", "r", "--cluster", "c"], 2, "`snapshots list` does not take 'x'"),
        (["snapshots", "list", "--max-age", "99999999999y"], 2, "--max-age"),
        (
            ["recommend", "--root", "r", "--cluster", "c", "--max-unloads", "three"],
            2,
            "'three' is not a whole number",
        ),
        (["apply", "p", "--error-budget", "0.6"], 2, "--error-budget '0.6' is not a whole number"),
        (["snapshots", "prune", "--keep-days", "1.4"], 2, "--keep-days '1.4' is not a whole number"),
        (["brokers", "--watch", "1.5"], 2, "--watch '1.5' is not a whole number"),
        (["trend", "--days", "0x10"], 2, "--days '0x10' is not a whole number"),
        (["simulate", "--load", "double"], 2, "--load 'double' is not a number"),
        (["apply", "p", "--pause-between", "-5s"], 2, "--pause-between requires a value, and '-5s' is not one"),
        (["capture", "--root", "r", "--cluster", "c", "--bogus"], 2, "--bogus"),
        (["validate", "--root", "r", "--cluster", "c", "--fail-on", "info"], 2, "--fail-on"),
    ],
)
def test_a_call_that_can_not_be_right_is_usage(
    words: list[str], code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ended, err = ends(capsys, *words)
    assert ended == code
    assert says in err


@pytest.mark.parametrize("verb", ["index", "snapshots list"])
def test_a_root_that_is_not_there_is_named_and_not_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    root = tmp_path / "misspelt"
    code, err = ends(capsys, *verb.split(), "--root", str(root), "--cluster", "c")
    assert (code, f"there is no root {root}: run `capture`" in err, root.exists()) == (2, True, False)


def test_an_index_of_all_clusters_needs_the_name_of_none(tmp_path: Path) -> None:
    assert exit_code(["index", "--root", str(tmp_path)]) == 0
    assert (tmp_path / "index.html").exists()


def test_a_password_on_the_command_line_is_refused_and_not_repeated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = "postgresql+psycopg://advisor:hunter2@127.0.0.1:1/ledger"
    code, err = ends(capsys, "runs", "--root", str(tmp_path), "--cluster", "c", "--ledger", url)
    assert code == 2
    assert "give env:NAME or file:PATH" in err
    assert "hunter2" not in err


def unread(buffering: int) -> TextIO:
    """A stream to a reader that is gone."""
    reader, writer = os.pipe()
    os.close(reader)
    return os.fdopen(writer, "w", buffering)


def full() -> TextIO:
    """A stream to a disk without room."""
    return os.fdopen(os.open("/dev/full", os.O_WRONLY), "w")


def test_tables_and_help_end_alike_when_their_reader_has_seen_enough(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", unread(buffering=-1))
    assert exit_code(["run", "--help"]) == 141
    sys.stdout.close()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("buffering", [1, -1], ids=["while it is written", "at the end"])
def test_a_reader_that_has_seen_enough_is_no_failure(
    buffering: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", unread(buffering))
    assert exit_code(["validate", "--explain", "bundles.one_owner"]) == 141
    sys.stdout.close()
    assert capsys.readouterr().err == ""


def test_a_result_that_does_not_fit_on_the_disk_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", full())
    assert exit_code(["validate", "--explain", "bundles.one_owner"]) == 1
    sys.stdout.close()
    assert capsys.readouterr().err == "error: can't write the result: No space left on device\n"


@pytest.mark.parametrize("length", [1, 100_000], ids=["at the end", "while it is written"])
@pytest.mark.parametrize("stdout", [full, partial(unread, -1)], ids=["full", "unread"])
@pytest.mark.parametrize(("end", "code"), [(8, 8), (Deviates("the cluster is not as predicted"), 5)])
def test_a_result_that_can_not_be_written_hides_no_other_outcome(
    stdout: Callable[[], TextIO], length: int, end: int | Deviates, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def left_off(*_words: object, **_options: object) -> None:
        with result_of(end):
            say("x" * length)

    monkeypatch.setattr("pulsar_advisor.cli.app", left_off)
    monkeypatch.setattr(sys, "stdout", stdout())
    assert exit_code([]) == code
    with suppress(OSError):
        sys.stdout.close()


def test_a_long_result_that_does_not_fit_on_the_disk_is_not_blamed_on_the_root(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    unbuffered = io.TextIOWrapper(io.FileIO(os.open("/dev/full", os.O_WRONLY), "w"), write_through=True)
    monkeypatch.setattr(sys, "stdout", unbuffered)
    assert exit_code(["validate", "--explain", "bundles.one_owner"]) == 1
    assert capsys.readouterr().err.startswith("error: can't read or write the output or a file of the root: No space")


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize(
    ("command", "closed", "code"),
    [
        ("snapshots list", ">&-", 0),
        ("report", "2>&-", 2),
        ("snapshots list", ">&- 2>&- <&-", 0),
        ("report", ">&- 2>&- <&-", 2),
    ],
)
def test_a_stream_that_the_caller_closed_is_no_failure(command: str, closed: str, code: int, tmp_path: Path) -> None:
    call = "from pulsar_advisor.cli import main; main()"
    line = f'exec "$0" -c "$1" {command} --root "$2" --cluster c {closed}'
    assert subprocess.run(["bash", "-c", line, sys.executable, call, str(tmp_path)], check=False).returncode == code


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_a_completion_that_is_written_to_a_file_leaves_the_shells_own_files(
    shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert exit_code(["--install-completion", "--shell", shell, "--output", str(tmp_path / "completion")]) == 0
    assert [file.name for file in tmp_path.iterdir()] == ["completion"]


@pytest.mark.parametrize("width", ["0", "1", "x"])
def test_a_width_that_holds_no_word_is_none(width: str) -> None:
    line = [sys.executable, "-c", "from pulsar_advisor.cli import main; main()", "audit", "--help"]
    shown = subprocess.run(
        line, env={**os.environ, "COLUMNS": width}, capture_output=True, text=True, timeout=240, check=True
    )
    assert "Usage: pulsar-advisor audit" in shown.stdout


def test_a_terminal_that_can_not_show_a_sign_of_ours_shows_it_in_ascii(tmp_path: Path) -> None:
    root, plan = Root(str(tmp_path), "demo"), make_plan([unload_step()])
    with closing(open_ledger(root.ledger_url)) as ledger:
        propose(ledger, plan, ALICE)
    call = [sys.executable, "-c", "from pulsar_advisor.cli import main; main()"]
    line = [*call, "plans", "--root", str(tmp_path), "--cluster", "demo"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    ended = subprocess.run(line, env=environment, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "% -> " in ended.stdout


def test_a_terminal_that_is_gone_ends_nothing_that_reports_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", unread(buffering=1))
    log("step-001: confirmed")


def test_nothing_from_a_cluster_acts_on_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    log("a\x1b[2J\u202e\nb")
    say("c\x9b2J")
    print_json({"name": "d\x9b\u202e"})
    shown = capsys.readouterr()
    assert shown.err == "a\\x1b[2J\\u202e\nb\n"
    assert shown.out.startswith("c\\x9b2J\n")
    assert json.loads(shown.out.partition("\n")[2]) == {"name": "d\x9b\u202e"}
    assert shown.out.replace("\n", "").isprintable()


def test_the_calls_of_a_capture_can_be_read_without_making_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["capture", "--explain", "--admin-url", NOBODY_LISTENS]) == 0
    assert "each broker  GET /admin/v2/broker-stats/topics  (once)" in capsys.readouterr().out.splitlines()
    assert exit_code(["capture", "--explain", "--json", "--admin-url", NOBODY_LISTENS]) == 0
    calls = json.loads(capsys.readouterr().out)
    assert {call["target"] for call in calls} == {"any broker", "each broker", "the leader"}


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["capture"], 2, "no admin URL: give --admin-url"),
        (["capture", "--admin-url", "ftp://x"], 2, "admin_urls: 'ftp://x' is not a web address"),
        (["capture", "--admin-url", NOBODY_LISTENS], 1, "connection refused: check that the server is up"),
        (["capture", "--profile", "p", "--config", "/nowhere.toml"], 2, "there is no config file /nowhere.toml"),
        (["capture", "--profile", "p"], 2, "there is no profile 'p'; there are: none"),
        (
            ["approve", "c8b31b82", "--as", "n"],
            2,
            "begins with c8b31b82: `pulsar-advisor plans` lists",
        ),
        (["plans", "--ledger", "postgresql://me:secret@db/x"], 2, "shows its password to others"),
        (["plans"], 2, "ledger.sqlite: if it was lost, put back a copy; else run `recommend`"),
        (["approve", "c8b31b82"], 2, "who approves? Give --as NAME, or --automatic"),
        (["explain", "--shedder", "all"], 2, "one combination can be explained at a time"),
        (["history", "fold", "--day", "today"], 2, "'today' is not a day; expected the form 20261121"),
        (["history", "fold", "--day", "20261121", "--ledger", "sqlite:////no.where"], 2, "there is no ledger at"),
        (["history", "verify", "--ledger", "sqlite:////no.where"], 2, "there is no ledger at sqlite:////no.where"),
        (["history", "import", "--prometheus", "ftp://x"], 2, "error: --prometheus: 'ftp://x' is not a web address"),
        (["history", "import", "--prometheus", NOBODY_LISTENS, "--basic-user", "u"], 2, "error: basic_user requires"),
        (["history", "import", "--prometheus", NOBODY_LISTENS, "--ledger", "sqlite:////no.where"], 2, "is no ledger"),
        (["runs"], 2, "there is no ledger at sqlite:///"),
        (["brokers", "--live", "--snapshot", "latest"], 2, "--snapshot and --live can't be combined"),
        (["report"], 2, "there is no snapshot of cluster 'c'"),
        (["report", "--snapshot", "yesterday"], 2, "'yesterday' is not a snapshot id"),
        (["recommend", "--set", "nonsense"], 2, "'nonsense' is not KEY=VALUE"),
        (["recommend", "--max-unloads", "-3"], 2, "--max-unloads -3 is out of bounds"),
        (["recommend", "--max-splits", "9999"], 2, "--max-splits 9,999 is out of bounds"),
        (["recommend", "--history", "-1"], 2, "--history -1 is out of bounds"),
        (["recommend", "--seed", "-1"], 2, "--seed -1 is out of bounds"),
        (["capture", "--max-requests", "0"], 2, "--max-requests 0 is out of bounds"),
        (["capture", "--listen", "16m"], 2, "--listen 16m is out of bounds: give a duration from 0s to 15m"),
        (["snapshots", "prune", "--keep-days", "0"], 2, "--keep-days 0 is out of bounds"),
        (["brokers", "--admin-url", NOBODY_LISTENS, "--watch", "0"], 2, "--watch 0 is out of bounds"),
        (["brokers", "--admin-url", NOBODY_LISTENS, "--snapshot", "latest"], 2, "can't be combined"),
        (["apply", "x", "--abort", "--resume"], 2, "--abort and --resume can't be combined"),
        (["apply", "x", "--abort", "--dry-run"], 2, "--abort and --dry-run can't be combined"),
        (["verify", "x", "--snapshot", "latest", "--admin-url", NOBODY_LISTENS], 2, "can't be combined"),
        (["validate", "--explain", "x", "--trend", "all"], 2, "--explain and --trend can't be combined"),
        (["run", "--from-archive", "/nowhere.tar"], 2, "there is no archive /nowhere.tar"),
        (["run", "--from-archive", "x.tar", "--admin-url", NOBODY_LISTENS], 2, "omit the connection options"),
        (["run", "--shedder", "Nope"], 2, "there is no shedder 'Nope'"),
        (["run", "--placement", "Nope"], 2, "there is no placement strategy 'Nope'"),
        (["run", "--set", "loadBalancerEnabled=maybe"], 2, "loadBalancerEnabled='maybe' is not usable"),
        (["approve", "/nowhere.json", "--digest", "d", "--as", "n"], 2, "/nowhere.json does not exist"),
        (["apply", "/nowhere.json"], 2, "/nowhere.json does not exist"),
        (["snapshots", "import", "/nowhere.tar"], 2, "there is no archive /nowhere.tar"),
        (["snapshots", "show"], 2, "there is no snapshot of cluster 'c'"),
        (["snapshots", "prune"], 2, "give --keep-days N, --keep-count N, or both"),
        (["snapshots", "prune", "--keep-count", "1", "--tables", "3d"], 2, "can't be combined: give only one"),
        (["snapshots", "prune", "--raw", "3d", "--tables", "1d"], 2, "--tables of 1d is less than --raw of 3d"),
        (["brokers"], 2, "there is no snapshot of cluster 'c'"),
        (["brokers", "--watch"], 2, "no admin URL: give --admin-url"),
        (["brokers", "--snapshot", ""], 2, "'' is not a snapshot id"),
        (["history", "export", ""], 2, "the root's name is empty"),
        (["plans", "--ledger", "sqlite:///"], 2, "ledger sqlite:/// names no file, so nothing would be kept"),
        (["apply", ""], 2, "'' does not exist, and no digest begins with it"),
        (["apply", "/"], 2, "/ is a folder, and no digest begins with it"),
        (
            ["brokers", "--admin-url", NOBODY_LISTENS, "--watch", "5"],
            1,
            "connection refused: check that the server is up",
        ),
    ],
)
def test_what_is_not_there_is_named_with_what_to_do(
    words: list[str], code: int, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ended, err = ends(capsys, *words, "--root", str(tmp_path), "--cluster", "c")
    assert ended == code
    assert says in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["doctor"], "no admin URL: give --admin-url"),
        (["brokers"], "which cluster, and where? Give --root and --cluster, set PULSAR_ADVISOR_ROOT"),
    ],
)
def test_a_verb_that_looks_at_a_cluster_needs_one(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, err = ends(capsys, *words)
    assert (code, says in err) == (2, True)


def test_doctor_ends_with_1_where_nothing_answers_and_still_says_what_it_found(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert exit_code(["doctor", "--admin-url", NOBODY_LISTENS, "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert (document["reachable"], document["fit"]) == (False, False)
    assert [row["check"] for row in document["rows"]] == ["admin_url"]


def test_a_cluster_name_can_not_leave_the_root(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, err = ends(capsys, "snapshots", "list", "--root", str(tmp_path), "--cluster", "../other")
    assert (code, "can't be part of a path" in err) == (2, True)


def test_a_file_that_is_no_plan_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "plan.json"
    file.write_text("{}")
    code, err = ends(
        capsys, "apply", str(file), "--root", str(tmp_path), "--cluster", "c", "--admin-url", NOBODY_LISTENS
    )
    assert (code, f"{file}: this is not a plan: it has no 'digest'; name a plan file" in err) == (1, True)


@pytest.mark.parametrize(
    "words", [["approve", "--digest", "d", "--as", "n"], ["withdraw", "--as", "n"], ["apply"], ["verify"]]
)
@pytest.mark.parametrize(
    ("cluster", "says"),
    [("other", "is for cluster 'demo', not 'other'"), ("demo", "there is no ledger at sqlite:///")],
)
def test_a_plan_of_another_cluster_or_without_a_ledger_is_refused_and_nothing_is_made(
    words: list[str], cluster: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "plan.json"
    file.write_bytes(dump_plan(make_plan([unload_step()])))
    code, err = ends(capsys, *words, str(file), "--root", str(tmp_path), "--cluster", cluster)
    assert (code, says in err, err.count("\n")) == (4, True, 1)
    assert list(tmp_path.iterdir()) == [file]


def test_a_plan_that_was_never_carried_out_is_refused_before_anything_is_captured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = make_plan([unload_step()])
    file = tmp_path / "plan.json"
    file.write_bytes(dump_plan(plan))
    open_ledger(Root(str(tmp_path), "demo").ledger_url).close()
    monkeypatch.setattr("pulsar_advisor.cli.outcomes.capture_into", lambda *_: pytest.fail("captured"))
    monkeypatch.setattr("pulsar_advisor.cli.outcomes.spark_for", lambda *_: pytest.fail("started Spark"))
    words = ["verify", str(file), "--root", str(tmp_path), "--cluster", "demo", "--admin-url", NOBODY_LISTENS]
    code, err = ends(capsys, *words)
    assert (code, "was never carried out: there is nothing to verify" in err) == (4, True)


@pytest.mark.parametrize("verb", ["capture", "recommend", "apply", "run", "approve", "brokers"])
def test_the_help_shows_defaults_as_one_would_type_them(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code([verb, "--help"]) == 0
    shown = capsys.readouterr().out
    assert not re.search(r"default:\s+(\(\)|None|False|\"\")", shown)


def test_a_default_of_one_is_a_number(capsys: pytest.CaptureFixture[str]) -> None:
    assert (shown_default(1), shown_default(0), shown_default(True), shown_default(False)) == ("1", "0", "on", None)


def test_debug_shows_where_a_failure_came_from_and_changes_no_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(["report", "--root", str(tmp_path), "--cluster", "c", "--debug"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("Traceback")
    assert err.splitlines()[-1].startswith("error: there is no snapshot")


def test_a_failure_that_nobody_foresaw_is_one_line_unless_its_trace_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: Root) -> list[str]:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(Root, "snapshots", broken)
    words = ("snapshots", "list", "--root", str(tmp_path), "--cluster", "c")
    line = "error: unexpected failure: ZeroDivisionError: division by zero; run again with --debug, and report it\n"
    assert ends(capsys, *words) == (1, line)
    assert exit_code([*words, "--debug"]) == 1
    err = capsys.readouterr().err
    assert err.startswith("Traceback") and err.endswith(line)


def test_an_interrupted_call_says_so_and_ends_with_130(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: Root) -> list[str]:
        raise KeyboardInterrupt

    monkeypatch.setattr(Root, "snapshots", interrupted)
    assert ends(capsys, "snapshots", "list", "--root", str(tmp_path), "--cluster", "c") == (130, "interrupted\n")


def test_a_container_that_is_stopped_leaves_nothing_held(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(_: Root) -> list[str]:
        with held(UPath(tmp_path / "tables"), "20261121T083000Z", "tables are being made"):
            signal.raise_signal(signal.SIGTERM)
        return []

    monkeypatch.setattr(Root, "snapshots", stopped)
    monkeypatch.setattr(sys, "argv", ["pulsar-advisor", "snapshots", "list", f"--root={tmp_path}", "--cluster=c"])
    for collector in ("freeze", "set_threshold"):
        monkeypatch.setattr(gc, collector, lambda *_: None)
    ended = queue.SimpleQueue[int]()
    monkeypatch.setattr(os, "_exit", ended.put)
    monkeypatch.setattr(signals, "_ENDS_WITHIN_S", 0)
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        with pytest.raises(SystemExit, match="143"):
            main()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert ended.get(timeout=10) == 143, "no signal ends the first process of a container that a broker holds up"
    assert capsys.readouterr().err == "terminated\n"
    assert not (tmp_path / "tables" / "lease.json").exists()


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["--version"]) == 0
    assert capsys.readouterr().out.strip() == importlib.metadata.version("pulsar-rebalance-advisor")


def test_what_failed_and_what_could_not_be_evaluated_are_told_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, snapshot = Root(str(tmp_path), "c"), "20261121T083000Z"
    write_file(root.snapshot(snapshot).folder("raw") / MANIFEST, b"{}")
    monkeypatch.setattr("pulsar_advisor.cli.stages.spark_for", lambda *_: None)
    monkeypatch.setattr("pulsar_advisor.stages.validate.run", lambda *_: _unfit("c", snapshot))
    assert exit_code(["validate", "--root", str(tmp_path), "--cluster", "c"]) == 3
    printed = capsys.readouterr()
    assert printed.out.splitlines() == [
        "critical  capture.skew failed for 1 row: Read at once.",
        "critical  bundles: 2 checks could not be evaluated: no column `owner`",
        "1 of 4 checks passed",
    ]
    assert "capture.skew, 2 checks of bundles could not be evaluated" in printed.err
    assert f"remove tables/*/cluster=c/snapshot={snapshot}" in printed.err
    assert "normalize again" in printed.err
    assert "capture again" not in printed.err


def test_tables_of_an_earlier_release_are_to_be_made_again_not_captured_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, snapshot = Root(str(tmp_path), "c"), "20261121T083000Z"
    write_file(root.snapshot(snapshot).folder("raw") / MANIFEST, b"{}")
    columns = documents.check(success=False, severity="critical", check="capture.columns", failed_rows=1)
    monkeypatch.setattr("pulsar_advisor.cli.stages.spark_for", lambda *_: None)
    judged = documents.validation(columns, cluster="c", snapshot=snapshot)
    monkeypatch.setattr("pulsar_advisor.stages.validate.run", lambda *_: judged)
    assert exit_code(["validate", "--root", str(tmp_path), "--cluster", "c"]) == 3
    err = capsys.readouterr().err
    assert ("normalize again" in err, "capture again" in err) == (True, False)


def _unfit(cluster: str, snapshot: str) -> Validation:
    critical: dict[str, Any] = {"success": False, "severity": "critical"}
    return documents.validation(
        documents.check(check="brokers.cpu"),
        documents.check(**critical, check="capture.skew", title="Read at once.", failed_rows=1),
        *(
            documents.check(**critical, check=check, error="no column `owner`")
            for check in ("bundles.one_owner", "bundles.stayed")
        ),
        cluster=cluster,
        snapshot=snapshot,
    )


def test_a_run_is_paused_by_a_flag_beside_the_pause_between_two_calls(capsys: pytest.CaptureFixture[str]) -> None:
    code, err = ends(capsys, "apply", "/nowhere.json", "--pause", "--as", "n", "--root", "r", "--cluster", "c")
    assert (code, "/nowhere.json does not exist" in err) == (2, True)


@pytest.mark.parametrize("verb", ["capture", "recommend", "run", "approve", "apply", "verify", "brokers"])
def test_no_verb_has_two_options_of_one_name(verb: str) -> None:
    arguments = app[verb].assemble_argument_collection()
    names = [name for argument in arguments for name in argument.names if name.startswith("--")]
    assert "--root" in names
    assert len(names) == len(set(names))
