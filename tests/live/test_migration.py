"""A cluster whose brokers run different load managers is recognised, and gets no recommendation."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cluster import ClusterOptions
from harness.configuration import LOAD_MANAGER_CLASSES
from harness.shell import ADVISOR, Shell, call, plain_connection
from live.starting import StartCluster
from pulsar_advisor.storage.root import MANIFEST, RESULT

pytestmark = [pytest.mark.live, pytest.mark.full]

NOT_FIT = 3


def test_brokers_in_migration_are_listed_and_the_line_stops(start_cluster: StartCluster, tmp_path: Path) -> None:
    migrated = {2: {"loadManagerClassName": LOAD_MANAGER_CLASSES["extensible"]}}
    cluster = start_cluster(ClusterOptions(settings_of=migrated, cpu_sensor=False))
    first, second, third = cluster.broker_ids
    shell = Shell(tmp_path, plain_connection(cluster))

    examined = call([str(ADVISOR), "doctor", *shell.connection, "--json"])
    (row,) = [row for row in examined.document["rows"] if row["check"] == "load_manager"]
    assert (examined.code, row["status"]) == (NOT_FIT, "problem")
    assert f"modular at {first}, {second}; extensible at {third}" in row["sentence"]

    ran = shell("run", *shell.connection, "--master", "local[2]", "--json")
    assert (ran.code, "brokers.load_manager_agrees" in ran.err) == (NOT_FIT, True), ran.err
    assert shell.document("raw", MANIFEST)["load_managers"] == {
        first: "modular",
        second: "modular",
        third: "extensible",
    }
    failed = {result["check"]: result for result in shell.document("validation", RESULT)["results"]}
    assert third in str(failed["brokers.load_manager_agrees"]["examples"])
    assert shell.plans() == []
