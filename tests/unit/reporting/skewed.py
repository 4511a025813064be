"""A skewed cluster of four brokers with everything a report is made from, by the product's own planner.

`broker-1` runs at 91 % because of two bundles of `shop/orders`; the advice moves them away and splits a third.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

import documents
from pulsar_advisor.documents.recommendation import Advice, Combination, Recommendation
from pulsar_advisor.documents.validation import CheckResult, Validation
from pulsar_advisor.lint.judge import LintFinding
from pulsar_advisor.model.cluster.bundle_range import format_range
from pulsar_advisor.model.cluster.cluster_state import NO_ROW, ClusterState
from pulsar_advisor.model.cluster.inputs import Input
from pulsar_advisor.model.configuration.resolved_settings import ResolvedSettings, resolve_settings
from pulsar_advisor.model.plans.plan import Plan, PlanInputs, PlannedSetting
from pulsar_advisor.model.plans.sealed import digest_of, file_name
from pulsar_advisor.model.strategy.decision import Split
from pulsar_advisor.planning.advice.compare import Score, advise, no_score, score
from pulsar_advisor.planning.advice.coverage import Coverage
from pulsar_advisor.planning.advice.findings import Finding
from pulsar_advisor.planning.advice.headline import ByItself, advised_sentence, unadvised_sentence
from pulsar_advisor.planning.advice.options import ranked_options
from pulsar_advisor.planning.plans.build_plan import build_plan
from pulsar_advisor.planning.plans.confidence import StepCheck
from pulsar_advisor.planning.plans.planned_settings import planned_settings
from pulsar_advisor.planning.proposals.proposal import Move, Proposal
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.planning.situation import Situation
from pulsar_advisor.planning.usage.noise import DEFAULT_RATIO
from pulsar_advisor.reporting.combinations import shown_combination
from pulsar_advisor.reporting.page import ReportPage, build_page
from pulsar_advisor.reporting.verdict import Reader
from pulsar_advisor.tables.outcomes import SCHEMA
from states import QUARTERS, WHOLE, BrokerRow, BundleRow, cluster_state

DOMAIN = ".brokers.example.internal:8080"
BROKERS = tuple(f"pulsar-broker-{number}{DOMAIN}" for number in range(1, 5))
SETTING_KEYS = frozenset(
    {
        "loadBalancerEnabled",
        "loadBalancerSheddingEnabled",
        "loadBalancerAutoBundleSplitEnabled",
        "loadBalancerLoadSheddingStrategy",
        "loadBalancerLoadPlacementStrategy",
        "loadBalancerBrokerOverloadedThresholdPercentage",
        "loadBalancerBrokerThresholdShedderPercentage",
        "loadBalancerBundleUnloadMinThroughputThreshold",
        "loadBalancerHistoryResourcePercentage",
        "loadBalancerNamespaceBundleMaxMsgRate",
        "loadBalancerSheddingGracePeriodMinutes",
        "defaultNamespaceBundleSplitAlgorithm",
    }
)
_MEGABYTE = 1e6


def skewed_settings() -> ResolvedSettings:
    return resolve_settings(
        "4.0.8",
        runtime={
            "loadBalancerSheddingEnabled": "false",
            "loadBalancerLoadSheddingStrategy": "org.apache.pulsar.broker.loadbalance.impl.ThresholdShedder",
        },
        dynamic={"loadBalancerNamespaceBundleMaxMsgRate": "12000"},
        what_if={"loadBalancerBrokerThresholdShedderPercentage": "15"},
    )


def skewed_state() -> ClusterState:
    """Four brokers, 3 namespaces of 4 bundles each, 60 topics whose traffic adds up to their bundles'."""
    owners = {
        "shop/orders": (BROKERS[0], BROKERS[0], BROKERS[0], BROKERS[1]),
        "shop/payments": (BROKERS[1], BROKERS[2], BROKERS[3], BROKERS[0]),
        "public/default": (BROKERS[2], BROKERS[3], None, BROKERS[1]),
    }
    topics = [f"persistent://{namespace}/events-partition-{i}" for namespace in owners for i in range(20)]
    empty = [
        BundleRow(namespace, text, owner, topics=1)
        for namespace, row in owners.items()
        for text, owner in zip(QUARTERS, row, strict=True)
    ]
    state = cluster_state([BrokerRow(broker) for broker in BROKERS], empty, topics=topics)
    return with_traffic(state, {"shop/orders": 6.0, "shop/payments": 1.5, "public/default": 1.0})


