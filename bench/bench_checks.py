"""Time of the checks: `bench_checks.py [BROKERS BUNDLES TOPICS]`, by default 1,000, 100,000 and a million.

Uses seeded tables of a Modular cluster and of its previous snapshot, so that every check runs; a few rows are invalid,
so that examples are fetched as well. The tables are written without Spark: validation runs in a cold session, as in
`pulsar-advisor validate`.

Two tables are judged at a time, and Great Expectations computes what the expectations of one suite need in shared
passes, so the total can't be divided among them. Measured afterwards, in the same warm process: each table by itself,
first the facts that its suite is about, then the suite; and each expectation alone on rows in memory (those of topics
are read from files), its cost if it were the only one. Their sums are not totals. `cores` is processor time of Python
and the JVM together (Linux), which other work on the machine hardly affects.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pulsar_advisor.documents.manifest import File, Manifest, Sources
from pulsar_advisor.documents.tables_result import TablesResult
from pulsar_advisor.model.plans.plan import Identity
from pulsar_advisor.quality import validate as validation
from pulsar_advisor.quality.checks import suites
from pulsar_advisor.quality.facts.facts import facts
from pulsar_advisor.stages.validate import run as validate
from pulsar_advisor.storage.files import sha256_hex, write_file
from pulsar_advisor.storage.results import read_manifest
from pulsar_advisor.storage.root import MANIFEST, RESULT, Root, Snapshot
from pulsar_advisor.tables.columns import Table
from pulsar_advisor.tables.schemas import TABLES
from pulsar_advisor.tables.session import spark_session
from pulsar_advisor.tables.settings_inputs import settings_inputs
from pulsar_advisor.tables.snapshot_frames import SnapshotFrames

MASTER = "local[2]"
SIZES = (1_000, 100_000, 1_000_000)
RAW_BYTES = 35 << 20
"""Of a capture of that many topics, which chooses the session's settings."""
BUNDLES_PER_NAMESPACE = 64
BEFORE, SNAPSHOT = "20261121T080000Z", "20261121T083000Z"
NOW_MS = 1_795_250_000_000
HALF_AN_HOUR_MS = 1_800_000
FILES_OF_TOPICS = 8
RATES = ("msg_rate_in_per_s", "msg_rate_out_per_s", "msg_throughput_in_bytes_per_s", "msg_throughput_out_bytes_per_s")
RESOURCES = ("cpu", "memory", "direct_memory", "bandwidth_in", "bandwidth_out")
TYPES = {
    "string": pa.string(),
    "double": pa.float64(),
    "bigint": pa.int64(),
    "int": pa.int32(),
    "boolean": pa.bool_(),
    "array<string>": pa.list_(pa.string()),
    "array<bigint>": pa.list_(pa.int64()),
}

Columns = Mapping[str, Any]


