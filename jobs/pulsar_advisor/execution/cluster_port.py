"""What the executor needs of a cluster: a few things to read, and three things to do.

Sources: the admin endpoints `PUT …/unload`, `PUT …/split` and `GET /lookup/v2/topic/…` of Pulsar 2.10 to 4.2.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from pulsar_advisor.model.cluster_state import IsolationPolicy, LoadManagerKind

NO_CONTENT: Final = 204


@dataclass(frozen=True)
class Request:
    """A call as it goes over the wire. `query` in the order of sending; `body` is sent as JSON, None means none."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Any = None

    def __str__(self) -> str:
        query = "&".join(f"{key}={value}" for key, value in self.query.items())
        body = "" if self.body is None else f" {json.dumps(self.body)}"
        return f"{self.method} {self.path}{'?' if query else ''}{query}{body}"


@dataclass(frozen=True)
class Unload:
    """Unload a bundle; `destination` (broker id) is a wish under Modular and a command under Extensible."""

    namespace: str
    bundle: str
    destination: str | None

    @property
    def request(self) -> Request:
        """`authoritative` is never sent: true would make the called broker seize the bundle."""
        query = {} if self.destination is None else {"destinationBroker": self.destination}
        return Request("PUT", f"/admin/v2/namespaces/{self.namespace}/{self.bundle}/unload", query)


@dataclass(frozen=True)
class Split:
    """Split a bundle at exactly these positions; without positions (releases before 2.11) in equal halves."""

    namespace: str
    bundle: str
    positions: tuple[int, ...]

    @property
    def request(self) -> Request:
        """The children stay where they are (`unload=false`): moving them is a step of its own."""
        algorithm = "specified_positions_divide" if self.positions else "range_equally_divide"
        return Request(
            "PUT",
            f"/admin/v2/namespaces/{self.namespace}/{self.bundle}/split",
            {"unload": "false", "splitAlgorithmName": algorithm},
            list(self.positions) or None,
        )


@dataclass(frozen=True)
class Override:
    """Override a dynamic setting of all brokers, or drop its override (`value` None)."""

    setting: str
    value: str | None

    @property
    def request(self) -> Request:
        """A broker stores any value without a look at it."""
        path = f"/admin/v2/brokers/configuration/{self.setting}"
        return Request("DELETE", path) if self.value is None else Request("POST", f"{path}/{self.value}")


@dataclass(frozen=True)
class Reply:
    """What came back from a call; `status` is None when nothing did, and then anything may have happened."""

    status: int | None
    text: str

    def __str__(self) -> str:
        return f"{self.status or 'no answer'} {self.text}".strip()


class ClusterPort(Protocol):
    """One Pulsar cluster. Every read raises `ClusterUnreachable` when it can't be had."""

    def cluster_name(self) -> str:
        """Pulsar's own `clusterName`."""

    def load_manager(self) -> LoadManagerKind:
        """Which load manager the brokers run."""

    def unloading_timeout_s(self) -> float:
        """How long a broker may be at work on one call: the greatest `namespaceBundleUnloadingTimeoutMs` of them."""

    def active_brokers(self) -> frozenset[str]:
        """Ids (`host:port`) of the brokers that are registered now."""

    def owned_bundles(self, broker: str) -> frozenset[str]:
        """`tenant/namespace/0x..._0x...` of what a broker says it owns; empty if it is not active."""

    def boundaries(self, namespace: str) -> tuple[str, ...]:
        """Current boundaries, `0x%08x`, ascending; empty if the namespace doesn't exist or is being deleted."""

    def loaded_topics(self, broker: str, namespace: str, bundle: str) -> tuple[str, ...]:
        """Complete names of the topics of a bundle that the broker has loaded, as of its last statistics pass."""

    def topics(self, namespace: str, bundle: str) -> tuple[str, ...]:
        """Complete names of all topics of a bundle, loaded or not, system ones and every partition."""

    def isolation_policies(self) -> tuple[IsolationPolicy, ...]:
        """Namespace isolation policies in the order Pulsar gives them."""

    def anti_affinity_peers(self, namespace: str) -> frozenset[str]:
        """The other namespaces of the namespace's anti-affinity group; empty without a group."""

    def usage_ratio(self, broker: str) -> float | None:
        """Weighted maximum usage (0..1) of a broker now; None where the load manager does not report it."""

    def override(self, setting: str) -> str | None:
        """The override of a dynamic setting; None where there is none."""

    def send(self, write: Unload | Split | Override) -> Reply:
        """Send a call once. Never raises for what the cluster does or fails to do: the reply says what is known."""

    def look_up(self, topic: str) -> Reply:
        """Look a topic up as a client would, which assigns its bundle if nobody owns it."""