def with_traffic(state: ClusterState, weight_of_namespace: Mapping[str, float]) -> ClusterState:
    """Traffic on every topic (by weight of its namespace), summed up to bundles and brokers; usage follows traffic."""
    random = np.random.default_rng(7)
    weights = np.array([weight_of_namespace.get(name, 1.0) for name in state.namespaces.names])
    size = weights[state.topics.namespace] * random.lognormal(0.0, 0.7, len(state.topics))
    topic_traffic = size[:, None] * np.array([200.0, 400.0, 0.4 * _MEGABYTE, 0.8 * _MEGABYTE])
    bundle_traffic = np.zeros((len(state.bundles), 4))
    np.add.at(bundle_traffic, state.topics.bundle, topic_traffic)
    owned = state.bundles.owner != NO_ROW
    bundle_traffic[~owned] = 0.0
    loaded = (state.topics.bundle != NO_ROW) & owned[state.topics.bundle]
    topics_of_bundle = np.bincount(state.topics.bundle[loaded], minlength=len(state.bundles))
    broker_traffic = np.zeros((len(state.brokers), 4))
    np.add.at(broker_traffic, state.bundles.owner[owned], bundle_traffic[owned])
    busiest = broker_traffic[:, :2].sum(axis=1).max()
    usage = state.brokers.usage.copy()
    usage[:, 0] = 100 * (0.12 + 0.79 * broker_traffic[:, :2].sum(axis=1) / busiest)
    usage[:, 2] = 18.0
    usage[:, 3:] = 55 * broker_traffic[:, 2:] / broker_traffic[:, 2:].max()
    return replace(
        state,
        brokers=replace(state.brokers, traffic=broker_traffic, usage=usage),
        bundles=replace(state.bundles, traffic=bundle_traffic, topics=topics_of_bundle),
        topics=replace(state.topics, traffic=np.where(loaded[:, None], topic_traffic, 0.0), loaded=loaded),
    )


def bundle_row(state: ClusterState, name: str) -> int:
    return next(i for i in range(len(state.bundles)) if state.bundle_name(i) == name)


def make_plan(
    state: ClusterState,
    settings: ResolvedSettings,
    *,
    moves: Sequence[Move] = (),
    splits: Sequence[Split] = (),
    shedder: str = "ThresholdShedder",
    placement: str = "LeastLongTermMessageRate",
    acts_in_cycle: int | None = 1,
    why_nothing: str | None = None,
    checks: Sequence[StepCheck] = (),
) -> Plan:
    proposal = Proposal(shedder, placement, tuple(moves), tuple(splits), (), acts_in_cycle, why_nothing)
    inputs = PlanInputs(manifest_sha256="a1" * 32, validation_sha256="b2" * 32)
    return build_plan(Situation.of_fit(state, settings), proposal, Request(), inputs, checks)


def checks_of(*failing: tuple[str, str]) -> tuple[StepCheck, ...]:
    """Three checks about the usage of brokers, of which these (name, broker) failed as an information."""
    failed = {name: frozenset({broker}) for name, broker in failing}
    about: frozenset[Input] = frozenset({"broker_usage"})
    return tuple(
        StepCheck(name, "Its limit is known.", "info", "broker", about, name not in failed, failed.get(name))
        for name in ("brokers.bandwidth_in_limit", "brokers.cpu_limit", "brokers.memory_limit")
    )


