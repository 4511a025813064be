"""The database is lost in the middle of a run: an error that names it; once it is back, the run ends as it should.

Also if the network no longer carries anything to it, of which no error comes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from integration.conftest import PostgreSQL
from integration.scene import assert_as_undisturbed, scene
from pulsar_advisor.execution.ledger.opening import open_ledger
from pulsar_advisor.model.errors import StorageError


@pytest.mark.slow
@pytest.mark.parametrize("instants", ["one", pytest.param("all", marks=pytest.mark.full)])
def test_a_run_whose_database_is_killed_at_any_instant_ends_as_an_undisturbed_one(
    own_postgresql: PostgreSQL, tmp_path: Path, instants: str
) -> None:
    with scene(own_postgresql.new_database(), tmp_path) as undisturbed:
        assert undisturbed.apply().returncode == 0
        count = len(undisturbed.instants())
    for instant in range(1, count + 1) if instants == "all" else (count // 2,):
        with scene(own_postgresql.new_database(), tmp_path) as lost:
            ended = lost.apply(event_at=(f"kill:{own_postgresql.pid}", instant))
            own_postgresql.kill()
            assert ended.returncode or instants == "all", "it was killed half-way"
            if ended.returncode:  # none at the last instants, after which nothing is written
                assert ended.returncode in (1, 5), f"killed at instant {instant}: {ended.stderr}"
                assert "Traceback" not in ended.stderr
                assert "ledger postgresql+psycopg://advisor@127.0.0.1" in ended.stderr
                assert "a run that ended because of this can be resumed" in ended.stderr
            own_postgresql.start()
            if ended.returncode:
                ended = lost.apply()
                if ended.returncode == 4:
                    ended = lost.apply("--resume")
            assert ended.returncode == 0, f"killed at instant {instant}: {ended.stderr}"
            assert_as_undisturbed(lost)


@contextmanager
def dropped(port: int) -> Iterator[None]:
    """Within the block, the network carries nothing to a port of loopback nor from it."""
    rules = [["INPUT", "-i", "lo", "-p", "tcp", end, str(port), "-j", "DROP"] for end in ("--dport", "--sport")]
    with ExitStack() as undone:
        for rule in rules:
            subprocess.run(["iptables", "-A", *rule], check=True)
            undone.callback(subprocess.run, ["iptables", "-D", *rule], check=True)
        yield


@pytest.mark.full
@pytest.mark.skipif(shutil.which("iptables") is None or os.geteuid() != 0, reason="no iptables, or not root")
def test_a_database_that_the_network_has_lost_is_given_up(own_postgresql: PostgreSQL) -> None:
    with closing(open_ledger(own_postgresql.new_database())) as ledger:
        ledger.head()
        with dropped(own_postgresql.port), ThreadPoolExecutor() as others:
            failure = others.submit(ledger.head).exception(timeout=90)
        assert isinstance(failure, StorageError)
        ledger.head()
