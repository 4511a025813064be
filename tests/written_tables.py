"""Tables of snapshots written without Spark, a row in a few words."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import documents
from pulsar_advisor.documents.history_day import HistoryDay
from pulsar_advisor.history.columns import DAY_TABLES
from pulsar_advisor.model.cluster.bundle_range import topic_hash
from pulsar_advisor.storage.files import write_file
from pulsar_advisor.storage.root import MANIFEST, RESULT, Root, Snapshot
from pulsar_advisor.tables.days import read_day_tables
from pulsar_advisor.tables.schemas import TABLES
from pulsar_advisor.tables.stored import ARROW

SNAPSHOT = "20261121T083000Z"
Row = Mapping[str, Any]


def broker(name: str, **more: Any) -> Row:
    return {"view": "fresh", "broker": name, "is_leader": False, "available": True, "reported": True} | more


def bundle(namespace: str, lower: int, upper: int, owner: str | None = None, **more: Any) -> Row:
    return {
        "view": "fresh",
        "bundle": f"{namespace}/0x{lower:08x}_0x{upper:08x}",
        "namespace": namespace,
        "lower": lower,
        "upper": upper,
        "owner": owner,
        "in_boundaries": True,
        "reported": True,
        "listed": True,
        "averages_origin": "one_sample",
    } | more


def topic(name: str, lower: int | None, **more: Any) -> Row:
    namespace = name.partition("://")[2].rpartition("/")[0]
    return {"topic": name, "namespace": namespace, "lower": lower, "hash": topic_hash(name), "loaded": True} | more


CLUSTER_SURFACES = (
    *("settings", "isolation_policies", "failure_domains", "topic_names", "partitioned_topics"),
    "topic_stats",
)


def written(
    folder: Path,
    manifest: Row | None = None,
    *,
    cluster: str = "test",
    snapshot: str = SNAPSHOT,
    **rows: Sequence[Row],
) -> Snapshot:
    """A normalized snapshot, in a root that may have others; tables that aren't named have no rows."""
    made = Root(str(folder), cluster).snapshot(snapshot)
    for table in TABLES:
        schema = pa.schema([(column.name, ARROW[column.type]) for column in table.columns])
        path = Path(str(made.folder(f"tables/{table.name}"))) / "part-0.parquet"
        path.parent.mkdir(parents=True)
        lines = [{name: row.get(name) for name in schema.names} for row in rows.get(table.name, ())]
        pq.write_table(pa.Table.from_pylist(lines, schema), path)
    write_file(made.folder("tables/result") / RESULT, documents.tables_result().content())
    fields = {
        "snapshot": snapshot,
        "files": [documents.file(surface) for surface in CLUSTER_SURFACES],
        **(manifest or {}),
    }
    write_file(made.folder("raw") / MANIFEST, documents.manifest(**fields).content())
    return made


def snapshot_of_one_bundle(
    folder: Path,
    snapshot: str,
    owner: str | None = "a:8080",
    *,
    brokers: Sequence[str] = ("a:8080", "b:8080"),
    namespace: str = "t/n",
    cpu_usage: float = 50.0,
    msg_rate_in_per_s: float = 7.0,
    cluster: str = "test",
    **manifest: object,
) -> Root:
    """A root with a normalized snapshot, or with one more, of these brokers and one bundle."""
    return written(
        folder,
        manifest,
        cluster=cluster,
        snapshot=snapshot,
        brokers=[broker(name, owned_bundles=1, cpu_usage=cpu_usage, cpu_limit=100.0) for name in brokers],
        bundles=[bundle(namespace, 0, 0xFFFFFFFF, owner, moved=False, msg_rate_in_per_s=msg_rate_in_per_s)],
    ).root


def files_in(folder: Path) -> dict[str, bytes]:
    """What every file has, by its path."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def day_table(root: Root, day: HistoryDay, name: str) -> pa.Table:
    """A table of a folded day."""
    _, tables = read_day_tables(root, day, {name: DAY_TABLES[name]})
    return tables[name]
