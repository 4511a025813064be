"""What the cluster's own balancer is allowed to do: the one fact behind every sentence about what Pulsar itself does.

The leader of every load manager sheds only while both `loadBalancerEnabled` and `loadBalancerSheddingEnabled` are true
(`LoadSheddingTask`, `UnloadScheduler`, 2.11.0 to 5.0.1). Bundles are split only while both `loadBalancerEnabled` and
`loadBalancerAutoBundleSplitEnabled` are true: without the first, Modular and Simple brokers write no reports, after
which they would look for bundles to split (`PulsarService.startLoadManagementService`), and the scheduler of the
Extensible manager does nothing (`SplitScheduler`). The switches never suppress a recommendation.
"""

from __future__ import annotations

from typing import Final

from pulsar_advisor.model.configuration.kinds import LoadManagerKind
from pulsar_advisor.model.configuration.resolved_settings import ResolvedSettings
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.planning.kinds.registry import KINDS
from pulsar_advisor.planning.proposals.configured import configured_of

_ENABLED = "loadBalancerEnabled"
SHEDDING_SWITCH: Final = "loadBalancerSheddingEnabled"
_SPLITTING = "loadBalancerAutoBundleSplitEnabled"

ACTS: Final = "Pulsar itself would act"
ACTS_ALIKE: Final = f"{ACTS} the same way"
DOES_NOT_ACT: Final = "Pulsar itself would not act"
DOES_NOTHING_EITHER: Final = "Pulsar itself would do nothing either"


def shedding_switched_off_by(values: LoadBalancerSettings) -> tuple[str, ...]:
    """The keys of the switches that are false and keep Pulsar from unloading by itself."""
    return tuple(key for key in (_ENABLED, SHEDDING_SWITCH) if not values.value(key))


def splitting_switched_off_by(values: LoadBalancerSettings) -> tuple[str, ...]:
    """The keys of the switches that are false and keep Pulsar from splitting by itself."""
    return tuple(key for key in (_ENABLED, _SPLITTING) if not values.value(key))


def would_pulsar_act(
    settings: ResolvedSettings, load_manager: LoadManagerKind, shedder: str, has_moves: bool, has_splits: bool
) -> str:
    """Whether Pulsar itself would do what the plan of a shedder or a plan kind does, and why not, without full stop."""
    if shedder in {kind.name for kind in KINDS}:
        return f"{DOES_NOT_ACT}: none of its strategies has this goal"
    own = configured_of(load_manager, settings.values).shedder
    off = dict.fromkeys(
        (
            *(shedding_switched_off_by(settings.values) if has_moves else ()),
            *(splitting_switched_off_by(settings.values) if has_splits else ()),
        )
    )
    if off:
        return f"{DOES_NOT_ACT}: {', '.join(f'{key}=false' for key in off)}"
    if has_moves and own != shedder:
        return f"Pulsar itself is configured with {own}, not {shedder}"
    return ACTS_ALIKE if has_moves or has_splits else DOES_NOTHING_EITHER
