"""Captures one cluster into a raw snapshot, in a fixed order of reads.

No read assigns or writes anything on the cluster. Order: what Extensible brokers publish, if the capture listens ·
ownership · each broker's settings, load report and topics · namespaces, isolation, topic names · ZooKeeper · ownership
again · optionally a second read of the brokers that bundles moved to or from · whether the leader is still the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from pulsar_advisor.admin.metadata_store import MetadataReader, connected
from pulsar_advisor.admin.options import CaptureOptions
from pulsar_advisor.admin.read_client import ReadClient, some_active
from pulsar_advisor.admin.request_budget import RequestBudget
from pulsar_advisor.admin.transport import USER_AGENT, AdminTransport
from pulsar_advisor.capture.journal import Journal, now_ms
from pulsar_advisor.capture.ownership import Ownership
from pulsar_advisor.capture.progress import CaptureProgress
from pulsar_advisor.capture.publications import Heard, Listener, Wait, write_heard
from pulsar_advisor.capture.raw_files import SnapshotFiles, Write
from pulsar_advisor.capture.segments import miss_unlisted_segments, read_segments
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
    leads_still,
    miss_migration,
    oldest_release,
    prevailing_load_manager,
    read_brokers,
    read_cluster,
    read_load_again,
    read_namespaces,
    write_load,
)
from pulsar_advisor.capture.system_topics import PUBLISHED, STATES, read_states
from pulsar_advisor.capture.topic_decoders import ByteBudget, TopicDecoders
from pulsar_advisor.documents.manifest import Manifest, Sources
from pulsar_advisor.model.bounds import LISTEN, duration
from pulsar_advisor.model.cluster.cluster_state import LoadManagerKind
from pulsar_advisor.model.configuration.class_names import load_manager_kind
from pulsar_advisor.model.errors import ClusterUnreachable, DataNotFit, UsageError
from pulsar_advisor.model.plans.plan import Identity as PlanIdentity
from pulsar_advisor.model.text.some_of import some_of

_METADATA_STORE_VIEW: Final = "ServiceUnitStateMetadataStoreTableViewImpl"


DOCUMENTS_BYTES: Final = 256 << 20
"""Total size of the topic documents in memory at a time, by far the largest data that a capture holds."""

STATISTICS_PASS_S: Final = 2
"""How long a statistics update on a broker may take."""

_LOOK_S: Final = 1.0
"""Interval at which a wait checks whether it is over, if no message arrives."""


@dataclass(frozen=True)
class Cluster:
    """The open connections to one cluster, and its identity by its own account."""

    options: CaptureOptions
    transport: AdminTransport | None
    metadata: MetadataReader | None
    documents: ByteBudget
    identity: Identity

    @property
    def listen_s(self) -> int:
        """How long to listen to its brokers; 0 if there is nothing to hear."""
        extensible = load_manager_kind(None, self.identity.load_manager_class) == "extensible"
        return self.options.listen_s if extensible and self.options.service_url is not None else 0

    def listener(self, earlier: Heard | None = None) -> Listener:
        """A listener to what its brokers publish from now on, continuing `earlier`."""
        assert self.transport is not None
        assert self.options.service_url is not None
        return Listener(self.transport, self.options.service_url, earlier)

    def wait(self, listener: Listener) -> Wait:
        """The wait for its brokers, starting now."""
        assert self.transport is not None
        client = ReadClient(self.transport)
        brokers = self.identity.brokers
        return Wait(listener, brokers, lambda: client.active_brokers(self.identity.cluster_name), self.listen_s)

    def identified_again(self) -> Cluster:
        """The same cluster with its present brokers and leader. Raises as `opened`."""
        return replace(self, identity=_identified(self.transport, self.metadata))


@contextmanager
def opened(options: CaptureOptions) -> Iterator[Cluster]:
    """Connect to a cluster for the duration of the block.

    Raises `ClusterUnreachable` if it can't be reached or denies access, `UsageError` if the options lead to two
    clusters.
    """
    with ExitStack() as stack:
        budget = RequestBudget(options.max_requests)
        documents = ByteBudget(DOCUMENTS_BYTES)
        transport = None
        if options.admin is not None:
            transport = stack.enter_context(AdminTransport(options.admin, budget=budget, arrive=documents.arrive))
        identity = identify(ReadClient(transport)) if transport else None
        metadata = None
        if options.metadata_store is not None:
            # Brokers answer for their configuration, wherever they keep it.
            configuration = options.configuration_store if transport is None else None
            metadata = stack.enter_context(connected(options.metadata_store, budget, configuration))
        yield Cluster(options, transport, metadata, documents, _agreed(identity, metadata))


@contextmanager
def listening(cluster: Cluster, progress: CaptureProgress, earlier: Heard | None = None) -> Iterator[Listener | None]:
    """Listen to the brokers: wait until all have published or the time is over, then go on while the block reads.

    None if there is nothing to hear, or listening is switched off. With what another process heard `earlier`, don't
    wait.
    """
    if not cluster.listen_s:
        yield None
        return
    with closing(cluster.listener(earlier)) as listener:
        if earlier is None:
            _wait(listener, cluster, progress)
        yield listener


def _wait(listener: Listener, cluster: Cluster, progress: CaptureProgress) -> None:
    brokers, wait = cluster.identity.brokers, cluster.wait(listener)
    progress.begin(f"what brokers publish, for at most {duration(cluster.listen_s)}", len(brokers))
    heard = 0
    while silent := wait.silent():
        for _ in range(heard, len(brokers) - len(silent)):
            progress.advance()
        heard = max(heard, len(brokers) - len(silent))
        listener.hear_more(_LOOK_S)


@dataclass(frozen=True)
class Destination:
    """The snapshot that a capture fills: its names in paths, when it began, and how its files are written."""

    cluster: str
    snapshot: str
    started_at_ms: int
    write: Write


def capture(
    cluster: Cluster, listener: Listener | None, destination: Destination, progress: CaptureProgress
) -> Manifest:
    """Read the cluster and write the snapshot's files; returns the manifest, whose file makes the snapshot exist.

    If a broker doesn't answer, only its part is lost; the manifest says what is missing and why. Raises
    `ClusterUnreachable` if no broker answers, `DataNotFit` if the load manager is unknown, and what `write` raises.
    """
    if listener is not None:
        cluster = cluster.identified_again()
    identity, options = cluster.identity, cluster.options
    with ExitStack() as stack:
        session = Session(
            cluster_name=identity.cluster_name,
            brokers=identity.brokers,
            leader=identity.leader,
            transport=cluster.transport,
            journal=Journal(),
            files=SnapshotFiles(destination.write),
            documents=cluster.documents,
            decoders=stack.enter_context(TopicDecoders()),
            pool=ThreadPoolExecutor(options.concurrency, thread_name_prefix="capture"),
            progress=progress,
        )
        stack.callback(session.pool.shutdown, cancel_futures=True)
        stack.callback(session.stopped.set)
        found = _read(session, cluster, listener)
        facts, journal = found.facts, session.journal
        return Manifest(
            tool_version=USER_AGENT.partition("/")[2],
            cluster=destination.cluster,
            snapshot=destination.snapshot,
            started_at_ms=destination.started_at_ms,
            finished_at_ms=now_ms(),
            identity=PlanIdentity(cluster_name=identity.cluster_name, broker_ids=identity.brokers),
            sources=Sources(
                admin_urls=tuple(options.admin.admin_urls) if options.admin else (),
                zookeeper=cluster.metadata is not None,
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


def _identified(transport: AdminTransport | None, metadata: MetadataReader | None) -> Identity:
    return _agreed(identify(ReadClient(transport)) if transport else None, metadata)


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
    """What the reads found in addition to the files and the journal."""

    facts: BrokerFacts
    ownership: Ownership
    load_manager: LoadManagerKind
    leader_unloads: int | None


def _read(session: Session, cluster: Cluster, listener: Listener | None) -> _Found:
    """Read everything, and write all files."""
    metadata, ownership = cluster.metadata, Ownership()
    ownership.read(session, metadata, "begin")
    if session.transport is not None:
        facts = _read_by_admin_api(session, cluster, ownership, listener)
    else:
        assert metadata is not None
        facts = read_metadata(session, metadata)
        miss_migration(session, facts)
        miss_what_brokers_tell(session, _load_manager(session, facts), metadata)
        ownership.read(session, metadata, "end")
    _write_brokers(session, metadata, facts)
    session.files.write_surfaces()
    load_manager = _load_manager(session, facts)
    counting = session.leader if session.transport is not None and load_manager == "modular" else None
    # After the owners were read, so that every move by then is counted.
    unloads = None if counting is None else leader_unloads(session, counting)
    if session.transport is not None and not leads_still(session):
        unloads = None
    return _Found(facts, ownership, load_manager, unloads)


def _read_by_admin_api(
    session: Session, cluster: Cluster, ownership: Ownership, listener: Listener | None
) -> BrokerFacts:
    """Read from the brokers, and from ZooKeeper if configured; fails if no broker answers."""
    metadata = cluster.metadata
    silences = [session.journal.silence_of(broker) for broker in session.brokers]
    if all(silences):
        first = f"; the first of {len(silences)}: " if len(silences) > 1 else ": "
        raise ClusterUnreachable(
            f"no broker responds at its own address{first}{silences[0]}; "
            "run where the brokers' web addresses can be reached"
        )
    facts = read_brokers(session)
    check_migration(session, facts, cluster.options.metadata_store)
    load_manager = _load_manager(session, facts)
    extensible = load_manager == "extensible"
    with _channel(session, cluster, facts) if extensible else nullcontext():
        read_cluster(session)
        read_segments(session, facts, read_namespaces(session))
        session.files.extend("leader", [{"source": "rest", "broker": session.leader}])
        if metadata is not None:
            read_store(session, metadata)
        else:
            miss_store(session.journal, load_manager)
        ownership.read(session, metadata, "end")
    if cluster.options.second_pass:
        _second_pass(session, facts, ownership)
    miss_unlisted_segments(session, facts)
    write_load(session, facts)
    if extensible:
        _write_published(session, cluster.options, listener)
    return facts


def _second_pass(session: Session, facts: BrokerFacts, ownership: Ownership) -> None:
    """Read the brokers that bundles moved to or from again, after their next statistics update."""
    unsettled = ownership.unsettled_brokers(facts.reported_bundles())
    brokers = [broker for broker in session.brokers if broker in unsettled]
    if brokers:
        wait_s = facts.statistics_interval_s() + STATISTICS_PASS_S
        session.progress.begin(f"waiting {wait_s:g} s for the next statistics pass", 1)
        session.stopped.wait(wait_s)
        session.progress.advance()
        read_load_again(session, facts, brokers)


@contextmanager
def _channel(session: Session, cluster: Cluster, facts: BrokerFacts) -> Iterator[None]:
    """Read the ownership channel of Extensible brokers, from its topic while the block reads other things."""
    service_url = cluster.options.service_url
    if any(name.endswith(_METADATA_STORE_VIEW) for name in facts.table_view_classes.values()):
        if cluster.metadata is not None:
            read_service_unit_states(session, cluster.metadata)
        else:
            session.journal.miss(STATES, "this cluster keeps it in its metadata store, and no metadata store was given")
        yield
    elif service_url is None:
        session.journal.lack(STATES, "without a service URL")
        yield
    else:
        reading = session.pool.submit(read_states, session, service_url)
        yield
        reading.result()


def _write_published(session: Session, options: CaptureOptions, listener: Listener | None) -> None:
    """Write what brokers published until now, or record why it wasn't heard."""
    if listener is not None:
        write_heard(session, listener.heard())
        return
    if options.service_url is None:
        why = "without a service URL"
    elif options.listen_s == 0:
        why = f"without listening ({LISTEN.option} {duration(0)})"
    else:
        why = "as the broker that was asked first runs another load manager"
    for surface in PUBLISHED:
        session.journal.lack(surface, why)


