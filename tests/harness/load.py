"""Holds a workload on a cluster with the real client, steadily and at low cost, in a process of its own."""

from __future__ import annotations

import itertools
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness import children
from harness.admin_api import AdminApi
from harness.cluster import LiveCluster
from harness.configuration import CLUSTER_NAME
from harness.errors import LoadDidNotStart
from harness.workload import DEFAULT_SEED, WORKLOADS, Workload, shifted

SUBSCRIPTION = "harness"
STEADY = "load is steady"
"""The generator prints this line once everything is connected and placed."""

SHIFT_SIGNAL = signal.SIGUSR1

TICK_S = 0.1
PLACEMENT_LIMIT_S = 60
STEADY_LIMIT_S = 120


def create(workload: Workload, admin: AdminApi) -> None:
    """Create tenants, namespaces and topics; those that exist stay."""
    for tenant in sorted({namespace.split("/")[0] for namespace in workload.namespaces}):
        admin.write("PUT", f"/tenants/{tenant}", body={"allowedClusters": [CLUSTER_NAME], "adminRoles": []})
    for namespace, bundles in workload.namespaces.items():
        admin.write("PUT", f"/namespaces/{namespace}", body={"bundles": {"numBundles": bundles}})
    for topic in workload.topics:
        if topic.partitions:
            admin.write("PUT", f"/{topic.name.replace('://', '/')}/partitions", body=topic.partitions)


def place(workload: Workload, admin: AdminApi) -> list[str]:
    """Bring each bundle to its broker; returns those that did not get there within the time limit.

    Unloads with a destination, again and again: the Modular load manager takes the destination as a wish, and the
    Simple one ignores it. Where no client is connected yet, the one look-up made here uses the wish; reconnecting
    clients look up in parallel, and one without the wish may win the bundle.

    No bundle is assigned anywhere else first: a Modular leader that acquires a bundle soon after it assigned it to
    another broker counts it there for as long as it owns it (`BrokerData.preallocatedBundleData`), and places others
    accordingly.
    """
    last = len(admin.urls) - 1
    wanted = {bundle: admin.broker_ids[min(workload.brokers[bundle], last)] for bundle in workload.placement_order}
    inside = {bundle: workload.topic_inside(bundle) for bundle in wanted}
    deadline = time.monotonic() + PLACEMENT_LIMIT_S
    while True:
        owners = admin.owners(CLUSTER_NAME)
        misplaced = [bundle for bundle, broker_id in wanted.items() if owners.get(bundle) != broker_id]
        if not misplaced or time.monotonic() > deadline:
            return misplaced
        for bundle in misplaced:
            admin.write("PUT", f"/namespaces/{bundle}/unload", params={"destinationBroker": wanted[bundle]})
            # At once: a wish that no look-up has used yet also steers the same range of other namespaces.
            admin.look_up(inside[bundle])
        time.sleep(TICK_S)


def generate(admin: AdminApi, service_url: str, *, workload: Workload, seed: int, placed: bool) -> None:
    """Create the workload, connect, place it if asked to, then hold its rates until this process is ended.

    `SHIFT_SIGNAL` changes the rates to those of the next shift.
    """
    import pulsar

    create(workload, admin)
    misplaced = place(workload, admin) if placed else []
    client = pulsar.Client(
        service_url,
        authentication=pulsar.AuthenticationToken(admin.token) if admin.token else None,
        logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Warn),
    )
    for topic in workload.topics:
        client.subscribe(
            topic.name,
            SUBSCRIPTION,
            consumer_type=pulsar.ConsumerType.Shared,
            message_listener=lambda consumer, message: consumer.acknowledge(message),
        )
    # A queue that is full while a bundle moves drops messages there, and holds up no other topic.
    producers = [
        client.create_producer(topic.name, batching_enabled=True, block_if_queue_full=False)
        for topic in workload.topics
    ]
    elsewhere = f"; not on their broker: {', '.join(misplaced)}" if misplaced else ""
    print(f"{STEADY}: {workload.messages_per_s:.0f} messages/s to {len(workload.topics)} topics{elsewhere}", flush=True)

    shifts = itertools.count(1)
    rates = [topic.messages_per_s for topic in workload.topics]

    def shift(*_: object) -> None:
        rates[:] = [topic.messages_per_s for topic in shifted(workload, seed, next(shifts)).topics]

    signal.signal(SHIFT_SIGNAL, shift)
    payloads = [random.Random(seed).randbytes(topic.message_bytes) for topic in workload.topics]
    owed = [0.0] * len(producers)
    last = time.monotonic()
    while True:
        time.sleep(TICK_S)
        now = time.monotonic()
        for index, (rate, producer) in enumerate(zip(rates, producers, strict=True)):
            # After a pause of the machine, at most one second is caught up.
            owed[index] = min(owed[index] + rate * (now - last), rate + 1)
            while owed[index] >= 1:
                owed[index] -= 1
                producer.send_async(payloads[index], _ignore_result)
        last = now


def generator_arguments(
    admin_urls: list[str], service_url: str, *, token_file: str | Path | None, workload: str, seed: int, placed: bool
) -> list[str]:
    """The arguments of `python -m harness` that run the load in the foreground."""
    arguments = ["generate", "--service-url", service_url, "--workload", workload, "--seed", str(seed)]
    for url in admin_urls:
        arguments += ["--admin-url", url]
    if token_file:
        arguments += ["--token-file", str(token_file)]
    return [*arguments, "--place"] if placed else arguments


def wait_until_steady(generator: subprocess.Popen[bytes], log: Path) -> str:
    """What the generator says about the load once it is steady.

    Raises:
        LoadDidNotStart: it ended, or did not get there within the limit.
    """
    deadline = time.monotonic() + STEADY_LIMIT_S
    while STEADY not in (printed := log.read_text(encoding="utf-8")):
        if generator.poll() is not None or time.monotonic() > deadline:
            raise LoadDidNotStart(f"The load did not get steady; its output {log} is:\n{printed}")
        time.sleep(TICK_S)
    return next(line for line in printed.splitlines() if line.startswith(STEADY))


@contextmanager
def running_load(cluster: LiveCluster, workload: str = "skewed", seed: int = DEFAULT_SEED) -> Iterator[Workload]:
    """The load on this cluster, steady, from a process of its own that ends with the block.

    Raises:
        LoadDidNotStart: it ended, or wasn't steady within `STEADY_LIMIT_S`.
    """
    with running_generator(cluster, workload, seed):
        yield WORKLOADS[workload](seed)


@contextmanager
def running_generator(
    cluster: LiveCluster, workload: str = "skewed", seed: int = DEFAULT_SEED
) -> Iterator[subprocess.Popen[bytes]]:
    """The process of that load, to send it `SHIFT_SIGNAL`. Raises as `running_load`."""
    token_file = None
    if cluster.tokens:
        token_file = cluster.directory / "load.token"
        token_file.write_text(cluster.tokens.super_user, encoding="utf-8")
    arguments = generator_arguments(
        cluster.admin_urls,
        cluster.service_url,
        token_file=token_file,
        workload=workload,
        seed=seed,
        placed=cluster.options.load_manager != "simple",
    )
    log = cluster.directory / f"load-{workload}.log"
    generator = children.start([sys.executable, "-m", "harness", *arguments], log)
    try:
        wait_until_steady(generator, log)
        yield generator
    finally:
        children.kill(generator)


def _ignore_result(_result: object, _message_id: object) -> None:
    pass
