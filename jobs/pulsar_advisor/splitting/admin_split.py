"""What happens to chosen bundles when a Modular or Simple manager has them split through the admin API.

The request names no algorithm, so the broker's default one is used. If the range can't be cut, the bundle is gone, the
algorithm refuses, or a boundary is not strictly inside, the attempt is skipped or fails, and the next bundle is tried.
A split without any boundary succeeds and changes nothing (2.11 and later). Source: Pulsar
`ModularLoadManagerImpl.checkNamespaceBundleSplit`, `NamespaceService.splitAndOwnBundle`.
"""

from __future__ import annotations

from collections.abc import Iterable

from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.errors import DataNotFit, UsageError
from pulsar_advisor.model.strategy.decision import Split
from pulsar_advisor.splitting.boundaries import can_split
from pulsar_advisor.splitting.cluster_bundles import automatic_boundaries
from pulsar_advisor.splitting.limits import BundleFigures
from pulsar_advisor.splitting.registry import algorithm_in_force
from pulsar_advisor.splitting.verdicts import SplitOutcome, Verdicts


def admin_splits(
    state: ClusterState,
    settings: LoadBalancerSettings,
    figures: BundleFigures,
    verdicts: Verdicts,
    chosen: Iterable[int],
) -> tuple[Split, ...]:
    """The splits of the chosen rows, in that order; corrects the answer about a row whose split can't succeed.

    A split for which the algorithm finds nothing to do has no boundaries. A bundle is skipped if the algorithm needs
    its topics and the list of them is incomplete.
    """
    splits = []
    algorithm = algorithm_in_force(settings).name
    near_tie = verdicts.outcomes(figures).near_tie()
    for row in chosen:
        bundle = int(figures.index[row])
        lower, upper = int(figures.lower[row]), int(figures.upper[row])
        if not can_split(lower, upper):
            verdicts.record(row, SplitOutcome.NARROW_RANGE, upper - lower, 1)
            continue
        if not state.bundles.in_boundaries[bundle]:
            verdicts.record(row, SplitOutcome.NOT_IN_BOUNDARIES)
            continue
        try:
            boundaries = automatic_boundaries(state, settings, bundle) or ()
        except UsageError:
            verdicts.record(row, SplitOutcome.ALGORITHM_FAILS)
            continue
        except DataNotFit:
            verdicts.record(row, SplitOutcome.TOPICS_UNKNOWN)
            continue
        # A boundary that equals a bound or another boundary makes an empty child, which Pulsar refuses.
        cuts = (lower, *boundaries, upper)
        misplaced = [above for below, above in zip(cuts, boundaries, strict=False) if not below < above < upper]
        if misplaced:
            verdicts.record(row, SplitOutcome.BOUNDARY_OUTSIDE, misplaced[0])
            continue
        reason = verdicts.outcomes(figures).explain(row)
        splits.append(Split(bundle, algorithm, boundaries, reason, bool(near_tie[row])))
    return tuple(splits)
