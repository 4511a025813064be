"""A cluster's own strategies, by its load manager and the classes in its settings."""

from __future__ import annotations

import pytest

from pulsar_advisor.model.cluster.cluster_state import LoadManagerKind
from pulsar_advisor.placement.registry import PLACEMENTS
from pulsar_advisor.planning.proposals.configured import configured_strategies
from pulsar_advisor.shedding.registry import SHEDDERS

PACKAGE = "org.apache.pulsar.broker.loadbalance"
THRESHOLD, LONG_TERM = f"{PACKAGE}.impl.ThresholdShedder", f"{PACKAGE}.impl.LeastLongTermMessageRate"
TRANSFER = f"{PACKAGE}.extensions.scheduler.TransferShedder"
LEAST_USAGE = f"{PACKAGE}.impl.LeastResourceUsageWithWeight"
AVG, OVERLOAD = f"{PACKAGE}.impl.AvgShedder", f"{PACKAGE}.impl.OverloadShedder"
EXTENSIBLE_LEAST_USAGE = f"{PACKAGE}.extensions.strategy.LeastResourceUsageWithWeight"


@pytest.mark.parametrize(
    ("load_manager", "classes", "names"),
    [
        ("modular", (THRESHOLD, LONG_TERM), ("ThresholdShedder", "LeastLongTermMessageRate")),
        ("modular", (THRESHOLD, LEAST_USAGE), ("ThresholdShedder", "LeastResourceUsageWithWeight")),
        (
            "extensible",
            (TRANSFER, EXTENSIBLE_LEAST_USAGE),
            ("TransferShedder", "extensions.LeastResourceUsageWithWeight"),
        ),
        ("extensible", (THRESHOLD, LONG_TERM), ("TransferShedder", "extensions.LeastResourceUsageWithWeight")),
        ("simple", (THRESHOLD, LONG_TERM), ("SimpleLoadManagerImpl", "SimpleLoadManagerImpl")),
    ],
)
def test_pulsars_strategies_have_the_names_of_the_registries(
    load_manager: LoadManagerKind, classes: tuple[str, str], names: tuple[str, str]
) -> None:
    own = configured_strategies(load_manager, *classes, (4, 0, 8))
    assert own == names
    assert own.shedder in {entry.name for entry in SHEDDERS}
    assert own.placement in {entry.name for entry in PLACEMENTS}


@pytest.mark.parametrize("load_manager", ["modular", "extensible"])
def test_a_class_of_ones_own_keeps_its_name(load_manager: LoadManagerKind) -> None:
    assert configured_strategies(load_manager, "com.example.OurShedder", LONG_TERM, (4, 0, 8)).shedder == "OurShedder"


@pytest.mark.parametrize(
    ("load_manager", "release", "shedder_class", "runs"),
    [
        ("modular", (3, 3, 9), f"{PACKAGE}.impl.ThresholdSheder", "OverloadShedder"),
        ("modular", (3, 3, 9), "ThresholdShedder", "OverloadShedder"),
        ("modular", (2, 11, 0), AVG, "OverloadShedder"),
        ("modular", (3, 3, 9), TRANSFER, "OverloadShedder"),
        ("modular", (3, 3, 9), "com.example.OurShedder", "OurShedder"),
        ("extensible", (4, 0, 8), f"{PACKAGE}.extensions.scheduler.TransferSheder", "TransferShedder"),
    ],
)
def test_a_shedder_that_brokers_lack_is_replaced_as_pulsar_replaces_it(
    load_manager: LoadManagerKind, release: tuple[int, int, int], shedder_class: str, runs: str
) -> None:
    assert configured_strategies(load_manager, shedder_class, LONG_TERM, release).shedder == runs


def test_a_class_of_ones_own_is_not_taken_for_pulsars_of_that_name() -> None:
    own = configured_strategies("modular", "com.example.ThresholdShedder", LONG_TERM, (4, 0, 8))
    assert own.shedder == "com.example.ThresholdShedder"


def test_settings_that_are_not_known_name_nothing() -> None:
    assert configured_strategies("modular", "", "", (5, 0, 1)) == ("", "")


@pytest.mark.parametrize(
    ("release", "shedder", "placement"),
    [
        ((5, 0, 1), AVG, "AvgShedder"),
        ((5, 0, 1), OVERLOAD, "LeastLongTermMessageRate"),
        ((5, 0, 1), "com.example.OurShedder", "LeastLongTermMessageRate"),
        ((5, 0, 0), OVERLOAD, "AvgShedder"),
    ],
)
def test_from_5_0_1_avg_shedder_places_for_itself_only(
    release: tuple[int, int, int], shedder: str, placement: str
) -> None:
    assert configured_strategies("modular", shedder, AVG, release).placement == placement


def test_a_placement_that_is_set_beside_avg_shedder_stays() -> None:
    assert configured_strategies("modular", AVG, LEAST_USAGE, (5, 0, 1)) == (
        "AvgShedder",
        "LeastResourceUsageWithWeight",
    )
