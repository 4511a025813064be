"""Any small cluster, for properties: orderly ones, and ones whose figures break every rule."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from states import HALVES, BrokerRow, BundleRow

Rows = tuple[list[BrokerRow], list[BundleRow]]
"""What `states.cluster_state` makes a cluster state of."""

OVERLAPPING = ("0x00000000_0x80000000", "0x40000000_0xc0000000")
NOW_MS = 1_795_250_000_000
"""When the states of `states` were captured."""

orderly = st.sampled_from([0.0, 1.0, 2.5, 1e3, 1e3, 5e6, 1e12]) | st.floats(0, 1e9)
unruly = st.sampled_from([-1.0, -1e9, float("nan"), float("inf"), float("-inf")]) | orderly


@st.composite
def rows(draw: st.DrawFn, figure: st.SearchStrategy[float] = unruly) -> Rows:
    """Up to five brokers and twelve bundles; usage, limits and traffic are of `figure`, ranges may overlap.

    Bundles are without an owner, unusable, in flight or recently unloaded, brokers incomplete or gone, now and then.
    """
    mostly = st.sampled_from([True, True, True, False])
    traffic = st.tuples(figure, figure, figure, figure)
    resource = st.tuples(st.floats(0, 120) | figure, st.just(100.0) | figure)
    ids = [f"broker-{number}:8080" for number in range(draw(st.integers(1, 5)))]
    brokers = [
        BrokerRow(
            name,
            cpu=draw(resource),
            bandwidth_in=draw(resource),
            traffic=draw(traffic),
            complete=draw(mostly),
            available=draw(mostly),
        )
        for name in ids
    ]
    bundles = [
        BundleRow(
            f"t/n{number}",
            text,
            draw(st.sampled_from([*ids, None])),
            draw(traffic),
            topics=draw(st.integers(0, 3)),
            in_boundaries=draw(mostly),
            usable=draw(mostly),
            last_unloaded_at_ms=draw(st.sampled_from([0, 0, NOW_MS - 60_000, NOW_MS - 10**9])),
        )
        for number in range(draw(st.integers(0, 6)))
        for text in draw(st.sampled_from([HALVES, OVERLAPPING]))
    ]
    return brokers, bundles


@st.composite
def coherent_rows(draw: st.DrawFn) -> Rows:
    """Such clusters as they are: a broker's traffic is the sum of its bundles', and its CPU follows the messages."""
    brokers, bundles = draw(rows(st.integers(0, 40).map(float)))

    def total(broker: BrokerRow) -> list[float]:
        own = [bundle.traffic for bundle in bundles if bundle.owner == broker.id]
        return [sum(figures) for figures in zip((0.0,) * 4, *own, strict=True)]

    totals = {broker.id: total(broker) for broker in brokers}
    return [
        replace(
            broker,
            traffic=tuple(totals[broker.id]),
            cpu=(totals[broker.id][0] + totals[broker.id][1], 300.0),
            bandwidth_in=(totals[broker.id][2], 200.0),
        )
        for broker in brokers
    ], bundles
