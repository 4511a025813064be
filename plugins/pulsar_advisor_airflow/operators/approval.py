"""The gate: asks a person about one plan and records the answer in the ledger, bound to the digest that was shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypedDict

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import Param
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException, TaskAwaitingInput

from pulsar_advisor.execution.ledger.approvals import Terms, record_refusal, record_rejection, rejected_at
from pulsar_advisor.execution.ledger.proposals import proposals_of_plan
from pulsar_advisor.execution.person import Person, same_person
from pulsar_advisor.execution.throttle import ApplyThrottle, ThrottleChanges
from pulsar_advisor.model.errors import Refused
from pulsar_advisor.model.plans.goal import ROLL
from pulsar_advisor.model.text.plain_text import plain
from pulsar_advisor.planning.plans.consent import ConsentName, needed_consents
from pulsar_advisor_airflow.configuration import report_link
from pulsar_advisor_airflow.failures import (
    RejectedByPerson,
    as_airflow_errors,
    given_plan,
    is_retried,
    logged,
    root_at,
)
from pulsar_advisor_airflow.ledger import AUTHENTICATED_BY, approval_policy, opened_ledger
from pulsar_advisor_airflow.links import LedgerLink, PlanLink, ReportLink
from pulsar_advisor_airflow.notifiers import Call

if TYPE_CHECKING:
    from airflow.sdk import Context

    from pulsar_advisor.execution.ledger.ledger import Ledger
    from pulsar_advisor.model.plans.canonical_json import Json
    from pulsar_advisor.model.plans.plan import Plan

FIELD: Final[Mapping[ConsentName, str]] = {
    "splits": "allow_splits",
    "worse": "accept_worse",
    "low_confidence": "accept_low_confidence",
}
"""The form field for each consent."""
COMMENT: Final = "comment"
NO_ANSWER: Final = "no answer in time"


class Answer(TypedDict):
    """The part of a person's answer that Airflow passes on."""

    responded_by_user: Mapping[str, str] | None
    chosen_options: list[str]
    params_input: Json | None


