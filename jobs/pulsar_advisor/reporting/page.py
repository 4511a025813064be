"""The report of one recommendation as plain data: what every renderer shows, assembled once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

import pyarrow as pa

from pulsar_advisor.documents.recommendation import Combination, Recommendation
from pulsar_advisor.documents.upgrade import UpgradePreview
from pulsar_advisor.documents.validation import Validation
from pulsar_advisor.lint.judge import LintFinding, proposals
from pulsar_advisor.model.cluster.cluster_state import ClusterState, throughput_bytes_per_s
from pulsar_advisor.model.configuration.defaults import behaviour_of
from pulsar_advisor.model.errors import StorageError
from pulsar_advisor.model.plans.plan import Plan, PlannedSetting, digest_of
from pulsar_advisor.model.strategy.entry import combination
from pulsar_advisor.planning.advice.findings import Finding
from pulsar_advisor.planning.proposals.configured import Configured, configured_strategies
from pulsar_advisor.planning.proposals.fitness import Refusal
from pulsar_advisor.planning.proposals.limits import Limits
from pulsar_advisor.reporting.answers import Answers, group_answers
from pulsar_advisor.reporting.brokers import (
    BrokerTable,
    HotBroker,
    broker_rows,
    broker_table,
    hot_brokers,
    thresholds_of,
)
from pulsar_advisor.reporting.disturbance import Disturbance, TakesS, Tenant, disturbance_of, tenants_of
from pulsar_advisor.reporting.figures import count, moment, sentence
from pulsar_advisor.reporting.futures import effect_sentence
from pulsar_advisor.reporting.options import Options, options_of
from pulsar_advisor.reporting.steps import StepList, step_lists
from pulsar_advisor.reporting.trust import Trust, trust_of
from pulsar_advisor.reporting.upgrade import UpgradeSection, upgrade_section
from pulsar_advisor.reporting.verdict import Verdict, verdict_of
from pulsar_advisor.reporting.whats_next import WhatsNext, whats_next

_SHEDDER_KEY: Final = "loadBalancerLoadSheddingStrategy"
_PLACEMENT_KEY: Final = "loadBalancerLoadPlacementStrategy"
_OVERRIDES: Final = ("what-if", "dynamic")


@dataclass(frozen=True)
class CombinationRow:
    """One shedder with one placement strategy: the effect and cost of its plan. Usage is a ratio."""

    shedder: str
    placement: str
    plan: str | None
    steps: int
    unloads: int
    splits: int
    not_executable: int
    maximum_before: float | None
    maximum_after: float | None
    standard_deviation_before: float | None
    standard_deviation_after: float | None
    moved_throughput_bytes_per_s: float | None
    acts_in_cycle: int | None
    note: str
    """Why there are no steps, or no plan."""
    dominated_by: str | None
    """A better-ranked combination with the same effect, up to noise, at no higher cost: `shedder with placement`."""
    alike: tuple[str, ...]
    """Other combinations with the same steps or the same reason for none, as `shedder with placement`."""
    advised: bool
    configured: bool
    """Whether the cluster is configured for this combination."""

    @property
    def remark(self) -> str:
        """Further remarks about it; may be empty."""
        left_out = count(self.not_executable, "more step" if self.steps else "step") + " can't be carried out"
        same = f"The same {'steps' if self.steps else 'answer'}: {'; '.join(self.alike)}"
        parts = (
            self.note,
            left_out * bool(self.not_executable),
            f"Dominated by {self.dominated_by}" * bool(self.dominated_by),
            same * bool(self.alike),
        )
        return " ".join(map(sentence, filter(None, parts)))


@dataclass(frozen=True)
class SettingRow:
    """A setting and the origin of its value; `overrides` marks what-if and dynamic values."""

    key: str
    value: str
    origin: str
    overrides: bool


@dataclass(frozen=True)
class Fact:
    """A labelled provenance value."""

    label: str
    value: str


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


def build_page(
    state: ClusterState,
    recommendation: Recommendation,
    plan: Plan | None,
    validation: Validation,
    outcomes: pa.Table,
    settings: Mapping[str, PlannedSetting],
    *,
    root_url: str,
    tool_version: str,
    ledger_head: str | None,
    why_not_again: str,
    drift: tuple[str, ...] | None = None,
    lint: Sequence[LintFinding],
    takes_s: TakesS | None = None,
    upgrade: UpgradePreview | None = None,
    dag: str | None,
) -> ReportPage:
    """The report of a recommendation (documents as in `docs/formats.md`).

    `why_not_again` says why its plan can't be approved again. `plan` is that of `shown_combination`;
    `root_url` is the root for the commands; `dag` is what readers in Airflow use instead. The same inputs give the same
    page. Raises `StorageError` if the plan is not the advised one.
    """
    advised = _advised(recommendation.advice.digest, plan)
    configured = _configured(state, settings)
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
        verdict=verdict_of(advised, reference, recommendation, trust, root_url, dag, why_not_again),
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
        combinations=_combination_rows(recommendation.combinations, recommendation.advice.digest, configured),
        # Neither is stated about a cluster of which too little could be judged.
        options=None if trust.coverage.why and advised is None else options_of(recommendation, configured),
        next=None if trust.coverage.why else whats_next(recommendation.foresight),
        upgrade=None if upgrade is None else upgrade_section(upgrade),
        trust=trust,
        drift=drift,
        lint=tuple(one.finding for one in judged),
        lint_effects={one.rule: effect_sentence(one.effect) for one in judged if one.effect is not None},
        settings=_setting_rows(settings),
        provenance=_provenance(state, recommendation, reference, advised, tool_version, ledger_head),
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


def shown_combination(
    recommendation: Recommendation, state: ClusterState, settings: Mapping[str, PlannedSetting]
) -> Combination | None:
    """The combination whose plan a report shows; None if there is no plan.

    The advised one; without advice, the one that the cluster is configured for, or else the first.
    """
    if recommendation.advice.digest is not None:
        return recommendation.advised
    planned = [row for row in recommendation.combinations if row.plan is not None]
    configured = _configured(state, settings)

    def foreign(row: Combination) -> tuple[bool, bool]:
        return (row.shedder, row.placement) != configured, row.shedder != configured.shedder

    return min(planned, key=foreign, default=None)


def _configured(state: ClusterState, settings: Mapping[str, PlannedSetting]) -> Configured:
    shedder, placement = (settings[key].value if key in settings else "" for key in (_SHEDDER_KEY, _PLACEMENT_KEY))
    return configured_strategies(state.load_manager, shedder, placement, behaviour_of(state.deciding_release))


def _load_of(state: ClusterState, rows: Iterable[Any]) -> dict[str, float]:
    """The rank of an example: a bundle's throughput (bytes/s), a broker's usage (ratio)."""
    flows = throughput_bytes_per_s(state.bundles.traffic).tolist()
    load = {state.bundle_name(i): flow for i, flow in enumerate(flows)}
    load.update({row.id: row.before_ratio or 0.0 for row in rows})
    return load


def _combination_rows(
    combinations: Sequence[Combination], advised: str | None, configured: Configured
) -> tuple[CombinationRow, ...]:
    """Rows with the advice first, then by predicted maximum, then by cost; those without steps or a plan last.

    Identical combinations share a row: that of the advised or configured one, else of the first by name.
    """
    steps = {(row.shedder, row.placement): row.steps_sha256 for row in combinations}
    rows = [
        CombinationRow(
            shedder=row.shedder,
            placement=row.placement,
            plan=row.plan,
            steps=row.steps,
            unloads=row.unloads,
            splits=row.splits,
            not_executable=row.not_executable,
            maximum_before=row.maximum_before,
            maximum_after=row.maximum_after,
            standard_deviation_before=row.standard_deviation_before,
            standard_deviation_after=row.standard_deviation_after,
            moved_throughput_bytes_per_s=row.moved_throughput_bytes_per_s,
            acts_in_cycle=row.acts_in_cycle,
            note=f"Could not be judged: {row.error}" if row.error else row.why_nothing or "",
            dominated_by=row.dominated_by,
            alike=(),
            advised=advised is not None and row.digest == advised,
            configured=(row.shedder, row.placement) == configured,
        )
        for row in combinations
    ]

    def order(row: CombinationRow) -> tuple[bool, bool, bool, float, float, str, str]:
        maximum = row.maximum_after if row.maximum_after is not None else float("inf")
        moved = row.moved_throughput_bytes_per_s or 0.0
        return (not row.advised, row.plan is None, not row.steps, maximum, moved, row.shedder, row.placement)

    def sameness(row: CombinationRow) -> tuple[object, ...]:
        done = steps[row.shedder, row.placement]
        if row.steps:
            return (done,) if done is not None else (row.shedder, row.placement)
        return (row.shedder, row.plan is None, row.note, row.not_executable)

    alike: dict[tuple[object, ...], list[CombinationRow]] = {}
    for row in sorted(rows, key=lambda row: (not row.configured, *order(row))):
        alike.setdefault(sameness(row), []).append(row)
    shown = []
    for group in alike.values():
        first = next((row for row in group if row.advised), group[0])
        others = (
            combination(row.shedder, row.placement) + " (configured)" * row.configured
            for row in group
            if row is not first
        )
        shown.append(replace(first, alike=tuple(sorted(others))))
    return tuple(sorted(shown, key=order))


def _setting_rows(settings: Mapping[str, PlannedSetting]) -> tuple[SettingRow, ...]:
    """What-if values first, then dynamic ones, then those from the brokers' files, then defaults."""
    origins = (*_OVERRIDES, "runtime")

    def order(row: SettingRow) -> tuple[int, str]:
        return (origins.index(row.origin) if row.origin in origins else len(origins), row.key)

    rows = (SettingRow(key, item.value, item.origin, item.origin in _OVERRIDES) for key, item in settings.items())
    return tuple(sorted(rows, key=order))


