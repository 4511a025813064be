"""The verbs that act on a plan, on a cluster of plain data."""

from __future__ import annotations

import json
import resource
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, replace
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from time import tzset

import pytest

from pulsar_advisor.cli import exit_code
from pulsar_advisor.cli.rendering import STEPS_SHOWN, apply_lines, plan_lines
from pulsar_advisor.documents.apply_result import ApplyResult
from pulsar_advisor.execution.consent.approval import NOTHING_BEFORE, carried_out_before, propose, withdraw
from pulsar_advisor.execution.ledger.approvals import approvals_of_plan
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.opening import open_ledger
from pulsar_advisor.execution.ledger.proposals import proposals_of_plan
from pulsar_advisor.execution.ledger.rolls import TURN_BEGUN, RollTurn
from pulsar_advisor.execution.person import system_user
from pulsar_advisor.execution.run.options import ApplyOptions
from pulsar_advisor.execution.throttle import DEFAULT_THROTTLE
from pulsar_advisor.execution.undo import propose_undo
from pulsar_advisor.model.cluster.snapshot_id import snapshot_id
from pulsar_advisor.model.errors import Refused
from pulsar_advisor.model.plans.names import short
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.model.plans.sealed import digest_of, dump_plan
from pulsar_advisor.storage.archive import import_snapshot
from pulsar_advisor.storage.plans import find_plan, write_plan
from pulsar_advisor.storage.root import Root
from unit.execution.actors import ALICE, ANY_THROTTLE, BRISK, approved, killed_at_work, run, started
from unit.execution.doubles import (
    B1,
    B2,
    B3,
    LOWER,
    NAMESPACE,
    UPPER,
    FakeCluster,
    FakeTime,
    make_plan,
    split_step,
    unload_step,
)

RECORDED = Path(__file__).parents[2] / "data" / "recorded" / "modular-4.0.8.tar"
PLAN = make_plan([unload_step()], snapshot=snapshot_id(datetime.now(UTC)))
ALONE = "schema: pulsar-advisor/approval-policy/1\nseparate_approver: false\nseparate_system_user: false\n"
"""A policy under which one person may do both."""


@pytest.fixture
def root(tmp_path: Path) -> Root:
    return Root(str(tmp_path), PLAN.cluster)


@pytest.fixture
def time() -> FakeTime:
    """The real time of day, which the verbs read, until somebody sleeps."""
    time = FakeTime()
    time.ms = int(datetime.now(UTC).timestamp() * 1000)
    return time


@pytest.fixture
def ledger(root: Root, time: FakeTime) -> Iterator[Ledger]:
    """The ledger in the root, where a verb finds it."""
    with closing(open_ledger(root.ledger_url, time.now_ms)) as opened:
        yield opened