class PlanApprovalOperator(ApprovalOperator):  # type: ignore[misc]
    """Ask whether a plan may be carried out. No response in time counts as a rejection.

    The digest that was shown is stored with the deferred task, and the responder's name comes with the answer from the
    API server: neither goes through XCom, which anyone who may edit the DAG can change. The user who triggered the DAG
    run can't approve, and an approval without a consent that the plan needs is asked for again. A plan approved in this
    DAG run isn't asked about again, nor is one rejected in it unless the task is cleared: a busy scheduler can mistake
    a task that was just answered for a lost one, and start it again (apache/airflow#72716).

    :param plan: a `PlanReference` as a mapping (templated)
    :param root: path or object-store URL of the root
    :param cluster: name of the cluster in the root
    :param answer_within_h: hours to wait for an answer (templated)
    :param valid_for_h: hours until the approval expires (templated)
    :param throttle: limits of the run by their name in `ApplyThrottle` (templated); shown, and approved with the plan
    :param approvers: users who may answer (templated, to a list); empty: anyone who may write to the DAG
    :param asks_policy: whether the policy may approve the plan, so that no person is asked
    """

    template_fields = ("plan", "root", "cluster", "answer_within_h", "valid_for_h", "throttle", "approvers")
    operator_extra_links: ClassVar = (ReportLink(), PlanLink(), LedgerLink())

    def __init__(
        self,
        *,
        plan: Any,
        root: str,
        cluster: str,
        answer_within_h: float | str = 4,
        valid_for_h: float | str = 4,
        throttle: ThrottleChanges | None = None,
        approvers: Sequence[str] | str | None = (),
        asks_policy: bool = True,
        **kwargs: Any,
    ) -> None:
        kwargs.pop("params", None)  # the DAG's, which Airflow adds to each constructor of the hierarchy
        super().__init__(
            subject="Rebalance a Pulsar cluster?",
            defaults=self.REJECT,
            response_timeout=timedelta(hours=4),  # execute() sets the requested one
            ignore_downstream_trigger_rules=True,
            notifiers=[Call("approval.waiting")],
            # execute() adds the consents that the plan needs. Airflow's page treats an empty text as missing, so that
            # an answer would need a comment.
            params={
                COMMENT: Param(None, type=["null", "string"], title="Comment", description="Recorded in the ledger")
            },
            **kwargs,
        )
        self.plan = plan
        self.root = root
        self.cluster = cluster
        self.answer_within_h = answer_within_h
        self.valid_for_h = valid_for_h
        self.throttle: ThrottleChanges = throttle or {}
        self.approvers = approvers
        self.asks_policy = asks_policy

    def execute(self, context: Context) -> Any:
        """Show the plan and wait for a response. If no step can be carried out, skip, and record the refusal."""
        from pulsar_advisor.execution.consent.approval import carried_out_before, require_may_run
        from pulsar_advisor.execution.run.preconditions import stale
        from pulsar_advisor.stages.derive import why_not_computed_here
        from pulsar_advisor_airflow import approval_request

        root, digest = root_at(self.root, self.cluster), given_plan(self.plan).digest
        with as_airflow_errors(), opened_ledger(root) as ledger:
            throttle = ApplyThrottle(**self.throttle)
            rejection = rejected_at(ledger, digest, _gate(context)) if is_retried(context) else None
            if rejection is not None:
                no = {"chosen_options": [self.REJECT], "responded_at": datetime.now(UTC), "responded_by_user": None}
                return self._rejected(context, rejection, no)
            plan = self._load()
            if not plan.executable_steps:
                reasons = "; ".join(dict.fromkeys(step.not_executable_because or "" for step in plan.steps))
                why = plain(reasons) or "the plan has none"
                nothing = f"nothing to approve, since no step can be carried out: {why}"
                record_refusal(ledger, digest, nothing)
                raise AirflowSkipException(nothing)
            approver = self._approver_in(context, ledger, plan)
            with self._refusals_recorded(ledger):
                if approver is None:
                    require_may_run(ledger, digest)
                    too_old = stale(plan, throttle.max_age_s, ledger.now_ms())
                    if too_old and plan.shedder != ROLL:  # whose turns are planned anew
                        raise Refused(too_old)  # apply would refuse, too, but only after somebody has answered in vain
                not_computed_here = why_not_computed_here(root, ledger, plan)
            why_a_person = "" if approver else self._approve_automatically(ledger, plan, throttle, not_computed_here)
            if approver is not None or why_a_person is None:
                logged(self.log.info)(f"{digest}: approved by {approver or 'the policy'} in this DAG run")
                return None
            proposer = context["dag_run"].triggering_user_name or "An unknown user"
            with self._refusals_recorded(ledger):
                self._require_somebody_to_ask(proposer)
            recorded, barred = carried_out_before(ledger, digest), self._barred(ledger, proposer)
        self._ask_for(plan)
        self.subject = approval_request.subject(plan)
        report, valid_for_h = report_link(self.cluster, plan.snapshot), float(self.valid_for_h)
        self.body = "\n".join(
            approval_request.lines(
                plan, throttle, valid_for_h, proposer, report, why_a_person, not_computed_here, recorded, barred
            )
        )
        self.response_timeout = timedelta(hours=float(self.answer_within_h))
        self.assigned_users = [{"id": name, "name": name} for name in self.approvers or ()] or None
        try:
            return super().execute(context)
        except TaskAwaitingInput as parked:
            parked.kwargs = {"shown": dict(self.plan), "throttle": asdict(throttle)}
            raise

    def _require_somebody_to_ask(self, proposer: str) -> None:
        if self.approvers and all(same_person(name, proposer) for name in self.approvers):
            raise Refused(
                f"only {proposer}, who proposed it, may answer: trigger a DAG run that somebody else may answer"
            )

    def _barred(self, ledger: Ledger, proposer: str) -> Sequence[str]:
        """The others who proposed the plan, and so can't approve it."""
        if not approval_policy(self.cluster).separate_approver:
            return ()
        return sorted({one.proposer for one in proposals_of_plan(ledger, self.plan["digest"])} - {proposer})

    def execute_complete(
        self,
        context: Context,
        event: Answer,
        shown: dict[str, str] | None = None,
        throttle: ThrottleChanges | None = None,
    ) -> Any:
        """Record the answer in the ledger. Fails unless it is an approval; asks again if one lacks a consent."""
        if shown is None or throttle is None:
            raise AirflowFailException("it is not known what was shown: clear this task to ask again")
        self.plan, self.throttle = shown, throttle
        responder = (event.get("responded_by_user") or {}).get("name")
        with as_airflow_errors(), opened_ledger(root_at(self.root, self.cluster)) as ledger:
            if event.get("chosen_options") != [self.APPROVE]:
                answer = f"by {responder}" if responder else NO_ANSWER
                record_rejection(ledger, shown["digest"], answer, _gate(context))
                return self._rejected(context, answer, event)
            plan = self._load()
            self._ask_for(plan)
            given = event["params_input"] or {}
            # Only a requested and answered field is a consent.
            form = {name: given.get(name, self.params[name]) for name in self.params}
            answered = super().execute_complete(context, {**event, "params_input": form})
            with self._refusals_recorded(ledger):
                approver = _another_person(responder, context["dag_run"].triggering_user_name)
                needed = [each.consent for each in needed_consents(plan)]
                unticked = [consent.title for consent in needed if form[FIELD[consent.name]] is not True]
                if not unticked:
                    self._approve(ledger, plan, approver, [consent.name for consent in needed], form)
                    context["ti"].xcom_push(key="answer", value=f"approved by {responder}")
                    return answered
            forgotten = f"{responder} approved it without ticking: {', '.join(unticked)}"
            record_refusal(ledger, shown["digest"], forgotten)
        logged(self.log.warning)(f"{forgotten}; asking again")
        return self.execute(context)  # defers the task again; Airflow warns because it didn't make this call itself

    def _rejected(self, context: Context, answer: str, event: Mapping[str, Any]) -> Any:
        """Fail, or skip what is downstream."""
        context["ti"].xcom_push(key="answer", value=f"rejected: {answer}")
        if self.fail_on_reject:
            kind = AirflowFailException if answer == NO_ANSWER else RejectedByPerson
            raise kind(plain(f"rejected: {answer}"))
        return super().execute_complete(context, {**event, "params_input": {}})

    def _ask_for(self, plan: Plan) -> None:
        """Make the form ask for exactly the consents that a plan needs."""
        for needed in needed_consents(plan):
            box = Param(False, type="boolean", title=needed.consent.title)
            self.params[FIELD[needed.consent.name]] = box

    @contextmanager
    def _refusals_recorded(self, ledger: Ledger) -> Iterator[None]:
        try:
            yield
        except Refused as refused:
            record_refusal(ledger, self.plan["digest"], str(refused))
            raise

    def _approve_automatically(
        self, ledger: Ledger, plan: Plan, throttle: ApplyThrottle, not_computed_here: str | None
    ) -> str | None:
        """None if the policy approved the plan; otherwise why a person must, empty if no policy applies."""
        from pulsar_advisor.execution.consent.approval import approve_automatically

        policy = approval_policy(self.cluster)
        if policy.automatic is None or not self.asks_policy:
            return ""
        terms = Terms(throttle=throttle, valid_for_s=int(float(self.valid_for_h) * 3600))
        try:
            approve_automatically(ledger, plan, policy=policy, not_computed_here=not_computed_here, terms=terms)
        except Refused as refused:
            return str(refused)
        return None

    def _approver_in(self, context: Context, ledger: Ledger, plan: Plan) -> str | None:
        """The user whose approval at this gate, in this DAG run, is still valid."""
        from pulsar_advisor.execution.consent.approval import standing_approval

        try:
            approval = standing_approval(ledger, plan, approval_policy(self.cluster))
        except Refused:
            return None
        started_ms = context["dag_run"].start_date.timestamp() * 1000
        return approval.approver if approval.source == AUTHENTICATED_BY and approval.at_ms >= started_ms else None

    def _approve(
        self, ledger: Ledger, plan: Plan, approver: Person, consents: Sequence[ConsentName], form: Json
    ) -> None:
        from pulsar_advisor.execution.consent.approval import approve

        approve(
            ledger,
            plan,
            digest=self.plan["digest"],
            approver=approver,
            policy=approval_policy(self.cluster),
            terms=Terms(
                consents=consents,
                throttle=ApplyThrottle(**self.throttle),
                valid_for_s=int(float(self.valid_for_h) * 3600),
                comment=str(form.get(COMMENT) or ""),
            ),
        )

    def _load(self) -> Plan:
        return given_plan(self.plan).load(root_at(self.root, self.cluster))


def _gate(context: Context) -> str:
    return f"airflow, {context['run_id']}"


def _another_person(responder: str | None, proposer: str | None) -> Person:
    """The person who answered. Raises `Refused` if that is who proposed, or unknown."""
    if responder is None:
        raise Refused("Airflow doesn't report who approved it")
    if proposer is None or same_person(responder, proposer):
        raise Refused(
            f"{responder} may not approve what {proposer or 'somebody unknown'} proposed: "
            "another person has to; clear this task to ask again"
        )
    return Person(responder, AUTHENTICATED_BY)
