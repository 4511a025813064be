"""A rolling restart of real brokers under traffic, conducted from a shell, beside the same restarts by hand.

Nothing but the test restarts the brokers. Each prints what it cost: moves of bundles, and how long topics stood still.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.cluster import ClusterOptions, LiveBroker, LiveCluster
from harness.configuration import CLUSTER_NAME
from harness.numbered_messages import TrafficReport, numbered_messages
from harness.shell import QUICK, Shell, plain_connection
from live.goals import judge
from live.plans import boundaries, topics_inside, wait_until_reported

pytestmark = [pytest.mark.live, pytest.mark.full]

StartCluster = Callable[[ClusterOptions], LiveCluster]

NAMESPACE = "rolls/many"
BUNDLES = 12
BALANCED = {"loadBalancerSheddingEnabled": "true", "loadBalancerAutoBundleSplitEnabled": "true"}
GUARDED = tuple(BALANCED)


def divided(cluster: LiveCluster) -> list[str]:
    """A namespace of which clients use one topic in each bundle; the topics."""
    cluster.admin.write("PUT", "/tenants/rolls", body={"allowedClusters": [CLUSTER_NAME], "adminRoles": []})
    cluster.admin.write("PUT", f"/namespaces/{NAMESPACE}", body={"bundles": {"numBundles": BUNDLES}})
    ranges = ["_".join(pair) for pair in itertools.pairwise(boundaries(cluster, NAMESPACE))]
    return [topics_inside(NAMESPACE, text, 1)[0] for text in ranges]


def owners(cluster: LiveCluster) -> dict[str, str]:
    """Broker id by bundle."""
    owned = cluster.living_admin.owners(CLUSTER_NAME)
    return {bundle: broker for bundle, broker in owned.items() if bundle.startswith(f"{NAMESPACE}/")}


def broker_of(cluster: LiveCluster, broker_id: str) -> LiveBroker:
    return next(broker for broker in cluster.brokers if broker.broker_id == broker_id)


def overrides(cluster: LiveCluster) -> dict[str, str]:
    values = cluster.living_admin.read("/brokers/configuration/values")
    return {setting: values[setting] for setting in GUARDED if setting in values}


class Moves:
    """How often each bundle had another owner than when it was last looked at."""

    def __init__(self, cluster: LiveCluster) -> None:
        self._cluster = cluster
        self._before = owners(cluster)
        self.of_bundle = Counter[str]()

    def look(self) -> None:
        now = owners(self._cluster)
        self.of_bundle.update(bundle for bundle, owner in self._before.items() if now.get(bundle, owner) != owner)
        self._before |= now

    def figures(self, report: TrafficReport | None) -> str:
        assert report is not None
        assert (report.lost, report.refused) == (0, 0)
        gaps, most = sorted(report.gap_of_topic_s.values()), max(self.of_bundle.values(), default=0)
        return (
            f"{self.of_bundle.total()} moves of {BUNDLES} bundles, at most {most} of one; "
            f"longest gap of a topic {gaps[-1]} s, median {gaps[len(gaps) // 2]} s; lost {report.lost} of "
            f"{report.published}; gaps {report.gaps}"
        )


def rolled(cluster: LiveCluster, shell: Shell, *words: str) -> str:
    """The digest of an approved roll of the cluster as it is."""
    judge(shell)
    made = shell("roll", *words, "--as", "olive", "--json")
    assert made.code == 0, made.err
    digest: str = made.document["advice"]["digest"]
    consents = ("--accept-worse", "--accept-low-confidence")
    agreed = shell("approve", digest, "--as", "bob", *consents, *QUICK, "--expires", "1h")
    assert agreed.code == 0, agreed.err
    print(agreed.out)
    return digest


def go_on(shell: Shell, digest: str, *words: str) -> dict[str, Any]:
    answer = shell("roll", "continue", digest, *words, *shell.connection, "--master", "local[2]", "--json")
    assert answer.code == 0, answer.out + answer.err
    print(answer.err)
    status: dict[str, Any] = answer.document
    print(status["sentence"])
    return status


@pytest.mark.parametrize("kill", [False, True], ids=["none killed", "one killed"])
@pytest.mark.parametrize("spare", [False, True], ids=["without a spare", "with a spare"])
def test_a_roll_of_three_brokers_of_which_one_is_killed_meanwhile(
    start_cluster: StartCluster, tmp_path: Path, spare: bool, kill: bool
) -> None:
    cluster = start_cluster(ClusterOptions(brokers=4 if spare else 3, settings=BALANCED))
    shell = Shell(tmp_path, plain_connection(cluster))
    topics = divided(cluster)
    with numbered_messages(cluster, topics) as messages:
        wait_until_reported(cluster, set(topics))
        if spare:
            empty(cluster, shell, cluster.brokers[-1])
        digest = rolled(cluster, shell, *(("--spare", cluster.brokers[-1].broker_id) if spare else ()))
        moves, order, killed = Moves(cluster), list[str](), not kill
        print("began", Counter(owners(cluster).values()), time.time())
        status = go_on(shell, digest)
        while (broker := status["restart"]) is not None:
            moves.look()
            assert broker not in owners(cluster).values(), "it is empty before it stops"
            assert set(overrides(cluster)) == set(GUARDED)
            if not killed:
                lost = next(turn["broker"] for turn in status["turns"] if turn["state"] == "to come")
                cluster.restart_broker(broker_of(cluster, lost), killed=True)
                wait_until_reported(cluster, set(topics))
                moves = Moves(cluster) if spare else moves
                killed = True
            print("restart", broker, time.time(), moves.of_bundle.total())
            cluster.restart_broker(broker_of(cluster, broker))
            print("restarted", broker, time.time())
            order.append(broker)
            status = go_on(shell, digest, "--restarted", broker, "--as", "olive")
        moves.look()
        assert overrides(cluster) == {}
        assert sorted(order) == sorted(cluster.broker_ids[:3])
        assert status["ended"] == "every broker was restarted"
    print(f"conducted, {'with' if spare else 'without'} a spare: {moves.figures(messages.report)}")
    assert max(moves.of_bundle.values()) <= (1 if spare else 2)


@pytest.mark.parametrize("balanced", [True, False], ids=["with its balancer on", "with its balancer off"])
def test_the_same_restarts_by_hand(start_cluster: StartCluster, balanced: bool) -> None:
    cluster = start_cluster(ClusterOptions(settings=BALANCED if balanced else {}))
    topics = divided(cluster)
    with numbered_messages(cluster, topics) as messages:
        wait_until_reported(cluster, set(topics))
        moves = Moves(cluster)
        for broker in list(cluster.brokers):
            print("restart", broker.broker_id, time.time(), Counter(owners(cluster).values()))
            cluster.restart_broker(broker)
            wait_until_reported(cluster, set(topics))
            moves.look()
    print(f"by hand, balancer {'on' if balanced else 'off'}: {moves.figures(messages.report)}")


def empty(cluster: LiveCluster, shell: Shell, broker: LiveBroker) -> None:
    """Drain a broker that is to be the spare one."""
    judge(shell)
    made = shell("drain", broker.broker_id, "--as", "olive", "--json")
    assert made.code == 0, made.err
    digest = made.document["advice"]["digest"]
    agreed = shell("approve", digest, "--as", "bob", "--accept-worse", "--accept-low-confidence", *QUICK, "--guard")
    assert agreed.code == 0, agreed.err
    applied = shell("apply", digest, *shell.connection)
    assert applied.code == 0, applied.out + applied.err
    assert broker.broker_id not in owners(cluster).values()
