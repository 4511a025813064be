"""`verify`: compares predicted with actual state, from the ledger and a capture taken after the run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

import numpy as np

from pulsar_advisor.documents.verify_result import BundleCheck, UsageCheck, VerifyResult
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.lists import undone
from pulsar_advisor.execution.ledger.steps import confirmed_steps, steps_of_run
from pulsar_advisor.execution.ledger.tables import Run, Verification, VerifiedBroker, VerifiedBundle
from pulsar_advisor.execution.ledger.unfinished import ended_runs
from pulsar_advisor.execution.ledger.verifications import record_verification
from pulsar_advisor.execution.undo import forecast_with
from pulsar_advisor.model.cluster.cluster_state import NO_ROW, Booleans, ClusterState
from pulsar_advisor.model.cluster.segment_changes import segment_changes
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.errors import Refused
from pulsar_advisor.model.load.base_load import base_load
from pulsar_advisor.model.plans.plan import BrokerForecast, Plan
from pulsar_advisor.model.plans.sealed import digest_of
from pulsar_advisor.model.text.some_of import count, some_of
from pulsar_advisor.planning.usage.forecast import Outlook, forecast

USAGE_TOLERANCE_RATIO: Final = 0.10
"""A broker's usage may differ from its prediction by ten percentage points, since traffic changes during a run.
Ownership and boundaries have no tolerance."""

_SETTLED: Final = ("done", "stopped", "aborted")


def settle_s(settings: LoadBalancerSettings) -> int:
    """How long after a move brokers may report figures from before it.

    Rates and CPU are averages since the pass before (Pulsar `BrokerHostUsage`), so it takes until the end of the
    second pass to have one that began after the move.
    """
    host_s = settings.load_balancer_host_usage_check_interval_minutes * 60
    return 2 * max(settings.stats_update_frequency_in_secs, host_s)


def settled_run(plan: Plan, ledger: Ledger) -> tuple[Run, int]:
    """The newest run of a plan that sent something, and when it ended (epoch ms).

    Raises `Refused` if the plan was never applied, was undone since, or its run is still in progress.
    """
    digest = digest_of(plan)
    runs = ended_runs(ledger, digest, "verify when its run has ended")
    if (by := undone(ledger, plan.cluster).get(digest)) is not None:
        raise Refused(f"{digest} has been undone since: verify the plan that undoes it, {by}")
    for run in reversed(runs):
        is_sent = any(step.attempts for step in steps_of_run(ledger, run.id).values())
        if run.state in _SETTLED and run.ended_at_ms is not None and is_sent:
            return run, run.ended_at_ms
    raise Refused(f"{digest} was never carried out: there is nothing to verify")


def require_later(snapshot: str, captured_at_ms: int, run: Run, ended_at_ms: int) -> None:
    """Raise `Refused` if a snapshot predates the end of a run."""
    if captured_at_ms < ended_at_ms:
        raise Refused(
            f"snapshot {snapshot} was taken before run {run.id} ended: capture again, then verify with that one"
        )


def verify_plan(
    plan: Plan,
    ledger: Ledger,
    state: ClusterState,
    settings: LoadBalancerSettings,
    before: ClusterState | None = None,
) -> VerifyResult:
    """Compare an applied plan with the cluster in a later capture, and record the result in the ledger.

    Usage is predicted for the confirmed steps, as a run may have ended early. `before`: the snapshot that the plan was
    made from, to name what controllers of scalable topics did since. Raises `Refused` as `settled_run`, and if the
    capture shows another cluster or predates the end of the run, or the run is resumed meanwhile.
    """
    digest = digest_of(plan)
    run, ended_at_ms = settled_run(plan, ledger)
    if state.cluster_name != plan.identity.cluster_name:
        raise Refused(
            f"the capture is of cluster '{state.cluster_name}', but the plan is of '{plan.identity.cluster_name}'"
        )
    require_later(state.snapshot, state.captured_at_ms, run, ended_at_ms)
    usage_judged = state.captured_at_ms - ended_at_ms >= settle_s(settings) * 1000
    rows = {state.bundle_name(row): row for row in np.flatnonzero(_existing(state)).tolist()}
    bundles = tuple(_bundle_checks(plan, state, rows))
    figures = forecast(state, Outlook.of(state, base_load(state)), settings).brokers
    records = steps_of_run(ledger, run.id)
    if settled_run(plan, ledger)[0].hold != run.hold:  # these steps may be from after the capture
        raise Refused(f"run {run.id} was resumed meanwhile: capture again, then verify with that snapshot")
    steps = tuple(name for name, record in records.items() if not record.is_confirmed)
    predicted = forecast_with(plan, records.keys() - set(steps)).brokers
    brokers = tuple(_usage_checks(predicted, figures))
    moved = _moved_since(ledger, run, ended_at_ms, state.captured_at_ms)
    silent = [state.brokers.ids[row] for row in np.flatnonzero(~state.brokers.reporting)]
    nowhere = f"no broker that reported ({some_of(silent)} did not)" if silent else "no broker"
    deviations = tuple(_deviations(run, steps, bundles, rows.keys(), nowhere, moved, brokers if usage_judged else ()))
    verification = Verification(
        run_id=run.id,
        snapshot=state.snapshot,
        at_ms=ledger.now_ms(),
        usage_judged=usage_judged,
        as_predicted=not deviations,
    )
    _record_figures(plan, verification, bundles, brokers, predicted, figures, ledger)
    return VerifyResult(
        digest=digest,
        run=run.id,
        snapshot=state.snapshot,
        as_predicted=not deviations,
        deviations=deviations,
        steps_not_confirmed=steps,
        usage_judged=usage_judged,
        usage_tolerance_ratio=USAGE_TOLERANCE_RATIO,
        bundles=bundles,
        brokers=brokers,
        segment_changes=tuple(one.sentence for one in segment_changes(before, state)) if before is not None else (),
        ledger_head=str(ledger.head()),
    )


def _record_figures(
    plan: Plan,
    verification: Verification,
    bundles: Iterable[BundleCheck],
    usages: Iterable[UsageCheck],
    predicted: Mapping[str, BrokerForecast],
    figures: Mapping[str, BrokerForecast],
    ledger: Ledger,
) -> None:
    """Write predicted and actual figures to the ledger, to calibrate predictions over many runs."""
    brokers = []
    for check in usages:
        before = plan.predicted.before.brokers.get(check.broker)
        brokers.append(
            VerifiedBroker(
                broker=check.broker,
                before_usage_ratio=before.usage_ratio if before else None,
                **_figures("predicted", predicted.get(check.broker)),
                **_figures("actual", figures.get(check.broker)),
                as_predicted=check.as_predicted,
            )
        )
    record_verification(ledger, verification, [VerifiedBundle(**vars(check)) for check in bundles], brokers)


_KEPT: Final = ("usage_ratio", "msg_rate_per_s", "throughput_bytes_per_s", "bundles")
"""A broker's figures that the ledger has columns for."""


