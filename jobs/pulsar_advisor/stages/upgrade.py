"""`upgrade`: what a Pulsar upgrade does to the cluster's own balancer, and which settings prevent that."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from upath import UPath

from pulsar_advisor.documents.upgrade import UpgradePreview
from pulsar_advisor.lint.judge import LintFinding, judge
from pulsar_advisor.lint.rule import Case
from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.configuration.resolved_settings import ResolvedSettings
from pulsar_advisor.model.configuration.settings import SETTING_KEYS
from pulsar_advisor.model.configuration.upgrade import SettingsUpgrade, settings_upgrade
from pulsar_advisor.recommendation.upgrade import UpgradeRequest, upgrade_preview
from pulsar_advisor.storage.files import write_file
from pulsar_advisor.storage.results import read_document, read_manifest
from pulsar_advisor.storage.root import RESULT, Snapshot
from pulsar_advisor.tables.judged import fit_states, inputs_of, require_coverage
from pulsar_advisor.tables.settings_inputs import settings_inputs_of_oldest

_WORD: Final = re.compile(r"\w+")


def run(snapshot: Snapshot, request: UpgradeRequest) -> UpgradePreview:
    """Simulate both releases and write `result.json`, which the next report of the snapshot shows.

    Raises `UsageError` if it isn't an upgrade, and `DataNotFit` without a passed validation of the same manifest or if
    that excluded too much.
    """
    inputs = inputs_of(snapshot)
    version, runtime, dynamic = settings_inputs_of_oldest(snapshot)
    upgrade = settings_upgrade(version, runtime, dynamic, request.to, read_manifest(snapshot).load_manager)
    own = upgrade.before.values
    require_coverage(snapshot, "judged", own)
    state, earlier = fit_states(snapshot, "judged", None, {}, own)
    document = upgrade_preview(
        state,
        upgrade,
        request,
        earlier=earlier,
        manifest_sha256=inputs.manifest_sha256,
        configuration_known=bool(runtime),
        findings=_new_findings(state, upgrade, request.to, dynamic),
    )
    write_file(_path(snapshot), document.content())
    return document


def _new_findings(state: ClusterState, upgrade: SettingsUpgrade, to: str, dynamic: Mapping[str, str]) -> list[str]:
    """What lint's rules find after the upgrade but not before it, even in other words."""

    def found(moment: ClusterState, settings: ResolvedSettings) -> tuple[LintFinding, ...]:
        return judge(Case(moment, settings, {"every broker": upgrade.in_files}, dynamic))

    before = {one.rule: _named(one) for one in found(state, upgrade.before)}
    return [
        f"{one.sentence}. Remedy: {one.remedy}"
        for one in found(replace(state, pulsar_version=to), upgrade.after)
        if one.rule not in before or not _named(one) <= before[one.rule]
    ]


def _named(finding: LintFinding) -> set[str]:
    """The settings that a finding names; some rules list those that violate them."""
    return set(_WORD.findall(finding.sentence)) & SETTING_KEYS


def preview_if_any(snapshot: Snapshot, manifest_sha256: str) -> UpgradePreview | None:
    """The last preview of a snapshot with this manifest; None without one."""
    path = _path(snapshot)
    preview = read_document(path, UpgradePreview) if path.exists() else None
    return preview if preview is not None and preview.manifest_sha256 == manifest_sha256 else None


def _path(snapshot: Snapshot) -> UPath:
    return snapshot.folder("upgrades") / RESULT