def _write_brokers(session: Session, metadata: MetadataReader | None, facts: BrokerFacts) -> None:
    registered: set[str] = set(session.brokers)
    with session.journal.attempt("brokers"):
        if session.transport is not None:
            found = session.client("brokers").active_brokers(session.cluster_name)
            registered = set(some_active(found, session.cluster_name))
        elif metadata is not None:
            registered = set(metadata.active_brokers())
    for broker in registered - set(session.brokers):
        session.journal.miss("load_reports", "the broker joined during the capture", broker)
    session.files.extend(
        "brokers",
        [
            {
                "broker": broker,
                "webServiceUrl": session.admin.web_address(broker) if session.transport else None,
                "version": facts.releases.get(broker),
                "clockAheadMs": facts.clocks_ahead_ms.get(broker),
                "leader": broker == session.leader,
                "available": broker in registered,
            }
            for broker in sorted(registered | set(session.brokers))
        ],
    )


def _load_manager(session: Session, facts: BrokerFacts) -> LoadManagerKind:
    kind = prevailing_load_manager(facts.load_managers, session.leader)
    if kind is None:
        names = ", ".join(sorted({*facts.load_manager_classes.values()} - {""}))
        if not names:
            why = some_of({one.reason for one in session.journal.missing() if one.broker or one.surface == "brokers"})
            raise DataNotFit(f"no broker reports its load manager{f': {why}' if why else ''}")
        raise DataNotFit(f"the load manager ({names}) is not modular, simple or extensible: no advice is possible")
    return kind
