"""Time and memory of a capture: `bench_capture.py [BROKERS BUNDLES TOPICS]... [--keep ROOT]`.

Runs against a synthetic cluster on loopback (`large_cluster.py`, in a separate process). Measures, in sequence:
(a) downloading the same documents with as many threads and discarding them; (b) decoding, reducing and compressing the
topic documents on one core, extrapolated from a sample; (c) the whole capture, from the command line. Each time is the
minimum of interleaved runs; processor seconds are given as well, as the machine may have other work to do. The goals:
c ≤ 1.5 × (a + b / cores), and a peak below 1.5 GiB over all processes of the capture, at any size.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from large_cluster import CLUSTER, LargeCluster, served

from pulsar_advisor.admin.connection import AdminConnection
from pulsar_advisor.admin.options import CaptureOptions
from pulsar_advisor.admin.read_client import ReadClient
from pulsar_advisor.admin.transport import AdminTransport
from pulsar_advisor.capture.topic_decoders import topic_file
from pulsar_advisor.documents.manifest import Manifest
from pulsar_advisor.storage.results import read_document
from pulsar_advisor.storage.root import MANIFEST, Root
from results import RESULTS, conditions, record

SIZES = ((10, 1_000, 100_000), (100, 10_000, 1_000_000))
SAMPLE = 20
RUNS = 3
LARGE_TOPICS = 5_000_000
"""Above this size a single run must suffice."""
CORES = len(os.sched_getaffinity(0))


class Cost(NamedTuple):
    """Wall time, and processor time of all processes except the server."""

    seconds: float
    processor_s: float


def download(options: CaptureOptions) -> tuple[Cost, int]:
    """The cost, and the bytes, of reading what a capture reads, with its concurrency, and keeping nothing."""
    sizes: list[int] = []
    with AdminTransport(options.admin) as transport, ThreadPoolExecutor(options.concurrency) as pool:
        client = ReadClient(transport, observe=lambda _status, size: sizes.append(size))
        brokers = client.active_brokers(CLUSTER)

        def of_broker(broker: str) -> None:
            client.runtime_configuration(broker)
            client.version(broker)
            client.load_report(broker)
            client.broker_topics(broker)
            for _ in ("begin", "end"):
                client.owned_bundles(CLUSTER, broker)

        def of_namespace(broker_and_namespace: tuple[str, str]) -> None:
            broker, namespace = broker_and_namespace
            nearby = ReadClient(
                transport, any_broker_url=f"http://{broker}", observe=lambda _, size: sizes.append(size)
            )
            nearby.policies(namespace)
            nearby.anti_affinity_group(namespace)
            nearby.persistent_topics(namespace)
            nearby.partitioned_topics(namespace, "persistent")
            nearby.partitioned_topics(namespace, "non-persistent")

        began, used = time.perf_counter(), time.process_time()
        namespaces = client.namespaces("bench")
        list(pool.map(of_broker, brokers))
        list(pool.map(of_namespace, zip(brokers, namespaces, strict=True)))
        return Cost(time.perf_counter() - began, time.process_time() - used), sum(sizes)


def decoding(options: CaptureOptions) -> Cost:
    """The cost of decoding all brokers' topic documents on one core, extrapolated from a sample."""
    with AdminTransport(options.admin) as transport:
        client = ReadClient(transport)
        brokers = client.active_brokers(CLUSTER)
        sample = [client.broker_topics(broker) for broker in brokers[:SAMPLE]]
    gc.disable()  # like the decoding processes
    began, used = time.perf_counter(), time.process_time()
    for document in sample:
        topic_file("broker:8080", document)
    share = len(brokers) / len(sample)
    cost = Cost((time.perf_counter() - began) * share, (time.process_time() - used) * share)
    gc.enable()
    return cost


def whole_capture(admin_url: str, root: str) -> tuple[Cost, int]:
    """The cost of `pulsar-advisor capture`, and the peak of its processes' total resident memory."""
    command = [str(Path(sys.executable).with_name("pulsar-advisor")), "capture", "--root", root, "--cluster", CLUSTER]
    return watched([*command, "--admin-url", admin_url])


