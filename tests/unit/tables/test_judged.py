"""Which snapshots and earlier states advice is computed from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import documents
from pulsar_advisor.model.cluster.cluster_state import ClusterState, WantedView
from pulsar_advisor.model.cluster.snapshot_id import snapshot_id
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.errors import DataNotFit, UsageError
from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.planning.proposals.limits import Limits
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.storage.files import sha256_hex, write_file
from pulsar_advisor.storage.root import MANIFEST, RESULT, Root, Snapshot
from pulsar_advisor.tables import judged
from states import BrokerRow, BundleRow, cluster_state

EARLIER = Root(str(Path(__file__).parents[2] / "data" / "earlier" / "root"), "live").snapshot("20261122T093126Z")
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
BEFORE = (1, 4, 29, 31, 90)
"""Minutes before now at which there are snapshots."""


def at(minutes_ago: int) -> str:
    return snapshot_id(NOW - timedelta(minutes=minutes_ago))


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch) -> ClusterState:
    """The state of now; each earlier snapshot has the same one."""
    now = replace(
        cluster_state([BrokerRow("a:8080")], [BundleRow("t/n", "0x00000000_0xffffffff", "a:8080")]), snapshot=at(0)
    )

    def state_of(
        snapshot: Snapshot, _view: WantedView, _what_if: Mapping[str, str], *, with_topics: bool
    ) -> ClusterState:
        assert not with_topics, "a thousand states with topics fill the memory"
        return replace(now, snapshot=snapshot.id)

    def comparable_before(snapshot: Snapshot) -> Iterator[Snapshot]:
        return map(snapshot.root.snapshot, map(at, BEFORE))

    monkeypatch.setattr(judged, "state_of", state_of)
    monkeypatch.setattr(judged, "comparable_before", comparable_before)
    return now


@pytest.mark.parametrize(
    ("history", "grace_minutes", "minutes_ago"),
    [
        # By default those in which an unload may still count, oldest first.
        (None, "30", [29, 4, 1]),
        (None, "3", [1]),
        (2, "30", [4, 1]),
        (0, "30", []),
    ],
)
def test_earlier_snapshots_within_the_grace_period_are_used_unless_a_number_is_given(
    state: ClusterState, tmp_path: Path, history: int | None, grace_minutes: str, minutes_ago: list[int]
) -> None:
    settings = resolve_settings("4.0.8", {"loadBalancerSheddingGracePeriodMinutes": grace_minutes}).values
    now = Root(str(tmp_path), "c").snapshot(state.snapshot)
    earlier = judged.earlier_states(now, state.view, history, {}, settings)
    assert [one.snapshot for one in earlier] == [at(minutes) for minutes in minutes_ago]


def test_a_snapshot_that_did_not_pass_is_refused_for_the_checks_that_stop_it(tmp_path: Path) -> None:
    root, snapshot = Root(str(tmp_path), "c"), at(0)
    manifest = root.snapshot(snapshot).folder("raw") / MANIFEST
    write_file(manifest, documents.manifest().content())
    results = (
        documents.check(check="brokers.unique", severity="critical", effect="stop", success=False),
        documents.check(check="brokers.some", severity="critical", effect="stop"),
        documents.check(check="bundles.stayed", success=False),
    )
    validation = documents.validation(*results, manifest_sha256=sha256_hex(manifest.read_bytes()), success=False)
    write_file(root.snapshot(snapshot).folder("validation") / RESULT, validation.content())
    with pytest.raises(DataNotFit, match=r"did not pass validation \(brokers\.unique\): see `validate`"):
        judged.inputs_of(root.snapshot(snapshot))


@pytest.mark.parametrize("limit", ["exclude_namespaces", "first_namespaces"])
def test_limits_that_name_what_the_snapshot_does_not_have_are_refused(limit: str) -> None:
    def resolved(*names: str) -> Request:
        request = Request(limits=Limits(**{limit: names}))  # type: ignore[arg-type]
        return judged.resolved_request(EARLIER, request)

    assert getattr(resolved("telemetry", "retail/payments").limits, limit) == ("telemetry", "retail/payments")
    with pytest.raises(UsageError, match="'retail/payment'; the nearest is 'retail/payments'"):
        resolved("telemetry", "retail/payment")


def test_a_bundle_of_a_goal_is_named_in_full_or_by_a_topic_and_counts_once() -> None:
    def bundles(*names: str) -> tuple[str, ...]:
        goal = Goal("move", onto=("broker-1",), bundles=names)
        found = judged.resolved_request(EARLIER, Request(goal=goal)).goal
        assert found is not None
        return found.bundles

    bundle = "retail/payments/0x00000000_0x40000000"
    assert bundles("persistent://retail/payments/ledger-533", bundle) == (bundle,)
    with pytest.raises(UsageError, match=f"no bundle '{bundle}0'; the nearest is '{bundle}'"):
        bundles(f"{bundle}0")
