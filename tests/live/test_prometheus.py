"""Days imported from a Prometheus that scraped real brokers, beside the snapshots of the same minutes."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from harness.cluster import ClusterOptions
from harness.load import SHIFT_SIGNAL, running_generator
from harness.prometheus import has_prometheus, running_prometheus
from harness.shell import Shell, plain_connection
from harness.skew import wait_for_figures
from harness.workload import DEFAULT_SEED, WORKLOADS
from live.goals import judge
from live.starting import StartCluster
from pulsar_advisor.history.moment import Moment
from pulsar_advisor.stages.moments import folded_moments
from pulsar_advisor.storage.history import folded_days
from pulsar_advisor.storage.root import Root

pytestmark = [pytest.mark.live, pytest.mark.full]

STEP_S: Final = 30
LAG_S: Final = 90
"""How old a figure may be that was scraped at a moment: brokers count once a minute, and are asked every 15 s."""
ROUNDED: Final = 0.04
"""These brokers count every five seconds: a pass that starts a fifth of a second late counts 4 % more."""
BUSY_PER_S: Final = 20
"""Messages/s: one message more in a pass that no scrape saw is a percent."""


def moments(root: Path) -> list[Moment]:
    """All that was folded or imported, in order of time."""
    place = Root(str(root), "live")
    days, unreadable = folded_days(place)
    assert not unreadable
    return [moment for day in days for moment in folded_moments(place, day, [one.id for one in day.snapshots])]


def owners(moment: Moment) -> dict[str, str]:
    return dict(zip(moment.bundles.to_pylist(), moment.owners.to_pylist(), strict=True))


def figures(moment: Moment) -> dict[str, np.ndarray]:
    return dict(zip(moment.bundles.to_pylist(), moment.traffic, strict=True))


def test_owners_are_equal_and_rates_within_what_a_scrape_can_know(start_cluster: StartCluster, tmp_path: Path) -> None:
    if not has_prometheus():
        pytest.skip("no `prometheus` on this machine: install Debian's package of this name")
    cluster = start_cluster(ClusterOptions())
    snapshots, imported = tmp_path / "snapshots", tmp_path / "imported"
    shell = Shell(snapshots, plain_connection(cluster))
    workload = WORKLOADS["skewed"](DEFAULT_SEED)
    targets = [url.removeprefix("http://") for url in cluster.admin_urls]
    with running_generator(cluster) as load, running_prometheus(tmp_path / "prometheus", targets) as prometheus:
        wait_for_figures(cluster.admin, workload)
        judge(shell)
        shutil.copytree(snapshots, imported)
        for moved in list(workload.brokers)[:2]:
            load.send_signal(SHIFT_SIGNAL)
            cluster.admin.write("PUT", f"/namespaces/{moved}/unload")
            time.sleep(2 * LAG_S)
            judge(shell)
        time.sleep(LAG_S)
        assert shell("history", "fold", "--all").code == 0
        step = f"{STEP_S}s"
        done = Shell(imported, ())("history", "import", "--prometheus", prometheus.url, "--days", "2", "--step", step)
        assert done.code == 0, done.err
    print(done.out)
    scraped = moments(imported)
    for snapshot in moments(snapshots):
        near = [moment for moment in scraped if abs(moment.at_ms - snapshot.at_ms) <= LAG_S * 1000]
        at_once = min(near, key=lambda moment: abs(moment.at_ms - snapshot.at_ms))
        known = {bundle: owner for bundle, owner in owners(at_once).items() if owner is not None}
        assert set(workload.brokers) <= set(known)
        assert known == {bundle: owner for bundle, owner in owners(snapshot).items() if bundle in known}
        seen = [figures(moment) for moment in near]
        busy = {
            bundle: rates
            for bundle, rates in figures(snapshot).items()
            if bundle in workload.brokers and rates[0] >= BUSY_PER_S
        }
        assert busy
        for bundle, rates in busy.items():
            figures_near = np.array([moment[bundle] for moment in seen])
            assert (rates >= np.nanmin(figures_near, axis=0) * (1 - ROUNDED)).all(), (snapshot.snapshot, bundle)
            assert (rates <= np.nanmax(figures_near, axis=0) * (1 + ROUNDED)).all(), (snapshot.snapshot, bundle)
