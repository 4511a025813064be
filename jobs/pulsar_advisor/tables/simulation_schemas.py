"""The tables that `simulate` writes: every column with its type, unit and meaning (`docs/tables.md` shows them)."""

from __future__ import annotations

from typing import Final

from pulsar_advisor.tables.columns import Column, Table, required, traffic

_SIMULATION_KEY: Final = (
    required("shedder", "string", "Pulsar's class name"),
    required("placement", "string", "Pulsar's class name"),
    required("what_if", "string", "settings that differ from the cluster's, `KEY=VALUE`, separated by a blank"),
    required("seed", "bigint", "seed of the random choices, and of the moments at which brokers measure"),
)


def _spread(figure: str, unit: str, of: str) -> tuple[Column, ...]:
    """How a figure is spread over the available brokers."""
    return (
        Column(f"{figure}_maximum{unit}", "double", f"greatest {of} of a broker"),
        Column(f"{figure}_mean{unit}", "double", f"mean {of}"),
        Column(f"{figure}_standard_deviation{unit}", "double", f"standard deviation of the {of}"),
        Column(f"{figure}_range{unit}", "double", f"greatest less least {of}"),
        Column(f"{figure}_gini", "double", f"Gini coefficient of the {of}: 0 all equal, near 1 one broker has all"),
    )


def _spreads(prefix: str = "") -> tuple[Column, ...]:
    return (
        *_spread(f"{prefix}usage", "_ratio", "weighted maximum usage"),
        *_spread(f"{prefix}throughput", "_bytes_per_s", "throughput in and out"),
    )


SIMULATED_CYCLES: Final = Table(
    "cycles",
    "one cycle of one simulation: what it moved, and the cluster right afterwards",
    ("shedder", "placement", "what_if", "seed", "cycle"),
    (
        *_SIMULATION_KEY,
        required("cycle", "bigint", "from 1; 0 is the snapshot"),
        required("at_ms", "bigint", "epoch ms, in the cluster's time"),
        required("splits", "bigint", "bundles split in it"),
        required("unloads", "bigint", "bundles unloaded in it, children of these splits included"),
        required("moved_throughput_bytes_per_s", "double", "of these bundles"),
        *_spreads(),
    ),
)

SIMULATED_MOVES: Final = Table(
    "moves",
    "one unload of one simulation; the children of a split that are unloaded with it come first",
    ("shedder", "placement", "what_if", "seed", "cycle", "position"),
    (
        *_SIMULATION_KEY,
        required("cycle", "bigint", "from 1"),
        required("position", "bigint", "its place among the cycle's unloads, from 0"),
        required("bundle", "string", "`tenant/namespace/0x..._0x...`"),
        required("source", "string", "broker id"),
        required("destination", "string", "broker id; the source if the bundle came back to it"),
        *traffic("", "of the bundle,"),
    ),
)

SIMULATED_SPLITS: Final = Table(
    "splits",
    "one child of a split of one simulation",
    ("shedder", "placement", "what_if", "seed", "cycle", "child"),
    (
        *_SIMULATION_KEY,
        required("cycle", "bigint", "from 1"),
        required("position", "bigint", "the place of the split among the cycle's, from 0"),
        required("bundle", "string", "the bundle that was split, `tenant/namespace/0x..._0x...`"),
        required("broker", "string", "id of the broker that had it"),
        required("algorithm", "string", "Pulsar's name of the split algorithm"),
        required("reason", "string", "why it was split: the limit that it exceeds"),
        required("child", "string", "`tenant/namespace/0x..._0x...`"),
        required("topics", "bigint", "loaded topics of the child"),
        *traffic("", "of the child, by its topics,"),
    ),
)

SIMULATED_SCORES: Final = Table(
    "scores",
    "one simulation",
    ("shedder", "placement", "what_if", "seed"),
    (
        *_SIMULATION_KEY,
        Column("ended", "string", "`settled`, `repeats` (oscillates), `unfinished`; null with an error"),
        Column("error", "string", "why the combination could not be simulated"),
        Column("cycles", "bigint", "cycles simulated"),
        Column("repeats_cycle", "bigint", "the cycle after which everything was as at the end"),
        Column(
            "settles_in_cycles",
            "bigint",
            "last cycle with an unload or a split, 0 without any; null if it did not settle",
        ),
        Column("settles_in_minutes", "double", "from the snapshot until then, in the cluster's time"),
        Column("splits", "bigint", "bundles split, in all cycles"),
        Column("unloads", "bigint", "in all cycles"),
        Column("bundles", "bigint", "bundles unloaded at least once"),
        Column("bundles_moved_again", "bigint", "bundles unloaded more than once"),
        Column("topics", "bigint", "topics closed, once for each unload"),
        Column("producers", "bigint", "producers that had to connect again, once for each unload"),
        Column("consumers", "bigint", "consumers that had to connect again, once for each unload"),
        Column("moved_throughput_bytes_per_s", "double", "of the unloaded bundles, once for each unload"),
        Column(
            "brokers_overshot",
            "bigint",
            "brokers that ended a cycle on the other side of the mean usage, further from it than at first",
        ),
        Column("highest_ratio", "double", "highest usage of a broker in any cycle"),
        Column(
            "lowest_maximum_ratio",
            "double",
            "of the busiest broker at the end, by what is known of the base loads; null if only the likely one counts",
        ),
        Column("highest_maximum_ratio", "double", "likewise"),
        Column("worst_ended", "string", "as `ended`, at the worst of these"),
        *_spreads("first_"),
        *_spreads("last_"),
    ),
)

SIMULATIONS: Final = (SIMULATED_SCORES, SIMULATED_CYCLES, SIMULATED_MOVES, SIMULATED_SPLITS)
"""What `simulate` writes."""
