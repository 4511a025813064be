"""Several processes and one ledger: one run a cluster, and one suspended past its lease does nothing more."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from integration.conftest import NewLedger
from integration.scene import assert_as_undisturbed, scene, unanswered_calls, until
from pulsar_advisor.execution.ledger.audit import audit
from pulsar_advisor.execution.ledger.opening import open_ledger

HERE: tuple[str, ...] = ()
WITH_A_CLOCK_AHEAD = ("env", "CLOCK_AHEAD_S=200")
IN_A_PID_NAMESPACE = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")


def can_make_namespaces() -> bool:
    return subprocess.run([*IN_A_PID_NAMESPACE, "true"], capture_output=True, check=False).returncode == 0


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that take no other one for dead, however seldom it gets a processor."""
    monkeypatch.setenv("LEASE_MS", "180000")


@pytest.mark.sampled(every=2)
@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize(
    ("first", "second"),
    [
        (HERE, HERE),
        (HERE, WITH_A_CLOCK_AHEAD),
        pytest.param(HERE, IN_A_PID_NAMESPACE, marks=pytest.mark.full),
        pytest.param(IN_A_PID_NAMESPACE, HERE, marks=pytest.mark.full),
    ],
    ids=[
        "one namespace",
        "the clock of the second is ahead",
        "second in another PID namespace",
        "first in another PID namespace",
    ],
)
def test_the_second_of_two_is_kept_out(
    new_ledger: NewLedger, tmp_path: Path, first: tuple[str, ...], second: tuple[str, ...]
) -> None:
    if IN_A_PID_NAMESPACE in (first, second) and not can_make_namespaces():
        pytest.skip("this user may not make PID namespaces")
    with scene(new_ledger(), tmp_path) as both:
        with unanswered_calls(both):
            at_work = both.start(*first)
            until(lambda: both.cluster.writes)
            intruder = both.start(*second, options=("--resume",))
            _, said = intruder.communicate(timeout=240)
            assert (intruder.returncode, at_work.poll()) == (4, None), said
            assert "is still held by process" in said
        _, said = at_work.communicate(timeout=240)
        assert at_work.returncode == 0, said
        assert_as_undisturbed(both)


@pytest.mark.full
def test_a_process_that_was_suspended_past_its_lease_does_nothing_more(new_ledger: NewLedger, tmp_path: Path) -> None:
    with scene(new_ledger(), tmp_path) as undisturbed:
        assert undisturbed.apply().returncode == 0
        names = undisturbed.instants()
    # In the middle of a write the database itself keeps others out. Between its last look at the lease and its first
    # byte no process can be fenced off, since a broker knows no fencing token.
    suspended_at = [number for number, name in enumerate(names, 1) if name in ("after a write", "after a call")]
    for instant in suspended_at:
        with scene(new_ledger(), tmp_path) as both:
            suspended = both.start(event_at=(signal.SIGSTOP, instant))
            os.waitid(os.P_PID, suspended.pid, os.WSTOPPED | os.WNOWAIT)
            ended = both.apply("--resume")
            while ended.returncode == 4 and "is still held" in ended.stderr:
                ended = both.apply("--resume")
            assert ended.returncode == 0, f"suspended at instant {instant}: {ended.stderr}"
            suspended.send_signal(signal.SIGCONT)
            _, said = suspended.communicate(timeout=240)
            assert suspended.returncode in (0, 4, 5), said
            assert_as_undisturbed(both)


@pytest.mark.sampled(every=2)
@pytest.mark.usefixtures("patient")
def test_of_four_at_once_one_carries_the_plan_out(new_ledger: NewLedger, tmp_path: Path) -> None:
    with scene(new_ledger(), tmp_path) as four:
        with unanswered_calls(four):
            started = [four.start() for _ in range(4)]
            until(lambda: sum(process.poll() is not None for process in started) == 3)
        ended = [(process.communicate(timeout=240)[1], process.returncode) for process in started]
        assert sorted(code for _, code in ended) == [0, 4, 4, 4], ended
        refused = [said for said, code in ended if code == 4]
        assert all("active" in said or "held" in said for said in refused), refused
        assert_as_undisturbed(four)


@pytest.mark.full
def test_four_clusters_share_a_ledger(new_ledger: NewLedger, tmp_path: Path) -> None:
    ledger = new_ledger()
    with ExitStack() as stack:
        scenes = []
        for number in range(4):
            folder = tmp_path / str(number)
            folder.mkdir()
            scenes.append(stack.enter_context(scene(ledger, folder, cluster_name=f"live-{number}")))
        started = [one.start() for one in scenes]
        ended = [(process.communicate(timeout=240)[1], process.returncode) for process in started]
        assert [code for _, code in ended] == [0, 0, 0, 0], ended
        for one in scenes:
            assert_as_undisturbed(one)
    with closing(open_ledger(ledger)) as shared:
        assert audit(shared).findings == ()
