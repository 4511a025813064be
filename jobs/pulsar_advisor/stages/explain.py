"""`explain`: why a bundle, a broker, a namespace or the whole cluster of a snapshot is balanced or left alone."""

from __future__ import annotations

from pulsar_advisor.documents.explanation import ExplanationOfSnapshot
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.planning.plans.own_balancer import shedding_switched_off_by, would_pulsar_act
from pulsar_advisor.planning.questions.explain import explain
from pulsar_advisor.planning.questions.subject import Kind
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.storage.root import Snapshot
from pulsar_advisor.tables.judged import (
    caveats_of,
    fit_states,
    inputs_of,
    require_coverage,
    resolved_request,
    settings_of,
)
from pulsar_advisor.tables.settings_inputs import settings_inputs


def run(snapshot: Snapshot, request: Request, kind: Kind, name: str) -> ExplanationOfSnapshot:
    """The explanation; nothing is written. `request` names one shedder and one placement strategy.

    Raises `DataNotFit` without a passed validation of the same manifest, or if that excluded too much or a strategy
    can't judge the snapshot; `UsageError` if the snapshot has no such bundle, broker or namespace.
    """
    request = resolved_request(snapshot, request)
    inputs = inputs_of(snapshot)
    settings = settings_of(snapshot, request.what_if)
    covered = require_coverage(snapshot, request.view, settings.values)
    state, earlier = fit_states(snapshot, request.view, request.history, {}, settings.values)
    configuration = settings_inputs(snapshot)

    found = explain(request, kind, name, state, lambda what_if: resolve_settings(*configuration, what_if), earlier)
    # A switch that is off also decides where the shedder does nothing: with another setting it would, Pulsar wouldn't.
    has_moves = found.acts or bool(shedding_switched_off_by(settings.values))
    return ExplanationOfSnapshot(
        **vars(found),
        cluster=snapshot.root.cluster,
        snapshot=snapshot.id,
        manifest_sha256=inputs.manifest_sha256,
        view=state.view,
        what_if=request.what_if,
        pulsar=would_pulsar_act(settings, state.load_manager, found.shedder, has_moves, has_splits=False),
        caveats=caveats_of(settings, covered),
    )
