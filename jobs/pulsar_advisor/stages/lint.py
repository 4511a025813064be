"""`lint`: judges the settings of a snapshot's cluster by the rules, and simulates the changes that they propose."""

from __future__ import annotations

from collections.abc import Sequence

from pulsar_advisor.lint.judge import LintFinding, judge
from pulsar_advisor.lint.rule import Case
from pulsar_advisor.model.cluster_state import ClusterState
from pulsar_advisor.model.kinds import WantedView
from pulsar_advisor.model.settings import resolve_settings
from pulsar_advisor.planning.fitness import fit_part
from pulsar_advisor.simulation.trials import Trial, trials
from pulsar_advisor.storage.root import Root
from pulsar_advisor.tables.judged import coverage_of
from pulsar_advisor.tables.state import SettingsInputs, cluster_state, runtime_settings, settings_inputs


def run(root: Root, snapshot: str, view: WantedView = "judged") -> tuple[LintFinding, ...]:
    """The rules that the cluster of a normalized snapshot violates, warnings first.

    Rules see what validation found fit; before a validation, everything. Raises `UsageError` if the snapshot wasn't
    normalized or has no such view.
    """
    return findings_on(cluster_state(root, snapshot, view), settings_inputs(root, snapshot), root)


def too_little(root: Root, snapshot: str, view: WantedView = "judged") -> str:
    """What has to be said before the findings if too little of the cluster could be judged; otherwise empty."""
    settings = resolve_settings(*settings_inputs(root, snapshot)).values
    return coverage_of(root, cluster_state(root, snapshot, view), settings).why


def findings_on(state: ClusterState, inputs: SettingsInputs, root: Root) -> tuple[LintFinding, ...]:
    """The rules violated by a cluster whose state and inputs of settings were read already."""
    _, _, dynamic = inputs
    return judge(Case(fit_part(state), resolve_settings(*inputs), runtime_settings(root, state.snapshot), dynamic))


def effects(
    root: Root, snapshot: str, findings: Sequence[LintFinding], view: WantedView = "judged"
) -> tuple[Trial, ...]:
    """What the cluster's own balancer would do with each of the proposed changes, the first few different ones."""
    inputs = settings_inputs(root, snapshot)
    return trials(
        [finding.change for finding in findings],
        fit_part(cluster_state(root, snapshot, view)),
        lambda what_if: resolve_settings(*inputs, what_if).values,
    )
