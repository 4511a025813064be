"""Pulsar 5 on real brokers: segments under load that their controllers split and merge, a drain, a migrating store.

One cluster for all tests, in this order; the last one leaves its metadata store blocked.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest
from kazoo.client import KazooClient

from decisions.recording import raw_snapshot
from harness.cluster import LiveCluster
from harness.configuration import CLUSTER_NAME
from harness.load import running_load
from harness.record_scalable import (
    AFTER,
    BEFORE,
    CLUSTER_OF_RECORDING,
    COLD,
    HOT,
    SEGMENTS,
    Changed,
    scalable_topics,
    watch_controllers,
)
from harness.scalable_load import LAST_HASH, Stream, create, running_streams
from harness.sensor import Machine
from harness.shell import QUICK, Answer, Shell, plain_connection
from harness.skew import wait_for_skew, wait_until_settled
from live.goals import MISSES_ALLOWED, judge
from live.starting import with_cpu_skew
from pulsar_advisor.storage.archive import export_snapshot
from pulsar_advisor.storage.root import Root

pytestmark = [pytest.mark.live, pytest.mark.full]

IDLE = "topic://retail/idle/audit"
IDLE_BUNDLE = "retail/idle/0x00000000_0xffffffff"
DATA_NOT_FIT, REFUSED, DEVIATES, GOAL_NOT_REACHED = 3, 4, 5, 6
MIGRATION = "/pulsar/migration-coordinator/migration"
ARRIVES_WITHIN_S = 60
DRAINS = 3
"""A destination is a wish under the Modular manager: a drain that misses one is planned anew."""


@dataclass(frozen=True)
class Ground:
    """The cluster, and what its controllers changed between two snapshots."""

    cluster: LiveCluster
    shell: Shell
    recorded: Root
    changed: Changed
    load: ExitStack
    """Ends the load of the topics that aren't scalable; first the skewed one."""

    def approved(self, *words: str) -> str:
        """The digest of the plan that these words make, once it is approved."""
        made = self.shell(*words, "--as", "olive", "--json")
        assert made.code in (0, GOAL_NOT_REACHED), made.err
        document = made.document
        digest: str = document["advice"]["digest"] if "advice" in document else document["digest"]
        consents = ("--accept-worse", "--accept-low-confidence", "--error-budget", "50")
        agreed = self.shell("approve", digest, "--as", "bob", *consents, *QUICK)
        assert agreed.code == 0, agreed.err
        return digest

    def apply(self, digest: str) -> Answer:
        return self.shell("apply", digest, *self.shell.connection, "--json")

    def bring(self, bundle: str, broker: str) -> None:
        """Move a bundle to a broker, which under the Modular manager is a wish."""
        deadline = time.monotonic() + ARRIVES_WITHIN_S
        while self.cluster.admin.owners(CLUSTER_NAME).get(bundle) != broker:
            assert time.monotonic() < deadline, f"{bundle} doesn't come to {broker}"
            self.cluster.admin.write("PUT", f"/namespaces/{bundle}/unload", params={"destinationBroker": broker})
            time.sleep(2)

    def used_elsewhere(self, broker: str) -> tuple[str, str]:
        """A bundle that clients use on another broker, and that broker."""
        for url, other in zip(self.cluster.admin_urls, self.cluster.broker_ids, strict=True):
            for namespace, bundles in self.cluster.admin.read("/broker-stats/topics", url=url).items():
                if other != broker and namespace.startswith("retail/") and bundles:
                    return f"{namespace}/{next(iter(bundles))}", other
        raise AssertionError("no such bundle")


def confirmed(applied: Answer) -> tuple[set[str], bool]:
    """The bundles that a run brought to their destinations, and whether none missed its own."""
    states = {step["bundle"]: step["state"] for step in applied.document["steps"]}
    assert set(states.values()) <= {"confirmed", "failed"}, applied.out
    arrived = {bundle for bundle, state in states.items() if state == "confirmed"}
    assert len(states) - len(arrived) <= MISSES_ALLOWED, applied.out
    return arrived, len(arrived) == len(states)


