"""The people of the tests, and the steps most tests begin with: have a plan approved, start its run, apply it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import asdict, replace

import pytest

from pulsar_advisor.execution.apply import apply_plan
from pulsar_advisor.execution.consent.approval import VALID_FOR_S, approve, propose, standing_approval
from pulsar_advisor.execution.consent.policy import ApprovalPolicy
from pulsar_advisor.execution.ledger.approvals import Terms
from pulsar_advisor.execution.ledger.held_run import HeldRun, start_run
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.runs import runs_of_plan
from pulsar_advisor.execution.ledger.steps import steps_of_run
from pulsar_advisor.execution.person import Person
from pulsar_advisor.execution.run.end_of_run import AttemptResult
from pulsar_advisor.execution.run.options import ApplyOptions, Interruption, Progress, Work, undisturbed
from pulsar_advisor.execution.throttle import ApplyThrottle
from pulsar_advisor.model.bounds import ERROR_BUDGET, IN_FLIGHT, MAX_AGE, PER_DESTINATION, PER_NAMESPACE, PER_SOURCE
from pulsar_advisor.model.plans.plan import Plan, Step
from pulsar_advisor.model.plans.sealed import digest_of
from pulsar_advisor.planning.plans.consent import CONSENTS, ConsentName
from unit.execution.doubles import FakeCluster, Killed, make_plan

ALICE, BOB = Person("alice", "airflow"), Person("bob", "airflow")
FOUR_EYES = ApprovalPolicy()

ANY_THROTTLE = ApplyThrottle(
    max_age_s=MAX_AGE.greatest,
    on_drift="skip",
    pause_s=0.0,
    canary_hold_s=0.0,
    error_budget=ERROR_BUDGET.greatest,
    in_flight=IN_FLIGHT.greatest,
    per_source=PER_SOURCE.greatest,
    per_destination=PER_DESTINATION.greatest,
    per_namespace=PER_NAMESPACE.greatest,
)
"""The least strict one, so that a test may ask for any."""
EVERY_CONSENT = frozenset(consent.name for consent in CONSENTS)


def approved(
    ledger: Ledger,
    plan: Plan,
    consents: Collection[ConsentName] = EVERY_CONSENT,
    valid_for_s: int = VALID_FOR_S,
    throttle: ApplyThrottle = ANY_THROTTLE,
) -> Plan:
    """Proposed by Alice and approved by Bob, with every consent unless said otherwise."""
    propose(ledger, plan, ALICE)
    approve(
        ledger,
        plan,
        digest=digest_of(plan),
        approver=BOB,
        policy=FOUR_EYES,
        terms=Terms(consents=consents, throttle=throttle, valid_for_s=valid_for_s),
    )
    return plan


def started(ledger: Ledger, plan: Plan) -> HeldRun:
    """A run of a plan that was approved for it."""
    approved(ledger, plan)
    return start_run(ledger, plan, standing_approval(ledger, plan, FOUR_EYES))


BRISK = ApplyThrottle(pause_s=3.0, canary_hold_s=5.0)
"""The default one, but for its waits: each of their seconds is a look at the cluster and the ledger."""


def options_of(**options: object) -> ApplyOptions:
    """Options of an `apply` with a brisk throttle, but for the limits among `options`."""
    limits = {name: options.pop(name, value) for name, value in asdict(BRISK).items()}
    return ApplyOptions(throttle_changes=limits, **options)  # type: ignore[arg-type]


def run(
    plan: Plan,
    ledger: Ledger,
    cluster: FakeCluster,
    *,
    progress: Progress = lambda _line: None,
    sleep: Callable[[float], None] | None = None,
    interruption: Interruption = undisturbed,
    **options: object,
) -> AttemptResult:
    clock = cluster.time.clock if sleep is None else replace(cluster.time.clock, sleep=sleep)
    return apply_plan(plan, options_of(**options), Work(ledger, cluster, progress, clock, interruption))


def carried_out(ledger: Ledger, cluster: FakeCluster, *steps: Step, **options: object) -> AttemptResult:
    """What becomes of an approved plan of these steps."""
    return run(approved(ledger, make_plan(steps)), ledger, cluster, **options)  # type: ignore[arg-type]


def killed_at_work(
    ledger: Ledger,
    cluster: FakeCluster,
    plan: Plan,
    moment: str = "the broker is at work",
    call: int = 1,
    **options: object,
) -> None:
    """The process dies, unless said otherwise while the broker is at work on its first call."""
    met = 0

    def die(what: str) -> None:
        nonlocal met
        met += what == moment
        if met == call:
            raise Killed

    cluster.on_event = die
    with pytest.raises(Killed):
        run(plan, ledger, cluster, **options)  # type: ignore[arg-type]
    cluster.on_event = lambda _what: None


def states(ledger: Ledger, plan: Plan) -> list[str]:
    """The states of the steps of a plan's last run."""
    (last,) = runs_of_plan(ledger, digest_of(plan))[-1:]
    return [step.state for step in steps_of_run(ledger, last.id).values()]


def kinds(ledger: Ledger, plan: Plan) -> list[str]:
    """The kinds of the events of a plan and its runs."""
    return [event.kind for event in ledger.events(digest_of(plan))]
