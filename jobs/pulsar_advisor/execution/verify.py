"""`verify`: compares predicted with actual state, from the ledger and a capture taken after the run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pulsar_advisor.execution.ledger.ledger import Ledger, bundle_name
from pulsar_advisor.execution.ledger.tables import Run, Verification, VerifiedBroker, VerifiedBundle
from pulsar_advisor.execution.run.preconditions import executable_steps
from pulsar_advisor.model.cluster.cluster_state import NO_ROW, ClusterState
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.errors import Refused
from pulsar_advisor.model.load.base_load import base_load
from pulsar_advisor.model.plans.plan import BrokerForecast, Plan, digest_of
from pulsar_advisor.model.text.some_of import count, some_of
from pulsar_advisor.planning.usage.forecast import Outlook, forecast

VERIFY_RESULT_SCHEMA: Final = "pulsar-advisor/verify-result/1"

USAGE_TOLERANCE_RATIO: Final = 0.10
"""A broker's usage may differ from its prediction by ten percentage points: traffic changes during a run, and the
proportional model moves CPU by message rate only. Ownership and boundaries have no tolerance."""

_SETTLED: Final = ("done", "stopped", "aborted")


@dataclass(frozen=True)
class BundleCheck:
    """A bundle's expected owner (None: any but its old one) and actual owner (None: no owner, or no such bundle)."""

    bundle: str
    predicted: str | None
    actual: str | None
    as_predicted: bool


@dataclass(frozen=True)
class UsageCheck:
    """Predicted and captured usage ratio of a broker (0..1); None if unknown."""

    broker: str
    predicted: float | None
    actual: float | None
    as_predicted: bool


@dataclass(frozen=True)
class VerifyResult:
    """Whether the cluster matches the plan's prediction."""

    digest: str
    run: int
    snapshot: str
    steps_not_confirmed: tuple[str, ...]
    bundles: tuple[BundleCheck, ...]
    brokers: tuple[UsageCheck, ...]
    usage_judged: bool
    """False if the capture is too close to the run: brokers still report figures from before it."""
    deviations: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        """0: as predicted. 5: deviates."""
        return 5 if self.deviations else 0

    def as_document(self) -> dict[str, Any]:
        """The result as JSON data (`docs/applying.md`)."""
        return {
            "schema": VERIFY_RESULT_SCHEMA,
            "digest": self.digest,
            "run": self.run,
            "snapshot": self.snapshot,
            "as_predicted": not self.deviations,
            "deviations": list(self.deviations),
            "steps_not_confirmed": list(self.steps_not_confirmed),
            "usage_judged": self.usage_judged,
            "usage_tolerance_ratio": USAGE_TOLERANCE_RATIO,
            "bundles": [vars(check) for check in self.bundles],
            "brokers": [vars(check) for check in self.brokers],
        }


def settle_s(settings: LoadBalancerSettings) -> int:
    """How long after a move brokers may report older figures: a statistics pass plus a host usage check."""
    return max(settings.stats_update_frequency_in_secs, settings.load_balancer_host_usage_check_interval_minutes * 60)


def settled_run(plan: Plan, ledger: Ledger) -> tuple[Run, int]:
    """The newest run of a plan that sent something, and when it ended (epoch ms).

    Raises `Refused` if the plan was never applied, or its run is still in progress.
    """
    digest = digest_of(plan)
    runs = ledger.runs(digest)
    if any(run.state == "active" for run in runs):
        raise Refused(f"{digest} is being carried out: verify when its run has ended")
    for run in reversed(runs):
        if run.state in _SETTLED and run.ended_at_ms is not None:
            return run, run.ended_at_ms
    raise Refused(f"{digest} was never carried out: there is nothing to verify")


def require_later(snapshot: str, captured_at_ms: int, run: Run, ended_at_ms: int) -> None:
    """Raise `Refused` if a snapshot predates the end of a run."""
    if captured_at_ms < ended_at_ms:
        raise Refused(
            f"snapshot {snapshot} was taken before run {run.id} ended: capture again, then verify with that one"
        )


