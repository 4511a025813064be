"""A broker that dies in the middle of a capture costs its part; the rest goes down the whole line."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness.cluster import ClusterOptions, LiveBroker, LiveCluster
from harness.load import running_load
from harness.shell import Answer, Shell, plain_connection
from harness.skew import wait_for_figures
from live.starting import StartCluster
from pulsar_advisor.storage.root import MANIFEST, RESULT

pytestmark = [pytest.mark.live, pytest.mark.full]

MIDDLE = "settings, load and topics"
"""The step between the two passes over the owners, as progress names it."""


def capture_while_one_dies(shell: Shell, cluster: LiveCluster, dying: LiveBroker) -> Answer:
    command = shell.command("capture", "-v", *shell.connection)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as capture:
        assert capture.stdout is not None
        assert capture.stderr is not None
        progress = ""
        for line in capture.stderr:
            progress += line
            if MIDDLE in line:
                cluster.kill_broker(dying)
        printed = capture.stdout.read()
    return Answer(capture.returncode, printed, progress)


def test_a_broker_killed_during_the_capture_costs_its_part_only(start_cluster: StartCluster, tmp_path: Path) -> None:
    cluster = start_cluster(ClusterOptions())
    dying, *living = cluster.brokers
    shell = Shell(tmp_path, plain_connection(cluster))
    with running_load(cluster) as workload:
        wait_for_figures(cluster.admin, workload)
        captured = capture_while_one_dies(shell, cluster, dying)
    assert captured.code == 0, captured.err

    manifest = shell.document("raw", MANIFEST)
    assert manifest["incomplete_brokers"] == [dying.broker_id]
    missing = [entry for entry in manifest["missing"] if not entry["reason"].startswith("not available")]
    assert {entry["broker"] for entry in missing} == {dying.broker_id}
    assert [entry["reason"] for entry in missing if f"{dying.admin_url}: connection" not in entry["reason"]] == []
    whole = {file["broker"] for file in manifest["files"] if file["surface"] == "topic_stats"}
    assert {broker.broker_id for broker in living} <= whole

    judged = shell("normalize", "--master", "local[2]"), shell("validate", "--master", "local[2]", "--json")
    assert [answer.code for answer in judged] == [0, 0], judged
    failing = [result for result in shell.document("validation", RESULT)["results"] if not result["success"]]
    assert dying.broker_id in {name for result in failing if result["scope"] == "broker" for name in result["excluded"]}

    recommended = shell("recommend", "--master", "local[2]", "--shedder", "ThresholdShedder", "--json")
    assert recommended.code == 3, "the bundles of the dying broker are too many to leave out"
    steps = [step for plan in shell.plans() for step in plan["steps"] if step["executable"]]
    assert not [step for step in steps if dying.broker_id in (step["source"], step["destination"])]
    reported = shell("report", "--format", "md", "--output", str(tmp_path / "report.md"))
    assert reported.code == 3, reported.err
    assert dying.broker_id in (tmp_path / "report.md").read_text()
