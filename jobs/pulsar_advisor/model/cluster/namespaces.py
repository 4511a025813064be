"""The kind of a namespace, by its name: a user's, or one of Pulsar's own.

Pulsar's own are `pulsar/system`, and for each broker a heartbeat namespace, `pulsar/<broker>`, and one for the SLA
monitor, `sla-monitor/<broker>`; up to 4.0 also with the cluster between the two parts. Any other namespace of those
tenants, such as `pulsar/mine`, is a user's: Pulsar sheds, places and splits its bundles like all others.

Source: `NamespaceService` (`HEARTBEAT_NAMESPACE_PATTERN` and its `V2`, `SLA_NAMESPACE_PATTERN`,
`isSystemServiceNamespace`), `NamespaceName`, `NamespaceBundle.getBundleNamespace` (2.11.0 to 5.0.1).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Final

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import Booleans
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.errors import DataNotFit


class NamespaceKind(StrEnum):
    """The kinds; the values are those used in the tables."""

    USER = "user"
    SYSTEM = "system"
    HEARTBEAT = "heartbeat"
    SLA_MONITOR = "sla_monitor"


SYSTEM_NAMESPACE: Final = "pulsar/system"
BROKERS_NAMESPACES: Final = {
    NamespaceKind.HEARTBEAT: r"pulsar/([^/]+/)?[^/:]+:[0-9]+",
    NamespaceKind.SLA_MONITOR: r"sla-monitor/([^/]+/)?[^/:]+:[0-9]+",
}
"""Expressions for whole names, in both forms; Python and Java read them identically."""
_COMPILED: Final = {kind: re.compile(expression) for kind, expression in BROKERS_NAMESPACES.items()}

_TWO_PARTS_ONLY_SINCE: Final = (4, 2, 0)
_SYSTEM_NAMESPACE_SHED_SINCE: Final = (3, 0, 1)
_ENTITY_NAME: Final = re.compile(r"[-=:.\w]+", re.ASCII)


def kind_of(namespace: str) -> NamespaceKind:
    """The kind of a namespace, in every release."""
    if namespace == SYSTEM_NAMESPACE:
        return NamespaceKind.SYSTEM
    for kind, expression in _COMPILED.items():
        if expression.fullmatch(namespace):
            return kind
    return NamespaceKind.USER


def is_pulsars_own(namespace: str) -> bool:
    """Whether a namespace is Pulsar's own, which no strategy of ours moves and `apply` never touches."""
    return kind_of(namespace) is not NamespaceKind.USER


def of_users(namespaces: Iterable[str]) -> Booleans:
    """Of each namespace, whether it is a user's."""
    return np.array([not is_pulsars_own(name) for name in namespaces], dtype=np.bool_)


def has_three_parts(namespace: str) -> bool:
    """Whether a namespace is one of `tenant/cluster/namespace`, valid up to 4.0.

    Version 2 of the admin API lists them, and answers all other requests about them with 404.
    """
    return namespace.count("/") == 2


def is_never_shed(namespace: str, settings: LoadBalancerSettings) -> bool:
    """Whether the Modular leader keeps all shedders from its bundles: a broker's heartbeat or SLA monitor.

    Up to 4.0 the SLA monitor is recognised in its three-part form only; up to 3.0.0 `pulsar/system` counts too.
    """
    kind = kind_of(namespace)
    if kind is NamespaceKind.SYSTEM:
        return settings.behaviour < _SYSTEM_NAMESPACE_SHED_SINCE
    if kind is NamespaceKind.SLA_MONITOR:
        return settings.behaviour >= _TWO_PARTS_ONLY_SINCE or has_three_parts(namespace)
    return kind is NamespaceKind.HEARTBEAT


def is_system_service_namespace(namespace: str, settings: LoadBalancerSettings) -> bool:
    """Whether brokers omit it from their top bundles (Extensible): as above, and `pulsar/system` in any release."""
    return namespace == SYSTEM_NAMESPACE or is_never_shed(namespace, settings)


def bundle_namespace(bundle: str, settings: LoadBalancerSettings) -> str:
    """The namespace in a bundle's full name; the whole name if it contains no valid namespace, as in Pulsar.

    Namespaces of three parts (`tenant/cluster/namespace`) are valid up to 4.0.
    """
    namespace = bundle.rpartition("/")[0]
    return namespace if _is_namespace(namespace, settings) else bundle


def require_namespace(namespace: str, settings: LoadBalancerSettings) -> None:
    """Raise `DataNotFit` where the release would reject the text as a namespace."""
    if not _is_namespace(namespace, settings):
        raise DataNotFit(
            f"'{namespace}' is not a namespace of this release; expected <tenant>/<namespace>. Capture again"
        )


def _is_namespace(text: str, settings: LoadBalancerSettings) -> bool:
    parts = text.split("/")
    valid_lengths = (2,) if settings.behaviour >= _TWO_PARTS_ONLY_SINCE else (2, 3)
    return len(parts) in valid_lengths and all(_ENTITY_NAME.fullmatch(part) for part in parts)
