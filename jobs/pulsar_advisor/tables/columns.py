"""What a table is: its columns, each with type, unit, meaning and source; and those that several tables have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pulsar_advisor.model.cluster.cluster_state import FIGURES


@dataclass(frozen=True)
class Column:
    """One column: Spark SQL type, and a comment with unit and source."""

    name: str
    type: str
    comment: str
    nullable: bool = True


@dataclass(frozen=True)
class Table:
    """One table: the meaning of a row, its unique key, and its columns."""

    name: str
    row: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]

    def ddl(self, *names: str) -> str:
        """These columns, or all of them, as Spark SQL declares columns."""
        return ", ".join(f"{one.name} {one.type}" for one in self.columns if not names or one.name in names)


TRAFFIC: Final = dict(
    zip(
        FIGURES,
        (
            "msg_rate_in_per_s",
            "msg_rate_out_per_s",
            "msg_throughput_in_bytes_per_s",
            "msg_throughput_out_bytes_per_s",
        ),
        strict=True,
    )
)
"""Pulsar's name of a traffic figure -> its column, in the order of `model.cluster.cluster_state.FIGURES`."""

SEGMENT_LOAD: Final = dict(
    zip(("msgRateIn", "msgRateOut", "bytesRateIn", "bytesRateOut"), TRAFFIC.values(), strict=True)
)
"""The same figures by their names in `SegmentLoadStats`."""

RESOURCES: Final = {
    "cpu": "cpu",
    "memory": "memory",
    "directMemory": "direct_memory",
    "bandwidthIn": "bandwidth_in",
    "bandwidthOut": "bandwidth_out",
}
"""Pulsar's name of a resource -> prefix of its columns, in the order of `model.cluster.cluster_state.RESOURCES`."""


def required(name: str, type_: str, comment: str) -> Column:
    """A column that is never null."""
    return Column(name, type_, comment, nullable=False)


def traffic(prefix: str, of: str) -> tuple[Column, ...]:
    """The four traffic figures; `of` says what they measure."""
    return tuple(
        Column(
            prefix + name,
            "double",
            f"{'messages' if 'Rate' in field else 'bytes'}/s {'in' if field.endswith('In') else 'out'}; {of} `{field}`",
        )
        for field, name in TRAFFIC.items()
    )
