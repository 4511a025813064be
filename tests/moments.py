"""The part of a snapshot that is kept for good, written in a few words."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from pulsar_advisor.history.moment import OF_HOST, Moment
from pulsar_advisor.history.policies import OF_MOMENT

FIRST, SECOND, THIRD = "t/n/0x00000000_0x40000000", "t/n/0x40000000_0x80000000", "t/n/0x80000000_0xffffffff"


def moment(
    minute: int,
    owners: dict[str, str | None],
    *,
    usage: dict[str, float] | None = None,
    started: dict[str, int] | None = None,
    unloads: int | None = None,
    settings: dict[str, str] | None = None,
    policies: Sequence[tuple[str, str, str]] = (),
) -> Moment:
    """A snapshot in which brokers own bundles; a bundle's rate into it is 100 times its place plus the minute.

    `started`: when brokers say that they started (epoch ms); `unloads`: those that the leader, `b`, has counted;
    `policies`: rows of `OF_MOMENT`, sorted.
    """
    hosts = usage or {"a:8080": 0.5, "b:8080": 0.25}
    rows = [
        {"id": id, "usage": ratio, "available": True, "complete": True, "started_at_ms": (started or {}).get(id)}
        for id, ratio in sorted(hosts.items())
    ]
    counts = {"bundles": 0, "producers": 0, "consumers": 0}
    rates = np.array([100.0 * place + minute for place in range(len(owners))], np.float32)
    return Moment(
        snapshot=f"20261121T08{minute:02}00Z",
        at_ms=1_795_000_000_000 + 60_000 * minute,
        fit=True,
        failed_checks=0,
        leader="b:8080",
        leader_unloads=unloads,
        hosts=pa.Table.from_pylist([row | counts for row in rows], OF_HOST),
        bundles=pa.array(owners, pa.string()),
        owners=pa.array(owners.values(), pa.string()),
        traffic=np.column_stack([rates, rates, rates, rates]),
        connections=np.arange(len(owners), dtype=np.uint32),
        flags=np.zeros(len(owners), np.uint8),
        settings=settings or {},
        policies=pa.Table.from_pylist([dict(zip(OF_MOMENT.names, row, strict=True)) for row in policies], OF_MOMENT),
    )


def with_set_aside(seen: Moment, *brokers: str) -> Moment:
    """The same, with brokers that validation set aside."""
    rows = [row | {"complete": row["id"] not in brokers} for row in seen.hosts.to_pylist()]
    return replace(seen, hosts=pa.Table.from_pylist(rows, OF_HOST))
