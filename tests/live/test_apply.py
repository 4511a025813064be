"""Approved plans on real brokers: what the brokers show afterwards, and what never reaches them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from harness.cluster import ClusterOptions, LiveCluster
from harness.configuration import CLUSTER_NAME, LoadManager
from live.plans import at, boundaries, owner_of, plan_of, topics_inside, transport_to, wait_until_reported
from live.starting import StartCluster
from pulsar_advisor.admin.connection import AdminConnection
from pulsar_advisor.admin.transport import AdminTransport
from pulsar_advisor.documents.apply_result import ApplyResult
from pulsar_advisor.execution.apply import apply_plan
from pulsar_advisor.execution.cluster.cluster_port import Reply, Split, Unload
from pulsar_advisor.execution.cluster.cluster_writes import AdminCluster
from pulsar_advisor.execution.consent.approval import approve, propose
from pulsar_advisor.execution.consent.policy import ApprovalPolicy
from pulsar_advisor.execution.ledger.approvals import Terms
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.opening import open_ledger
from pulsar_advisor.execution.person import Person
from pulsar_advisor.execution.run.options import ApplyOptions, Work
from pulsar_advisor.execution.throttle import ApplyThrottle
from pulsar_advisor.execution.undo import propose_undo
from pulsar_advisor.model.cluster.snapshot_id import snapshot_id
from pulsar_advisor.model.errors import ClusterUnreachable, Refused
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.model.plans.sealed import digest_of, dump_plan, load_plan
from unit.execution.doubles import Killed, split_step, unload_step

pytestmark = pytest.mark.live

BOUNDS = ("0x00000000", "0x30000000", "0x50000000", "0x90000000", "0xd0000000", "0xffffffff")
"""Unlike those of any other namespace: a leader of 4.0.8 remembers a destination by the text of the range alone."""
FIRST, _CHANGE_EVENTS, SECOND, THIRD, LAST = ("_".join(pair) for pair in pairwise(BOUNDS))
"""The second range is left alone: it has the namespace's `__change_events`, which every broker looks up, so that its
bundle may come back wherever a broker asks first."""
TOPICS = {FIRST: 1, SECOND: 2, THIRD: 1, LAST: 2}
CUT = {"boundaries": ("0x70000000",), "children": ("0x50000000_0x70000000", "0x70000000_0x90000000")}
ALICE, BOB = Person("alice", "airflow"), Person("bob", "airflow")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    opened = open_ledger(f"sqlite:///{tmp_path}/ledger.sqlite")
    yield opened
    opened.close()


@pytest.fixture
def port(cluster: LiveCluster) -> Iterator[AdminCluster]:
    with transport_to(cluster) as transport:
        yield AdminCluster(transport)


@pytest.fixture(scope="module")
def namespace(cluster: LiveCluster) -> Iterator[str]:
    with namespace_in_use(cluster) as name:
        yield name


@contextmanager
def namespace_in_use(cluster: LiveCluster) -> Iterator[str]:
    """A namespace of five bundles; clients hold a topic of FIRST and THIRD, two of SECOND, none of LAST.

    One topic of a bundle that moves: of two lookups at a time the leader of 4.0.8 answers one with the destination
    and the other by load, and either may acquire the bundle.
    """
    import pulsar

    name = "applied/bundles"
    cluster.admin.write("PUT", "/tenants/applied", body={"allowedClusters": [CLUSTER_NAME], "adminRoles": []})
    cluster.admin.write("PUT", f"/namespaces/{name}", body={"bundles": {"numBundles": 5, "boundaries": BOUNDS}})
    topics = {bundle: topics_inside(name, bundle, count) for bundle, count in TOPICS.items()}
    with closing(pulsar.Client(cluster.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))) as client:
        # The client forgets a producer that nothing refers to, and then doesn't reconnect when its bundle moves.
        producers = [client.create_producer(topic) for bundle in (FIRST, SECOND, THIRD) for topic in topics[bundle]]
        for topic in topics[LAST]:
            cluster.admin.write("PUT", f"/{topic.replace('://', '/')}")
        wait_until_reported(cluster, {topic for each in topics.values() for topic in each})
        yield name
        for producer in producers:
            producer.close()


QUICK = ApplyThrottle(pause_s=1.0, canary_hold_s=3.0)


def approved(ledger: Ledger, plan: Plan) -> Plan:
    propose(ledger, plan, ALICE)
    policy = ApprovalPolicy()
    approve(
        ledger,
        plan,
        digest=digest_of(plan),
        approver=BOB,
        policy=policy,
        terms=Terms(consents=["splits", "worse"], throttle=QUICK),
    )
    return plan


def run(plan: Plan, ledger: Ledger, port: AdminCluster, **options: object) -> ApplyResult:
    return apply_plan(plan, ApplyOptions(**options), Work(ledger, port, print))  # type: ignore[arg-type]


def test_the_brokers_show_the_new_owner_and_boundaries_and_a_second_apply_does_nothing(
    cluster: LiveCluster, namespace: str, port: AdminCluster, ledger: Ledger
) -> None:
    # No client uses this bundle: it reaches its destination because the executor looks it up.
    move = at(unload_step(1), cluster, namespace, LAST)
    cut = at(split_step(2), cluster, namespace, SECOND, **CUT)
    plan = approved(ledger, plan_of(cluster, move, cut))

    result = run(plan, ledger, port)

    assert (result.outcome, [step.state for step in result.steps]) == ("done", ["confirmed", "confirmed"]), result
    assert owner_of(cluster, namespace, LAST) == move.destination
    assert "look up" in [event.kind for event in ledger.events(result.digest)]
    assert boundaries(cluster, namespace) == tuple(sorted({*cut.expect.boundaries, "0x70000000"}))
    assert {owner_of(cluster, namespace, child) for child in cut.children} == {cut.source}

    writes = cluster.write_requests()
    again = run(plan, ledger, port)
    assert (again.outcome, again.exit_code) == ("nothing_to_do", 0)
    assert cluster.write_requests() == writes


def test_the_undo_plan_brings_a_bundle_back(
    cluster: LiveCluster, namespace: str, port: AdminCluster, ledger: Ledger
) -> None:
    move = at(unload_step(1), cluster, namespace, FIRST)
    plan = plan_of(cluster, move)
    result = run(approved(ledger, plan), ledger, port)
    assert result.outcome == "done", result
    # A bundle without a loaded topic is not moved, and clients take a while to come back.
    wait_until_reported(cluster, set(topics_inside(namespace, FIRST, TOPICS[FIRST])))
    undone = run(approved(ledger, propose_undo(plan, ledger, port)), ledger, port)
    owner = owner_of(cluster, namespace, FIRST)
    [step] = undone.steps
    assert step.request.query == {"destinationBroker": move.source}
    # Under Modular a destination is a wish, and on a busy machine three wishes in a row have come to nothing.
    observed = (undone.outcome, step.state, owner in step.detail)
    assert observed == (("done", "confirmed", True) if owner == move.source else ("partial", "failed", True)), undone


class DyingCluster(AdminCluster):
    """The process dies when the broker has answered and before anything is written down."""

    def send(self, write: Unload | Split) -> Reply:
        super().send(write)
        raise Killed


def test_an_unload_whose_process_died_is_found_done_and_not_repeated(
    cluster: LiveCluster, namespace: str, port: AdminCluster, ledger: Ledger
) -> None:
    move = at(unload_step(1), cluster, namespace, THIRD)
    plan = approved(ledger, plan_of(cluster, move))
    with transport_to(cluster) as transport, pytest.raises(Killed):
        run(plan, ledger, DyingCluster(transport))  # type: ignore[arg-type]
    cluster.admin.look_up(*topics_inside(namespace, THIRD, TOPICS[THIRD]))
    arrived = owner_of(cluster, namespace, THIRD) == move.destination
    writes = cluster.write_requests()

    later = open_ledger(str(ledger._engine.url), lambda: time.time_ns() // 1_000_000 + 200_000)
    result = run(plan, later, port, resume=True)
    later.close()

    assert result.outcome in ("done", "partial"), result
    # Under Modular a destination is a wish: where the bundle went elsewhere, it is asked for again.
    assert (cluster.write_requests() == writes) == arrived


def test_refusals_leave_no_write_on_any_broker(
    cluster: LiveCluster, namespace: str, port: AdminCluster, ledger: Ledger
) -> None:
    move = at(unload_step(1), cluster, namespace, THIRD)
    plan = plan_of(cluster, move)
    elsewhere = plan.identity.model_copy(update={"cluster_name": "elsewhere"})
    old = snapshot_id(datetime.now(UTC) - timedelta(hours=7))
    writes = cluster.write_requests()

    with pytest.raises(Refused, match="has no approval"):
        run(plan, ledger, port)
    with pytest.raises(Refused, match="is not the plan's digest"):
        wrong = digest_of(plan)[:-1] + ("1" if digest_of(plan)[-1] == "0" else "0")
        approve(ledger, plan, digest=wrong, approver=BOB, policy=ApprovalPolicy())
    with pytest.raises(Refused, match="it was changed after it was made"):
        load_plan(dump_plan(plan).replace(b'"seed":0', b'"seed":1'))
    with pytest.raises(Refused, match="the plan is for cluster 'elsewhere'"):
        run(approved(ledger, plan.model_copy(update={"identity": elsewhere})), ledger, port)
    with pytest.raises(Refused, match=r"7\.1 h old, more than the 6h that are allowed"):
        run(approved(ledger, plan.model_copy(update={"snapshot": old})), ledger, port)

    assert cluster.write_requests() == writes


def test_a_namespace_that_is_gone_is_told_so(
    cluster: LiveCluster, namespace: str, port: AdminCluster, ledger: Ledger
) -> None:
    move = at(unload_step(1), cluster, namespace, THIRD).model_copy(update={"namespace": "applied/gone"})
    with pytest.raises(Refused, match="namespace applied/gone does not exist or is being deleted"):
        run(approved(ledger, plan_of(cluster, move)), ledger, port)


def test_a_bundle_that_was_moved_behind_our_back_is_left_alone(
    cluster: LiveCluster, namespace: str, port: AdminCluster, ledger: Ledger
) -> None:
    there = owner_of(cluster, namespace, THIRD)
    believed = next(broker for broker in cluster.broker_ids if broker != there)
    move = at(unload_step(1), cluster, namespace, THIRD, destination=there, source=believed)
    move = move.model_copy(update={"expect": move.expect.model_copy(update={"owner": believed})})
    writes = cluster.write_requests()
    with pytest.raises(Refused, match=f"the bundle is on {there}, not on {believed} any more"):
        run(approved(ledger, plan_of(cluster, move)), ledger, port)
    assert cluster.write_requests() == writes


@pytest.mark.full
def test_the_extensible_manager_moves_and_splits(start_cluster: StartCluster, ledger: Ledger) -> None:
    cluster = start_cluster(ClusterOptions(load_manager="extensible"))
    with namespace_in_use(cluster) as namespace, transport_to(cluster) as transport:
        move = at(unload_step(1), cluster, namespace, FIRST)
        cut = at(split_step(2), cluster, namespace, SECOND, **CUT)
        plan = plan_of(cluster, move, cut, load_manager="extensible")
        result = run(approved(ledger, plan), ledger, AdminCluster(transport))
        assert result.outcome == "done", result
        assert owner_of(cluster, namespace, FIRST) == move.destination
        assert "0x70000000" in boundaries(cluster, namespace)


@pytest.mark.full
@pytest.mark.parametrize(("release", "manager"), [("4.0.8", "simple"), ("2.11.0", "modular")])
def test_where_no_destination_is_kept_a_bundle_is_split_and_another_unloaded_without_one(
    release: str, manager: LoadManager, start_cluster: StartCluster, ledger: Ledger
) -> None:
    cluster = start_cluster(ClusterOptions(release=release, load_manager=manager))
    with namespace_in_use(cluster) as namespace, transport_to(cluster) as transport:
        cut = at(split_step(1), cluster, namespace, SECOND, **CUT)
        move = at(unload_step(2), cluster, namespace, FIRST, destination=None)
        plan = plan_of(cluster, cut, move, load_manager=manager, pulsar_version=release)
        result = run(approved(ledger, plan), ledger, AdminCluster(transport))
        came_back = owner_of(cluster, namespace, FIRST) == move.source
        expected = ["pending", "failed"] if came_back else ["confirmed", "confirmed"]
        assert [step.state for step in result.steps] == expected, result
        assert len([write for write in cluster.write_requests() if "/unload" in write and " 204 " in write]) == 1


@pytest.mark.full
def test_a_role_without_rights_is_told_so_and_changes_nothing(
    start_cluster: StartCluster, ledger: Ledger, tmp_path: Path
) -> None:
    cluster = start_cluster(ClusterOptions(token_authentication=True, brokers=1))
    assert cluster.tokens is not None
    token = tmp_path / "token"
    token.write_text(cluster.tokens.reader)
    plan = approved(ledger, plan_of(cluster, unload_step(1)))
    connection = AdminConnection(admin_urls=tuple(cluster.admin_urls), token_file=token)
    writes = cluster.write_requests()
    with AdminTransport(connection, writes=True) as transport, pytest.raises(ClusterUnreachable, match="super-user"):
        run(plan, ledger, AdminCluster(transport))
    assert cluster.write_requests() == writes