def verify_plan(plan: Plan, ledger: Ledger, state: ClusterState, settings: LoadBalancerSettings) -> VerifyResult:
    """Compare an applied plan with the cluster in a later capture, and record the result in the ledger.

    Raises `Refused` if the plan was never applied, its run is still in progress, or the capture shows another cluster
    or predates the end of the run.
    """
    digest = digest_of(plan)
    run, ended_at_ms = settled_run(plan, ledger)
    if state.cluster_name != plan.identity.cluster_name:
        raise Refused(f"the capture is of cluster '{state.cluster_name}', the plan of '{plan.identity.cluster_name}'")
    require_later(state.snapshot, state.captured_at_ms, run, ended_at_ms)
    usage_judged = state.captured_at_ms - ended_at_ms >= settle_s(settings) * 1000
    bundles = tuple(_bundle_checks(plan, state))
    figures = forecast(state, Outlook.of(state, base_load(state)), settings).brokers
    brokers = tuple(_usage_checks(plan, figures))
    steps = tuple(name for name, step in ledger.steps(run.id).items() if step.state != "confirmed")
    result = VerifyResult(
        digest=digest,
        run=run.id,
        snapshot=state.snapshot,
        steps_not_confirmed=steps,
        bundles=bundles,
        brokers=brokers,
        usage_judged=usage_judged,
        deviations=tuple(_deviations(run, steps, bundles, brokers if usage_judged else ())),
    )
    _keep(plan, result, figures, ledger)
    return result


def _keep(plan: Plan, result: VerifyResult, figures: Mapping[str, BrokerForecast], ledger: Ledger) -> None:
    """Write predicted and actual figures to the ledger, to calibrate predictions over many runs."""
    verification = Verification(
        run_id=result.run,
        snapshot=result.snapshot,
        at_ms=ledger.now_ms(),
        usage_judged=result.usage_judged,
        as_predicted=not result.deviations,
    )
    bundles = [VerifiedBundle(**vars(check)) for check in result.bundles]
    brokers = []
    for check in result.brokers:
        before = plan.predicted.before.brokers.get(check.broker)
        predicted, actual = plan.predicted.after.brokers.get(check.broker), figures.get(check.broker)
        brokers.append(
            VerifiedBroker(
                broker=check.broker,
                before_usage_ratio=before.usage_ratio if before else None,
                **_figures("predicted", predicted),
                **_figures("actual", actual),
                as_predicted=check.as_predicted,
            )
        )
    ledger.record_verification(verification, bundles, brokers)


_KEPT: Final = ("usage_ratio", "msg_rate_per_s", "throughput_bytes_per_s", "bundles")
"""Figures of a broker that the ledger has columns for."""


def _figures(when: str, row: BrokerForecast | None) -> dict[str, float | int | None]:
    return {} if row is None else {f"{when}_{name}": getattr(row, name) for name in _KEPT}


def _deviations(
    run: Run, steps: tuple[str, ...], bundles: tuple[BundleCheck, ...], brokers: tuple[UsageCheck, ...]
) -> Iterator[str]:
    if steps:
        verb = "was" if len(steps) == 1 else "were"
        yield f"{count(len(steps), 'step')} of run {run.id} {verb} not confirmed: {some_of(steps)}"
    for bundle in bundles:
        if not bundle.as_predicted:
            where = bundle.predicted or "another broker"
            yield f"{bundle.bundle} is on {bundle.actual or 'no broker'}, predicted: {where}"
    for broker in brokers:
        if not broker.as_predicted:
            yield f"{broker.broker} is at {_percent(broker.actual)}, predicted: {_percent(broker.predicted)}"


def _bundle_checks(plan: Plan, state: ClusterState) -> Iterator[BundleCheck]:
    """Each bundle that the plan places: its last step counts; the children replace a split bundle."""
    predicted: dict[str, str | None] = {}
    sources: dict[str, str] = {}
    for step in executable_steps(plan):
        if step.action == "unload":
            predicted[bundle_name(step)] = step.destination
            sources[bundle_name(step)] = step.source
        else:
            predicted.pop(bundle_name(step), None)
            predicted.update({f"{step.namespace}/{child}": step.source for child in step.children})
    rows = {state.bundle_name(row): row for row in range(len(state.bundles)) if state.bundles.in_boundaries[row]}
    for bundle, broker in predicted.items():
        owner = int(state.bundles.owner[rows[bundle]]) if bundle in rows else NO_ROW
        actual = None if owner == NO_ROW else state.brokers.ids[owner]
        moved = actual is not None and actual != sources.get(bundle)
        yield BundleCheck(bundle, broker, actual, moved if broker is None else actual == broker)


def _usage_checks(plan: Plan, actual: Mapping[str, BrokerForecast]) -> Iterator[UsageCheck]:
    for broker, expected in plan.predicted.after.brokers.items():
        now = actual[broker].usage_ratio if broker in actual else None
        then = expected.usage_ratio
        known = now is not None and then is not None
        close = abs((now or 0.0) - (then or 0.0)) <= USAGE_TOLERANCE_RATIO
        yield UsageCheck(broker, then, now, close if known else broker in actual)


def _percent(ratio: float | None) -> str:
    return "an unknown usage" if ratio is None else f"{ratio:.1%}"
