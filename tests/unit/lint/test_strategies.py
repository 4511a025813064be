import pytest

from pulsar_advisor.lint import configuration, strategies
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.configuration.settings import texts_of
from states import BundleRow
from unit.lint.cases import PACKAGE, case, violation

EXTENSIONS = "org.apache.pulsar.broker.loadbalance.extensions."


@pytest.mark.parametrize(
    ("shedder", "placement", "change"),
    [
        ("ThresholdShedder", "LeastLongTermMessageRate", "LeastResourceUsageWithWeight"),
        ("AvgShedder", "LeastLongTermMessageRate", "AvgShedder"),
        ("UniformLoadShedder", "LeastResourceUsageWithWeight", "LeastLongTermMessageRate"),
    ],
)
def test_a_shedder_and_a_placement_that_judge_differently_are_named(shedder: str, placement: str, change: str) -> None:
    found = violation(strategies.shedder_and_placement_agree, case(50, shedder=shedder, placement=placement))
    assert shedder in found.sentence and placement in found.sentence
    assert found.change == {"loadBalancerLoadPlacementStrategy": PACKAGE + change}


@pytest.mark.parametrize(
    ("shedder", "placement"),
    [
        ("ThresholdShedder", "LeastResourceUsageWithWeight"),
        ("UniformLoadShedder", "LeastLongTermMessageRate"),
        ("AvgShedder", "AvgShedder"),
    ],
)
def test_a_pair_that_judges_by_the_same_figures_is_fine(shedder: str, placement: str) -> None:
    assert strategies.shedder_and_placement_agree.find(case(50, shedder=shedder, placement=placement)) is None


@pytest.mark.parametrize(
    ("shedder", "moved", "is_named"),
    [
        ("UniformLoadShedder", "0.6", True),
        ("AvgShedder", "1", True),
        ("UniformLoadShedder", "0.5", False),
        ("ThresholdShedder", "1", False),
    ],
)
def test_more_than_half_of_a_difference_makes_two_brokers_change_places(
    shedder: str, moved: str, is_named: bool
) -> None:
    found = strategies.brokers_do_not_change_places.find(
        case(50, 20, shedder=shedder, settings={"maxUnloadPercentage": moved})
    )
    assert (found is not None) is is_named
    assert found is None or found.change == {"maxUnloadPercentage": "0.5"}


def test_avg_shedder_needs_its_own_placement() -> None:
    rule = strategies.avg_shedder_places_too
    assert rule.find(case(50, shedder="AvgShedder", placement="LeastResourceUsageWithWeight")) is not None
    assert rule.find(case(50, shedder="AvgShedder", placement="AvgShedder")) is None
    assert rule.find(case(50, shedder="ThresholdShedder")) is None


@pytest.mark.parametrize(
    ("release", "what"),
    [
        ("3.0.7", "runs the Simple load manager"),
        ("4.0.8", "runs the Simple load manager"),
        ("4.2.4", "no broker starts"),
    ],
)
@pytest.mark.parametrize("load_manager", ["modular", "simple"])
def test_avg_shedder_that_places_for_another_shedder_keeps_the_modular_manager_from_starting(
    release: str, what: str, load_manager: str
) -> None:
    of = {"pulsar_version": release, "load_manager": load_manager, "placement": "AvgShedder"}
    assert what in violation(strategies.modular_manager_starts, case(50, shedder="ThresholdShedder", **of)).sentence


def test_a_strategy_of_the_extensible_manager_keeps_the_modular_one_from_starting() -> None:
    shedder = {"loadBalancerLoadSheddingStrategy": EXTENSIONS + "scheduler.TransferShedder"}
    placement = {"loadBalancerLoadPlacementStrategy": EXTENSIONS + "strategy.LeastResourceUsageWithWeight"}
    rule = strategies.modular_manager_starts
    assert "TransferShedder is a strategy of the Extensible" in str(rule.find(case(50, settings=shedder)))
    assert "LeastResourceUsageWithWeight is a strategy of the Ext" in str(rule.find(case(50, settings=placement)))
    before = case(50, settings=shedder, pulsar_version="3.0.7")
    assert rule.find(before) is None
    assert before.own.shedder == "OverloadShedder"


