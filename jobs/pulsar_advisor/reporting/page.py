"""The report of one recommendation as plain data: what every renderer shows, assembled once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import pyarrow as pa

from pulsar_advisor.documents.recommendation import Recommendation
from pulsar_advisor.documents.upgrade import UpgradePreview
from pulsar_advisor.documents.validation import Validation
from pulsar_advisor.lint.judge import LintFinding, proposals
from pulsar_advisor.model.cluster.cluster_state import ClusterState, throughput_bytes_per_s
from pulsar_advisor.model.errors import StorageError
from pulsar_advisor.model.plans.plan import Plan, PlannedSetting
from pulsar_advisor.model.plans.sealed import digest_of
from pulsar_advisor.planning.advice.findings import Finding
from pulsar_advisor.planning.proposals.fitness import Refusal
from pulsar_advisor.reporting.answers import Answers, group_answers
from pulsar_advisor.reporting.brokers import (
    BrokerTable,
    HotBroker,
    broker_rows,
    broker_table,
    hot_brokers,
    thresholds_of,
)
from pulsar_advisor.reporting.combinations import CombinationRow, combination_rows, own_combination
from pulsar_advisor.reporting.disturbance import Disturbance, TakesS, Tenant, disturbance_of, tenants_of
from pulsar_advisor.reporting.figures import moment
from pulsar_advisor.reporting.futures import effect_sentence
from pulsar_advisor.reporting.options import Options, options_of
from pulsar_advisor.reporting.provenance import Fact, provenance
from pulsar_advisor.reporting.steps import StepList, step_lists
from pulsar_advisor.reporting.trust import Trust, trust_of
from pulsar_advisor.reporting.upgrade import UpgradeSection, upgrade_section
from pulsar_advisor.reporting.verdict import Reader, Verdict, verdict_of
from pulsar_advisor.reporting.whats_next import WhatsNext, whats_next

_OVERRIDES: Final = ("what-if", "dynamic")


@dataclass(frozen=True)
class SettingRow:
    """A setting and the origin of its value; `overrides` marks what-if and dynamic values."""

    key: str
    value: str
    origin: str
    overrides: bool


@dataclass(frozen=True)
class ReportPage:
    """Everything in a report, with uncut lists; `reporting.cut` shortens them for readers."""

    SCHEMA: ClassVar = "pulsar-advisor/report/1"

    cluster: str
    cluster_name: str
    snapshot: str
    captured_at: str
    pulsar_version: str
    load_manager: str
    view: str
    verdict: Verdict
    findings: tuple[Finding, ...]
    brokers: BrokerTable
    hot: tuple[HotBroker, ...]
    disturbance: Disturbance | None
    """What carrying out the plan disturbs; None if there is nothing to carry out."""
    tenants: tuple[Tenant, ...]
    unloads: StepList
    splits: StepList
    topic_listing_complete: bool
    refusals: tuple[Refusal, ...]
    answers: Answers
    figures: tuple[Fact, ...]
    """Intermediate values of the shedder behind the verdict."""
    combinations: tuple[CombinationRow, ...]
    options: Options | None
    """What could be done, best first; None in recommendations of earlier releases."""
    next: WhatsNext | None
    """What a simulation says about the coming cycles; None in recommendations of earlier releases."""
    upgrade: UpgradeSection | None
    """What an upgrade of Pulsar would do to the cluster's own balancer; None unless `upgrade` was run."""
    trust: Trust
    drift: tuple[str, ...] | None
    """What changed since the last good snapshot, one sentence each; None if there is none to compare with."""
    lint: tuple[LintFinding, ...]
    """Settings that can't work on this cluster, hide an imbalance or change nothing."""
    lint_effects: Mapping[str, str]
    """Rule -> what the cluster's own balancer would do with and without the change that ends the violation, if that was
    simulated. A change that is no better than today isn't proposed."""
    settings: tuple[SettingRow, ...]
    provenance: tuple[Fact, ...]

    @property
    def is_unsolved(self) -> bool:
        """Whether no plan is advised though something is wrong: the goal is missed or, without one, a finding warns."""
        if self.verdict.kind != "nothing":
            return False
        is_of_goal = self.options is not None and not self.options.rows
        return bool(self.verdict.goal) if is_of_goal else any(one.severity == "warning" for one in self.findings)


