"""`lint`: judges the settings of a snapshot's cluster by the rules, and simulates the changes that they propose."""

from __future__ import annotations

import logging

from pulsar_advisor.lint.judge import FindingWithEffect, judge, proposals
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.planning.situation import Situation
from pulsar_advisor.simulation.trials import trials
from pulsar_advisor.storage.results import validation_if_any
from pulsar_advisor.storage.root import Snapshot
from pulsar_advisor.tables.judged import coverage_of, earlier_states, lint_case, log_caveats, state_of
from pulsar_advisor.tables.settings_inputs import settings_inputs

_log = logging.getLogger(__name__)


def run(snapshot: Snapshot) -> tuple[tuple[FindingWithEffect, ...], str]:
    """The rules that a normalized snapshot's cluster violates, warnings first, with the effects of proposed changes.

    The text says that too little of the cluster could be judged; otherwise it is empty.

    Rules see what validation found fit; before a validation, everything. A change is proposed if a simulation found it
    better than today, or if it wasn't simulated, for instance because too little could be judged. Raises `UsageError`
    if the snapshot wasn't normalized.
    """
    state, inputs = state_of(snapshot, "judged", {}), settings_inputs(snapshot)
    case = lint_case(snapshot, state, inputs)
    settings = case.settings
    findings = judge(case)
    covered = coverage_of(snapshot, state, settings)
    validation = validation_if_any(snapshot)
    if validation is None or not validation.success:
        why = "did not pass validation" if validation else "was never validated"
        _log.warning("%s %s: its figures may be wrong", snapshot, why)
    log_caveats(case.resolved, covered)
    changes = [] if covered.why else [finding.change for finding in findings if finding.change]
    tried = trials(
        changes,
        Situation.of(state, case.resolved, earlier_states(snapshot, state.view, None, {}, settings) if changes else ()),
        lambda what_if: resolve_settings(*inputs, what_if),
    )
    return proposals(findings, tried), covered.why