def _figures(when: str, row: BrokerForecast | None) -> dict[str, float | int | None]:
    return {} if row is None else {f"{when}_{name}": getattr(row, name) for name in _KEPT}


def _moved_since(ledger: Ledger, run: Run, ended_at_ms: int, until_ms: int) -> Mapping[str, int]:
    """The bundles (by full name) that a later run has moved or split, each with the last such run."""
    later = confirmed_steps(ledger, run.cluster_name, ended_at_ms, until_ms)
    return {step.bundle: step.run_id for step, _ in later if step.run_id != run.id}


def _deviations(
    run: Run,
    steps: tuple[str, ...],
    bundles: tuple[BundleCheck, ...],
    existing: Collection[str],
    nowhere: str,
    moved: Mapping[str, int],
    brokers: tuple[UsageCheck, ...],
) -> Iterator[str]:
    """How the cluster differs from the prediction, in words.

    `nowhere`: where a bundle without a known owner is. `moved`: bundles, each with the later run that moved it.
    """
    if steps:
        verb = "was" if len(steps) == 1 else "were"
        yield f"{count(len(steps), 'step')} of run {run.id} {verb} not confirmed: {some_of(steps)}"
    for bundle in bundles:
        if not bundle.as_predicted:
            where = bundle.predicted or "another broker"
            since = f"; run {moved[bundle.bundle]} has changed it since" if bundle.bundle in moved else ""
            if bundle.bundle not in existing:
                gone = "is not a bundle of the cluster any more (split or deleted?)"
                yield f"{bundle.bundle} {gone}; predicted: on {where}{since}"
                continue
            yield f"{bundle.bundle} is on {bundle.actual or nowhere}, predicted: {where}{since}"
    for broker in brokers:
        if not broker.as_predicted:
            digits = _digits_apart(broker.actual, broker.predicted)
            at = "not a broker of the snapshot" if broker.actual is None else f"at {broker.actual:.{digits}%}"
            yield f"{broker.broker} is {at}, predicted: {_percent(broker.predicted, digits)}"