def orders_plan(state: ClusterState, settings: ResolvedSettings) -> Plan:
    """Two bundles leave broker-1, a third is split, a fourth can't be moved since it is unowned."""
    first, second, hot = (bundle_row(state, f"shop/orders/{text}") for text in QUARTERS[:3])
    middle = int(np.median(state.topics.hash[state.topics.bundle == hot]))
    unowned = bundle_row(state, f"public/default/{QUARTERS[2]}")
    return make_plan(
        state,
        settings,
        moves=(
            Move(first, 0, 3, "broker-1 is 43.7 points above the mean and this bundle is the largest that fits", False),
            Move(second, 0, 2, "with it broker-1 falls below mean plus threshold", True),
            Move(unowned, 0, 2, "listed by the leader as a bundle of broker-1", False),
        ),
        splits=(
            Split(
                hot, "topic_count_equally_divide", (middle,), "18,447 msg/s is above the limit of 12,000 msg/s", False
            ),
        ),
    )


def quiet_plan(state: ClusterState, settings: ResolvedSettings, shedder: str, why: str) -> Plan:
    return make_plan(state, settings, shedder=shedder, acts_in_cycle=None, why_nothing=why)


def recommendation_of(
    plans: Sequence[Plan],
    *,
    state: ClusterState | None = None,
    errors: Mapping[str, str] | None = None,
    findings: Sequence[tuple[str, str]] = (),
) -> Recommendation:
    """`recommendation.json` as the planner's own comparison makes it; `state` is that of the plans."""
    state = state or skewed_state()
    scores = [score(plan, state, file=file_name(plan, digest_of(plan)), digest=digest_of(plan)) for plan in plans]
    scores += [no_score(shedder, "LeastLongTermMessageRate", error) for shedder, error in (errors or {}).items()]
    situation = Situation.of(state, skewed_settings())
    advised = advise(scores, situation.configured)
    plan, nothing_either = _advised_of(plans, advised), ByItself(False, "Pulsar itself does nothing either.")
    if plan is None:
        sentence = unadvised_sentence(situation, scores, nothing_either)
    else:
        sentence = advised_sentence(plan, nothing_either, DEFAULT_RATIO, None)
    return Recommendation(
        cluster="test",
        snapshot="20261121T083000Z",
        manifest_sha256="a1" * 32,
        view="fresh",
        combinations=tuple(Combination(**asdict(row)) for row in scores),
        advice=Advice(
            plan=advised.plan if advised else None,
            digest=advised.digest if advised else None,
            sentence=sentence,
        ),
        findings=tuple(Finding(severity, sentence) for severity, sentence in findings),
        lowest_maximum_ratio=None if situation.lowest is None else situation.lowest.by_bundles,
        options=ranked_options(situation, scores, []),
        coverage=Coverage(judged_ratio=0.987, excluded_namespaces=("public/broken",), excluded_bundles=2),
    )


def _advised_of(plans: Sequence[Plan], advised: Score | None) -> Plan | None:
    return next((plan for plan in plans if advised is not None and digest_of(plan) == advised.digest), None)


def check(name: str, title: str, *, severity: str = "warning", success: bool = True, **more: Any) -> CheckResult:
    return documents.check(
        **{
            "check": name,
            "title": title,
            "severity": severity,
            "scope": "bundle",
            "effect": "stop" if severity == "critical" else "confine" if severity == "warning" else "doubt",
            "success": success,
            "reason": "Two brokers report figures of a moved bundle for up to a minute.",
            "action": "Capture again a minute later.",
            "failed_rows": 0 if success else 2,
            **more,
        }
    )


def validation_of(*results: CheckResult) -> Validation:
    success = not any(row.severity == "critical" and not row.success for row in results)
    return documents.validation(*results, success=success)


