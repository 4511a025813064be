"""`upgrade` on a snapshot that three real brokers of 4.0.8 gave."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from published import faults
from pulsar_advisor.documents.document import as_json
from pulsar_advisor.model.errors import DataNotFit, UsageError
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.recommendation.upgrade import UpgradeRequest
from pulsar_advisor.simulation.request import SimulationRequest
from pulsar_advisor.stages import simulate, upgrade
from pulsar_advisor.stages.report import report_page
from pulsar_advisor.stages.simulate_combination import simulate_combination
from pulsar_advisor.storage.lease import held
from pulsar_advisor.storage.root import Root, Snapshot

EARLIER = Path(__file__).parents[2] / "data/earlier/root"
SNAPSHOT = "20261122T093126Z"
TO_5 = UpgradeRequest("5.0.1", seeds=2)
IN_SHORT = UpgradeRequest("5.0.1", seeds=1, cycles=1)


@pytest.fixture
def live(tmp_path: Path) -> Snapshot:
    """A copy of its tables and results that may be written to."""
    shutil.copytree(EARLIER, tmp_path / "root")
    return Root(str(tmp_path / "root"), "live").snapshot(SNAPSHOT)


def test_before_equals_simulate(live: Snapshot) -> None:
    request = SimulationRequest(Request("configured", "configured", splits=False), seeds=2)
    with held(live.folder("simulations/result"), live.id, "it is being simulated") as lease:
        answers = [simulate_combination(lease.nonce, task) for task in simulate.tasks(live, request).values()]
    rows = [row for answer in answers for row in json.loads(answer)]
    found = as_json(upgrade.run(live, TO_5))
    assert found["before"]["scores"] == [as_json(row) | {"error": None} for row in rows]  # type: ignore[call-overload,index]


def test_what_lint_finds_only_afterwards_is_said(live: Snapshot) -> None:
    findings = upgrade.run(live, IN_SHORT).findings
    unread = "loadBalancerBundleUnloadMinThroughputThreshold: AvgShedder doesn't read it"
    assert any(finding.startswith(unread) for finding in findings)


def test_the_report_shows_the_last_preview(live: Snapshot) -> None:
    assert report_page(live).upgrade is None
    made = upgrade.run(live, IN_SHORT)
    assert not faults(as_json(made))
    section = report_page(live).upgrade
    assert section is not None
    assert section.to == "5.0.1"


def test_a_preview_of_another_manifest_is_not_shown(live: Snapshot) -> None:
    upgrade.run(live, IN_SHORT)
    assert upgrade.preview_if_any(live, "0" * 64) is None


def test_an_earlier_release_is_refused_before_anything_is_written(live: Snapshot) -> None:
    with pytest.raises(UsageError, match=r"is not an upgrade: the cluster runs 4\.0\.8"):
        upgrade.run(live, UpgradeRequest("3.0.7"))
    assert not (live.root.path / "upgrades").exists()


def test_a_snapshot_that_was_not_validated_is_refused(recorded: Snapshot) -> None:
    with pytest.raises(DataNotFit, match="never validated"):
        upgrade.run(recorded, IN_SHORT)
