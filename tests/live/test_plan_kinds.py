"""drain, fill, move, conform and split on real brokers under traffic: carried out, with the owners of the plan."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.cluster import ClusterOptions, LiveCluster
from harness.configuration import CLUSTER_NAME
from harness.numbered_messages import numbered_messages
from harness.shell import Shell, plain_connection
from harness.skew import cpu_percents
from live.goals import carry_out, executable, judge
from live.plans import divide, ranges_of, topics_inside, wait_until_reported
from live.starting import StartCluster, with_cpu_skew
from snapshots import isolation_policy

pytestmark = [pytest.mark.live, pytest.mark.full]

NAMESPACE = "goals/many"
BUNDLES = 12
IDLE_PERCENT = 3
SETTLED_LIMIT_S = 200


@dataclass(frozen=True)
class Ground:
    """A cluster with a namespace of which clients use one topic in each bundle."""

    cluster: LiveCluster
    shell: Shell

    @classmethod
    def divided(cls, cluster: LiveCluster, folder: Path, bundles: int) -> Ground:
        """On a namespace with this number of bundles."""
        divide(cluster, NAMESPACE, bundles)
        return cls(cluster, Shell(folder, plain_connection(cluster)))

    def ranges(self) -> list[str]:
        return ranges_of(self.cluster, NAMESPACE)

    def owners(self) -> dict[str, str]:
        """Broker id by range."""
        owned = self.cluster.admin.owners(CLUSTER_NAME)
        return {name.rpartition("/")[2]: broker for name, broker in owned.items() if name.startswith(f"{NAMESPACE}/")}

    def carried_out(self, *goal: str, consents: tuple[str, ...] = ()) -> tuple[dict[str, Any], set[str]]:
        """The plan for a goal on a fresh snapshot, applied, and the ranges that did not arrive."""
        judge(self.shell)
        done = carry_out(self.cluster, self.shell, *goal, consents=consents)
        return done.plan, {bundle.rpartition("/")[2] for bundle in done.astray}

    def until_idle(self, broker: str) -> None:
        """Brokers sample their CPU once a minute."""
        deadline = time.monotonic() + SETTLED_LIMIT_S
        while cpu_percents(self.cluster.admin)[broker] > IDLE_PERCENT:
            assert time.monotonic() < deadline, cpu_percents(self.cluster.admin)
            time.sleep(3)


def unloads(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return executable(plan, "unload")


@pytest.fixture
def cluster(start_cluster: StartCluster) -> LiveCluster:
    return with_cpu_skew(start_cluster(ClusterOptions()))


def test_a_broker_is_drained_filled_again_and_left_by_what_a_policy_forbids_it(
    cluster: LiveCluster, tmp_path: Path
) -> None:
    ground = Ground.divided(cluster, tmp_path, BUNDLES)
    topics = [topics_inside(NAMESPACE, text, 1)[0] for text in ground.ranges()]
    with numbered_messages(cluster, topics) as messages:
        wait_until_reported(cluster, set(topics))
        time.sleep(90)  # CPU is sampled once a minute
        drained = cluster.brokers[-1].broker_id
        before = {text for text, owner in ground.owners().items() if owner == drained}
        assert before

        plan, astray = ground.carried_out("drain", drained)
        assert {step["bundle"] for step in unloads(plan)} == before
        assert {text for text, owner in ground.owners().items() if owner == drained} <= astray

        ground.until_idle(drained)
        plan, astray = ground.carried_out("fill", drained)
        filled = {step["bundle"] for step in unloads(plan)}
        assert {step["destination"] for step in unloads(plan)} == {drained}
        assert filled - astray <= {text for text, owner in ground.owners().items() if owner == drained}

        of_range = dict(zip(ground.ranges(), topics, strict=True))
        named = [text for text, owner in ground.owners().items() if owner != drained][:2]
        by_name, by_topic = f"{NAMESPACE}/{named[0]}", of_range[named[1]]
        plan, astray = ground.carried_out("move", by_name, by_topic, "--onto", drained)
        assert {step["bundle"] for step in unloads(plan)} == set(named)
        assert set(named) - astray <= {text for text, owner in ground.owners().items() if owner == drained}

        others = [broker.broker_id.rpartition(":")[0].replace(".", "\\.") for broker in cluster.brokers[:-1]]
        policy = isolation_policy("goals/.*", *others, usage_threshold=100)
        path = f"/clusters/{CLUSTER_NAME}/namespaceIsolationPolicies/goals"
        cluster.admin.write("POST", path, body={**policy, "unload_scope": "none"})
        forbidden = {text for text, owner in ground.owners().items() if owner == drained}
        # A bundle that its owner hasn't reported isn't moved.
        wait_until_reported(cluster, {of_range[text] for text in forbidden}, cluster.admin_urls[-1])
        plan, astray = ground.carried_out("conform")
        assert {step["bundle"] for step in unloads(plan)} == forbidden
        assert {text for text, owner in ground.owners().items() if owner == drained} <= astray
    assert messages.report is not None
    print(messages.report)
    assert (messages.report.lost, messages.report.refused) == (0, 0)


def test_a_bundle_that_is_too_large_for_any_broker_is_split_and_its_parts_move(
    cluster: LiveCluster, tmp_path: Path
) -> None:
    ground = Ground.divided(cluster, tmp_path, 1)
    [whole] = ground.ranges()
    topics = topics_inside(NAMESPACE, whole, BUNDLES)
    with numbered_messages(cluster, topics) as messages:
        wait_until_reported(cluster, set(topics))
        time.sleep(90)  # CPU is sampled once a minute
        plan, _ = ground.carried_out("split", consents=("--splits",))
        [split] = executable(plan, "split")
        assert split["bundle"] == whole
        assert ground.ranges() == split["children"]
        assert {step["bundle"] for step in unloads(plan)} < set(split["children"])
        assert unloads(plan)
    assert messages.report is not None
    print(messages.report)
    assert (messages.report.lost, messages.report.refused) == (0, 0)
