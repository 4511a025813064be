"""Whether shedder, placement strategy and load manager fit together."""

from __future__ import annotations

from typing import Final

import numpy as np

from pulsar_advisor.lint.rule import Case, Violation, info, warning
from pulsar_advisor.model.cluster.cluster_state import NO_ROW
from pulsar_advisor.model.configuration.class_names import PACKAGE, pairing_key, simple_name
from pulsar_advisor.model.configuration.resolved_settings import why_not_modular
from pulsar_advisor.placement.registry import PLACEMENTS
from pulsar_advisor.shedding.registry import SHEDDERS

_SHEDDER: Final = "loadBalancerLoadSheddingStrategy"
_PLACEMENT: Final = "loadBalancerLoadPlacementStrategy"

_BY_USAGE: Final = frozenset({"ThresholdShedder", "OverloadShedder", "AvgShedder", "LeastResourceUsageWithWeight"})
_BY_MESSAGES: Final = frozenset({"UniformLoadShedder", "LeastLongTermMessageRate"})


@warning(
    source="PIP-364; apache/pulsar#26609",
    remedy="choose a pair that judges brokers by the same figures, and compare both on this cluster first: `simulate`",
    load_managers=("modular",),
)
def shedder_and_placement_agree(case: Case) -> Violation | None:
    """The shedder and the placement strategy judge brokers by the same figures.

    A shedder that judges by usage and a placement strategy that judges by message rate can send a bundle from one hot
    broker to another one, again and again.
    """
    shedder, placement = case.own
    if shedder in _BY_USAGE and placement in _BY_MESSAGES:
        figures = "resource usage", "message rate"
    elif shedder in _BY_MESSAGES and placement in _BY_USAGE:
        figures = "messages or bytes", "resource usage"
    else:
        return None
    return Violation(f"{shedder} judges by {figures[0]}, {placement} by {figures[1]}", _placement_that_agrees(case))


def _placement_that_agrees(case: Case) -> dict[str, str]:
    """The settings with which the placement strategy judges by the same figures as the shedder."""
    if case.own.shedder == "AvgShedder":
        return _avg_shedder_places(case)
    by_messages = case.own.shedder in _BY_MESSAGES
    return {
        _PLACEMENT: f"{PACKAGE}impl.{'LeastLongTermMessageRate' if by_messages else 'LeastResourceUsageWithWeight'}"
    }


def _avg_shedder_places(case: Case) -> dict[str, str]:
    """The settings with which AvgShedder not only sheds, but places too."""
    return dict.fromkeys((_PLACEMENT, pairing_key(case.settings.behaviour)), f"{PACKAGE}impl.AvgShedder")


@warning(
    source="ModularLoadManagerImpl.initialize, LoadManager.create (3.0.7 to 5.0.1); apache/pulsar#23156",
    remedy="choose strategies that fit, or name the shedder's class in that key too, and restart the brokers",
    load_managers=("modular", "simple"),
)
def modular_manager_starts(case: Case) -> Violation | None:
    """Brokers run the Modular load manager if it is configured.

    Of Pulsar's classes it uses its own alone, and before 5.0.1 AvgShedder places for no other shedder: brokers up to
    4.0 log a warning and run the Simple manager, later ones don't start. Before 3.0.8 a key of the Simple manager has
    to name AvgShedder as well.
    """
    why = why_not_modular(case.settings)
    return None if why is None else Violation(why)


@warning(
    source="AvgShedder (4.0.8 to 5.0.1); Pulsar's documentation of AvgShedder",
    remedy="set both keys to AvgShedder and restart the brokers",
    shedder="AvgShedder",
)
def avg_shedder_places_too(case: Case) -> Violation | None:
    """AvgShedder is also the placement strategy.

    It chooses destinations while shedding and remembers them for the placement; another placement strategy ignores
    them, and the pairs it has formed don't even out.
    """
    if case.own.placement == "AvgShedder":
        return None
    return Violation(f"AvgShedder's destinations are lost: {case.own.placement} places", _avg_shedder_places(case))


@warning(
    source="UniformLoadShedder (2.11.0 to 5.0.1), AvgShedder (3.0.7 to 5.0.1); apache/pulsar#13915",
    remedy="set maxUnloadPercentage to 0.5 or less",
    load_managers=("modular",),
    brokers=2,
)
def brokers_do_not_change_places(case: Case) -> Violation | None:
    """UniformLoadShedder and AvgShedder move at most half of the difference between two brokers.

    More makes the busier one the less busy one, and the next cycles move load back.
    """
    moved = case.settings.max_unload_percentage
    if case.own.shedder not in ("UniformLoadShedder", "AvgShedder") or moved <= 0.5:
        return None
    return Violation(f"maxUnloadPercentage is {moved:g}", {"maxUnloadPercentage": "0.5"})


