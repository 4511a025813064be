"""The inputs of recommendations and simulations: the settings and states of a snapshot that was judged fit."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

from pulsar_advisor.lint.rule import Case
from pulsar_advisor.model.bounds import HISTORY
from pulsar_advisor.model.cluster.cluster_state import ClusterState, View, WantedView
from pulsar_advisor.model.configuration.resolved_settings import ResolvedSettings, resolve_settings
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.errors import DataNotFit, UsageError
from pulsar_advisor.model.load.next_publication import with_due_reports
from pulsar_advisor.model.load.recent_unloads import as_the_leader_remembers
from pulsar_advisor.model.plans.plan import PlanInputs
from pulsar_advisor.model.text.some_of import some_of
from pulsar_advisor.planning.advice.coverage import Coverage, coverage
from pulsar_advisor.planning.kinds.goal import resolved_brokers, resolved_goal
from pulsar_advisor.planning.plans.confidence import StepCheck
from pulsar_advisor.planning.proposals.configured import configured_of
from pulsar_advisor.planning.proposals.fitness import fit_part
from pulsar_advisor.planning.proposals.limits import check_namespaces
from pulsar_advisor.planning.questions.subject import Subject
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.planning.requests.what_if import assumptions, with_what_if
from pulsar_advisor.storage.files import read_file, sha256_hex
from pulsar_advisor.storage.results import read_manifest, read_validation, validation_if_any
from pulsar_advisor.storage.root import Snapshot
from pulsar_advisor.tables.earlier import comparable_before, within

if TYPE_CHECKING:
    from pulsar_advisor.tables.settings_inputs import SettingsInputs

_log = logging.getLogger(__name__)


def resolved_request(snapshot: Snapshot, request: Request) -> Request:
    """The request with the cluster's own strategies resolved to names, and the goal's brokers and bundles.

    Raises `UsageError` for a broker, bundle, namespace or tenant that the snapshot doesn't have.
    """
    manifest = read_manifest(snapshot)
    settings = settings_of(snapshot, request.what_if).values
    broker_ids, limits = manifest.identity.broker_ids, request.limits
    limits = replace(
        limits,
        exclude_brokers=resolved_brokers(limits.exclude_brokers, broker_ids),
        first_brokers=resolved_brokers(limits.first_brokers, broker_ids),
    )
    if named := (*limits.exclude_namespaces, *limits.first_namespaces):
        check_namespaces(named, _namespaces(snapshot))
    request = replace(request, limits=limits)
    if request.goal is None:
        return request.resolved(configured_of(manifest.load_manager, settings))
    goal = resolved_goal(request.goal, broker_ids, settings.overloaded_ratio)
    if goal.bundles:
        state = _read_once(snapshot, request.view, inputs_of(snapshot).validation_sha256)
        names = {Subject.of(state, "bundle", name).name for name in goal.bundles}
        goal = replace(goal, bundles=tuple(sorted(names)))
    return replace(request, goal=goal)


def _namespaces(snapshot: Snapshot) -> frozenset[str]:
    """The namespaces in the listing, of bundles and of topics: each source may lack some."""
    from pulsar_advisor.tables.read_table import read_table

    tables = (read_table(snapshot, table, columns=["namespace"]) for table in ("namespaces", "bundles", "topics"))
    return frozenset(name for rows in tables for name in rows["namespace"].unique().to_pylist())


def settings_of(snapshot: Snapshot, what_if: Mapping[str, str]) -> ResolvedSettings:
    """The settings of a snapshot with some of them replaced."""
    # Loads pyarrow, which refusing a request doesn't need.
    from pulsar_advisor.tables.settings_inputs import settings_inputs

    version, runtime, dynamic = settings_inputs(snapshot)
    settings = resolve_settings(version, runtime, dynamic, what_if)
    if not what_if:
        return settings
    own = resolve_settings(version, runtime, dynamic).values
    return replace(settings, notes=(*settings.notes, *assumptions(own, what_if)))


def state_of(
    snapshot: Snapshot, view: WantedView, what_if: Mapping[str, str], *, with_topics: bool = True
) -> ClusterState:
    """A view of a snapshot as brokers would have reported it, with what its leader remembers and will read next."""
    from pulsar_advisor.tables.state import cluster_state, has_fresh_view

    own = settings_of(snapshot, {}).values
    state = as_the_leader_remembers(cluster_state(snapshot, view, with_topics=with_topics), own)
    if (state.view, state.load_manager) == ("published", "modular") and has_fresh_view(snapshot):
        state = with_due_reports(state, cluster_state(snapshot, "fresh", with_topics=False), own)
    if not what_if:
        return state
    return with_what_if(state, own, settings_of(snapshot, what_if).values, what_if)


def require_coverage(snapshot: Snapshot, view: WantedView, settings: LoadBalancerSettings) -> Coverage:
    """How much of a validated snapshot could be judged. Raises `DataNotFit` if that's too little for an answer."""
    covered = coverage_of(snapshot, _read_once(snapshot, view, inputs_of(snapshot).validation_sha256), settings)
    if covered.why:
        raise DataNotFit(f"{covered.why} Look at `validate`, then capture again.")
    return covered


def coverage_of(snapshot: Snapshot, state: ClusterState, settings: LoadBalancerSettings) -> Coverage:
    """How much of the load in a snapshot's state, including unfit parts, could be judged."""
    return coverage(state, settings, published_beside(snapshot, state), set_aside_by_checks(snapshot))


