"""The first screen's advice, followed on real brokers: what it foresaw, what came, and what the next screen says.

Under the Extensible manager, where bundles go where a plan sends them.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from decisions.usage import HEAD, Figure, usage_of
from harness import sensor
from harness.cluster import ClusterOptions, LiveCluster
from harness.load import running_load
from harness.shell import QUICK
from harness.skew import wait_for_skew, wait_until_settled
from live.first_screen import Operator, Screen
from live.starting import StartCluster, with_cpu_skew
from pulsar_advisor.model.plans.plan import Prediction
from pulsar_advisor.planning.usage.noise import DEFAULT_RATIO
from pulsar_advisor.storage.root import LATEST, Root

pytestmark = [pytest.mark.live, pytest.mark.full]

REPORTED_S = 120


def busiest(screen: Screen) -> tuple[str, float]:
    """The broker that a finding calls the busiest, and its usage (percent)."""
    found = re.search(r"([\d.]+:\d+) is the busiest broker at ([\d.]+)%", screen.text)
    assert found is not None, screen.text
    return found[1], float(found[2])


def wait_until_less(cluster: LiveCluster, url: str, rate_per_s: float) -> None:
    """Until the statistics of a broker show fewer messages than that."""
    deadline = time.monotonic() + REPORTED_S
    while sensor.messages_per_s(cluster.admin, url) >= rate_per_s:
        assert time.monotonic() < deadline, "the broker still reports what was unloaded"
        time.sleep(1)


def test_the_hot_broker_gets_cooler_by_as_much_as_was_foreseen_and_the_next_advice_is_another(
    start_cluster: StartCluster, tmp_path: Path
) -> None:
    cluster = with_cpu_skew(start_cluster(ClusterOptions(load_manager="extensible")))
    operator, root = Operator(cluster, tmp_path), Root(str(tmp_path), "live")
    with running_load(cluster):
        wait_for_skew(cluster.admin)
        advised = operator.look()
        hot, at_first = busiest(advised)
        assert advised.headline.startswith("Unload ")
        assert re.search(f"from {re.escape(hot)}: the busiest broker (should|may) fall from ", advised.headline)

        digits, *consents = advised.approval
        (plan,) = (plan for plan in operator.shell.plans() if plan["digest"].startswith(f"sha256:{digits}"))
        url = f"http://{hot}"
        rate_per_s = sensor.messages_per_s(cluster.admin, url)
        approved = operator.shell("approve", digits, "--as", "bob", *consents, *QUICK)
        assert approved.code == 0, approved.err
        applied = operator.shell("apply", digits, *operator.shell.connection)
        assert applied.code == 0, applied.out + applied.err
        wait_until_less(cluster, url, 0.9 * rate_per_s)
        wait_until_settled(cluster.admin, cluster.machines)
        second = operator.look()
    predicted, actual = Prediction.model_validate(plan["predicted"]), usage_of(root.resolve(LATEST))
    before, after = predicted.before.brokers, predicted.after.brokers
    figures = [Figure.of(broker, before[broker], after[broker], actual[broker]) for broker in after]
    print("\n".join((HEAD, *(figure.row() for figure in figures))))
    assert 100 * actual[hot] < at_first
    assert busiest(second)[1] < at_first
    assert f"from {hot}" not in second.headline
    for figure in figures:
        assert figure.lowest - DEFAULT_RATIO <= figure.actual <= figure.highest + DEFAULT_RATIO