@pytest.fixture
def cluster(time: FakeTime, monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    """What a verb reaches at any admin URL."""
    cluster = FakeCluster(time)
    monkeypatch.setattr("pulsar_advisor.stages.undo.AdminCluster", lambda _transport, **_options: cluster)
    monkeypatch.setattr("pulsar_advisor.stages.undo.SYSTEM_CLOCK", time.clock)
    return cluster


REACH = ("--admin-url", "http://127.0.0.1:1")


def at(root: Root) -> str:
    """The options of `typed`, which a command to copy has too."""
    return f"--root {root.url} --cluster {root.cluster}"


def typed(root: Root, *words: str) -> int:
    """What a line about this root ends with."""
    return exit_code([*words, *at(root).split()])


def undo(plan: Plan, root: Root, *options: str) -> int:
    return typed(root, "undo", digest_of(plan), "--as", "carol", *REACH, *options)


@pytest.mark.parametrize("content", [b"", b"{}", dump_plan(PLAN).replace(b"made by hand", b"made by them")])
def test_whoever_spoils_a_plans_file_keeps_nobody_from_withdrawing_its_approval(
    root: Root, ledger: Ledger, content: bytes
) -> None:
    (root.snapshot(PLAN.snapshot).folder("plans") / write_plan(root, approved(ledger, PLAN)).file).write_bytes(content)
    assert typed(root, "withdraw", digest_of(PLAN), "--as", "bob") == 0
    assert approvals_of_plan(ledger, digest_of(PLAN))[0].withdrawn_at_ms is not None


def test_undo_proposes_a_plan_that_moves_back_what_a_run_moved(
    root: Root, ledger: Ledger, cluster: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    write_plan(root, PLAN)
    run(approved(ledger, PLAN), ledger, cluster)
    written = list(cluster.writes)
    assert undo(PLAN, root) == 0
    move, who, command = capsys.readouterr().out.splitlines()
    assert move == f"undo-step-001 {NAMESPACE}/{LOWER} {B2} → {B1}"
    assert cluster.writes == written
    digest = command.partition("approve ")[2].split()[0]
    assert who == "for somebody else to approve, from another account:"
    assert command == f"pulsar-advisor approve {digest} --as NAME --accept-worse {at(root)}"
    back = find_plan(root, digest)
    assert typed(root, "plans") == 0
    assert capsys.readouterr().out.count(f"undo of {short(digest_of(PLAN))}") == 1
    (proposal,) = proposals_of_plan(ledger, back.digest)
    assert (proposal.proposer, proposal.source) == ("carol", f"unauthenticated:{system_user()}")
    run(approved(ledger, back.load(root)), ledger, cluster)
    assert cluster.owners[f"{NAMESPACE}/{LOWER}"] == B1
    capsys.readouterr()
    assert typed(root, "runs", digest_of(PLAN)) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == f"undone since; to see how: pulsar-advisor runs {short(back.digest)} {at(root)}"


def test_undo_asks_for_no_approval_where_nothing_can_be_moved_back(
    root: Root, ledger: Ledger, cluster: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    write_plan(root, PLAN)
    run(approved(ledger, PLAN), ledger, cluster)
    cluster.owners[f"{NAMESPACE}/{LOWER}"] = B1
    assert undo(PLAN, root) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"undo-step-001 {NAMESPACE}/{LOWER} left out: the bundle is on {B1} already",
        "no bundle can be moved back: there is nothing to approve",
    ]


def test_undo_looks_twice_before_it_leaves_a_bundle_out(
    root: Root, ledger: Ledger, cluster: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bundle on its way has no owner for a moment, and one answer may be wrong."""
    write_plan(root, PLAN)
    run(approved(ledger, PLAN), ledger, cluster)
    del cluster.owners[f"{NAMESPACE}/{LOWER}"]
    cluster.later(0.5, lambda: cluster.owners.update({f"{NAMESPACE}/{LOWER}": B2}))
    assert undo(PLAN, root) == 0
    assert capsys.readouterr().out.splitlines()[0] == f"undo-step-001 {NAMESPACE}/{LOWER} {B2} → {B1}"


def test_who_approves_an_undo_reads_what_it_undoes_and_what_it_leaves_out(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = make_plan([unload_step(1), unload_step(2, UPPER)], snapshot=PLAN.snapshot)
    run(approved(ledger, plan), ledger, cluster)
    cluster.owners[f"{NAMESPACE}/{UPPER}"] = B1
    lines = list(plan_lines(propose_undo(plan, ledger, cluster), DEFAULT_THROTTLE, NOTHING_BEFORE))
    assert lines[0].startswith(f"undo of {short(digest_of(plan))}, cluster {plan.cluster}")
    assert f"left out: 1 step; undo-step-002 because the bundle is on {B1} already" in lines


@pytest.mark.parametrize("words", [("undo", "--as", "carol"), ("verify",)])
def test_undo_and_verify_of_a_roll_name_the_plans_of_its_other_turns(
    words: tuple[str, ...], root: Root, ledger: Ledger, cluster: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    write_plan(root, PLAN)
    run(approved(ledger, PLAN), ledger, cluster)
    turns = (RollTurn(B1, digest_of(PLAN), None), RollTurn(B2, "sha256:" + "5" * 64, None))
    with ledger.writing() as session:
        for turn in turns:
            ledger.add_event(session, digest_of(PLAN), TURN_BEGUN, json.dumps(asdict(turn)))
    verb, *options = words
    typed(root, verb, digest_of(PLAN), *options, *REACH)
    assert f"each other turn has a plan of its own: {B2} 55555555" in capsys.readouterr().err


def test_undo_as_json_names_plan_and_steps(
    root: Root, ledger: Ledger, cluster: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    write_plan(root, PLAN)
    run(approved(ledger, PLAN), ledger, cluster)
    assert undo(PLAN, root, "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["executable_steps"] == ["undo-step-001"]
    assert find_plan(root, shown["digest"]).file == shown["plan"]


def test_a_plan_that_was_never_carried_out_has_nothing_to_undo(
    root: Root, ledger: Ledger, cluster: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    write_plan(root, approved(ledger, PLAN))
    assert undo(PLAN, root) == 4
    assert "was confirmed: there is nothing to undo" in capsys.readouterr().err


def test_a_snapshot_from_before_the_run_is_refused_before_spark_starts(
    root: Root,
    ledger: Ledger,
    cluster: FakeCluster,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("pulsar_advisor.cli.outcomes.spark_for", lambda *_: pytest.fail("Spark started"))
    snapshot = import_snapshot(RECORDED, root)
    write_plan(root, PLAN)
    run(approved(ledger, PLAN), ledger, cluster)
    assert typed(root, "verify", digest_of(PLAN)) == 4
    assert f"snapshot {snapshot} was taken before run 1 ended: capture again" in capsys.readouterr().err


def left_off(root: Root, ledger: Ledger, cluster: FakeCluster) -> ApplyResult:
    """A run that moved its bundle and could not switch the cluster's own balancer on again."""
    write_plan(root, PLAN)
    cluster.on_event = lambda what: setattr(cluster, "rejects_overrides", what == "after the call")
    return run(approved(ledger, PLAN), ledger, cluster, guard=True)


@pytest.mark.parametrize("word", ["--abort", "--pause"])
def test_a_balancer_that_an_ended_run_left_off_is_restored_though_no_run_is_left_to_end(
    root: Root,
    ledger: Ledger,
    cluster: FakeCluster,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    word: str,
) -> None:
    assert left_off(root, ledger, cluster).outcome == "done"
    cluster.rejects_overrides = False
    monkeypatch.setattr("pulsar_advisor.stages.apply.AdminCluster", lambda _transport: cluster)
    heads = Path(root.url) / "heads"
    assert typed(root, "apply", digest_of(PLAN), *REACH, word, "--heads", str(heads)) == 4
    assert "loadBalancerSheddingEnabled is restored: not overridden" in capsys.readouterr().err
    assert cluster.overrides == {}
    assert [file.name.split("-")[2] for file in heads.iterdir()] == [f"{ledger.head().chain}.json"]


def test_a_run_is_ended_though_its_cluster_can_not_be_reached_and_its_balancer_stays_off(
    root: Root, ledger: Ledger, cluster: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    write_plan(root, PLAN)
    cluster.once("after the call", lambda: setattr(cluster, "unreadable", True))
    assert run(approved(ledger, PLAN), ledger, cluster, guard=True).exit_code == 8
    assert typed(root, "apply", digest_of(PLAN), *REACH, "--abort") == 8
    said = capsys.readouterr()
    assert said.out == f"run 1 of {digest_of(PLAN)} ended\n"
    assert "connection refused" in said.err
    assert f"`pulsar-advisor guard restore {at(root)} {' '.join(REACH)}` restores it" in said.err


def test_what_puts_back_a_balancer_that_is_still_off_is_a_line_to_copy(
    root: Root,
    ledger: Ledger,
    cluster: FakeCluster,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    result = left_off(root, ledger, cluster)
    monkeypatch.setattr("pulsar_advisor.stages.apply.run", lambda *_: result)
    assert typed(root, "apply", digest_of(PLAN), *REACH) == 8
    restore = f"`pulsar-advisor guard restore {at(root)} {' '.join(REACH)}` restores it"
    assert capsys.readouterr().out.count(restore) == 1
    assert typed(root, "withdraw", digest_of(PLAN), "--as", "bob") == 8
    assert capsys.readouterr().err.count(f"`pulsar-advisor guard restore {at(root)}` restores it") == 2


@pytest.mark.parametrize(
    ("snapshot", "last_line"),
    [("20261121T083000Z", "it can't be applied: the snapshot 20261121T083000Z is "), (PLAN.snapshot, "next: ")],
    ids=["old", "fresh"],
)
def test_whoever_approves_a_plan_too_old_to_be_applied_is_told(
    root: Root,
    ledger: Ledger,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    snapshot: str,
    last_line: str,
) -> None:
    plan = make_plan([unload_step()], snapshot=snapshot)
    write_plan(root, plan)
    propose(ledger, plan, ALICE)
    (tmp_path / "policy.yaml").write_text(ALONE)
    words = ["approve", digest_of(plan), "--as", "bob", "--accept-worse", "--policy", str(tmp_path / "policy.yaml")]
    assert typed(root, *words) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith(last_line)


def test_whoever_approves_sees_the_steps_in_the_order_in_which_they_are_sent() -> None:
    canary = unload_step(2, UPPER)
    canary = canary.model_copy(update={"expect": canary.expect.model_copy(update={"topics": 1})})
    lines = plan_lines(make_plan([unload_step(), canary]), DEFAULT_THROTTLE, NOTHING_BEFORE)
    assert [line.split()[0] for line in lines if " unload " in line] == [canary.id, "step-001"]


def test_an_approver_reads_which_command_shows_the_other_steps_of_a_plan_that_may_be_in_no_report() -> None:
    plan = make_plan([unload_step(number, namespace=f"shop/{number}") for number in range(STEPS_SHOWN + 2)])
    lines = list(plan_lines(plan, DEFAULT_THROTTLE, NOTHING_BEFORE))
    assert f"  and 2 more: see `pulsar-advisor plans export {short(digest_of(plan))}`" in lines


def test_whoever_approves_what_is_left_of_a_plan_sees_that_and_the_run_before(ledger: Ledger) -> None:
    plan = make_plan([unload_step(), unload_step(2, UPPER)])
    held = started(ledger, plan)
    held.sent("step-001", "PUT", None)
    held.conclude("step-001", "confirmed", "")
    held.end("stopped", "1 of 2 steps confirmed")
    lines = list(plan_lines(plan, DEFAULT_THROTTLE, carried_out_before(ledger, digest_of(plan))))
    assert "1 unload, 0 splits" in lines[1]
    assert [line.split()[0] for line in lines if line.startswith("  step-")] == ["step-002"]
    assert "carried out in part, in run 1: only what is left is sent" in lines


def test_a_preview_shows_only_calls_that_would_be_sent(ledger: Ledger, cluster: FakeCluster) -> None:
    cluster.owners[f"{NAMESPACE}/{LOWER}"] = B2
    steps = [unload_step(), unload_step(2, UPPER)]
    shown = run(make_plan(steps), ledger, cluster, dry_run=True, on_drift="skip")
    lines = list(apply_lines(shown, restore=""))
    assert [line.split()[3] for line in lines[:2]] == ["skipped", "pending"]
    assert [line.split()[0] for line in lines if "/unload?" in line] == ["PUT"]


def test_no_policy_approves_a_plan_that_was_put_into_the_root(
    root: Root, ledger: Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "policy.yaml").write_text(
        ALONE + "automatic: {max_moves: 9, min_gain_ratio: 0.001, namespaces: ['*'], "
        "window: {days: [mon, tue, wed, thu, fri, sat, sun], from: '00:00', to: '00:00'}}\n"
    )
    write_plan(root, PLAN)
    words = ["approve", digest_of(PLAN), "--automatic", "--policy", str(tmp_path / "policy.yaml")]
    assert typed(root, *words) == 4
    assert "was never proposed" in capsys.readouterr().err
    assert approvals_of_plan(ledger, digest_of(PLAN)) == []


def test_a_script_that_does_not_fit_on_the_disk_leaves_the_earlier_one_whole(
    root: Root, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_plan(root, PLAN)
    script = tmp_path / "plan.sh"
    script.write_text("echo earlier\n")
    command = ("plans", "export", digest_of(PLAN), "--output", str(script))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        assert typed(root, *command) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert capsys.readouterr().err == f"error: can't write {script}: File too large\n"
    assert script.read_text() == "echo earlier\n"


def test_a_script_is_written_into_the_home_that_no_shell_expands(
    root: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    write_plan(root, PLAN)
    assert typed(root, "plans", "export", digest_of(PLAN), "--output=~/plan.sh") == 0
    assert (tmp_path / "plan.sh").exists()


def test_who_exports_a_plan_is_warned_in_the_script_too_of_what_the_ledger_says_against_it(
    root: Root, ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    write_plan(root, PLAN)
    approved(ledger, PLAN)
    assert typed(root, "plans", "export", digest_of(PLAN)) == 0
    assert capsys.readouterr().err == ""
    withdraw(ledger, digest_of(PLAN), ALICE)
    assert typed(root, "plans", "export", digest_of(PLAN)) == 0
    said = capsys.readouterr()
    assert said.err == "note: its approval was withdrawn\n"
    assert "# Note: according to the ledger, its approval was withdrawn\n" in said.out
    started(ledger, PLAN).end("done", "1 of 1 steps confirmed")
    assert typed(root, "plans", "export", digest_of(PLAN), "--format", "json") == 0
    assert "was already carried out, in run 1" in json.loads(capsys.readouterr().out)["to_mind"][0]


@pytest.mark.parametrize("verb", [["plans", "export"], ["withdraw", "--as", "bob"]])
def test_a_mistyped_plan_of_a_root_that_can_hold_no_ledger_is_what_is_named(
    verb: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code([*verb, "0123", "--root", "memory://of-plans", "--cluster", "demo"]) == 2
    assert "has a digest that begins with 0123" in capsys.readouterr().err


def test_a_plan_is_exported_also_by_somebody_who_can_not_read_the_ledger(
    root: Root, capsys: pytest.CaptureFixture[str]
) -> None:
    write_plan(root, PLAN)
    (root.path / "ledger.sqlite").write_text("no database")
    assert typed(root, "plans", "export", digest_of(PLAN)) == 0
    assert capsys.readouterr().err.startswith("can't read what became of the plan: ")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--probe-topic", "persistent://a/b/c"), "--probe-topic needs the brokers' binary address"),
        (("--probe-topic", "c", "--service-url", "pulsar://b:6650"), "'c' is not a complete topic name"),
        (
            ("--probe-topic", "persistent://a/b/c", "--service-url", "pulsar://b:6650", "--probe-gap", "1h"),
            "--probe-gap 1h",
        ),
    ],
)
def test_a_probe_that_can_not_be_used_is_usage(
    root: Root, ledger: Ledger, words: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_plan(root, approved(ledger, PLAN))
    assert typed(root, "apply", digest_of(PLAN), *REACH, *words) == 2
    assert says in capsys.readouterr().err


def test_whoever_aborts_a_run_is_given_the_calls_that_nobody_watches_any_more(
    root: Root, ledger: Ledger, cluster: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = approved(ledger, make_plan([unload_step(), split_step()], snapshot=PLAN.snapshot))
    write_plan(root, plan)
    killed_at_work(ledger, cluster, plan)
    assert typed(root, "apply", digest_of(plan), "--abort") == 0
    shown = capsys.readouterr().err.splitlines()
    (line,) = [line for line in shown if "the outcome of its call is unknown" in line]
    assert line.startswith(f"ATTENTION: step-001, {NAMESPACE}/{LOWER}: ")


def test_a_run_whose_plan_is_gone_from_the_root_is_ended_by_what_the_ledger_has_of_it(
    root: Root, ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    started(ledger, PLAN)
    assert typed(root, "apply", short(digest_of(PLAN)), "--abort", "--as", "bob") == 0
    assert "run 1 of" in capsys.readouterr().out
    assert typed(root, "apply", "0" * 8, "--abort", "--as", "bob") == 2
    assert "has a digest that begins with 00000000" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("silent_s", "says"),
    [(0, "ends once its steps in flight are done"), (181, "has no process: --resume continues it")],
)
def test_whoever_pauses_a_run_is_given_whether_a_process_carries_it_out(
    root: Root, ledger: Ledger, capsys: pytest.CaptureFixture[str], time: FakeTime, silent_s: int, says: str
) -> None:
    time.ms -= silent_s * 1000
    write_plan(root, PLAN)
    started(ledger, PLAN)
    assert typed(root, "apply", digest_of(PLAN), "--pause") == 0
    assert capsys.readouterr().out == f"run 1 of {digest_of(PLAN)} {says}\n"


def _is_moved_on(cluster: FakeCluster) -> None:
    """The first step's bundle, once its hold is over."""
    cluster.later(BRISK.canary_hold_s + 1, lambda: cluster.owners.update({f"{NAMESPACE}/{LOWER}": B3}))


def _is_deleted(cluster: FakeCluster) -> None:
    """The namespace, while its broker is at work on the first call."""
    cluster.once("after the call", lambda: (cluster.owners.clear(), cluster.bounds.clear()))


@pytest.mark.parametrize(
    ("meanwhile", "next_action"),
    [
        (
            lambda cluster: cluster.owners.update({f"{NAMESPACE}/{UPPER}": B2}),
            "to resume, once the cluster is as it was, or the plan is approved again with --on-drift skip: ",
        ),
        (
            lambda cluster: setattr(cluster, "_split", lambda _split: None),
            "to go on: capture again and make a new plan",
        ),
        (_is_moved_on, "moves bundles too; make a new plan, and apply with a guard"),
        (_is_deleted, "--abort`, then capture again and make a new plan"),
    ],
    ids=["drifted", "failed", "moved on", "deleted"],
)
def test_only_a_run_that_can_get_further_is_to_be_resumed(
    root: Root,
    ledger: Ledger,
    cluster: FakeCluster,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    meanwhile: Callable[[FakeCluster], object],
    next_action: str,
) -> None:
    plan = approved(ledger, make_plan([unload_step(), split_step()], snapshot=PLAN.snapshot))
    write_plan(root, plan)
    meanwhile(cluster)
    result = run(plan, ledger, cluster)
    monkeypatch.setattr("pulsar_advisor.stages.apply.run", lambda *_: result)
    assert typed(root, "apply", digest_of(plan), *REACH) == 5
    said = capsys.readouterr().out
    assert next_action in said
    assert ("to resume" in said) == next_action.startswith("to resume")


@pytest.mark.parametrize(
    ("meanwhile", "first"),
    [
        (lambda *_: None, ""),
        (lambda ledger, plan: withdraw(ledger, digest_of(plan), ALICE), ", once it is approved again"),
        (
            lambda ledger, plan: approved(ledger, plan, throttle=replace(ANY_THROTTLE, max_age_s=1)),
            ", once it is approved again with a longer --max-age",
        ),
    ],
    ids=["approved", "withdrawn", "too old"],
)
def test_to_resume_a_run_is_to_type_the_line_that_is_shown_once_the_approval_allows_it(
    root: Root,
    ledger: Ledger,
    cluster: FakeCluster,
    time: FakeTime,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    meanwhile: Callable[[Ledger, Plan], object],
    first: str,
) -> None:
    plan = approved(ledger, make_plan([unload_step(), unload_step(2, UPPER)], snapshot=PLAN.snapshot))
    write_plan(root, plan)
    cluster.once("after the call", lambda: cluster.brokers.discard(B3))
    result = run(plan, ledger, cluster)
    meanwhile(ledger, plan)
    time.pass_s(2)
    monkeypatch.setattr("pulsar_advisor.stages.apply.run", lambda *_: result)
    assert typed(root, "apply", digest_of(plan), *REACH) == 5
    line = f"pulsar-advisor apply {short(digest_of(plan))} --resume {at(root)} {' '.join(REACH)}"
    assert f"to resume{first}: {line}" in capsys.readouterr().out.splitlines()


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This machine's clock is that of Berlin."""
    with monkeypatch.context() as changed:
        changed.setenv("TZ", "Europe/Berlin")
        tzset()
        yield
    tzset()


@pytest.mark.parametrize(
    ("evening", "utc_hour"), [("2027-03-27T22:00", 4), ("2026-10-24T22:00", 5), ("2026-11-27T22:00", 5)]
)
def test_until_is_by_the_clock_of_the_next_morning_even_if_the_clocks_change_at_night(
    root: Root, ledger: Ledger, berlin: None, monkeypatch: pytest.MonkeyPatch, evening: str, utc_hour: int
) -> None:
    class Evening(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:
            return datetime.fromisoformat(evening).replace(tzinfo=tz)

    given: list[ApplyOptions] = []

    def carry_out(_plan: Plan, _ledger: Ledger, _admin: object, options: ApplyOptions, *_: object) -> None:
        given.append(options)
        raise Refused("nothing is sent here")

    monkeypatch.setattr("pulsar_advisor.cli.applying.datetime", Evening)
    monkeypatch.setattr("pulsar_advisor.stages.apply.run", carry_out)
    write_plan(root, approved(ledger, PLAN))
    assert typed(root, "apply", digest_of(PLAN), *REACH, "--until", "06:00") == Refused.exit_code
    (until,) = (options.until for options in given)
    assert until is not None
    assert (until.astimezone(UTC).hour, until.hour) == (utc_hour, 6)
