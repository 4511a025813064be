"""A cluster is carried to another release of Pulsar by a roll, under traffic; one broker is put back on the way."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.cluster import ClusterOptions, LiveBroker, LiveCluster
from harness.configuration import LoadManager
from harness.numbered_messages import numbered_messages
from harness.shell import ADVISOR, Shell, call, plain_connection
from live.plans import divide, topics_inside, wait_until_reported
from live.restarts import BALANCED, BUNDLES, GUARDED, NAMESPACE, Moves, broker_of, overrides, owners
from live.starting import StartCluster
from live.test_roll import go_on, rolled

pytestmark = [pytest.mark.live, pytest.mark.full]

TO = "5.0.1"
TOPICS_OF_BUNDLE = 2
"""Enough to make Extensible brokers' own reports few of the bytes."""
LONGEST_GAP_S = 45
"""Without the listener, topics stay closed for as long as their namespace's policies are on an older broker."""


def internal_listener(broker: LiveBroker) -> Mapping[str, str]:
    """What brokers of 5.0 have by themselves, and need of older ones to look up topics there."""
    addresses = f"internal:{broker.service_url},internal:{broker.admin_url}"
    return {"advertisedListeners": addresses, "internalListenerName": "internal"}


def deciding_release(shell: Shell) -> str:
    """The release whose rules `doctor` applies while brokers run two."""
    examined = call([str(ADVISOR), "doctor", *shell.connection, "--json"])
    assert examined.code == 0, examined.out + examined.err
    rows = examined.document["rows"]
    assert {row["status"] for row in rows if row["check"].startswith("surface.")} == {"ok"}, rows
    (sentence,) = [row["sentence"] for row in rows if row["check"] == "release"]
    assert "brokers run different releases" in sentence
    return str(sentence).rpartition("the rules of ")[2].partition(" are applied")[0]


def leaders_release(cluster: LiveCluster) -> str:
    return broker_of(cluster, cluster.living_admin.read("/brokers/leaderBroker")["brokerId"]).release


@pytest.mark.parametrize(("release", "load_manager"), [("4.0.8", "modular"), ("4.2.4", "extensible")])
def test_a_roll_to_another_release(
    start_cluster: StartCluster, tmp_path: Path, release: str, load_manager: LoadManager
) -> None:
    cluster = start_cluster(ClusterOptions(release=release, load_manager=load_manager, settings=BALANCED))
    for broker in cluster.brokers:
        cluster.restart_broker(broker, settings=internal_listener(broker))
    shell = Shell(tmp_path, plain_connection(cluster))
    bundles = divide(cluster, NAMESPACE, BUNDLES)
    topics = [name for text in bundles for name in topics_inside(NAMESPACE, text, TOPICS_OF_BUNDLE)]
    with numbered_messages(cluster, topics) as messages:
        wait_until_reported(cluster, set(topics))
        moves, order = Moves(cluster), list[str]()
        digest = rolled(cluster, shell)
        status = go_on(shell, digest)
        while (drained := status["restart"]) is not None:
            moves.look()
            assert drained not in owners(cluster).values(), "it is empty before it stops"
            cluster.restart_broker(broker_of(cluster, drained), release=TO)
            if len(order) == 1:
                cluster.restart_broker(broker_of(cluster, drained), release=release)
            order.append(drained)
            assert deciding_release(shell) == leaders_release(cluster)
            status = go_on(shell, digest, "--restarted", drained, "--as", "olive")
        moves.look()
        assert status["ended"] == "every broker was restarted"
        assert sorted(order) == sorted(cluster.broker_ids)
        assert [broker_of(cluster, broker).release for broker in order] == [TO, release, TO]
        assert overrides(cluster) == {}
        for url in cluster.admin_urls:
            effective = cluster.admin.read("/brokers/configuration/runtime", url=url)
            assert {setting: effective[setting] for setting in GUARDED} == BALANCED
    print(f"{release} {load_manager} to {TO}: {moves.figures(messages.report, killed=False)}")
    assert messages.report is not None
    assert messages.report.longest_gap_s < LONGEST_GAP_S