def skewed_validation() -> Validation:
    return validation_of(
        check(
            "bundles.ranges_tile",
            "The bundles of every namespace cover the ring without gap or overlap",
            severity="critical",
        ),
        check("bundles.one_owner", "No bundle is owned by two brokers", severity="critical"),
        check("brokers.report_fresh", "Every broker's load report is fresh"),
        check(
            "bundles.figures_once",
            "A bundle's figures come from one broker only",
            success=False,
            examples=[{"bundle": f"public/broken/{text}", "brokers": 2} for text in QUARTERS[:2]],
            excluded=[f"public/broken/{text}" for text in QUARTERS[:2]],
        ),
        check(
            "brokers.nic_limit",
            "The network limit is known",
            severity="info",
            success=False,
            scope="broker",
            error="column bandwidth_out_limit is missing",
        ),
    )


def outcome(
    object: str, code: str, sentence: str, *, chosen: bool = False, near_tie: bool = False, **more: Any
) -> dict[str, Any]:
    """A row of the outcomes table."""
    return {
        "object": object,
        "code": code,
        "sentence": sentence,
        "chosen": chosen,
        "near_tie": near_tie,
        "strategy": "ThresholdShedder",
        "role": "shedder",
        "shedder": None,
        "placement": None,
        "subject": "bundle" if "0x" in object else "broker",
        "left": 0.0,
        "right": 0.0,
        "relation": ">",
        "about": "",
        **more,
    }


def skewed_outcomes(state: ClusterState) -> list[dict[str, Any]]:
    rows = [
        outcome(BROKERS[0], "ABOVE_THRESHOLD", "usage 91.0% is above mean plus threshold 62.3%", chosen=True),
        *(
            outcome(broker, "BELOW_THRESHOLD", "usage is not above mean plus threshold 62.3%", near_tie=i == 0)
            for i, broker in enumerate(BROKERS[1:])
        ),
        *(
            outcome(broker, "NOT_OVERLOADED", "usage is below 85.0%", strategy="OverloadShedder")
            for broker in BROKERS[1:]
        ),
    ]
    for i in range(len(state.bundles)):
        name = state.bundle_name(i)
        if name.startswith("shop/orders/") and i % 4 < 2:
            rows.append(outcome(name, "TAKEN", "its throughput fits into what broker-1 has to shed", chosen=True))
        else:
            rows.append(outcome(name, "BROKER_NOT_CHOSEN", "its broker is not above the threshold"))
    rows += [
        outcome(
            broker,
            "HIGHER_RATE",
            "long-term rate 9,120 msg/s is above the lowest 4,410 msg/s",
            strategy="LeastLongTermMessageRate",
            about=f"shop/orders/{QUARTERS[0]}",
        )
        for broker in BROKERS[1:3]
    ]
    return rows


@dataclass(frozen=True)
class Inputs:
    """What `build_page` takes, kept together so that a test can replace one of them."""

    state: ClusterState
    recommendation: Recommendation
    plans: tuple[Plan, ...]
    validation: Validation
    outcomes: list[dict[str, Any]]
    settings: Mapping[str, PlannedSetting]
    lint: tuple[LintFinding, ...] = ()

    def with_plans(self, *plans: Plan, **changes: Any) -> Inputs:
        """The same with other plans, and with what the planner recommends of them but for these fields."""
        return replace(self, plans=plans, recommendation=recommendation_of(plans)).recommending(**changes)

    def recommending(self, sentence: str | None = None, **changes: Any) -> Inputs:
        """The same with other fields of the recommendation, or with other words of advice."""
        if sentence is not None:
            changes["advice"] = self.recommendation.advice.model_copy(update={"sentence": sentence})
        return replace(self, recommendation=self.recommendation.model_copy(update=changes))

    def with_brokers(self, **columns: Any) -> Inputs:
        """The same with other figures of its brokers."""
        return replace(self, state=replace(self.state, brokers=replace(self.state.brokers, **columns)))

    def page(
        self,
        *,
        root_url: str = "data",
        ledger_head: str | None = None,
        why_not_again: str = "",
        dag: str | None = None,
    ) -> ReportPage:
        shown = shown_combination(self.recommendation, self.state, self.settings)
        plans = {digest_of(plan): plan for plan in self.plans}
        return build_page(
            self.state,
            self.recommendation,
            None if shown is None else plans.get(shown.digest or ""),
            self.validation,
            pa.Table.from_pylist(self.outcomes, SCHEMA),
            self.settings,
            reader=Reader(root_url, dag, why_not_again),
            tool_version="0.1.0",
            ledger_head=ledger_head,
            lint=self.lint,
        )