def build_page(
    state: ClusterState,
    recommendation: Recommendation,
    plan: Plan | None,
    validation: Validation,
    outcomes: pa.Table,
    settings: Mapping[str, PlannedSetting],
    *,
    reader: Reader,
    tool_version: str,
    ledger_head: str | None,
    drift: tuple[str, ...] | None = None,
    lint: Sequence[LintFinding],
    takes_s: TakesS | None = None,
    upgrade: UpgradePreview | None = None,
) -> ReportPage:
    """The report of a recommendation (documents as in `docs/formats.md`).

    `plan` is that of `shown_combination`. The same inputs give the same page. Raises `StorageError` if the plan is not
    the advised one.
    """
    advised = _advised(recommendation.advice.digest, plan)
    configured = own_combination(state, settings)
    reference = advised or plan
    rows = broker_rows(state, reference)
    trust = trust_of(validation, recommendation)
    unloads, splits = step_lists(state, advised)
    judged = proposals(lint, recommendation.trials)
    return ReportPage(
        cluster=state.cluster,
        cluster_name=state.cluster_name,
        snapshot=state.snapshot,
        captured_at=moment(state.captured_at_ms),
        pulsar_version=state.pulsar_version or "of an unknown release",
        load_manager=state.load_manager,
        view=state.view,
        verdict=verdict_of(advised, reference, recommendation, trust, reader),
        findings=tuple(sorted(recommendation.findings, key=lambda finding: finding.severity != "warning")),
        brokers=broker_table(
            rows, reference, thresholds_of(reference, settings) if reference else (), is_advised=advised is not None
        ),
        hot=hot_brokers(state, rows, advised),
        disturbance=disturbance_of(state, advised, takes_s),
        tenants=tenants_of(state, advised),
        unloads=unloads,
        splits=splits,
        topic_listing_complete="topic_names" not in state.missing and not state.unlisted_namespaces,
        refusals=recommendation.refusals,
        answers=group_answers(
            outcomes,
            _load_of(state, rows),
            (reference.shedder, reference.placement) if reference else (),
            recommendation.combinations,
            [refusal.sentence for refusal in recommendation.refusals],
        ),
        figures=_figures(reference),
        combinations=combination_rows(recommendation.combinations, recommendation.advice.digest, configured),
        # Neither is stated about a cluster of which too little could be judged.
        options=None if trust.coverage.why and advised is None else options_of(recommendation, configured),
        next=None if trust.coverage.why else whats_next(recommendation.foresight),
        upgrade=None if upgrade is None else upgrade_section(upgrade),
        trust=trust,
        drift=drift,
        lint=tuple(one.finding for one in judged),
        lint_effects={one.rule: effect_sentence(one.effect) for one in judged if one.effect is not None},
        settings=_setting_rows(settings),
        provenance=provenance(state, recommendation, reference, advised, tool_version, ledger_head),
    )


def _figures(plan: Plan | None) -> tuple[Fact, ...]:
    if plan is None:
        return ()
    return tuple(Fact(name.replace("_", " "), _figure(value)) for name, value in plan.decision.figures.items())


def _figure(value: float | str | None) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return "not finite" if value is None else str(value)


def _advised(digest: str | None, plan: Plan | None) -> Plan | None:
    if digest is None:
        return None
    if plan is None or digest_of(plan) != digest:
        raise StorageError(
            f"the recommendation advises the plan with digest {digest}, which is not among its combinations: run "
            "`recommend` again"
        )
    return plan


def _load_of(state: ClusterState, rows: Iterable[Any]) -> dict[str, float]:
    """The rank of an example: a bundle's throughput (bytes/s), a broker's usage (ratio)."""
    flows = throughput_bytes_per_s(state.bundles.traffic).tolist()
    load = {state.bundle_name(i): flow for i, flow in enumerate(flows)}
    load.update({row.id: row.before_ratio or 0.0 for row in rows})
    return load


def _setting_rows(settings: Mapping[str, PlannedSetting]) -> tuple[SettingRow, ...]:
    """What-if values first, then dynamic ones, then those from the brokers' files, then defaults."""
    origins = (*_OVERRIDES, "runtime")

    def order(row: SettingRow) -> tuple[int, str]:
        return (origins.index(row.origin) if row.origin in origins else len(origins), row.key)

    rows = (SettingRow(key, item.value, item.origin, item.origin in _OVERRIDES) for key, item in settings.items())
    return tuple(sorted(rows, key=order))
