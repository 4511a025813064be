"""What a Pulsar cluster answers to `apply` and does for it: ownership, boundaries, redirects, destinations.

One world that all its brokers share; the server beside it speaks HTTP for them. Sources: Pulsar `NamespacesBase`,
`NamespaceService`, `PulsarWebResource`, `BundlesData` (4.0.8), and what three live brokers of 4.0.8 and 4.2.4 answered,
Modular and Extensible: a destination for an unload goes to the leader first, which remembers it by the text of the
range alone; one in ten lookups after an unload wins the race against it; a 204 says nothing about the effect.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Any, Final, Literal
from urllib.parse import unquote

from pulsar_advisor.execution.run.guard.settings import GUARDED
from pulsar_advisor.model.cluster.bundle_range import contains, format_range, parse_range, topic_hash

Manager = Literal["modular", "extensible"]

MANAGERS: Final[Mapping[Manager, str]] = {
    "modular": "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl",
    "extensible": "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl",
}
RECONNECT_S: Final = 0.2
"""How long an unloaded bundle has no owner while clients use it."""
MISSED: Final = 0.1
"""The share of unloads under Modular after which another broker than the wished one gets the bundle (8 of 79)."""

_RANGE: Final = r"(0x[0-9a-f]{8}_0x[0-9a-f]{8})"
_NAMESPACE: Final = r"([^/]+/[^/]+)"


@dataclass(frozen=True)
class Call:
    """One request as a broker gets it."""

    broker: str
    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Any = None


@dataclass(frozen=True)
class Answer:
    """What a broker answers; `to` is the broker a redirect leads to, with this query."""

    status: int
    document: Any = None
    to: str | None = None
    query: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Change:
    """Something that happened to a bundle: `by` a call, or by the cluster itself."""

    by: Literal["call", "cluster"]
    action: Literal["unload", "split", "assign"]
    bundle: str
    before: str | None
    """The owner before it."""
    after: str | None
    """The owner after it, None while the bundle has no owner."""
    at_s: float


@dataclass
class Cluster:
    """The world. Time comes from outside and passes only when somebody lets it."""

    brokers: tuple[str, ...]
    now_s: Callable[[], float]
    random: Random
    name: str = "live"
    manager: Manager = "modular"
    release: str = "4.0.8"
    boundaries: dict[str, list[int]] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)
    topics: dict[str, list[str]] = field(default_factory=dict)
    isolation_policies: dict[str, Any] = field(default_factory=dict)
    leader: str = ""
    dead: set[str] = field(default_factory=set)
    idle: set[str] = field(default_factory=set)
    """Bundles that no client brings back after an unload."""
    history: list[Change] = field(default_factory=list)
    wishes: dict[str, str] = field(default_factory=dict)
    """Modular: range text -> destination, as the leader remembers it until the next assignment of that text."""
    overrides: dict[str, str] = field(default_factory=dict)
    """Dynamic settings. What the brokers' files say of them is `true`."""
    misses_deletions: bool = False
    """Whether the brokers keep a setting in memory when its override is deleted (apache/pulsar#22673)."""
    overridden_at_s: list[tuple[str, float]] = field(default_factory=list)
    """When calls changed which settings."""
    _in_memory: dict[str, str] = field(default_factory=dict)
    _due: list[tuple[float, Callable[[], None]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.leader = self.leader or self.brokers[0]

    @property
    def active(self) -> tuple[str, ...]:
        return tuple(broker for broker in self.brokers if broker not in self.dead)

    def later(self, seconds: float, happens: Callable[[], None]) -> None:
        """Let something happen after this many seconds."""
        self._due.append((self.now_s() + seconds, happens))

    def catch_up(self) -> None:
        """Let everything happen that is due."""
        while due := [entry for entry in self._due if entry[0] <= self.now_s()]:
            first = min(due, key=lambda entry: entry[0])
            self._due.remove(first)
            first[1]()

    def answer(self, call: Call) -> Answer:
        """What the broker does and says."""
        self.catch_up()
        path = unquote(call.path)
        for method, pattern, handler in _ROUTES:
            if method == call.method and (found := pattern.fullmatch(path)):
                return handler(self, call, *found.groups())
        return Answer(404, {"reason": f"no resource at {path}"})

    def bundles(self, namespace: str) -> list[str]:
        return [f"{namespace}/{format_range(*pair)}" for pair in pairwise(self.boundaries.get(namespace, ()))]

    def topics_of(self, bundle: str) -> list[str]:
        namespace, _, text = bundle.rpartition("/")
        lower, upper = parse_range(text)
        return [topic for topic in self.topics.get(namespace, ()) if contains(lower, upper, topic_hash(topic))]

    def move(self, bundle: str, to: str | None, by: Literal["call", "cluster"] = "cluster") -> None:
        """Change an owner without anybody asking through the admin API, as a shedder or a failing broker does."""
        before = self.owners.pop(bundle, None)
        if to is not None:
            self.owners[bundle] = to
        self._note(by, "assign", bundle, before, to)

    def die(self, broker: str) -> None:
        """A broker goes: its registration, the lead, and what it owned, which clients bring to the others."""
        if len(self.active) < 2 or broker in self.dead:
            return
        self.dead.add(broker)
        if self.leader == broker:
            self.leader = self.active[0]
        for bundle in [bundle for bundle, owner in self.owners.items() if owner == broker]:
            self.move(bundle, None)
            self._bring_back(bundle, "cluster")

    def assign(self, bundle: str, by: Literal["call", "cluster"]) -> None:
        """Give an unowned bundle to a broker, as the leader does for the first lookup."""
        namespace, _, text = bundle.rpartition("/")
        if bundle in self.owners or bundle not in self.bundles(namespace):
            return
        wish = self.wishes.get(text)
        if wish is not None and self.random.random() >= MISSED:
            del self.wishes[text]
        else:
            wish = None
        to = wish if wish in self.active else self.random.choice(self.active)
        self.move(bundle, to, by)

    def _note(
        self,
        by: Literal["call", "cluster"],
        action: Literal["unload", "split", "assign"],
        bundle: str,
        before: str | None,
        after: str | None,
    ) -> None:
        self.history.append(Change(by, action, bundle, before, after, self.now_s()))

    def _bring_back(self, bundle: str, by: Literal["call", "cluster"]) -> None:
        if bundle not in self.idle:
            self.later(RECONNECT_S, lambda: self.assign(bundle, by))

    # What the admin API has.

    def _runtime(self, _call: Call) -> Answer:
        settings = {
            "clusterName": self.name,
            "loadManagerClassName": MANAGERS[self.manager],
            "namespaceBundleUnloadingTimeoutMs": "60000",
            "brokerClientAuthenticationParameters": "token:not-for-your-eyes",
        }
        in_memory = self._in_memory if self.misses_deletions else self.overrides
        flags = {setting: str(value.lower() == "true").lower() for setting, value in in_memory.items()}
        return Answer(200, {**settings, **dict.fromkeys(GUARDED, "true"), **flags})

    def _dynamic(self, _call: Call) -> Answer:
        return Answer(200, self.overrides)

    def override(self, setting: str, value: str) -> None:
        """Override a setting."""
        self.overrides[setting] = self._in_memory[setting] = value

    def _override(self, _call: Call, setting: str, value: str) -> Answer:
        self.override(setting, value)
        self.overridden_at_s.append((setting, self.now_s()))
        return Answer(200)

    def _delete_override(self, _call: Call, setting: str) -> Answer:
        self.overrides.pop(setting, None)
        self.overridden_at_s.append((setting, self.now_s()))
        return Answer(200)

    def _version(self, _call: Call) -> Answer:
        return Answer(200, self.release)

    def _active(self, _call: Call, name: str) -> Answer:
        return Answer(200, list(self.active)) if name == self.name else Answer(404, {"reason": "Cluster not found"})

    def _leader(self, _call: Call) -> Answer:
        return Answer(200, {"brokerId": self.leader, "serviceUrl": f"http://{self.leader}"})

    def _owned(self, call: Call, name: str, broker: str) -> Answer:
        if name != self.name or broker not in self.active:
            return Answer(404, {"reason": f"Broker {broker} does not exist"})
        if broker != call.broker:
            return Answer(307, to=broker)
        owned = sorted(bundle for bundle, owner in self.owners.items() if owner == broker)
        status = {"broker_assignment": "shared", "is_controlled": False, "is_active": True}
        return Answer(200, dict.fromkeys(owned, status))

    def _policies(self, _call: Call, namespace: str) -> Answer:
        if namespace not in self.boundaries:
            return Answer(404, {"reason": "Namespace does not exist"})
        texts = [f"0x{bound:08x}" for bound in self.boundaries[namespace]]
        return Answer(200, {"bundles": {"boundaries": texts, "numBundles": len(texts) - 1}, "deleted": False})

    def _group(self, _call: Call, _namespace: str) -> Answer:
        return Answer(204)

    def _isolation(self, _call: Call, _name: str) -> Answer:
        if not self.isolation_policies:
            return Answer(404, {"reason": "NamespaceIsolationPolicies for cluster does not exist"})
        return Answer(200, self.isolation_policies)

    def _persistent(self, _call: Call, namespace: str) -> Answer:
        return Answer(200, self.topics.get(namespace, []))

    def _non_persistent(self, _call: Call, _namespace: str, _range: str) -> Answer:
        return Answer(200, [])

    def _loaded(self, call: Call) -> Answer:
        loaded: dict[str, Any] = {}
        for bundle, owner in self.owners.items():
            namespace, _, text = bundle.rpartition("/")
            if owner == call.broker and (topics := self.topics_of(bundle)):
                stats = {topic: {"msgRateIn": 10.0} for topic in topics}
                loaded.setdefault(namespace, {})[text] = {"persistent": stats}
        return Answer(200, loaded)

    def _load_report(self, _call: Call) -> Answer:
        if self.manager == "extensible":
            return Answer(500, {"reason": "not supported by the Extensible load manager"})
        return Answer(200, {"loadReportType": "LocalBrokerData", "cpu": {"usage": 40.0, "limit": 400.0}})

    def _metrics(self, _call: Call) -> Answer:
        return Answer(200, [{"dimensions": {}, "metrics": {"brk_lb_cpu_usage": 10.0}}])

    def _look_up(self, _call: Call, domain: str, namespace: str, local_name: str) -> Answer:
        topic = f"{domain}://{namespace}/{local_name}"
        bundle = next((one for one in self.bundles(namespace) if topic in self.topics_of(one)), None)
        if bundle is None:
            return Answer(404, {"reason": "Topic not found"})
        self.assign(bundle, "call")
        return Answer(200, {"httpUrl": f"http://{self.owners[bundle]}"})

    def _unload(self, call: Call, namespace: str, text: str) -> Answer:
        found = self._bundle(namespace, text, unreadable=500)
        if isinstance(found, Answer):
            return found
        bundle, destination = found, call.query.get("destinationBroker")
        owner = self.owners.get(bundle)
        if destination is not None:
            if destination not in self.active:
                reason = "Not allowed unload namespace bundle to inactive destination broker"
                return Answer(409, {"reason": reason})
            if self.manager == "extensible":
                return self._transfer(call, bundle, owner, destination)
            if call.broker != self.leader:
                return self._redirect(call, self.leader, {"destinationBroker": destination})
            self.wishes[bundle.rpartition("/")[2]] = destination
        if owner is None:
            return Answer(204)
        if owner != call.broker:
            return self._redirect(call, owner)
        del self.owners[bundle]
        self._note("call", "unload", bundle, owner, None)
        self._bring_back(bundle, "call")
        return Answer(204)

    def _transfer(self, call: Call, bundle: str, owner: str | None, destination: str) -> Answer:
        if owner is None:
            return Answer(204)
        if owner != call.broker:
            return self._redirect(call, owner, {"destinationBroker": destination})
        if owner == destination:
            return Answer(500, {"reason": f"{bundle} own by {owner}, cannot be transfer to same broker"})
        self._note("call", "unload", bundle, owner, destination)
        self.owners[bundle] = destination
        return Answer(204)

    def _split(self, call: Call, namespace: str, text: str) -> Answer:
        if not all(isinstance(position, int) for position in call.body or ()):
            return Answer(400, {"reason": "Cannot deserialize value of type `java.lang.Long`"})
        found = self._bundle(namespace, text, unreadable=412)
        if isinstance(found, Answer):
            return found
        bundle, extensible = found, self.manager == "extensible"
        if bundle not in self.owners and call.broker != self.leader and not extensible:
            return self._redirect(call, self.leader, call.query)
        self.assign(bundle, "call")
        owner = self.owners[bundle]
        if owner != call.broker:
            return self._redirect(call, owner, call.query)
        lower, upper = parse_range(bundle.rpartition("/")[2])
        if extensible and len(call.body or ()) != 1:
            return Answer(412, {"reason": "Split bundle failed due to invalid request"})
        positions = sorted(position for position in call.body or () if lower < position < upper)
        if not positions or len(self.topics_of(bundle)) < 2:  # nothing to do
            reason = f"Bundle {bundle} not found under namespace"
            return Answer(500, {"reason": reason}) if extensible else Answer(204)
        self._note("call", "split", bundle, owner, None)
        self.boundaries[namespace] = sorted({*self.boundaries[namespace], *positions})
        del self.owners[bundle]
        for pair in pairwise((lower, *positions, upper)):
            self.owners[f"{namespace}/{format_range(*pair)}"] = owner
        return Answer(204)

    def _redirect(self, call: Call, to: str, query: Mapping[str, str] | None = None) -> Answer:
        """Under Modular only the leader's word on the owner is final."""
        final = self.manager == "extensible" or call.broker == self.leader
        return Answer(307, to=to, query={**(query or {}), "authoritative": str(final).lower()})

    def _bundle(self, namespace: str, text: str, unreadable: int) -> str | Answer:
        """The bundle that a text names as Java reads it (in capitals too, anything after it ignored), or a refusal."""
        if namespace not in self.boundaries:
            return Answer(404, {"reason": "Namespace not found"})
        try:
            lower, upper = (int(bound, 16) for bound in text.split("_")[:2])
            bundle = f"{namespace}/{format_range(lower, upper)}"
        except ValueError:
            return Answer(unreadable, {"reason": f"Invalid bundle range: {text}"})
        if lower >= upper:
            return Answer(unreadable, {"reason": f"Invalid range: [{lower}..{upper})"})
        if bundle in self.bundles(namespace):
            return bundle
        return Answer(412, {"reason": f"Invalid upper boundary for bundle {bundle}"})


def _routes() -> Iterator[tuple[str, re.Pattern[str], Callable[..., Answer]]]:
    brokers, namespaces = "/admin/v2/brokers", f"/admin/v2/namespaces/{_NAMESPACE}"
    for method, pattern, handler in (
        ("GET", f"{brokers}/configuration/runtime", Cluster._runtime),
        ("GET", f"{brokers}/configuration/values", Cluster._dynamic),
        ("POST", f"{brokers}/configuration/([^/]+)/([^/]+)", Cluster._override),
        ("DELETE", f"{brokers}/configuration/([^/]+)", Cluster._delete_override),
        ("GET", f"{brokers}/version", Cluster._version),
        ("GET", f"{brokers}/leaderBroker", Cluster._leader),
        ("GET", f"{brokers}/([^/]+)", Cluster._active),
        ("GET", f"{brokers}/([^/]+)/([^/]+)/ownedNamespaces", Cluster._owned),
        ("GET", "/admin/v2/broker-stats/topics", Cluster._loaded),
        ("GET", "/admin/v2/broker-stats/load-report", Cluster._load_report),
        ("GET", "/admin/v2/broker-stats/metrics", Cluster._metrics),
        ("GET", "/admin/v2/clusters/([^/]+)/namespaceIsolationPolicies", Cluster._isolation),
        ("GET", namespaces, Cluster._policies),
        ("GET", f"{namespaces}/antiAffinity", Cluster._group),
        ("GET", f"/admin/v2/persistent/{_NAMESPACE}", Cluster._persistent),
        ("GET", f"/admin/v2/non-persistent/{_NAMESPACE}/{_RANGE}", Cluster._non_persistent),
        ("GET", f"/lookup/v2/topic/([^/]+)/{_NAMESPACE}/(.+)", Cluster._look_up),
        ("PUT", f"{namespaces}/([^/]+)/unload", Cluster._unload),
        ("PUT", f"{namespaces}/([^/]+)/split", Cluster._split),
    ):
        yield method, re.compile(pattern), handler


_ROUTES: Final = tuple(_routes())