def skewed_inputs() -> Inputs:
    """The advised ThresholdShedder plan beside a shedder that does nothing and one that could not be judged."""
    state, settings = skewed_state(), skewed_settings()
    plans = (
        orders_plan(state, settings),
        quiet_plan(
            state, settings, "UniformLoadShedder", "the rates of the busiest and the idlest broker are within 50 %"
        ),
        make_plan(
            state,
            settings,
            moves=(Move(bundle_row(state, f"shop/orders/{QUARTERS[0]}"), 0, 3, "usage 91.0% is above 85.0%", False),),
            shedder="OverloadShedder",
        ),
    )
    return Inputs(
        state=state,
        recommendation=recommendation_of(
            plans,
            state=state,
            errors={"TransferShedder": "topic names are missing for namespace public/broken"},
            findings=[
                ("info", "4 of 60 topics are not loaded."),
                ("warning", "shop/orders carries two thirds of the cluster's message rate."),
                ("warning", f"{BROKERS[0]} is over the overload threshold of 85 %."),
            ],
        ),
        plans=plans,
        validation=skewed_validation(),
        outcomes=skewed_outcomes(state),
        settings=planned_settings(settings, SETTING_KEYS),
    )


def balanced_inputs() -> Inputs:
    """Nothing to do: every shedder says why."""
    state = skewed_state()
    usage = state.brokers.usage.copy()
    usage[:, 0] = (55.0, 47.0, 46.5, 44.0)
    state = replace(state, brokers=replace(state.brokers, usage=usage))
    settings = skewed_settings()
    plans = (
        quiet_plan(
            state,
            settings,
            "ThresholdShedder",
            "No broker is more than 15 % above the mean of 48.1 %: the highest is at 55.0 %.",
        ),
        quiet_plan(state, settings, "OverloadShedder", "No broker is above 85 %: the highest is at 55.0 %."),
    )
    return Inputs(
        state=state,
        recommendation=recommendation_of(plans, state=state),
        plans=plans,
        validation=validation_of(check("bundles.one_owner", "No bundle is owned by two brokers", severity="critical")),
        outcomes=[outcome(broker, "BELOW_THRESHOLD", "usage is not above 63.1%") for broker in BROKERS],
        settings=planned_settings(settings, SETTING_KEYS),
    )


