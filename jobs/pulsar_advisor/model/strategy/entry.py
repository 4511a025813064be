"""A strategy's registry entry: enough to offer it without importing it.

Standard library only, so that DAG files and command lines can list strategies cheaply.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType

from pulsar_advisor.model.cluster.inputs import Input
from pulsar_advisor.model.configuration.class_names import PACKAGE, simple_name
from pulsar_advisor.model.configuration.releases import line_of
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.model.text.some_of import nearest


@dataclass(frozen=True, kw_only=True)
class Strategy:
    """One entry of a registry."""

    name: str
    """Pulsar's class name, or our own for a strategy of ours."""
    module: str
    """Its module, imported on demand."""
    summary: str
    """One line for forms and help texts."""
    load_managers: tuple[str, ...]
    """Load managers it ships with (`modular`, `simple`, `extensible`); it can be evaluated on any cluster."""
    first_release: str
    """First Pulsar release that has it; empty for a strategy of ours."""
    package: str = "impl"
    """Of its class, within Pulsar's of load balancing; two strategies of different managers may share a simple name."""

    @property
    def java_class(self) -> str:
        """Pulsar's class, as settings name it; empty for a strategy of ours."""
        return f"{PACKAGE}{self.package}.{simple_name(self.name)}" if self.first_release else ""

    def is_in(self, release: tuple[int, ...]) -> bool:
        """Whether a release of Pulsar has it, by the release's line."""
        return bool(self.first_release) and line_of(self.first_release) <= release[:2]

    def load(self) -> ModuleType:
        """The strategy's module."""
        return importlib.import_module(self.module)

    @property
    def reads(self) -> frozenset[Input]:
        """What it reads of a snapshot besides ownership, boundaries and settings; imports its module."""
        inputs: frozenset[Input] = self.load().READS
        return inputs

    @property
    def setting_keys(self) -> tuple[str, ...]:
        """Pulsar's keys that the strategy reads; imports its module."""
        keys: tuple[str, ...] = self.load().SETTING_KEYS
        return keys


def combination(shedder: str, placement: str) -> str:
    """`ThresholdShedder with LeastLongTermMessageRate`; without a placement strategy, a plan kind alone."""
    return " with ".join(name for name in (shedder, placement) if name)


def find(strategies: Sequence[Strategy], name: str, kind: str) -> Strategy:
    """The entry with this name. Raises `UsageError` that lists all names; `kind` is the kind of strategy."""
    by_name = {strategy.name: strategy for strategy in strategies}
    if name in by_name:
        return by_name[name]
    raise UsageError(f"there is no {kind} '{name}'{nearest(name, by_name)}; choose one of: {', '.join(by_name)}")