def test_a_misspelt_strategy_keeps_the_modular_manager_from_starting() -> None:
    rule = strategies.modular_manager_starts
    shedder = case(50, shedder="TresholdShedder", pulsar_version="4.2.4")
    assert violation(rule, shedder).sentence == (
        f"{PACKAGE}TresholdShedder is none of the Modular load manager's strategies for that: no broker starts with it"
    )
    placement = violation(rule, case(50, placement="ThresholdShedder", pulsar_version="3.0.7"))
    assert f"{PACKAGE}ThresholdShedder is none of" in placement.sentence
    own = {"loadBalancerLoadSheddingStrategy": "com.acme.OurShedder"}
    assert rule.find(case(50, settings=own, pulsar_version="4.2.4")) is None


def test_before_4_0_overload_shedder_takes_the_place_of_a_misspelt_one() -> None:
    before = case(50, shedder="TresholdShedder", pulsar_version="3.3.6")
    assert strategies.modular_manager_starts.find(before) is None
    assert before.own.shedder == "OverloadShedder"


def test_a_dynamic_shedder_keeps_the_modular_manager_from_starting_again_beside_avg_shedder_as_placement() -> None:
    dynamic = {"loadBalancerLoadSheddingStrategy": PACKAGE + "ThresholdShedder"}
    of = {"shedder": "AvgShedder", "placement": "AvgShedder", "pulsar_version": "4.2.4"}
    assert strategies.modular_manager_starts.find(case(50, dynamic=dynamic, **of)) is not None
    assert strategies.modular_manager_starts.find(case(50, **of)) is None


@pytest.mark.parametrize("release", ["4.0.8", "5.0.1"])
def test_the_modular_manager_starts_with_avg_shedder_in_both_roles(release: str) -> None:
    pair = {"shedder": "AvgShedder", "placement": "AvgShedder"}
    assert strategies.modular_manager_starts.find(case(50, pulsar_version=release, **pair)) is None
    assert strategies.modular_manager_starts.find(case(50, pulsar_version=release)) is None


def test_before_3_0_8_avg_shedder_has_to_be_named_by_the_simple_managers_key_too() -> None:
    of = {"pulsar_version": "3.0.7", "shedder": "AvgShedder"}
    found = violation(strategies.modular_manager_starts, case(50, placement="AvgShedder", **of))
    assert "loadBalancerPlacementStrategy names the shedder" in found.sentence
    needed = violation(strategies.avg_shedder_places_too, case(50, placement="LeastLongTermMessageRate", **of))
    changed = case(50, settings=needed.change, **of)
    assert strategies.modular_manager_starts.find(changed) is None
    assert configuration.settings_are_read.find(changed) is None


def test_round_robin_ignores_load() -> None:
    rule = strategies.placement_looks_at_load
    assert rule.find(case(50, placement="RoundRobinBrokerSelector")) is not None
    assert rule.find(case(50, placement="LeastLongTermMessageRate")) is None


@pytest.mark.parametrize("shedder", ["ThresholdShedder", "OverloadShedder", "UniformLoadShedder", "AvgShedder"])
def test_what_replaces_round_robin_suits_the_shedder(shedder: str) -> None:
    of = case(50, shedder=shedder, placement="RoundRobinBrokerSelector")
    found = violation(strategies.placement_looks_at_load, of)
    texts = {"loadBalancerLoadSheddingStrategy": PACKAGE + shedder, **found.change}
    placed = case(50, settings=texts)
    assert strategies.shedder_and_placement_agree.find(placed) is None
    assert strategies.avg_shedder_places_too.find(placed) is None


