"""Plans for brokers on unequal machines: what their usage is after a plan lies in the range that it predicted.

The CPU sensor gives each broker cores, a base and a cost per message of its own. Brokers report what follows from that
and from the messages they really serve.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from decisions.recording import Cycle, Recording, Unload, raw_snapshot
from decisions.usage import HEAD, Figure, inside_ratio, usage_of
from harness.capturing import take_snapshot
from harness.cluster import ClusterOptions, LiveCluster
from harness.configuration import CLUSTER_NAME
from harness.load import running_load
from harness.sensor import Machine
from harness.shell import Shell, plain_connection
from harness.skew import wait_until_settled
from live.goals import CarriedOut, carry_out, full_name
from live.starting import StartCluster, with_cpu_skew
from pulsar_advisor.model.plans.plan import Prediction
from pulsar_advisor.planning.usage.noise import DEFAULT_RATIO
from pulsar_advisor.stages.normalize import run as normalize
from pulsar_advisor.stages.validate import run as validate
from pulsar_advisor.storage.root import LATEST, Root
from pulsar_advisor.tables.session import spark_session

pytestmark = [pytest.mark.live, pytest.mark.full]

MACHINES = {
    0: Machine(),  # the hot one
    1: Machine(cores=8, idle_cores=0.4),  # larger
    2: Machine(cores=2.5, idle_cores=0.2, cores_per_1000_messages=3.0),  # smaller, and slower
    3: Machine(idle_cores=2.0, cores_per_1000_messages=0.2),  # its CPU hardly follows messages
}
SAMPLED_S = 125
"""Brokers sample their CPU once a minute: two samples."""
ARRIVAL_LIMIT_S = 60
LEAST_INSIDE = 0.9
UNEQUAL = "unequal-machines-4.0.8-modular"
"""The recording of all that, in the folder of the test."""


@pytest.fixture
def cluster(start_cluster: StartCluster) -> Iterator[LiveCluster]:
    cluster = with_cpu_skew(start_cluster(ClusterOptions(brokers=len(MACHINES), machines=MACHINES)))
    with running_load(cluster):
        wait_until_settled(cluster.admin, cluster.machines)
        yield cluster


@pytest.fixture
def spark() -> Iterator[SparkSession]:
    session = spark_session("local[2]", "unequal machines")
    yield session
    session.stop()


def test_the_usage_after_a_plan_is_in_the_range_that_it_predicted(
    cluster: LiveCluster, spark: SparkSession, tmp_path: Path
) -> None:
    shell = Shell(tmp_path, plain_connection(cluster))
    root = Root(str(tmp_path), CLUSTER_NAME)
    hot, _, smaller, _ = cluster.broker_ids
    judge(spark, cluster, root)
    cycles, snapshots, found = [], [root.resolve(LATEST)], []
    for goal in (("drain", smaller), ("relieve", hot, "--to", "60%"), ("balance",)):
        print(f"\n{shell('scale').out}")
        scaled = shell("scale", "--json").document
        at_ms = time.time_ns() // 1_000_000
        done = carry_out(cluster, shell, *goal)
        bring_home(cluster, done)
        time.sleep(SAMPLED_S)
        wait_until_settled(cluster.admin, cluster.machines)
        judge(spark, cluster, root)
        snapshots.append(root.resolve(LATEST))
        actual = usage_of(snapshots[-1])
        unloads = tuple(Unload(full_name(step), step["source"], step["destination"]) for step in done.unloads)
        cycles.append(Cycle(at_ms, *map(str, snapshots[-2:]), unloads, said=goal))
        figures = figures_of(Prediction.model_validate(done.plan["predicted"]), actual)
        print("\n".join((" ".join(goal), HEAD, *(figure.row() for figure in figures))), flush=True)
        found += figures
        if goal[0] == "drain":
            # `scale` divides the load evenly over the brokers that stay; whole bundles leave the busiest above that.
            (less,) = [size for size in scaled["sizes"] if (size["machine"], size["change"]) == ("2.5 cores", -1)]
            busiest = max(usage for broker, usage in actual.items() if broker != smaller)
            print(f"drained, the busiest is at {busiest:.1%}; scale: at least {less['lowest_ratio']:.1%}")
            assert busiest >= less["lowest_ratio"] - DEFAULT_RATIO
    raw = {snapshot.id: raw_snapshot(snapshot) for snapshot in snapshots}
    options = cluster.options
    recording = Recording(options.release, options.load_manager, "", options.settings, tuple(cycles), raw)
    recording.write(tmp_path / f"{UNEQUAL}.json.zst")
    assert inside_ratio(found) >= LEAST_INSIDE


def judge(spark: SparkSession, cluster: LiveCluster, root: Root) -> None:
    """Capture, normalize and validate, in this process."""
    snapshot = take_snapshot(cluster, root)
    normalize(spark, snapshot)
    assert validate(spark, snapshot).success


def figures_of(predicted: Prediction, actual: Mapping[str, float]) -> list[Figure]:
    before, after = predicted.before.brokers, predicted.after.brokers
    return [Figure.of(broker, before[broker], after[broker], actual[broker]) for broker in after]


def bring_home(cluster: LiveCluster, done: CarriedOut) -> None:
    """Unload the bundles that missed their broker until they are there: the prediction is about the whole plan."""
    wanted = {full_name(step): step["destination"] for step in done.unloads}
    deadline = time.monotonic() + ARRIVAL_LIMIT_S
    while True:
        owners = cluster.admin.owners(CLUSTER_NAME)
        astray = [bundle for bundle, broker in wanted.items() if owners.get(bundle) != broker]
        if not astray:
            return
        assert time.monotonic() < deadline, astray
        for bundle in astray:
            cluster.admin.write("PUT", f"/namespaces/{bundle}/unload", params={"destinationBroker": wanted[bundle]})
        time.sleep(1)