def watched(command: list[str]) -> tuple[Cost, int]:
    """The cost of a command, and the peak total resident memory, in bytes, of it and its children."""
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        peak, used = 0, {}
        while process.poll() is None:
            tree = processes(process.pid)
            peak = max(peak, resident_bytes(tree))
            used |= {pid: max(processor_seconds(pid), used.get(pid, 0)) for pid in tree}
            time.sleep(0.05)
    if process.returncode:
        raise SystemExit(f"{command[:3]} ended with {process.returncode}")
    return Cost(time.perf_counter() - began, sum(used.values())), peak


def processes(pid: int) -> list[int]:
    """A process and all its descendants."""
    try:
        threads = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:
        return []
    return [pid, *(process for thread in threads for child in thread.split() for process in processes(int(child)))]


def resident_bytes(pids: list[int]) -> int:
    """Total resident memory. A new child shares its parent's memory until it calls exec; that counts once."""
    sizes = set()
    for pid in pids:
        with suppress(OSError):
            sizes.add(Path(f"/proc/{pid}/statm").read_text())
    return sum(int(size.split()[1]) for size in sizes) * os.sysconf("SC_PAGE_SIZE")


def processor_seconds(pid: int) -> float:
    """What a process has used so far; 0 once it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(size: tuple[int, int, int], root: str) -> None:
    with served(LargeCluster(*size)) as broker:
        options = CaptureOptions(admin=AdminConnection(admin_urls=(f"http://{broker}",)))
        runs = [
            (*download(options), decoding(options), *whole_capture(f"http://{broker}", root))
            for _ in range(1 if size[2] > LARGE_TOPICS else RUNS)
        ]
    a, downloaded, b, c, _ = map(min, zip(*runs, strict=True))
    peak = max(run[-1] for run in runs)
    snapshot = Root(root, CLUSTER).resolve("latest")
    files = read_document(snapshot.folder("raw") / MANIFEST, Manifest).files
    written = sum(file.bytes for file in files)
    rows = sum(file.rows for file in files if file.surface == "topic_stats")
    assert rows == size[0] * (size[2] // size[0]), f"{rows} topics captured"
    brokers, bundles, topics = size
    costs = " | ".join(f"{cost.seconds:.1f} ({cost.processor_s:.1f})" for cost in (a, b, c))
    ratio = c.seconds / (a.seconds + b.seconds / CORES)
    print(
        f"| {brokers:,} | {bundles:,} | {topics:,} | {downloaded / 1e9:.2f} | {written / 1e9:.3f} | {costs} | "
        f"{ratio:.2f} | {c.processor_s / (a.processor_s + b.processor_s):.2f} | {peak / 2**20:,.0f} |",
        flush=True,
    )
    took = {
        f"({part}) s": f"{cost.seconds:.1f} ({cost.processor_s:.1f})"
        for part, cost in zip("abc", (a, b, c), strict=True)
    }
    volume = {"GB read": f"{downloaded / 1e9:.2f}", "GB written": f"{written / 1e9:.3f}"}
    row = {**volume, **took, "c / (a + b/cores)": f"{ratio:.2f}", "peak MiB": f"{peak / 2**20:,.0f}"}
    cluster = f"{brokers:,} brokers × {bundles:,} bundles × {topics:,} topics"
    record(RESULTS / "capture.tsv", [{"cluster": cluster, **row, **conditions()}])


def main() -> None:
    arguments = sys.argv[1:]
    keep = arguments.index("--keep") if "--keep" in arguments else len(arguments)
    numbers = [int(argument) for argument in arguments[:keep]]
    sizes = [(a, b, c) for a, b, c in zip(*[iter(numbers)] * 3, strict=True)] or SIZES
    print(f"{CORES} cores, load {os.getloadavg()[0]:.1f}\n")
    print(
        "| brokers | bundles | topics | GB read | GB written | (a) download s | (b) decode s | (c) capture s "
        "| c / (a + b/cores) | processor: c / (a + b) | peak MiB |\n" + "|---" * 11 + "|",
        flush=True,
    )
    for size in sizes:
        if keep < len(arguments):
            measure(size, arguments[keep + 1])
        else:
            with tempfile.TemporaryDirectory() as root:
                measure(size, root)


if __name__ == "__main__":
    main()