def main(brokers: int, bundles: int, topics: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Root(folder, "bench")
        snapshot = root.snapshot(SNAPSHOT)
        write_cluster(root, brokers, bundles, topics)
        print(f"{brokers:,} brokers, {bundles:,} bundles in two views, {topics:,} topics, {MASTER}")

        started = time.perf_counter()
        from pulsar_advisor.quality.library import gx  # noqa: F401

        spark = spark_session(MASTER, "validate", raw_bytes=RAW_BYTES)
        spark.range(1).count()
        print(f"{'':<52} {'elapsed':>9} {'cores':>9}")
        java = int(spark.sparkContext._jvm.ProcessHandle.current().pid())
        show("start-up: imports, session, first job", time.perf_counter() - started, cpu_seconds(java))

        def timed(run: Callable[[], Any]) -> tuple[Any, tuple[float, float]]:
            begun, used = time.perf_counter(), cpu_seconds(java)
            return run(), (time.perf_counter() - begun, cpu_seconds(java) - used)

        result, taken = timed(partial(validate, spark, snapshot))
        results = result.results
        show(f"{len(results)} checks, {sum(not one.success for one in results)} failing", *taken)
        print(f"load average of the machine {os.getloadavg()[0]:.1f}\n\none table at a time, warm")

        alone: dict[str, tuple[float, float]] = {}
        settings, tables = settings_inputs(snapshot), SnapshotFrames.of(spark, snapshot)
        parameters = validation.parameters_of(settings)
        made = facts(tables, tables.at(root.snapshot(BEFORE)), read_manifest(snapshot), settings)
        for table, make_rows in made.items():
            expectations = suites()[table]
            rows, taken = timed(partial(validation.judged_rows, make_rows, table))
            show(f"  {table}: facts", *taken)
            show(
                f"  {len(expectations)} checks",
                *timed(partial(validation.run_suite, rows, table, expectations, parameters))[1],
            )
            for expectation in expectations:
                run = partial(validation.run_suite, rows, table, [expectation], parameters)
                alone[f"  {table}.{expectation['meta']['code']}"] = timed(run)[1]
            rows.unpersist()
        print("\neach expectation alone, on rows in memory")
        for name, taken in sorted(alone.items(), key=lambda item: -item[1][0]):
            show(name, *taken)
        spark.stop()


def show(what: str, elapsed_s: float, cores_s: float) -> None:
    print(f"{what:<52} {elapsed_s:7.2f} s {cores_s:7.2f} s", flush=True)


def cpu_seconds(java: int) -> float:
    """Processor time of this process and of Spark's JVM, which a busy machine does not inflate."""
    user, system = Path(f"/proc/{java}/stat").read_text().rpartition(") ")[2].split()[11:13]
    return time.process_time() + (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def write_cluster(root: Root, brokers: int, bundles: int, topics: int) -> None:
    """Tables, manifests and results of two snapshots half an hour apart."""
    chance = np.random.default_rng(7)
    ids = [f"broker-{number:04d}.example.com:8080" for number in range(brokers)]
    number = np.arange(bundles)
    namespaces = [f"tenant-{n % 50:02d}/namespace-{n:05d}" for n in range(-(-bundles // BUNDLES_PER_NAMESPACE))]
    width = 2**32 // BUNDLES_PER_NAMESPACE
    slot = number % BUNDLES_PER_NAMESPACE
    lower = slot * width
    # The last namespace may be truncated: its last range then extends to the end of the ring.
    last = (slot == BUNDLES_PER_NAMESPACE - 1) | (number == bundles - 1)
    upper = np.where(last, 0xFFFFFFFF, lower + width)
    ranges = [f"0x{low:08x}_0x{up:08x}" for low, up in zip(lower.tolist(), upper.tolist(), strict=True)]
    namespace_of = [namespaces[n] for n in (number // BUNDLES_PER_NAMESPACE).tolist()]
    names = [f"{namespace}/{range_}" for namespace, range_ in zip(namespace_of, ranges, strict=True)]
    owner = chance.integers(0, brokers, bundles)
    owners = [ids[broker] for broker in owner.tolist()]

    topic_namespace = np.arange(topics) % len(namespaces)
    topic_names = [f"persistent://{namespaces[n]}/topic-{i:07d}" for i, n in enumerate(topic_namespace.tolist())]
    hashes = np.fromiter((zlib.crc32(name.encode()) for name in topic_names), np.int64, topics)
    bundle_of = np.minimum(topic_namespace * BUNDLES_PER_NAMESPACE + hashes // width, bundles - 1)
    thousandths = chance.lognormal(3, 1.5, (topics, 1)) * (1000, 2000, 1_024_000, 2_048_000)
    of_topics = np.rint(thousandths) / 1000
    of_bundles = _sums(of_topics, bundle_of, bundles) * (1 + 1e-12)  # digits that the broker did not truncate

    def broker_columns(view: str, figures: Any, clock_ms: int) -> dict[str, Any]:
        totals = _sums(figures, owner, brokers)
        usage = {"cpu": 20 + totals[:, 0] / totals[:, 0].max() * 300, "memory": np.full(brokers, 900.5)}
        usage |= {"direct_memory": np.full(brokers, 256.0)}
        usage |= {"bandwidth_in": totals[:, 2] / 125, "bandwidth_out": totals[:, 3] / 125}
        limit = {"cpu": 400.0, "memory": 4096.0, "direct_memory": 8192.0, "bandwidth_in": 1e8, "bandwidth_out": 1e8}
        updated = np.full(brokers, clock_ms - 45_000)
        updated[0] -= 3 * HALF_AN_HOUR_MS
        counts = np.bincount(owner, minlength=brokers)
        return {
            **_constant(
                brokers,
                view=view,
                version="4.0.8",
                load_manager_class_name="org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl",
                available=True,
                complete=True,
                reported=True,
                report_source="load_report",
                report_read_at_ms=clock_ms,
                **{f"{resource}_limit": limit[resource] for resource in RESOURCES},
            ),
            "broker": ids,
            "is_leader": [n == 0 for n in range(brokers)],
            "report_updated_at_ms": updated,
            **{f"{resource}_usage": usage[resource] for resource in RESOURCES},
            **_figures(totals),
            **dict.fromkeys(("bundles", "listed_bundles", "bundles_with_figures", "owned_bundles"), counts),
        }

    def bundle_columns(view: str, figures: Any) -> dict[str, Any]:
        judged = figures.copy()
        judged[:3, 0] *= -1
        return {
            **_constant(
                bundles,
                view=view,
                kind="user",
                in_boundaries=True,
                owner_source="zookeeper",
                is_active=True,
                listed=True,
                reported=True,
                short_term_samples=10,
                long_term_samples=1000,
                averages_origin="bundle_data",
                averages_folded_samples=0,
                averages_unknown_samples=0,
            ),
            "bundle": names,
            "namespace": namespace_of,
            "lower": lower,
            "upper": upper,
            "owner": owners,
            "owner_in_zookeeper": owners,
            "figures_broker": owners,
            "claimed_by": [[one] for one in owners],
            "reported_by": [[one] for one in owners],
            "moved": number == bundles - 1,
            **_figures(judged),
            **_figures(figures * 0.98, "short_term_"),
            **_figures(figures * 0.9, "long_term_"),
        }

    for snapshot, scale, clock_ms in ((BEFORE, 0.9, NOW_MS - HALF_AN_HOUR_MS), (SNAPSHOT, 1.0, NOW_MS)):
        figures = of_bundles * scale
        views = ("fresh", "published")
        tables: dict[str, list[Columns]] = {
            "brokers": [broker_columns(view, figures, clock_ms) for view in views],
            "bundles": [bundle_columns(view, figures) for view in views],
            "namespaces": [
                {
                    **_constant(len(namespaces), kind="user", listed=True, deleted=False, boundaries_agree=True),
                    "namespace": namespaces,
                    "boundaries": [
                        [*lower[first:end].tolist(), 0xFFFFFFFF]
                        for first in range(0, bundles, BUNDLES_PER_NAMESPACE)
                        for end in [first + BUNDLES_PER_NAMESPACE]
                    ],
                    "declared_bundles": np.bincount(number // BUNDLES_PER_NAMESPACE),
                }
            ],
            "policies": [
                {
                    "position": [0],
                    "name": ["first"],
                    "namespaces": [["tenant-00/.*"]],
                    "primary": [["broker-00.*"]],
                    "secondary": [[]],
                }
            ],
            "settings": [
                {
                    **_constant(100 * brokers, origin="runtime"),
                    "broker": [broker for broker in ids for _ in range(100)],
                    "key": [f"loadBalancerSetting{key:03d}" for _ in ids for key in range(100)],
                    "value": ["85"] * (100 * brokers),
                }
            ],
            "problems": [],
        }
        if snapshot == SNAPSHOT:
            tables["topics"] = [
                {
                    **_constant(len(rows), domain="persistent", named=True, loaded=True, reports=1, producers=1),
                    "topic": [topic_names[row] for row in rows.tolist()],
                    "namespace": [namespaces[n] for n in topic_namespace[rows].tolist()],
                    "hash": hashes[rows],
                    "lower": lower[bundle_of[rows]],
                    "upper": upper[bundle_of[rows]],
                    "broker": [owners[bundle] for bundle in bundle_of[rows].tolist()],
                    "reported_range": [ranges[bundle] for bundle in bundle_of[rows].tolist()],
                    **_figures(of_topics[rows]),
                }
                for rows in np.array_split(np.arange(topics), FILES_OF_TOPICS)
            ]
        write_snapshot(root.snapshot(snapshot), clock_ms, ids, tables)


def write_snapshot(snapshot: Snapshot, clock_ms: int, ids: list[str], tables: Mapping[str, list[Columns]]) -> None:
    """Write one Parquet file per set of columns (topics) or one in all (other tables), then manifest and result."""
    for table in TABLES:
        parts = [_arrow(table, columns) for columns in tables.get(table.name, [])] or [_schema(table).empty_table()]
        folder = Path(str(snapshot.folder(f"tables/{table.name}")))
        folder.mkdir(parents=True)
        for number, part in enumerate(parts if table.name == "topics" else [pa.concat_tables(parts)]):
            pq.write_table(part, folder / f"part-{number}.parquet", compression="zstd")
    manifest = Manifest(
        snapshot=snapshot.id,
        identity=Identity(cluster_name="bench", broker_ids=tuple(ids)),
        sources=Sources(admin_urls=(f"http://{ids[0]}",), zookeeper=False),
        load_manager="modular",
        load_managers=dict.fromkeys(ids, "modular"),
        pulsar_version="4.0.8",
        leader=ids[0],
        started_at_ms=clock_ms - 3_000,
        finished_at_ms=clock_ms,
        skew_ms=2_900,
        files=tuple(
            File(path=f"{s}.jsonl.zst", surface=s, broker=None, rows=0, bytes=0, sha256="")
            for s in ("brokers", "load_reports", "namespaces", "owned_bundles", "topic_stats")
        ),
        reads=(),
        missing=(),
        failures=(),
        incomplete_brokers=(),
        moved_bundles=(),
    )
    write_file(snapshot.folder("raw") / MANIFEST, content := manifest.content())
    result = TablesResult(
        cluster=snapshot.root.cluster,
        snapshot=snapshot.id,
        manifest_sha256=sha256_hex(content),
        earlier_snapshot=None,
        problems=0,
        tables={},
    )
    write_file(snapshot.folder("tables/result") / RESULT, result.content())


def _schema(table: Table) -> pa.Schema:
    return pa.schema([(column.name, TYPES[column.type]) for column in table.columns])


def _arrow(table: Table, columns: Columns) -> pa.Table:
    """The columns as the table declares them; missing ones are null."""
    rows = len(next(iter(columns.values())))
    schema = _schema(table)
    arrays = [
        pa.array(columns[field.name], type=field.type) if field.name in columns else pa.nulls(rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def _constant(rows: int, **values: Any) -> dict[str, Any]:
    return {name: pa.repeat(value, rows) for name, value in values.items()}


def _figures(figures: Any, prefix: str = "") -> dict[str, Any]:
    return {f"{prefix}{rate}": figures[:, column] for column, rate in enumerate(RATES)}


def _sums(figures: Any, group: Any, groups: int) -> Any:
    return np.stack([np.bincount(group, weights=column, minlength=groups) for column in figures.T], axis=1)


if __name__ == "__main__":
    main(*([int(argument) for argument in sys.argv[1:]] or SIZES))
