"""What the modules of all strategies have in common; the registries add what each kind of strategy decides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsar_advisor.model.cluster.cluster_state import ClusterState
    from pulsar_advisor.model.cluster.inputs import Input
    from pulsar_advisor.model.configuration.settings import LoadBalancerSettings


class Reading(Protocol):
    """A module that says what its answer depends on."""

    @property
    def READS(self) -> frozenset[Input]:  # noqa: N802
        """What it reads of a snapshot besides ownership, boundaries and settings."""

    @property
    def SETTING_KEYS(self) -> tuple[str, ...]:  # noqa: N802
        """Pulsar's keys that determine its behaviour."""


class Remembering(Reading, Protocol):
    """A strategy whose answer also depends on its earlier ones."""

    @property
    def Memory(self) -> type[Any]:  # noqa: N802
        """What it remembers; without arguments, the initial state of a new leader.

        A shedder and a placement strategy whose memories have the same type are one object in Pulsar: the shedder's
        memory is passed on.
        """

    @property
    def observe(self) -> Callable[[ClusterState, LoadBalancerSettings, int], Any]:
        """Its input from cluster state, settings and time (epoch ms). The same function means the same input."""
