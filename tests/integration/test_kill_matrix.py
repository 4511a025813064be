"""SIGKILL at every instant of a run, before and after each ledger write and each call: the end is always the same."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from integration.conftest import NewLedger
from integration.scene import assert_as_undisturbed, scene, unanswered_calls, until

SAMPLED = 2
"""Instants in every run of the tests, spread evenly; all of them in `make test-full`."""


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize(
    ("in_flight", "effect_after_s"),
    [pytest.param(1, 0.0, id="one by one", marks=pytest.mark.full), pytest.param(3, 0.3, id="in waves")],
)
@pytest.mark.parametrize("instants", ["sampled", pytest.param("all", marks=pytest.mark.full)])
def test_a_run_that_is_killed_at_any_instant_ends_as_an_undisturbed_one(
    new_ledger: NewLedger, tmp_path: Path, instants: str, in_flight: int, effect_after_s: float
) -> None:
    with scene(new_ledger(), tmp_path, effect_after_s, in_flight) as undisturbed:
        ended = undisturbed.apply()
        assert ended.returncode == 0, ended.stderr
        assert_as_undisturbed(undisturbed)
        count = len(undisturbed.instants())
    every = 1 if instants == "all" else count // SAMPLED
    killed_at = range((every + 1) // 2, count + 1, every)
    for instant in killed_at:
        with scene(new_ledger(), tmp_path, effect_after_s, in_flight) as killed:
            assert killed.apply(event_at=(signal.SIGKILL, instant)).returncode == -signal.SIGKILL
            ended = killed.apply()
            if ended.returncode == 4:
                assert "--resume`, or end it with `pulsar-advisor apply " in ended.stderr
                ended = killed.apply("--resume")
            assert ended.returncode == 0, f"killed at instant {instant}: {ended.stderr}"
            assert_as_undisturbed(killed)
    print(f"killed at {len(killed_at)} of {count} instants: every end as undisturbed")


@pytest.mark.sampled(every=2)
def test_a_run_that_gets_sigterm_finishes_its_step_and_can_be_resumed(new_ledger: NewLedger, tmp_path: Path) -> None:
    with scene(new_ledger(), tmp_path) as asked:
        with unanswered_calls(asked):
            process = asked.start()
            until(lambda: asked.cluster.writes)
            process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=240)
        assert (process.returncode, len(asked.cluster.writes)) == (5, 1)
        assert "1 of 2 steps confirmed: ended by SIGTERM" in said
        assert asked.apply("--resume").returncode == 0
        assert_as_undisturbed(asked)