def _existing(state: ClusterState) -> Booleans:
    """Per bundle, whether it exists: by its namespace's boundaries or, if none were read, as some broker owns it."""
    bundles = state.bundles
    is_unread = state.bundle_counts[bundles.namespace] == 0
    existing: Booleans = bundles.in_boundaries | ((bundles.owner != NO_ROW) & is_unread)
    return existing


def _bundle_checks(plan: Plan, state: ClusterState, rows: Mapping[str, int]) -> Iterator[BundleCheck]:
    """Each bundle that the plan places, checked by its last step; the children replace a split bundle.

    `rows`: the row of each existing bundle, by name.
    """
    predicted: dict[str, str | None] = {}
    sources: dict[str, str] = {}
    for step in plan.executable_steps:
        if step.action == "unload":
            predicted[step.bundle_name] = step.destination
            sources[step.bundle_name] = step.source
        else:
            predicted.pop(step.bundle_name, None)
            predicted.update({f"{step.namespace}/{child}": step.source for child in step.children})
    for bundle, broker in predicted.items():
        owner = int(state.bundles.owner[rows[bundle]]) if bundle in rows else NO_ROW
        actual = None if owner == NO_ROW else state.brokers.ids[owner]
        moved = actual is not None and actual != sources.get(bundle)
        as_predicted = moved if broker is None else actual == broker
        yield BundleCheck(bundle=bundle, predicted=broker, actual=actual, as_predicted=as_predicted)


def _usage_checks(
    predicted: Mapping[str, BrokerForecast], actual: Mapping[str, BrokerForecast]
) -> Iterator[UsageCheck]:
    for broker, expected in predicted.items():
        now = actual[broker].usage_ratio if broker in actual else None
        then = expected.usage_ratio
        known = now is not None and then is not None
        # Percentages are binary32: their last digits make no deviation of what is exactly at the tolerance.
        close = round(abs((now or 0.0) - (then or 0.0)), 6) <= USAGE_TOLERANCE_RATIO
        as_predicted = close if known else broker in actual
        yield UsageCheck(broker=broker, predicted=then, actual=now, as_predicted=as_predicted)


def _digits_apart(actual: float | None, predicted: float | None) -> int:
    """How many digits of these percentages show that they differ by more than the tolerance; at most four."""
    for digits in (1, 2, 3):
        shown = abs(round((actual or 0.0) * 100, digits) - round((predicted or 0.0) * 100, digits))
        if round(shown, digits) > USAGE_TOLERANCE_RATIO * 100:
            return digits
    return 4 if actual is not None and predicted is not None else 1


def _percent(ratio: float | None, digits: int) -> str:
    return "an unknown usage" if ratio is None else f"{ratio:.{digits}%}"