def _limits(plan: Plan) -> str:
    """The limits of a plan that differ from the defaults: `max unloads 1, exclude brokers broker-3:8080`."""
    usual = Limits().as_mapping()
    return ", ".join(
        f"{name.replace('_', ' ')} {' '.join(value) if isinstance(value, tuple) else value}"
        for name, value in plan.limits.items()
        if value not in (None, usual.get(name))
    )


def _provenance(
    state: ClusterState,
    recommendation: Recommendation,
    reference: Plan | None,
    advised: Plan | None,
    tool_version: str,
    ledger_head: str | None,
) -> tuple[Fact, ...]:
    versions = sorted(set(state.brokers.versions))
    facts = [
        Fact("Snapshot", state.snapshot),
        Fact("Captured at", moment(state.captured_at_ms)),
        Fact("Cluster", f"{state.cluster_name} (here named {state.cluster}), {count(len(state.brokers), 'broker')}"),
        Fact("Bundles and topics", f"{count(len(state.bundles), 'bundle')}, {count(len(state.topics), 'topic')}"),
        Fact("Pulsar", ", ".join(versions) or state.pulsar_version or "unknown"),
        Fact("Load manager", state.load_manager),
        Fact("View", state.view),
        Fact("Manifest SHA-256", recommendation.manifest_sha256),
    ]
    if reference:
        facts.append(Fact("Validation SHA-256", reference.inputs.validation_sha256))
        facts.append(Fact("Prediction model", reference.predicted.model))
        facts.append(Fact("Seed", str(reference.seed)))
        if limits := _limits(reference):
            facts.append(Fact("Limits", limits))
    if advised:
        facts.append(Fact("Advised plan", recommendation.advice.plan or ""))
        facts.append(Fact("Plan digest", recommendation.advice.digest or ""))
    if recommendation.proposer:
        facts.append(Fact("Proposed by", recommendation.proposer))
    if ledger_head:
        facts.append(Fact("Ledger head", ledger_head))
    facts.append(Fact("Pulsar Rebalance Advisor", tool_version))
    return tuple(facts)
