"""All load on one broker, above its CPU limit, beside two empty ones: the shape after a rolling restart.

Each shedder of the Modular and the Extensible manager is switched on in turn. What its leader then unloads is compared
with the answers to captures taken seconds before.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from decisions.answers import answers, named_ratio, table
from decisions.recording import read_recording
from harness.record_decisions import CROWDED, record_decisions
from harness.sensor import mount_isolation
from live.conftest import unavailable_skips
from pulsar_advisor.tables.session import spark_session

pytestmark = [pytest.mark.live, pytest.mark.full]

LEAST_NAMED = 0.9


def test_what_the_leader_unloads_from_it_is_named_and_no_answer_says_to_do_nothing(tmp_path: Path) -> None:
    if mount_isolation() is None:
        pytest.skip("this machine doesn't permit mount namespaces, so all brokers report the host's CPU")
    found = []
    for scenario in CROWDED:
        with unavailable_skips():
            recording = read_recording(record_decisions(scenario, tmp_path))
        spark = spark_session("local[2]", "overload")
        try:
            of_this = answers(recording, spark, tmp_path / scenario.name)
        finally:
            spark.stop()
        print(f"\n{scenario.name}\n{table(of_this)}", flush=True)
        assert of_this[0].above_limit
        found += of_this
    print(f"{named_ratio(found):.0%} named; {sum(answer.does_nothing for answer in found)} times 'Do nothing'")
    # Where neither a broker is above its limit nor its leader acts, that may be the right answer.
    assert not [answer.sentence for answer in found if answer.does_nothing and (answer.above_limit or answer.unloaded)]
    assert named_ratio(found) >= LEAST_NAMED
