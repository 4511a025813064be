"""The result of `upgrade`: the balancer's settings before and after an upgrade, and what the cluster does with both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pulsar_advisor.documents.document import OfSnapshot, Part
from pulsar_advisor.documents.simulation import NotSimulated, SimulatedScore
from pulsar_advisor.model.configuration.kinds import View
from pulsar_advisor.model.configuration.upgrade import UpgradedSetting

Scores = tuple[SimulatedScore | NotSimulated, ...]
"""One for each seed."""


class Balancer(Part):
    """A cluster's own balancer under one release and its settings, and what becomes of the cluster with it."""

    release: str
    shedder: str
    placement: str
    scores: Scores
    """From the snapshot on, as `simulate` has it."""
    after_restart: Scores = ()
    """Once all brokers were restarted one after another, each empty when it comes back."""
    switched_off_by: tuple[str, ...] = ()
    """Switches that keep it from shedding; the simulations take them as on."""


class UpgradePreview(OfSnapshot):
    """What an upgrade of Pulsar does to the cluster's own balancer."""

    SCHEMA: ClassVar = "pulsar-advisor/upgrade/1"
    MADE_BY: ClassVar = "upgrade"

    view: View
    to: str
    """The release of the upgrade."""
    judged_as: str = ""
    """The release known here whose decisions are taken for those of `to`; empty in earlier results."""
    seed: int
    seeds: int
    cycles: int
    settings: tuple[UpgradedSetting, ...]
    """By key, those that change first."""
    configuration_known: bool
    """Whether a broker's configuration was captured; without one no value is known to be set in a file."""
    pins: Mapping[str, str]
    """What to set in every broker's configuration so that no value changes."""
    before: Balancer
    after: Balancer
    pinned: Balancer | None
    """The new release with today's values; None if no value changes."""
    findings: tuple[str, ...] = ()
    """What `lint` finds wrong with the settings after the upgrade, and not before it."""
    notes: tuple[str, ...] = ()
    """What else a reader should know of the settings after the upgrade."""
