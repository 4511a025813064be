"""The Extensible manager's three system topics; reads the one whose messages are stored, the ownership channel.

Reading them assigns no bundle: the leader serves them whatever their hash.
Source: Pulsar `ServiceUnitStateTableViewImpl`, `BrokerLoadData`, `TopBundlesLoadData`, `LoadDataStoreFactory` of
`loadbalance.extensions` (3.0.7 to 4.2.4).
"""

# ruff: noqa: N815 (the field names are the keys of the documents)

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from pulsar_advisor.admin.binary_client import OPERATION_LIMIT_S, binary_client
from pulsar_advisor.admin.decoding import Document, UnreadableAnswer, decode
from pulsar_advisor.admin.transport import AdminTransport
from pulsar_advisor.capture.documents import AllowList, BundleStats, Count, Number, SystemResourceUsage, Text
from pulsar_advisor.capture.journal import SERVICE, now_ms
from pulsar_advisor.capture.service_unit_state import SERVICE_UNIT_STATE, ServiceUnitState, prevailing
from pulsar_advisor.capture.session import Session
from pulsar_advisor.model.errors import ClusterUnreachable

if TYPE_CHECKING:
    import pulsar

STATES: Final = "service_unit_states"
BROKER_LOAD: Final = "broker_load_data"
TOP_BUNDLES: Final = "top_bundles"
PUBLISHED: Final = (BROKER_LOAD, TOP_BUNDLES)
"""The surfaces whose topics store nothing."""

STATES_LIMIT_S: Final = 60.0

TOPICS: Final = {
    STATES: "persistent://pulsar/system/loadbalancer-service-unit-state",
    BROKER_LOAD: "non-persistent://pulsar/system/loadbalancer-broker-load-data",
    TOP_BUNDLES: "non-persistent://pulsar/system/loadbalancer-top-bundles-load-data",
}


class BrokerLoadData(SystemResourceUsage):
    """The load that a broker publishes: ratios, messages/s, bytes/s, epoch milliseconds."""

    msgRateIn: Number = UNSET
    msgRateOut: Number = UNSET
    msgThroughputIn: Number = UNSET
    msgThroughputOut: Number = UNSET
    bundleCount: Count = UNSET
    topics: Count = UNSET
    maxResourceUsage: Number = UNSET
    weightedMaxEMA: Number = UNSET
    msgThroughputEMA: Number = UNSET
    updatedAt: Count = UNSET
    reportedAt: Count = UNSET


class TopBundle(AllowList):
    """One of a broker's busiest bundles."""

    bundleName: Text = UNSET
    stats: BundleStats | UnsetType | None = UNSET


class TopBundlesLoadData(AllowList):
    """A broker's busiest bundles, lightest first."""

    topBundlesLoadData: list[TopBundle] | UnsetType | None = UNSET


DECODERS: Final[dict[str, msgspec.json.Decoder[Any]]] = {
    BROKER_LOAD: msgspec.json.Decoder(BrokerLoadData),
    TOP_BUNDLES: msgspec.json.Decoder(TopBundlesLoadData),
}


def refusal(transport: AdminTransport, service_url: str) -> str | None:
    """Why the topics can't be read at this URL; None if they can."""
    import pulsar

    try:
        with closing(binary_client(transport, service_url)) as client:
            client.create_reader(TOPICS[BROKER_LOAD], pulsar.MessageId.latest).close()
    except pulsar.PulsarException as error:
        return explained_failure(error, service_url)
    return None


def explained_failure(error: Exception, service_url: str) -> str:
    """The one-line message for a client failure."""
    kind = type(error).__name__
    advice = _ADVICE.get(kind, "check that it is the brokers' binary port, with pulsar+ssl:// if that uses TLS")
    return f"{service_url}: {kind}: {advice}"


_ADVICE: Final = {
    "AuthenticationError": "the credentials are rejected there",
    "AuthorizationError": "the role may not consume in pulsar/system: use the credentials of a super-user",
}


def read_states(session: Session, service_url: str) -> None:
    """Read the ownership channel; what can't be read is recorded."""
    import pulsar

    try:
        with session.journal.attempt(STATES), closing(binary_client(session.admin, service_url)) as client:
            held = prevailing(_states(session, client))
            lines = ({"source": "topic", "bundle": bundle, "document": held[bundle]} for bundle in sorted(held))
            session.files.extend(STATES, lines)
    except pulsar.PulsarException as error:
        session.journal.miss(STATES, explained_failure(error, service_url))


def _states(session: Session, client: pulsar.Client) -> Iterator[tuple[str, ServiceUnitState | None]]:
    """(bundle, record or None: removed) in the channel's order. Raises `ClusterUnreachable` if it takes too long."""
    import pulsar

    started_at_ms, size = now_ms(), 0
    deadline = time.monotonic() + STATES_LIMIT_S
    with closing(client.create_reader(TOPICS[STATES], pulsar.MessageId.earliest, is_read_compacted=True)) as reader:
        while reader.has_message_available() and not session.stopped.is_set():
            if time.monotonic() > deadline:
                raise ClusterUnreachable(f"{TOPICS[STATES]}: not read completely within {STATES_LIMIT_S:.0f} s")
            message = reader.read_next(OPERATION_LIMIT_S * 1000)
            bundle, body = message.partition_key(), message.data()
            size += len(body)
            try:
                yield bundle, decode(Document(TOPICS[STATES], body), SERVICE_UNIT_STATE) if body else None
            except UnreadableAnswer as error:
                session.journal.fail(STATES, None, error)
    session.journal.read(STATES, SERVICE, started_at_ms, status=None, size=size)
