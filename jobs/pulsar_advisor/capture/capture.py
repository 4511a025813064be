"""Captures one cluster into a raw snapshot, in a fixed order of reads, with the manifest written last.

No read assigns or writes anything on the cluster. Order: ownership · each broker's settings, load report and topics ·
namespaces, isolation, topic names · ZooKeeper · ownership again · optionally a second read of the brokers between which
bundles moved · the manifest.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, nullcontext
from datetime import UTC, datetime
from typing import Final, NamedTuple

from pulsar_advisor.admin.metadata_store import MetadataReader, connected
from pulsar_advisor.admin.options import CaptureOptions
from pulsar_advisor.admin.read_client import ReadClient
from pulsar_advisor.admin.request_budget import RequestBudget
from pulsar_advisor.admin.transport import USER_AGENT, AdminTransport
from pulsar_advisor.capture.journal import Journal, now_ms
from pulsar_advisor.capture.ownership import Ownership
from pulsar_advisor.capture.progress import CaptureProgress
from pulsar_advisor.capture.raw_files import SnapshotFiles
from pulsar_advisor.capture.session import Identity, Session, identify, identify_in
from pulsar_advisor.capture.stored_surfaces import (
    miss_store,
    miss_what_brokers_tell,
    read_metadata,
    read_service_unit_states,
    read_store,
)
from pulsar_advisor.capture.surfaces import (
    BrokerFacts,
    check_migration,
    leader_unloads,
    oldest_release,
    prevailing_load_manager,
    read_brokers,
    read_cluster,
    read_load_again,
    read_namespaces,
    write_load,
)
from pulsar_advisor.capture.system_topics import STATES, listening
from pulsar_advisor.capture.system_topics import SURFACES as SYSTEM_TOPICS
from pulsar_advisor.capture.topic_decoders import ByteBudget, TopicDecoders
from pulsar_advisor.documents.manifest import Manifest, Sources
from pulsar_advisor.model.cluster.cluster_state import LoadManagerKind
from pulsar_advisor.model.errors import ClusterUnreachable, DataNotFit, UsageError
from pulsar_advisor.model.plans.plan import Identity as PlanIdentity
from pulsar_advisor.model.text.some_of import some_of
from pulsar_advisor.storage.claim import claimed, remove_remainders
from pulsar_advisor.storage.files import write_file
from pulsar_advisor.storage.root import MANIFEST, Root

_METADATA_STORE_VIEW: Final = "ServiceUnitStateMetadataStoreTableViewImpl"


DOCUMENTS_BYTES: Final = 256 << 20
"""Total size of the topic documents in memory at a time, by far the largest data that a capture holds."""

STATISTICS_PASS_S: Final = 2
"""How long a statistics update on a broker may take."""


def capture(options: CaptureOptions, root: Root, progress: CaptureProgress) -> str:
    """Capture the cluster into `root` and return the snapshot's id.

    If a broker doesn't answer, only its part is lost; the manifest says what is missing and why. Raises
    `ClusterUnreachable` if the cluster can't be reached or denies access, `DataNotFit` if its load manager is unknown,
    `StorageError` if the root can't be written. Then, as after an interruption, there is no snapshot.
    """
    with ExitStack() as stack:
        budget = RequestBudget(options.max_requests)
        documents = ByteBudget(DOCUMENTS_BYTES)
        transport = None
        if options.admin is not None:
            transport = stack.enter_context(AdminTransport(options.admin, budget=budget, arrive=documents.arrive))
        identity = identify(ReadClient(transport)) if transport else None
        metadata = stack.enter_context(connected(options.metadata_store, budget)) if options.metadata_store else None
        identity = _agreed(identity, metadata)
        started_at = datetime.now(UTC)
        remove_remainders(root)
        lease = stack.enter_context(claimed(root, started_at))
        session = Session(
            cluster_name=identity.cluster_name,
            brokers=identity.brokers,
            leader=identity.leader,
            transport=transport,
            journal=Journal(heartbeat=lease.renew),
            files=SnapshotFiles(lease.folder),
            documents=documents,
            decoders=stack.enter_context(TopicDecoders()),
            pool=ThreadPoolExecutor(options.concurrency, thread_name_prefix="capture"),
            progress=progress,
        )
        stack.callback(session.pool.shutdown, cancel_futures=True)
        stack.callback(session.stopped.set)
        found = _read(session, metadata, identity, options)
        facts, journal = found.facts, session.journal
        manifest = Manifest(
            tool_version=USER_AGENT.partition("/")[2],
            cluster=root.cluster,
            snapshot=lease.snapshot,
            started_at_ms=int(started_at.timestamp() * 1000),
            finished_at_ms=now_ms(),
            identity=PlanIdentity(cluster_name=identity.cluster_name, broker_ids=identity.brokers),
            sources=Sources(
                admin_urls=tuple(options.admin.admin_urls) if options.admin else (),
                zookeeper=metadata is not None,
                service_url=options.service_url is not None,
            ),
            load_manager=found.load_manager,
            load_managers=facts.load_managers,
            pulsar_version=oldest_release(facts.releases.values()),
            pulsar_versions=facts.releases,
            leader=identity.leader,
            leader_unloads=found.leader_unloads,
            files=session.files.listing(),
            reads=journal.reads(),
            failures=journal.failures(),
            missing=journal.missing(),
            incomplete_brokers=journal.incomplete_brokers(),
            moved_bundles=tuple(found.ownership.moved()),
            read_again=tuple(facts.read_again),
            skew_ms=journal.skew_ms(),
        )
        lease.require()
        write_file(lease.folder / MANIFEST, manifest.content())
    return lease.snapshot


def _agreed(identity: Identity | None, metadata: MetadataReader | None) -> Identity:
    """The cluster that the admin API and ZooKeeper both belong to. Raises `UsageError` if they belong to two."""
    if identity is None:
        assert metadata is not None
        return identify_in(metadata)
    if metadata is not None and not set(metadata.active_brokers()) & set(identity.brokers):
        raise UsageError(
            f"{metadata.kind} lists none of the brokers {some_of(identity.brokers)}: "
            "it belongs to a different cluster than the admin URL"
        )
    return identity


class _Found(NamedTuple):
    """What the reads say beside the files and the journal."""

    facts: BrokerFacts
    ownership: Ownership
    load_manager: LoadManagerKind
    leader_unloads: int | None


def _read(session: Session, metadata: MetadataReader | None, identity: Identity, options: CaptureOptions) -> _Found:
    """Read everything, and write all files."""
    ownership = Ownership()
    ownership.read(session, metadata, "begin")
    if session.transport is not None:
        facts = _read_by_admin_api(session, metadata, identity, ownership, options)
    else:
        assert metadata is not None
        facts = read_metadata(session, metadata)
        miss_what_brokers_tell(session, _load_manager(facts, identity.leader), metadata)
        ownership.read(session, metadata, "end")
    _write_brokers(session, metadata, identity, facts)
    session.files.write_surfaces()
    load_manager = _load_manager(facts, identity.leader)
    counting = identity.leader if session.transport is not None and load_manager == "modular" else None
    # After the owners were read: none of them acquired a bundle that isn't counted yet.
    unloads = None if counting is None else leader_unloads(session, counting)
    return _Found(facts, ownership, load_manager, unloads)


def _read_by_admin_api(
    session: Session,
    metadata: MetadataReader | None,
    identity: Identity,
    ownership: Ownership,
    options: CaptureOptions,
) -> BrokerFacts:
    """Read from the brokers, and from ZooKeeper if it is given; fails if no broker answers."""
    silences = [session.journal.silence_of(broker) for broker in session.brokers]
    if all(silences):
        raise ClusterUnreachable(
            f"none of the {len(silences)} brokers responds at its own address; the first: {silences[0]}; "
            "run where the brokers' web addresses can be reached"
        )
    facts = read_brokers(session)
    check_migration(session, facts, metadata.kind if metadata else None)
    load_manager = _load_manager(facts, identity.leader)
    extensible = load_manager == "extensible"
    with _channel(session, metadata, facts, options.service_url) if extensible else nullcontext():
        read_cluster(session)
        read_namespaces(session)
        session.files.extend("leader", [{"source": "rest", "broker": identity.leader}])
        if metadata is not None:
            read_store(session, metadata)
        else:
            miss_store(session.journal, load_manager)
        ownership.read(session, metadata, "end")
    if options.second_pass:
        _second_pass(session, facts, ownership)
    write_load(session, facts)
    return facts


def _second_pass(session: Session, facts: BrokerFacts, ownership: Ownership) -> None:
    """Read again, after their next statistics update, the brokers between which bundles have moved."""
    unsettled = ownership.unsettled_brokers(facts.reported_bundles())
    brokers = [broker for broker in session.brokers if broker in unsettled]
    if brokers:
        wait_s = facts.statistics_interval_s() + STATISTICS_PASS_S
        session.progress.begin(f"waiting {wait_s:g} s for the next statistics pass", 1)
        session.stopped.wait(wait_s)
        session.progress.advance()
        read_load_again(session, facts, brokers)


def _channel(
    session: Session, metadata: MetadataReader | None, facts: BrokerFacts, service_url: str | None
) -> AbstractContextManager[None]:
    """Read what Extensible brokers publish for their leader: now, or while the block reads other things."""
    in_metadata_store = any(name.endswith(_METADATA_STORE_VIEW) for name in facts.table_view_classes.values())
    if in_metadata_store and metadata is not None:
        read_service_unit_states(session, metadata)
    elif in_metadata_store:
        session.journal.miss(STATES, "this cluster keeps it in its metadata store, and no metadata store was given")
    if service_url is not None:
        return listening(session, service_url, states_in_topic=not in_metadata_store)
    for surface in SYSTEM_TOPICS:
        if surface != STATES or not in_metadata_store:
            session.journal.lack(surface, "without a service URL")
    return nullcontext()


def _write_brokers(session: Session, metadata: MetadataReader | None, identity: Identity, facts: BrokerFacts) -> None:
    registered: set[str] = set(identity.brokers)
    with session.journal.attempt("brokers"):
        if session.transport is not None:
            registered = set(session.client("brokers").active_brokers(identity.cluster_name))
        elif metadata is not None:
            registered = set(metadata.active_brokers())
    for broker in registered - set(identity.brokers):
        session.journal.miss("load_reports", "the broker joined during the capture", broker)
    session.files.extend(
        "brokers",
        [
            {
                "broker": broker,
                "webServiceUrl": session.admin.web_address(broker) if session.transport else None,
                "version": facts.releases.get(broker),
                "clockAheadMs": facts.clocks_ahead_ms.get(broker),
                "leader": broker == identity.leader,
                "available": broker in registered,
            }
            for broker in sorted(registered | set(identity.brokers))
        ],
    )


def _load_manager(facts: BrokerFacts, leader: str | None) -> LoadManagerKind:
    kind = prevailing_load_manager(facts.load_managers, leader)
    if kind is None:
        names = ", ".join(sorted(set(facts.load_manager_classes.values()))) or "no broker reports it"
        raise DataNotFit(f"the load manager ({names}) is not modular, simple or extensible: no advice is possible")
    return kind