@warning(
    source="RoundRobinBrokerSelector (3.0.7 to 5.0.1)",
    remedy="choose a placement strategy that looks at the load",
    load_managers=("modular",),
)
def placement_looks_at_load(case: Case) -> Violation | None:
    """The placement strategy looks at the load of brokers.

    RoundRobinBrokerSelector doesn't: a bundle that was shed may go to the next hot broker.
    """
    if case.own.placement != "RoundRobinBrokerSelector":
        return None
    return Violation(f"RoundRobinBrokerSelector places what {case.own.shedder} sheds", _placement_that_agrees(case))


@info(
    source="ModularLoadManagerImpl.selectBroker; LoadManagerShared.removeMostServicingBrokersForNamespace",
    remedy="set loadBalancerDistributeBundlesEvenlyEnabled=false if load matters more than even numbers of bundles",
    load_managers=("modular",),
    brokers=2,
)
def placement_has_a_choice(case: Case) -> Violation | None:
    """The placement strategy may choose among the brokers by load.

    With loadBalancerDistributeBundlesEvenlyEnabled only the brokers with the fewest bundles of the namespace are left
    when the placement strategy is asked, however busy they are.
    """
    if not case.settings.load_balancer_distribute_bundles_evenly_enabled:
        return None
    idlest = int(case.usage.argmin())
    if case.usage.mean() - case.usage[idlest] < case.settings.load_balancer_broker_threshold_shedder_percentage / 100:
        return None
    bundles, names = case.state.bundles, case.state.namespaces.names
    elsewhere = np.where(bundles.owner == case.rows[idlest], 0.0, case.bundle_throughput)
    load = np.bincount(bundles.namespace, weights=elsewhere, minlength=len(names))
    if not load.any():
        return None
    namespace = int(load.argmax())
    owned = bundles.owner[(bundles.namespace == namespace) & (bundles.owner != NO_ROW)]
    count = np.bincount(owned, minlength=len(case.state.brokers))[case.rows]
    if count[idlest] == count.min():
        return None
    return Violation(
        f"{case.broker(idlest)} is the least busy broker and gets no bundle of {names[namespace]}: it has "
        f"{count[idlest]}, {case.broker(int(count.argmin()))} has {count.min()}",
        {"loadBalancerDistributeBundlesEvenlyEnabled": "false"},
    )


@info(
    source="ModularLoadManagerImpl.initialize, UnloadScheduler (2.11.0 to 5.0.1): read once, though marked dynamic; "
    "BrokerService.configValueChanged, getRuntimeConfiguration",
    remedy="set it in the brokers' files, restart them, and delete the dynamic value",
    load_managers=("modular", "extensible"),
)
def shedder_is_in_force(case: Case) -> Violation | None:
    """The shedder that brokers report is the one that they started with.

    Brokers accept a dynamic value at any time and report it at once, but choose the shedder only when they start.
    """
    if case.resolved.origins[_SHEDDER] != "dynamic":
        return None
    shedder = simple_name(case.settings.load_balancer_load_shedding_strategy)
    return Violation(f"{shedder} is set dynamically: a leader that started before that still uses its old shedder")


@info(
    source="UnloadScheduler.createNamespaceUnloadStrategy, ExtensibleLoadManagerImpl, SimpleLoadManagerImpl; "
    "ModularLoadManagerImpl.createLoadBalanceStrategies (5.0.1)",
    remedy="remove the keys, or set what fits together",
)
def load_manager_reads_strategies(case: Case) -> Violation | None:
    """The load manager reads the strategies that are set.

    The Simple manager reads neither key; the Extensible one replaces a shedder that it can't use with TransferShedder,
    the Modular one up to 3.3 with OverloadShedder. The Extensible one has one placement strategy. From 5.0.1 on, the
    Modular one places with LeastLongTermMessageRate if AvgShedder is to place for another shedder.
    """
    settings = case.settings
    wanted = {
        _SHEDDER: (settings.load_balancer_load_shedding_strategy, case.own.shedder),
        _PLACEMENT: (settings.load_balancer_load_placement_strategy, case.own.placement),
    }
    ignored = [
        f"{key}={simple_name(value)}"
        for key, (value, used) in wanted.items()
        if simple_name(value) != simple_name(used)
        # Under Modular a default is ignored only beside another shedder that was set.
        and (case.is_set(key) or case.state.load_manager == "modular")
        and case.resolved.origins[key] != "what-if"
    ]
    if not ignored:
        return None
    return Violation(f"the {case.state.load_manager.capitalize()} manager ignores {' and '.join(ignored)}")


@info(
    source="ModularLoadManagerImpl.createLoadSheddingStrategy, UnloadScheduler.createNamespaceUnloadStrategy",
    remedy="none: checks and advice use Pulsar's own strategies instead",
)
def strategies_are_modelled(case: Case) -> Violation | None:
    """The cluster's own strategies are known here.

    What a class of your own would do can't be computed.
    """
    known = {entry.name for entry in (*SHEDDERS, *PLACEMENTS)}
    unknown = [name for name in dict.fromkeys(case.own) if name not in known]
    return Violation(f"not modelled: {', '.join(unknown)}") if unknown else None