@pytest.fixture(scope="module")
def ground(pulsar_5_cluster: LiveCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    cluster = with_cpu_skew(pulsar_5_cluster)
    folder = tmp_path_factory.mktemp("pulsar-5")
    with ExitStack() as load, scalable_topics(cluster):
        load.enter_context(running_load(cluster))
        wait_for_skew(cluster.admin)
        recorded = Root(str(folder), CLUSTER_OF_RECORDING)
        changed = watch_controllers(cluster, recorded)
        yield Ground(cluster, Shell(folder, plain_connection(cluster)), recorded, changed, load)


def test_a_hot_segment_was_split_and_a_cold_pair_merged_between_two_snapshots(ground: Ground) -> None:
    before, after = ground.changed.segments_before, ground.changed.segments_after
    print(f"\nbefore {before}\nafter {after}")
    assert 0 not in after[HOT]
    assert len(after[COLD]) < SEGMENTS
    for archive, snapshot, active in (
        (BEFORE, ground.changed.before, before),
        (AFTER, ground.changed.after, after),
    ):
        export_snapshot(snapshot, ground.shell.root / archive)
        lines = raw_snapshot(snapshot).lines["segments"]
        expected = {
            f"{topic.replace('topic://', 'segment://')}/{descriptor}"
            for topic, segments in active.items()
            for descriptor in segments.values()
        }
        for source in {line["source"] for line in lines}:
            captured = {
                line["topic"] for line in lines if line["source"] == source and line["document"]["state"] == "ACTIVE"
            }
            assert captured == expected, source


def test_a_drain_with_an_idle_segment_is_confirmed_and_sees_what_came_meanwhile(ground: Ground) -> None:
    create(ground.cluster.admin, IDLE, segments=1, bundles=1)
    with running_streams(ground.cluster, [Stream(IDLE, 0, LAST_HASH, 10)]):
        pass  # loaded now, and no client has it any more
    ground.load.close()  # two brokers have no room for all of it
    ground.load.enter_context(running_load(ground.cluster, "gentle"))
    wait_until_settled(ground.cluster.admin, dict.fromkeys(ground.cluster.admin.urls, Machine()))
    drained = ground.cluster.admin.owners(CLUSTER_NAME)[IDLE_BUNDLE]
    moved: set[str] = set()
    for _ in range(DRAINS):
        judge(ground.shell)
        digest = ground.approved("drain", drained)
        came, home = ground.used_elsewhere(drained)
        ground.bring(came, drained)
        applied = ground.apply(digest)
        print(f"\n{applied.document['sentence']}")
        arrived, is_whole = confirmed(applied)
        moved |= arrived
        if is_whole:
            break
        assert applied.code == DEVIATES, applied.out
    assert IDLE_BUNDLE in moved
    assert (applied.code, applied.document["goal_outcome"]) == (GOAL_NOT_REACHED, "in part"), applied.out
    assert came in applied.document["sentence"]

    ground.bring(came, home)
    again = ground.apply(digest)
    assert (again.code, again.document["goal_outcome"]) == (0, "reached"), again.out + again.err

    verified = ground.shell("verify", digest, *ground.shell.connection)
    print(verified.out)
    assert verified.code in (0, DEVIATES), verified.err
    back = ground.approved("undo", digest, *ground.shell.connection)
    undone = ground.apply(back)
    print(undone.document["sentence"])
    _, is_whole = confirmed(undone)
    assert undone.code == (0 if is_whole else DEVIATES), undone.out + undone.err


def test_while_the_metadata_store_is_migrated_a_capture_says_so_and_nothing_is_applied(ground: Ground) -> None:
    judge(ground.shell)
    digest = ground.approved("drain", ground.cluster.broker_ids[0])
    store = KazooClient(hosts=ground.cluster.zookeeper)
    store.start()
    try:
        store.ensure_path(MIGRATION)
        for phase in ("PREPARATION", "COPYING"):
            store.set(MIGRATION, json.dumps({"phase": phase, "targetUrl": "oxia://127.0.0.1:6648/broker"}).encode())
            shown = ground.cluster.admin.read("/metadata/migration/status")
            assert shown["phase"] == phase
            captured = ground.shell("capture", *ground.shell.connection, "--json")
            assert captured.code == 0, captured.err
            missing = captured.document["missing"]
            assert [one for one in missing if f"({phase})" in one["reason"]], missing
            applied = ground.apply(digest)
            assert (applied.code, f"is being migrated ({phase})" in applied.err) == (REFUSED, True), applied.err
        store.set(MIGRATION, json.dumps({"phase": "COMPLETED", "targetUrl": "oxia://127.0.0.1:6648/broker"}).encode())
        captured = ground.shell("capture", *ground.shell.connection)
        assert (captured.code, "is outdated" in captured.err) == (DATA_NOT_FIT, True), captured.err
    finally:
        store.stop()
        store.close()
