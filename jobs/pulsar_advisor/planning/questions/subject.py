"""What a question is about: a cluster, a namespace, a broker or a bundle, by the name that an operator gives it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import NO_ROW, ClusterState
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.model.text.some_of import nearest, some_of
from pulsar_advisor.planning.kinds.goal import resolved_brokers

Kind = Literal["cluster", "namespace", "broker", "bundle"]


@dataclass(frozen=True, eq=False)
class Subject:
    """What is asked about: rows of the cluster state."""

    kind: Kind
    name: str
    """Broker id, namespace or full bundle name; empty for the cluster."""
    brokers: frozenset[int]
    bundles: frozenset[int]

    @classmethod
    def of(cls, state: ClusterState, kind: Kind, name: str = "") -> Self:
        """The subject with this name, a broker's as for a goal, a bundle's also a topic's in it.

        Raises `UsageError` if the cluster has none.
        """
        owner = state.bundles.owner
        if kind == "cluster":
            return cls(kind, "", frozenset(range(len(state.brokers))), frozenset(range(len(state.bundles))))
        if kind == "broker":
            (broker,) = resolved_brokers([name], state.brokers.ids)
            row = state.brokers.ids.index(broker)
            return cls(kind, broker, frozenset({row}), frozenset(np.flatnonzero(owner == row).tolist()))
        if kind == "namespace":
            row = _row(state.namespaces.names, kind, name)
            bundles = np.flatnonzero(state.bundles.namespace == row)
        else:
            name = _bundle_of_topic(state, name) if "://" in name else name
            namespace, separator, _ = name.rpartition("/0x")
            if not separator:
                raise UsageError(
                    f"'{name}' is not a bundle: give its full name, tenant/namespace/0x00000000_0x40000000, or a topic"
                )
            inside = np.flatnonzero(state.bundles.namespace == _row(state.namespaces.names, "namespace", namespace))
            bundles = inside[[_row([state.bundle_name(row) for row in inside.tolist()], kind, name)]]
        owners = owner[bundles][owner[bundles] != NO_ROW]
        return cls(kind, name, frozenset(owners.tolist()), frozenset(bundles.tolist()))


def _bundle_of_topic(state: ClusterState, topic: str) -> str:
    of_topic = state.topics.bundle[state.topics.names == topic].tolist()
    bundle = next((state.bundle_name(row) for row in of_topic if row != NO_ROW), None)
    if bundle is None:
        raise UsageError(
            f"the snapshot lists no topic '{topic}' with a bundle; a partitioned topic is named by a partition: "
            f"{topic}-partition-0"
        )
    return bundle


def _row(names: Sequence[str], kind: str, name: str) -> int:
    if name not in names:
        raise UsageError(f"the snapshot has no {kind} '{name}'{nearest(name, names)}; it has {some_of(names)}")
    return names.index(name)