def test_an_idle_broker_with_many_bundles_of_the_largest_namespace_gets_none() -> None:
    def cluster(**settings: str) -> object:
        busy = [BundleRow("t/a", "0x00000000_0x40000000", "b1:8080", traffic=(1, 1, 5e6, 5e6), topics=1)]
        idle = [
            BundleRow("t/a", "0x40000000_0x80000000", "b2:8080", traffic=(1, 1, 1, 1), topics=1),
            BundleRow("t/a", "0x80000000_0xffffffff", "b2:8080", traffic=(1, 1, 1, 1), topics=1),
        ]
        return strategies.placement_has_a_choice.find(case(80, 10, bundles=[*busy, *idle], settings=settings))

    found = cluster()
    assert "b2:8080 is the least busy broker and gets no bundle of t/a: it has 2, b1:8080 has 1" in str(found)
    assert cluster(loadBalancerDistributeBundlesEvenlyEnabled="false") is None


def test_an_idle_broker_needs_a_choice_only_about_bundles_of_others() -> None:
    own = BundleRow("t/own", "0x00000000_0xffffffff", "b2:8080", traffic=(1, 1, 9e6, 9e6), topics=1)
    other = BundleRow("t/a", "0x00000000_0xffffffff", "b1:8080", traffic=(1, 1, 1e6, 1e6), topics=1)
    assert strategies.placement_has_a_choice.find(case(80, 10, bundles=[own, other])) is None


def test_the_extensible_manager_ignores_a_placement_strategy() -> None:
    rule = strategies.load_manager_reads_strategies
    found = violation(rule, case(50, load_manager="extensible", placement="RoundRobinBrokerSelector"))
    assert "loadBalancerLoadPlacementStrategy=" in found.sentence
    assert rule.find(case(50, load_manager="extensible")) is None


@pytest.mark.parametrize("load_manager", ["simple", "extensible"])
@pytest.mark.parametrize("release", ["4.0.8", "5.0.1"])
def test_default_strategies_in_a_runtime_configuration_were_not_set(load_manager: str, release: str) -> None:
    rule, defaults = strategies.load_manager_reads_strategies, texts_of(resolve_settings(release).values)
    of = {"load_manager": load_manager, "pulsar_version": release}
    assert rule.find(case(50, settings=defaults, **of)) is None
    dynamic = {"loadBalancerLoadSheddingStrategy": defaults["loadBalancerLoadSheddingStrategy"]}
    assert rule.find(case(50, settings=defaults, dynamic=dynamic, **of)) is not None


def test_from_5_0_1_the_modular_manager_ignores_avg_shedder_as_placement_of_another_shedder() -> None:
    rule = strategies.load_manager_reads_strategies
    of = {"pulsar_version": "5.0.1", "placement": "AvgShedder"}
    found = violation(rule, case(50, shedder="ThresholdShedder", **of))
    assert found.sentence == "the Modular manager ignores loadBalancerLoadPlacementStrategy=AvgShedder"
    assert rule.find(case(50, shedder="AvgShedder", **of)) is None
    assert rule.find(case(50, shedder="ThresholdShedder", placement="AvgShedder")) is None


def test_a_dynamic_shedder_counts_after_a_restart_only_though_every_broker_reports_it() -> None:
    rule = strategies.shedder_is_in_force
    dynamic = {"loadBalancerLoadSheddingStrategy": PACKAGE + "AvgShedder"}
    found = violation(rule, case(50, shedder="AvgShedder", dynamic=dynamic))
    assert "AvgShedder is set dynamically: a leader that started before that still uses" in found.sentence
    assert rule.find(case(50, shedder="AvgShedder")) is None


def test_a_class_of_the_operators_is_named() -> None:
    rule = strategies.strategies_are_modelled
    assert violation(rule, case(50, shedder="MyShedder")).sentence == "not modelled: MyShedder"
    assert rule.find(case(50)) is None