def huge_inputs(brokers: int = 1000, bundles_per_broker: int = 100) -> Inputs:
    """A cluster of `brokers` x `bundles_per_broker`, every bundle with an answer; the plan moves 500 bundles."""
    ids = [f"broker-{number:04d}{DOMAIN}" for number in range(brokers)]
    template = cluster_state([BrokerRow(broker) for broker in ids], [BundleRow("a/b", WHOLE, ids[0])])
    total, namespaces = brokers * bundles_per_broker, brokers
    names = tuple(f"tenant/namespace-{number:05d}" for number in range(namespaces))
    cuts = np.linspace(0, 0xFFFFFFFF, bundles_per_broker + 1).astype(np.int64)
    random = np.random.default_rng(3)
    traffic = random.lognormal(0.0, 1.0, total)[:, None] * np.array([10.0, 20.0, 2e4, 4e4])
    owner = random.integers(0, brokers, total).astype(np.int32)
    one = {name: np.repeat(getattr(template.bundles, name), total, axis=0) for name in vars(template.bundles)}
    bundles = replace(
        template.bundles,
        **{
            **one,
            "namespace": np.repeat(np.arange(namespaces, dtype=np.int32), bundles_per_broker),
            "lower": np.tile(cuts[:-1], namespaces),
            "upper": np.tile(cuts[1:], namespaces),
            "owner": owner,
            "traffic": traffic,
            "topics": np.full(total, 10),
        },
    )
    broker_traffic = np.zeros((brokers, 4))
    np.add.at(broker_traffic, owner, traffic)
    usage = template.brokers.usage.copy()
    usage[:, 0] = 60 * broker_traffic[:, 0] / broker_traffic[:, 0].max()
    usage[:10, 0] = np.linspace(96, 82, 10)
    state = replace(
        template,
        brokers=replace(template.brokers, traffic=broker_traffic, usage=usage),
        bundles=bundles,
        namespaces=replace(template.namespaces, names=names, anti_affinity_groups=(None,) * namespaces),
    )
    settings = skewed_settings()
    hot = np.flatnonzero(owner < 10)[:500]
    moves = [
        Move(int(row), int(owner[row]), 10 + i % (brokers - 10), "its broker is above the threshold", False)
        for i, row in enumerate(hot)
    ]
    plans = (make_plan(state, settings, moves=moves),)
    answers = [
        outcome(state.bundle_name(i), f"CODE_{i % 9}", f"{i} is below {i + 1}", near_tie=i % 100 == 0)
        for i in range(total)
    ]
    answers += [outcome(broker, "BELOW_THRESHOLD", "usage is below 61.4%") for broker in ids]
    return Inputs(
        state=state,
        recommendation=recommendation_of(plans, state=state),
        plans=plans,
        validation=validation_of(
            *(
                check(
                    f"bundles.check_{i}",
                    f"Check {i}",
                    success=i % 2 == 0,
                    excluded=[f"tenant/x/{format_range(j, j + 1)}" for j in range(2000)],
                    examples=[{"bundle": "x" * 60}] * 200,
                )
                for i in range(80)
            )
        ),
        outcomes=answers,
        settings=planned_settings(settings, SETTING_KEYS),
    )


HOSTILE_BROKER = 'a"><script>alert(1)</script>:8080'
HOSTILE_NAMESPACE = "x/</style><img src=x onerror=alert(1)>"
HOSTILE_TOPIC = f"persistent://{HOSTILE_NAMESPACE}/[click](javascript:alert(1))\u202egpj\x1b[31m"


def hostile_inputs() -> Inputs:
    """A cluster whose names try to be markup, terminal escapes, links and spreadsheet formulas."""
    state = cluster_state(
        [BrokerRow(HOSTILE_BROKER), BrokerRow("b\x1b[2J`|`:8080")],
        [
            BundleRow(HOSTILE_NAMESPACE, WHOLE, HOSTILE_BROKER, topics=1),
            BundleRow("=cmd()/b", WHOLE, HOSTILE_BROKER, topics=1),
        ],
        topics=[HOSTILE_TOPIC, "persistent://=cmd()/b/t"],
    )
    state = with_traffic(state, {})
    settings = skewed_settings()
    formula = bundle_row(state, "=cmd()/b/0x00000000_0xffffffff")
    plan = make_plan(state, settings, moves=(Move(formula, 0, 1, "<b>bold</b> [red]red[/red] | *x*", True),))
    return Inputs(
        state=state,
        recommendation=recommendation_of(
            (plan,),
            state=state,
            errors={"<i>": "javascript:alert(1) https://example.org/ & <svg onload=alert(1)>"},
            findings=[("warning", f"{HOSTILE_TOPIC} is <blink>hot</blink>")],
        ),
        plans=(plan,),
        validation=validation_of(
            check("a.b", "</title><script>alert(1)</script>", success=False, examples=[{"<a href=//x>": HOSTILE_TOPIC}])
        ),
        outcomes=[outcome(HOSTILE_BROKER, "<CODE>", "a < b & c", near_tie=True, about=HOSTILE_TOPIC)],
        settings={"<key>": PlannedSetting(value="'\" onmouseover=alert(1)", origin="dynamic")},
    )
