"""What an upgrade does to a cluster's own balancer: the same cluster under both releases, with the same seeds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pulsar_advisor.documents.simulation import NotSimulated, SimulatedScore
from pulsar_advisor.documents.upgrade import Balancer, UpgradePreview
from pulsar_advisor.model.bounds import CYCLES, DEFAULT_CYCLES, SEED, SEEDS
from pulsar_advisor.model.cluster.cluster_state import ClusterState, LoadManagerKind
from pulsar_advisor.model.configuration.defaults import newer_than_known
from pulsar_advisor.model.configuration.releases import INTERNAL_LISTENER_SINCE, release_number
from pulsar_advisor.model.configuration.resolved_settings import ResolvedSettings
from pulsar_advisor.model.configuration.upgrade import SettingsUpgrade
from pulsar_advisor.model.errors import AdvisorError
from pulsar_advisor.model.text.some_of import count, some_of
from pulsar_advisor.planning.plans.own_balancer import shedding_switched_off_by
from pulsar_advisor.planning.requests.what_if import with_what_if
from pulsar_advisor.planning.situation import Situation
from pulsar_advisor.simulation.rolling_restart import rolling_restart
from pulsar_advisor.simulation.scores import cycle_scores, simulation_score
from pulsar_advisor.simulation.simulate import simulate

MOST_SEEDS: Final = 5
"""Seeds unless more are asked for. Placements draw at random: one draw says little about the next."""
_BUNDLES_SIMULATED: Final = 50_000
"""Bundles under all of them together, though at least one seed: 65,000 bundles take most of two minutes under each."""


@dataclass(frozen=True)
class UpgradeRequest:
    """To which release, and how it is simulated."""

    to: str
    seed: int = 0
    seeds: int | None = None
    """How many seeds, counted from `seed`; None for as many as the size of the cluster allows."""
    cycles: int = DEFAULT_CYCLES

    def __post_init__(self) -> None:
        """Refuse numbers out of bounds before anything is read."""
        CYCLES.check(self.cycles)
        seeds = MOST_SEEDS if self.seeds is None else self.seeds
        SEEDS.check(seeds)
        SEED.check(self.seed)
        SEED.check(self.seed + seeds - 1)

    def seeds_for(self, bundles: int) -> range:
        """The seeds for a cluster with this many bundles."""
        affordable = max(_BUNDLES_SIMULATED // max(bundles, 1), 1)
        return range(self.seed, self.seed + (self.seeds or min(MOST_SEEDS, affordable)))


def upgrade_preview(
    state: ClusterState,
    upgrade: SettingsUpgrade,
    request: UpgradeRequest,
    *,
    earlier: Sequence[ClusterState] = (),
    manifest_sha256: str = "",
    configuration_known: bool = True,
    findings: Sequence[str] = (),
) -> UpgradePreview:
    """The preview for the fit part of a snapshot; `earlier`: those before it, oldest first."""

    def situation_under(release: str, settings: ResolvedSettings) -> Situation:
        seen, *past = (_under(release, moment, upgrade, settings) for moment in (state, *earlier))
        return Situation.of_fit(seen, settings, past)

    def balancer(release: str, situation: Situation, restarts: bool = True) -> Balancer:
        return Balancer(
            release=release,
            shedder=situation.configured.shedder,
            placement=situation.configured.placement,
            scores=tuple(_scores(situation, request)),
            after_restart=tuple(_scores(situation, request, restarted_under=today)) if restarts else (),
            switched_off_by=shedding_switched_off_by(situation.settings.values),
        )

    seeds = request.seeds_for(len(state.bundles))
    before = str(state.pulsar_version)  # without one, no settings could be resolved
    today = situation_under(before, upgrade.before)
    return UpgradePreview(
        cluster=state.cluster,
        snapshot=state.snapshot,
        manifest_sha256=manifest_sha256,
        view=state.view,
        to=request.to,
        judged_as=_decides_as(upgrade.after),
        seed=request.seed,
        seeds=len(seeds),
        cycles=request.cycles,
        settings=upgrade.settings,
        configuration_known=configuration_known,
        pins=upgrade.pins,
        before=balancer(before, today),
        after=balancer(request.to, situation_under(request.to, upgrade.after)),
        pinned=balancer(request.to, situation_under(request.to, upgrade.pinned), False) if upgrade.pins else None,
        findings=tuple(findings),
        notes=(
            *_mixed_releases(state),
            *newer_than_known(request.to),
            *_without_listener(before, request.to, state.load_manager),
            *_not_distinguished(before, request.to, upgrade),
            *_unveiled(before, request.to, upgrade),
            *_fewer_seeds(request, len(seeds), len(state.bundles)),
            *upgrade.after.notes,
        ),
    )


def _mixed_releases(state: ClusterState) -> Iterator[str]:
    releases = sorted({release for release in state.brokers.versions if release})
    if len(releases) > 1:
        yield (
            f"The brokers run {' and '.join(releases)}, so an upgrade is under way: here all run "
            f"{state.pulsar_version} today, configured like the brokers that do."
        )


def _without_listener(before: str, to: str, load_manager: LoadManagerKind) -> Iterator[str]:
    if not release_number(before) < INTERNAL_LISTENER_SINCE <= release_number(to):
        return
    otherwise = (
        "stop within two minutes, though their health check says ok"
        if load_manager == "extensible"
        else "can't load topics of a namespace whose topic policies are on it"
    )
    yield (
        "Before you upgrade the first broker, restart each one with internalListenerName=internal and, with its own "
        "addresses, advertisedListeners=internal:pulsar://HOST:6650,internal:http://HOST:8080, unless it has that "
        f"listener. Brokers of {to} look topics up by it: where one of {before} lacks it, upgraded ones {otherwise}."
    )


def _fewer_seeds(request: UpgradeRequest, seeds: int, bundles: int) -> Iterator[str]:
    if request.seeds is None and seeds < MOST_SEEDS:
        yield f"Simulated with {count(seeds, 'seed')} in place of {MOST_SEEDS}, as the cluster has {bundles:,} bundles."


def _decides_as(settings: ResolvedSettings) -> str:
    """The release whose decisions are modelled."""
    return ".".join(map(str, settings.values.behaviour))


def _not_distinguished(before: str, to: str, upgrade: SettingsUpgrade) -> Iterator[str]:
    if _decides_as(upgrade.before) == (judged_as := _decides_as(upgrade.after)):
        yield f"Pulsar {before} and {to} are both judged as {judged_as}, so no difference can show."


def _unveiled(before: str, to: str, upgrade: SettingsUpgrade) -> Iterator[str]:
    if keys := [one.key for one in upgrade.unveiled]:
        yield (
            f"Dynamic values that {to} reads and {before} ignores: {some_of(keys)}. No line in a file overrides them: "
            "to keep today's values, delete them before the upgrade."
        )


def _under(release: str, state: ClusterState, upgrade: SettingsUpgrade, settings: ResolvedSettings) -> ClusterState:
    """What brokers of a release, all upgraded, would have reported with these settings."""
    if settings is upgrade.before:
        return state
    brokers = replace(state.brokers, versions=(release,) * len(state.brokers))
    state = replace(state, pulsar_version=release, brokers=brokers)
    changed = [one.key for one in upgrade.settings if one.changes] if settings is upgrade.after else ()
    return with_what_if(state, upgrade.before.values, settings.values, changed)


def _scores(
    situation: Situation, request: UpgradeRequest, *, restarted_under: Situation | None = None
) -> Iterator[SimulatedScore | NotSimulated]:
    """How a cluster with its own balancer ends, by seed: from the snapshot on, or once its brokers were restarted.

    In the second case the leader is one of `restarted_under` until its own restart, the last of all.
    """
    shedder, placement = own = situation.configured
    for seed in request.seeds_for(len(situation.fit.bundles)):
        try:
            after = None
            if restarted_under is not None:
                after = rolling_restart(placement, situation, seed=seed, before=restarted_under)
            found = simulate(*own, situation, cycles=request.cycles, seed=seed, after=after, both_ends=True)
        except AdvisorError as error:
            yield NotSimulated(shedder=shedder, placement=placement, what_if="", seed=seed, error=str(error))
            continue
        score = simulation_score(found, cycle_scores(found))
        yield SimulatedScore(**vars(score), shedder=shedder, placement=placement, what_if="", seed=seed)
