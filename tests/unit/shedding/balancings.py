"""Small problems of balancing: a chosen one, and any."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from pulsar_advisor.shedding.fewest_moves import Balancing

PERCENT = 10_000
"""Parts per million in a percent."""


def problem(
    bundles: list[tuple[int, tuple[int, int]]],
    ceiling: list[int],
    *,
    base: list[int] | None = None,
    receives: list[bool] | None = None,
    spare: list[int] | None = None,
    scale: list[int] | None = None,
) -> Balancing:
    """Bundles as (broker, (CPU, bandwidth in)) in percent of a broker whose `scale` is 1; `base` is what can't move."""
    number = len(ceiling)
    source = np.array([broker for broker, _ in bundles], dtype=np.int32)
    moved = np.zeros((len(bundles), 5))
    moved[:, [0, 3]] = np.array([figures for _, figures in bundles], dtype=np.float64).reshape(-1, 2)
    ppm_per_unit = np.tile(np.array(scale or [1] * number)[:, None] * float(PERCENT), (1, 5))
    load = np.zeros((number, 5), dtype=np.int64)
    load[:, 0] = np.array(base or [0] * number) * PERCENT
    np.add.at(load, source, np.rint(moved * ppm_per_unit[source]).astype(np.int64))
    return Balancing(
        load=load,
        ceiling=np.array(ceiling, dtype=np.int64) * PERCENT,
        receives=np.array(receives or [True] * number, dtype=np.bool_),
        spare=np.array(spare or [len(bundles)] * number, dtype=np.int64),
        source=source,
        moved=moved,
        arriving=moved,
        dearer=np.ones((number, number)),
        ppm_per_unit=ppm_per_unit,
        cost=np.ones(len(source), dtype=np.int64),
        may_go=np.ones((len(source), number), dtype=np.bool_),
    )


@st.composite
def problems(draw: st.DrawFn) -> Balancing:
    number = draw(st.integers(2, 3))
    brokers = st.integers(0, number - 1)
    size = st.integers(0, 40)
    bundles = draw(st.lists(st.tuples(brokers, st.tuples(size, size)), min_size=1, max_size=6))
    each = {"min_size": number, "max_size": number}
    return problem(
        bundles,
        draw(st.lists(st.integers(10, 90), **each)),
        base=draw(st.lists(st.integers(0, 20), **each)),
        receives=draw(st.lists(st.booleans(), **each)),
        spare=draw(st.lists(st.integers(0, 4), **each)),
        scale=draw(st.lists(st.integers(1, 2), **each)),
    )
