"""The database is lost in the middle of a run: an error that names it; once it is back, the run ends as it should."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration.conftest import PostgreSQL
from integration.scene import assert_as_undisturbed, scene


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
                assert "a run that it ended can go on" in ended.stderr
            own_postgresql.start()
            if ended.returncode:
                ended = lost.apply()
                if ended.returncode == 4:
                    ended = lost.apply("--resume")
            assert ended.returncode == 0, f"killed at instant {instant}: {ended.stderr}"
            assert_as_undisturbed(lost)
