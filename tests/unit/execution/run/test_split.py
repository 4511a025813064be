"""A split is judged by its own boundaries."""

from __future__ import annotations

import pytest

from pulsar_advisor.execution.ledger.ledger import Ledger
from unit.execution.actors import approved, run
from unit.execution.doubles import NAMESPACE, FakeCluster, make_plan, split_step


def split_another(cluster: FakeCluster) -> None:
    cluster.bounds[NAMESPACE] = sorted({*cluster.bounds[NAMESPACE], 0x40000000})


@pytest.mark.parametrize("after_s", [0.0, 30.0], ids=["at once", "while it holds"])
def test_a_split_beside_another_one_is_confirmed(ledger: Ledger, cluster: FakeCluster, after_s: float) -> None:
    cluster.on_event = lambda what: (
        cluster._later.append((cluster.time.ms + int(after_s * 1000), lambda: split_another(cluster)))
        if what == "after the call"
        else None
    )
    result = run(approved(ledger, make_plan([split_step()])), ledger, cluster, canary_hold_s=60.0)
    assert result.outcome == "done"
    assert "0x40000000" in cluster.boundaries(NAMESPACE)


def test_a_split_that_does_not_stay_has_failed(ledger: Ledger, cluster: FakeCluster) -> None:
    def undone() -> None:
        cluster.bounds[NAMESPACE] = [0, 0x80000000, 0xFFFFFFFF]

    cluster.on_event = lambda what: (
        cluster._later.append((cluster.time.ms + 30_000, undone)) if what == "after the call" else None
    )
    result = run(approved(ledger, make_plan([split_step()])), ledger, cluster, canary_hold_s=60.0)
    assert result.steps[0].detail == "the new boundaries showed, but did not stay"