def caveats_of(settings: ResolvedSettings, covered: Coverage) -> tuple[str, ...]:
    """What a reader has to know before any answer about a snapshot: what its settings assume, and what was left out."""
    return (*settings.caveats, *settings.notes, *filter(None, (covered.shortfall,)))


def log_caveats(settings: ResolvedSettings, covered: Coverage) -> None:
    """Log what a reader has to know before an answer whose document has no place for it."""
    for caveat in caveats_of(settings, covered):
        _log.warning("%s", caveat)


def warn_of_caveats(snapshot: Snapshot, view: WantedView = "judged") -> None:
    """The same for a validated snapshot. Raises as `require_coverage`."""
    settings = settings_of(snapshot, {})
    log_caveats(settings, require_coverage(snapshot, view, settings.values))


def published_beside(snapshot: Snapshot, state: ClusterState) -> ClusterState | None:
    """The leader's view, if `state` is another one with a broker that validation set aside, and it was captured."""
    from pulsar_advisor.tables.state import cluster_state

    if state.view == "published" or state.brokers.complete.all():
        return None
    try:
        return cluster_state(snapshot, "published")
    except DataNotFit:
        return None


def lint_case(snapshot: Snapshot, state: ClusterState, inputs: SettingsInputs) -> Case:
    """The case that lint's rules judge: the fit part of a state, and the settings from inputs read before."""
    from pulsar_advisor.tables.settings_inputs import runtime_settings

    _, _, dynamic = inputs
    return Case(fit_part(state), resolve_settings(*inputs), runtime_settings(snapshot), dynamic)


def set_aside_by_checks(snapshot: Snapshot) -> tuple[str, ...]:
    """The failed checks that set something aside; none before a validation."""
    validation = validation_if_any(snapshot)
    return validation.set_aside_by if validation else ()


def inputs_of(snapshot: Snapshot) -> PlanInputs:
    """The inputs that a plan is based on. Raises `DataNotFit` unless the same manifest was validated and passed."""
    manifest = sha256_hex(read_file(snapshot.result_file("capture"), "capture"))
    path = snapshot.result_file("validate")
    try:
        result = read_validation(snapshot)
    except UsageError as error:
        raise DataNotFit(f"snapshot {snapshot} was never validated: run `validate` first") from error
    if result.manifest_sha256 != manifest:
        raise DataNotFit(f"the validation of snapshot {snapshot} belongs to another manifest: run `validate` again")
    if not result.success:
        stopped_by = some_of([one.check for one in result.results if one.effect == "stop" and not one.success])
        raise DataNotFit(
            f"snapshot {snapshot} did not pass validation ({stopped_by}): see `validate`, then capture again"
        )
    return PlanInputs(manifest_sha256=manifest, validation_sha256=sha256_hex(read_file(path, "validate")))


def fit_states(
    snapshot: Snapshot,
    view: WantedView,
    history: int | None,
    what_if: Mapping[str, str],
    settings: LoadBalancerSettings,
) -> tuple[ClusterState, list[ClusterState]]:
    """The fit part of a view of a snapshot, and of the earlier snapshots that are comparable, oldest first."""
    state = judged_state(snapshot, view, what_if, settings, inputs_of(snapshot).validation_sha256)
    return state, earlier_states(snapshot, state.view, history, what_if, settings)


def judged_state(
    snapshot: Snapshot,
    view: WantedView,
    what_if: Mapping[str, str],
    settings: LoadBalancerSettings,
    validation_sha256: str,
) -> ClusterState:
    """The fit part of a snapshot under a what-if (already in `settings`), as that validation judged it.

    A process caches only the last one: a Spark Python worker runs one task after the other.
    """
    fit = _fit_once(snapshot, view, validation_sha256)
    if not what_if:
        return fit
    return with_what_if(fit, settings_of(snapshot, {}).values, settings, what_if)


@lru_cache(maxsize=1)
def _read_once(snapshot: Snapshot, view: WantedView, _validation_sha256: str) -> ClusterState:
    return state_of(snapshot, view, {})


@lru_cache(maxsize=1)
def _fit_once(snapshot: Snapshot, view: WantedView, validation_sha256: str) -> ClusterState:
    """One object for all tasks: a state caches what was derived from it."""
    return fit_part(_read_once(snapshot, view, validation_sha256))


def earlier_states(
    snapshot: Snapshot, view: View, history: int | None, what_if: Mapping[str, str], settings: LoadBalancerSettings
) -> list[ClusterState]:
    """The fit part of a view of earlier comparable snapshots, oldest first.

    As many as requested; by default, those within the grace period.
    """
    before = comparable_before(snapshot)
    grace_period = timedelta(minutes=settings.load_balancer_shedding_grace_period_minutes)
    wanted = within(grace_period, snapshot, before) if history is None else islice(before, history)
    recent = list(islice(wanted, HISTORY.greatest))
    return states_at(reversed(recent), view, what_if)


def states_at(snapshots: Iterable[Snapshot], view: View, what_if: Mapping[str, str]) -> list[ClusterState]:
    """The fit part of a view of each of these snapshots, without topics: history needs only brokers and bundles."""
    return [fit_part(state_of(one, view, what_if, with_topics=False)) for one in snapshots]


def check_results(snapshot: Snapshot) -> tuple[StepCheck, ...]:
    """The validation's checks that concern steps."""
    return tuple(
        StepCheck(
            name=result.check,
            title=result.title,
            severity=result.severity,
            scope=result.scope,
            about=None if result.about is None else frozenset(result.about),
            success=result.success,
            failing=None if result.failing is None else frozenset(result.failing),
        )
        for result in read_validation(snapshot).results
    )
