"""What the executor needs from a cluster: its reads, three writes and a topic lookup.

Sources: the admin endpoints `PUT …/unload`, `PUT …/split` and `GET /lookup/v2/topic/…` of Pulsar 2.10 to 5.0.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from pulsar_advisor.documents.call import Call
from pulsar_advisor.model.configuration.kinds import LoadManagerKind

if TYPE_CHECKING:
    from pulsar_advisor.model.cluster.cluster_state import IsolationPolicy

LOOK_AGAIN_S: Final = 1.0
"""One answer may be wrong: how long after a first look that would decide something the second one does."""

OK: Final = 200
NO_CONTENT: Final = 204
_TOO_MANY: Final = 429
_SERVER_ERROR: Final = 500
"""The lowest status of one."""
_TIMES_OUT: Final = frozenset({408, 502, 504})
"""Answers of a proxy that waited in vain for the broker."""


@dataclass(frozen=True)
class Unload:
    """Unload a bundle; `destination` (broker id) is a hint under Modular and binding under Extensible."""

    namespace: str
    bundle: str
    destination: str | None

    @property
    def request(self) -> Call:
        """The call. It never sends `authoritative`: true would make the called broker seize the bundle."""
        query = {} if self.destination is None else {"destinationBroker": self.destination}
        return Call("PUT", f"/admin/v2/namespaces/{self.namespace}/{self.bundle}/unload", query, None)


@dataclass(frozen=True)
class Split:
    """Split a bundle at exactly these positions, or into equal halves without positions (releases before 2.11)."""

    namespace: str
    bundle: str
    positions: tuple[int, ...]

    @property
    def request(self) -> Call:
        """The call. The children stay where they are (`unload=false`): moving them is a separate step."""
        algorithm = "specified_positions_divide" if self.positions else "range_equally_divide"
        return Call(
            "PUT",
            f"/admin/v2/namespaces/{self.namespace}/{self.bundle}/split",
            {"unload": "false", "splitAlgorithmName": algorithm},
            [*self.positions] or None,
        )


@dataclass(frozen=True)
class Override:
    """Override a dynamic setting on all brokers, or delete its override (`value` None)."""

    setting: str
    value: str | None

    @property
    def request(self) -> Call:
        """The call. A broker stores any value without validating it."""
        path = f"/admin/v2/brokers/configuration/{self.setting}"
        if self.value is None:
            return Call("DELETE", path, {}, None)
        return Call("POST", f"{path}/{self.value}", {}, None)


@dataclass(frozen=True)
class Reply:
    """The answer to a call. If none came, `status` is None and the outcome is unknown."""

    status: int | None
    text: str
    is_redirected: bool = False
    """Whether another broker redirected the call: the leader may have acted on it by then."""
    retry_after_s: float = 0.0
    """When the call may be sent again at the earliest, as a proxy or gateway says."""

    @property
    def leaves_open(self) -> bool:
        """Whether the broker may still be at work on the call."""
        return self.status is None or self.status in _TIMES_OUT

    @property
    def is_trouble(self) -> bool:
        """Whether the cluster is slow, overloaded or ill: no answer, too many requests, or a server error."""
        return self.leaves_open or self.status == _TOO_MANY or (self.status or 0) >= _SERVER_ERROR

    @property
    def in_words(self) -> str:
        """`answer 503 busy`, or `no answer: connection refused`."""
        return str(self) if self.status is None else f"answer {self}"

    def __str__(self) -> str:
        if self.status is None:
            return f"no answer: {self.text}" if self.text else "no answer"
        return f"{self.status} {self.text}".strip()


class ClusterPort(Protocol):
    """One Pulsar cluster. Every read raises `ClusterUnreachable` if it fails."""

    def cluster_name(self) -> str:
        """Pulsar's own `clusterName`."""

    def load_manager(self) -> LoadManagerKind:
        """Which load manager the brokers run."""

    def unloading_timeout_s(self) -> float:
        """How long a broker may work on one call: the greatest `namespaceBundleUnloadingTimeoutMs` of all brokers."""

    def reports_within_s(self) -> float:
        """How long a new owner may report no topics of a bundle: until its next statistics pass."""

    def leader(self) -> str | None:
        """Id of the leader; None while there is none."""

    def release(self, broker: str) -> str:
        """The release of Pulsar that an active broker runs, as `4.0.8`."""

    def active_brokers(self) -> frozenset[str]:
        """Ids (`host:port`) of the currently registered brokers."""

    def owned_bundles(self, broker: str) -> frozenset[str]:
        """Bundles (`tenant/namespace/0x..._0x...`) that a broker reports as its own; empty if it is not active."""

    def boundaries(self, namespace: str) -> tuple[str, ...]:
        """Current boundaries, `0x%08x`, ascending; empty if the namespace doesn't exist or is being deleted."""

    def loaded_topics(self, broker: str, namespace: str, bundle: str) -> tuple[str, ...]:
        """Full names of the topics of a bundle that the broker has loaded, as of its last statistics pass."""

    def reported_bundles(self, broker: str) -> frozenset[str]:
        """Bundles (full names) of which the broker had topics loaded at its last statistics pass."""

    def may_have_topics(self, namespace: str, bundle: str) -> bool:
        """Whether a bundle may have a topic, loaded or not; true if it can't be ruled out."""

    def topics(self, namespace: str, bundle: str) -> tuple[str, ...]:
        """Full names of all topics of a bundle, loaded or not, including system topics and every partition."""

    def isolation_policies(self) -> tuple[IsolationPolicy, ...]:
        """Namespace isolation policies in the order Pulsar returns them."""

    def anti_affinity_peers(self, namespace: str) -> frozenset[str]:
        """The other namespaces of the namespace's anti-affinity group; empty without a group."""

    def usage_ratio(self, broker: str) -> float | None:
        """Current weighted maximum usage (0..1) of a broker; None if it doesn't report any."""

    def migrating(self) -> str | None:
        """The phase of a metadata store migration in progress, or None."""

    def override(self, setting: str) -> str | None:
        """The override of a dynamic setting, or None; brokers ignore a blank one, so it is none."""

    def effective(self, setting: str) -> Mapping[str, str]:
        """The value of a setting in the memory of each active broker, by broker id."""

    def send(self, write: Unload | Split | Override) -> Reply:
        """Send a call once. Never raises because of the cluster's behaviour: the reply holds what is known."""

    def look_up(self, topic: str) -> Reply:
        """Look up a topic as a client would, which assigns its bundle if no broker owns it."""
