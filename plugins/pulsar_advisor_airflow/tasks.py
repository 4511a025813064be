"""The light tasks between the stages: they read a stage's result file and make a decision, or pass an id on.

Plain functions, which the DAG files turn into tasks; `cluster` is a cluster's name in the root. Every exit code of the
product but 1 becomes a failure without retry.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import chain
from time import monotonic, sleep
from typing import TYPE_CHECKING, Final

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from pulsar_advisor.documents.document import as_json
from pulsar_advisor.execution.ledger.runs import runs_of_plan
from pulsar_advisor.execution.ledger.verifications import verifications_of_plan
from pulsar_advisor.model.bounds import DEFAULT_DAYS
from pulsar_advisor.model.cluster.snapshot_id import is_snapshot_id
from pulsar_advisor.model.plans.canonical_json import Json
from pulsar_advisor.model.text.plain_text import plain
from pulsar_advisor_airflow.assets import announce, audited_ledger, snapshot_validated
from pulsar_advisor_airflow.configuration import option
from pulsar_advisor_airflow.failures import as_airflow_errors, given_plan, logged, root_at, was_ever_cleared
from pulsar_advisor_airflow.links import BEGUN
from pulsar_advisor_airflow.metrics import age_measured, measured

if TYPE_CHECKING:
    from pulsar_advisor.execution.ledger.ledger import Ledger
    from pulsar_advisor.storage.plans import PlanReference
    from pulsar_advisor.storage.root import Root
    from pulsar_advisor_airflow.clusters import Cluster

log = logging.getLogger(__name__)

_CALLED_ABOUT: Final = "called_about"
"""Key in the state store of a cluster's asset."""
_HEAD: Final = "head"
"""Key in the state store of the ledger's asset."""
_HOLDER_POLL_S: Final = 5.0


def require_trusted_snapshot(cluster: str, snapshot: str) -> str:
    """The snapshot's id, if validation passed; each outlet's event has the snapshot's location."""
    from pulsar_advisor.storage.results import read_validation

    root = _root(cluster)
    with as_airflow_errors():
        _require_as_sealed(root, snapshot, "validate")
        result = read_validation(root, snapshot)
        is_newest = _is_newest(root, snapshot)
    if not result.success:
        raise AirflowFailException(plain(f"snapshot {snapshot} must not be used; {result.stopped_by}"))
    if is_newest:
        measured("failed_checks", sum(not check.success for check in result.results), cluster)
        age_measured(snapshot, cluster)
    announce(get_current_context(), root=root.url, cluster=root.cluster, snapshot=snapshot)
    return snapshot


def snapshot_to_recommend_on() -> str:
    """The newest snapshot of the asset events that triggered the DAG run, or the one named in its form."""
    if snapshots := _triggering_snapshots():
        return snapshots[-1]
    if named := get_current_context()["params"]["snapshot"]:
        return str(named)
    raise AirflowFailException("name a snapshot: a manual run has no asset event that names one")


def _triggering_snapshots() -> list[str]:
    """Those of the asset events that triggered the DAG run, the newest last. One that a user made may name none."""
    events = chain.from_iterable(get_current_context()["triggering_asset_events"].values())
    return sorted(id for event in events if is_snapshot_id(id := str(event.extra.get("snapshot"))))


def lint(cluster: str, snapshot: str) -> list[Json]:
    """The rules that the settings of a normalized snapshot's cluster violate, with the effects of proposed changes."""
    from pulsar_advisor.stages.lint import run

    with as_airflow_errors():
        findings, too_little = run(_root(cluster), snapshot)
    if too_little:
        logged(log.warning)(too_little)
    return [as_json(finding) for finding in findings]


def restart_order(cluster: str, snapshot: str, ceiling_ratio: float | None = None) -> Json:
    """The order of a rolling restart that moves each bundle least often; no broker ends above `ceiling_ratio`."""
    from pulsar_advisor.stages.restart_order import run

    with as_airflow_errors():
        return as_json(run(_root(cluster), snapshot, ceiling_ratio))


def scale(cluster: str, snapshot: str, usage_ratio: float = 0.6) -> Json:
    """How many brokers the load of a normalized snapshot needs at this mean usage."""
    from pulsar_advisor.stages.scale import run

    with as_airflow_errors():
        return as_json(run(_root(cluster), snapshot, usage_ratio))


def upgrade(cluster: str, snapshot: str, to: str | None) -> str | None:
    """What an upgrade to this Pulsar release does to the cluster's own balancer, in one line; None without a release.

    The report has the whole answer.
    """
    from pulsar_advisor.recommendation.upgrade import UpgradeRequest
    from pulsar_advisor.reporting.upgrade import upgrade_section
    from pulsar_advisor.stages.upgrade import run

    if not to:
        return None
    with as_airflow_errors():
        return upgrade_section(run(_root(cluster), snapshot, UpgradeRequest(to))).headline


def advised_plan(cluster: str, snapshot: str, *, roll: bool = False) -> dict[str, str]:
    """The plan that `recommend` advises; skips downstream tasks if it advises none.

    Fails if a roll was requested but there is none: no broker would be restarted.
    """
    from pulsar_advisor.storage import plans

    root = _root(cluster)
    with as_airflow_errors():
        _require_as_sealed(root, snapshot, "recommend")
        chosen, reason = plans.advised_plan(root, snapshot)
    if chosen is None:
        kind = AirflowFailException if roll else AirflowSkipException
        raise kind(plain(f"nothing to approve: {reason}"))
    return asdict(chosen)


def new_advice(cluster: str, snapshot: str) -> dict[str, str]:
    """The advice, if it differs from what people were last notified of; otherwise the task is skipped.

    It is skipped, too, for a snapshot older than the last that was recommended on, as when its DAG run is cleared.

    Two pieces of advice are the same if they move and split the same bundles in the same way. `TellAdvice` keeps what
    people were notified of in the state store of the task's only asset, an inlet, so other clusters' advice doesn't
    interfere.
    """
    from pulsar_advisor.planning.advice.compare import steps_sha256
    from pulsar_advisor.storage.plans import PlanReference, read_recommendation
    from pulsar_advisor_airflow.configuration import report_link, with_host
    from pulsar_advisor_airflow.notifiers import CHANGES, TOLD

    root, context = _root(cluster), get_current_context()
    with as_airflow_errors():
        advice = read_recommendation(root, snapshot).advice
        named = PlanReference(snapshot, advice.plan, advice.digest) if advice.plan and advice.digest else None
        changes = steps_sha256(named.load(root).steps if named else ())
        is_newest = _is_newest(root, snapshot)
    if not is_newest:
        raise AirflowSkipException("the advice on a newer snapshot counts")
    if context["asset_state_store"].get(TOLD) == changes:
        raise AirflowSkipException("the advice is the same as last reported")
    context["ti"].xcom_push(CHANGES, changes)
    return {
        "cluster": cluster,
        "snapshot": snapshot,
        "sentence": plain(advice.sentence),
        "digest": advice.digest or "",
        "report": with_host(report_link(cluster, snapshot)),
    }


def plan_by_digest(cluster: str, digest: str, *, roll: bool = False) -> dict[str, str]:
    """The plan whose digest begins as given in the form. Fails unless it is a roll exactly if one is requested."""
    from pulsar_advisor.model.errors import UsageError
    from pulsar_advisor.model.plans.goal import ROLL
    from pulsar_advisor.storage.plans import find_plan
    from pulsar_advisor_airflow.clusters import dag_of

    root = _root(cluster)
    with as_airflow_errors():
        found = find_plan(root, digest)
        plan = found.load(root)
        if (plan.shedder == ROLL) != roll:
            dag = dag_of("pulsar_rebalance" if roll else "pulsar_rolling_restart", cluster)
            raise UsageError(f"{found.digest} is {'not a' if roll else 'a'} roll: trigger {dag} with it")
        return asdict(found)


def undo_plan(cluster: str, digest: str, pulsar_conn_id: str) -> dict[str, str]:
    """A plan that reverses the moves of a plan's run, based on the ledger and the current cluster.

    Fails if none of them can be reversed any more.
    """
    return _undo_plan(cluster, digest, pulsar_conn_id, AirflowFailException)


def _undo_plan(cluster: str, digest: str, pulsar_conn_id: str, if_none: type[AirflowException]) -> dict[str, str]:
    """The same, with the exception for a plan without a step that can be carried out."""
    from pulsar_advisor.model.text.some_of import some_of
    from pulsar_advisor.stages.undo import run
    from pulsar_advisor.storage.plans import find_plan
    from pulsar_advisor_airflow.hooks.pulsar_admin import PulsarAdminHook
    from pulsar_advisor_airflow.ledger import opened_ledger

    root = _root(cluster)
    with as_airflow_errors(), opened_ledger(root) as ledger:
        connection = PulsarAdminHook(pulsar_conn_id).options().required_admin
        undo, written = run(find_plan(root, digest).load(root), ledger, root, connection)
    if not undo.executable_steps:
        reasons = some_of({f"{step.bundle_name}: {step.not_executable_because}" for step in undo.steps})
        raise if_none(plain(f"nothing can be moved back: {reasons}"))
    return asdict(written)


def offered_undo(cluster: str, plan: Mapping[str, str] | None, pulsar_conn_id: str, hours: float) -> dict[str, str]:
    """Propose to undo what this DAG run carried out, if it ended in part or not as predicted; otherwise skipped.

    `hours` is how long the offer can be accepted; 0: no offer is made.
    """
    from pulsar_advisor.execution.undo import can_be_undone
    from pulsar_advisor_airflow.ledger import opened_ledger

    if not plan or not hours:
        raise AirflowSkipException("there is no plan to undo" if hours else "no offer was requested")
    if not _has_begun():
        raise AirflowSkipException("this DAG run carried nothing out")
    # Clearing one of its tasks resets its start.
    began_ms, root = get_current_context()["dag_run"].run_after.timestamp() * 1000, _root(cluster)
    with as_airflow_errors(), opened_ledger(root) as ledger:
        if (going_on := _await_end(ledger, plan["digest"])) is not None:
            raise AirflowSkipException(f"run {going_on} of the plan goes on")
        runs = [run for run in runs_of_plan(ledger, plan["digest"]) if (run.ended_at_ms or 0) >= began_ms]
        if not runs or not can_be_undone(given_plan(plan).load(root), ledger):
            raise AirflowSkipException("this DAG run moved nothing that can be moved back")
        judged = [one for one in verifications_of_plan(ledger, plan["digest"]) if one.run_id == runs[-1].id]
    if runs[-1].state == "done" and (not judged or judged[-1].as_predicted):
        raise AirflowSkipException("nothing is known to have gone wrong; to undo the run, tick Undo in the form")
    return _proposed(cluster, given_plan(_undo_plan(cluster, plan["digest"], pulsar_conn_id, AirflowSkipException)))


def propose(cluster: str, *candidates: Mapping[str, str] | None) -> dict[str, str]:
    """Record that the user who triggered the DAG run proposes a plan, namely the first of `candidates` that exists.

    Fails if the DAG run, or this task, was cleared and they didn't propose this plan before: then the plan was made for
    whoever cleared it, and Airflow doesn't say who that was. That person could approve it, too.
    """
    from pulsar_advisor.execution.ledger.proposals import proposals_of_plan
    from pulsar_advisor_airflow.ledger import opened_ledger

    reference = given_plan(next(filter(None, candidates), None))
    context = get_current_context()
    dag_run = context["dag_run"]
    if dag_run.clear_number or was_ever_cleared(context):
        with as_airflow_errors(), opened_ledger(_root(cluster)) as ledger:
            before = {proposal.proposer for proposal in proposals_of_plan(ledger, reference.digest)}
        if dag_run.triggering_user_name not in before:
            raise AirflowFailException(
                "this DAG run was cleared, and Airflow doesn't report by whom, so the proposer of "
                f"{reference.digest}, which was made afterwards, is unknown: trigger a DAG run of your own"
            )
    return _proposed(cluster, reference)


def _proposed(cluster: str, reference: PlanReference) -> dict[str, str]:
    from pulsar_advisor.execution.consent import approval
    from pulsar_advisor.execution.person import Person
    from pulsar_advisor.stages.derive import why_not_computed_here
    from pulsar_advisor_airflow.ledger import AUTHENTICATED_BY, opened_ledger

    proposer = get_current_context()["dag_run"].triggering_user_name
    if proposer is None:
        raise AirflowFailException("Airflow doesn't report who triggered this run, so the plan has no proposer")
    root = _root(cluster)
    with as_airflow_errors(), opened_ledger(root) as ledger:
        plan, person = reference.load(root), Person(proposer, AUTHENTICATED_BY)
        approval.propose(ledger, plan, person, why_not_computed_here(root, ledger, plan))
    return asdict(reference)


def judged_from(cluster: str, plan: Mapping[str, str] | None) -> str:
    """When `verify` can judge usage (ISO 8601): until then brokers report figures from before the run."""
    from pulsar_advisor.stages.verify import judged_from
    from pulsar_advisor_airflow.ledger import opened_ledger

    root = _root(cluster)
    with as_airflow_errors(), opened_ledger(root) as ledger:
        return judged_from(given_plan(plan).load(root), ledger, root).isoformat()


def verify(cluster: str, plan: Mapping[str, str] | None, snapshot: str) -> Json:
    """Compare prediction and outcome, using a snapshot taken after the plan was carried out.

    Returns the run and the snapshot it was verified with; the ledger has the figures.
    """
    from pulsar_advisor.stages.verify import run
    from pulsar_advisor_airflow.clusters import dag_of
    from pulsar_advisor_airflow.ledger import opened_ledger

    root = _root(cluster)
    with as_airflow_errors(), opened_ledger(root) as ledger:
        result = run(given_plan(plan).load(root), ledger, root, snapshot)
    announce(get_current_context(), cluster=cluster, digest=result.digest, run=result.run, snapshot=result.snapshot)
    if result.deviations:
        raise AirflowFailException(
            f"the cluster is not as predicted: {plain('; '.join(result.deviations))}; to undo the run, trigger "
            f"{dag_of('pulsar_rebalance', cluster)} with digest {result.digest} and Undo ticked"
        )
    return {name: getattr(result, name) for name in ("digest", "run", "snapshot", "as_predicted", "ledger_head")}


def report(cluster: str, snapshot: str) -> str:
    """Write the HTML report of a snapshot's recommendation; returns its location.

    Each outlet's event has the advised plan's digest.
    """
    from pulsar_advisor.model.plans.goal import ROLL
    from pulsar_advisor.stages.report import run
    from pulsar_advisor.storage.plans import read_recommendation
    from pulsar_advisor_airflow.clusters import clusters, labelled
    from pulsar_advisor_airflow.ledger import ledger_url_if_any

    root = _root(cluster)
    with as_airflow_errors():
        registered, made = clusters().get(cluster), read_recommendation(root, snapshot)
        is_roll = made.advised is not None and made.advised.shedder == ROLL
        base = "pulsar_rolling_restart" if is_roll else "pulsar_rebalance"
        dag = labelled(base, registered) if registered else None
        _, path = run(root, snapshot, ledger_url=ledger_url_if_any(root), dag=dag)
        is_newest = _is_newest(root, snapshot)
    if made.imbalance_ratio is not None and is_newest:
        measured("imbalance_ratio", made.imbalance_ratio, cluster)
    digest = made.advice.digest or ""
    announce(get_current_context(), root=root.url, cluster=cluster, snapshot=snapshot, digest=digest)
    return path


def require_success() -> None:
    """Fail if a task above this one failed, or if not all right above it were carried out; skipped if none was.

    For a teardown: when somebody marks a DAG run as failed, Airflow has all other tasks that are due skipped, and takes
    the state of the DAG run from those.
    """
    ti = get_current_context()["ti"]
    states = ti.get_task_states(dag_id=ti.dag_id, run_ids=[ti.run_id])[ti.run_id]
    if failed := sorted(task for task in ti.task.get_flat_relative_ids(upstream=True) if states.get(task) == "failed"):
        raise AirflowFailException(f"failed: {', '.join(failed)}")
    last = {states.get(task) for task in ti.task.upstream_task_ids}
    if "success" not in last:
        raise AirflowSkipException("there was nothing to carry out")
    if last != {"success"}:
        raise AirflowFailException("somebody ended this DAG run before it was carried out")


def clusters_to_restore() -> list[str]:
    """The clusters of this installation, and any former one whose own balancer a run left off."""
    from pulsar_advisor.execution.run.guard import left_off_by_cluster
    from pulsar_advisor_airflow.clusters import clusters
    from pulsar_advisor_airflow.ledger import opened_ledger

    with as_airflow_errors(), opened_ledger(_root("any")) as ledger:
        return list(dict.fromkeys([*clusters(), *left_off_by_cluster(ledger)]))


def overdue_clusters() -> list[str]:
    """The clusters whose snapshots are overdue; each receiver is called once about each newest one with advice.

    Sets the metric of that snapshot. The state store of its asset, an inlet, keeps which one people were called about.
    After all clusters, raises `AirflowException` naming those that couldn't be checked.
    """
    from pulsar_advisor_airflow.clusters import clusters

    with as_airflow_errors():
        registered = clusters().values()
    now, found, failures = datetime.now(UTC), [], []
    for cluster in registered:
        try:
            if _is_overdue(cluster, now):
                found.append(cluster.name)
        except Exception as error:  # one cluster's failure must not affect the others
            log.exception("cluster %s can't be looked at", cluster.name)
            failures.append(f"{cluster.name}: {error}")
    if failures:
        raise AirflowException("; ".join(failures))
    return found


def _is_overdue(cluster: Cluster, now: datetime) -> bool:
    from pulsar_advisor_airflow.overdue import newest_advised, why_overdue

    with as_airflow_errors():
        if (newest := newest_advised(_root(cluster.name))) is not None:
            age_measured(newest, cluster.name)
        sentence = why_overdue(cluster.schedule, newest, now)
    if sentence:
        log.warning("%s: %s", cluster.name, sentence)
        _call_once_about(cluster, newest or "none at all", sentence)
    return bool(sentence)


def _call_once_about(cluster: Cluster, newest: str, sentence: str) -> None:
    """Call the receivers that have yet to hear that this snapshot is the newest; next time, repeat failed calls."""
    from pulsar_advisor_airflow.configuration import page_link, with_host
    from pulsar_advisor_airflow.notifiers import call_people

    context = get_current_context()
    called = context["asset_state_store"][snapshot_validated(cluster)]
    about, *informed = called.get(_CALLED_ABOUT) or [""]
    if about != newest:
        informed = []
    call = {"cluster": cluster.name, "sentence": sentence, "link": with_host(page_link("clusters", cluster.name))}
    reached = call_people("snapshot.overdue", call, context, informed)
    for failure in reached.failures:
        log.error("the call about %s failed: %s", cluster.name, failure)
    if reached.receivers:
        called.set(_CALLED_ABOUT, [newest, *informed, *reached.receivers])


def append_to_history(cluster: str) -> list[str]:
    """Fold the snapshots that triggered the DAG run, if any did, into the tables of their days; returns these."""
    from pulsar_advisor.model.cluster.snapshot_id import day_of
    from pulsar_advisor.stages.fold import run as fold

    days = sorted({day_of(snapshot) for snapshot in _triggering_snapshots()})
    with as_airflow_errors():
        return [fold(_root(cluster), day, option("ledger") or None).line for day in days]


def seal_history(cluster: str) -> list[str]:
    """Fold late snapshots into the days before today; returns these. Skipped in a run that a snapshot triggered."""
    from pulsar_advisor.stages.fold import fold_until

    if _triggering_snapshots():
        raise AirflowSkipException("days are sealed at night")
    with as_airflow_errors():
        return [day.line for day in fold_until(_root(cluster), f"{datetime.now(UTC):%Y%m%d}", option("ledger") or None)]


def thin_history(cluster: str, retention: str) -> list[str]:
    """Remove a cluster's outdated raw files, snapshots and folded days; returns what was removed, by day."""
    from pulsar_advisor.snapshots.retention import lifetimes_of
    from pulsar_advisor.stages.thin import run as thin
    from pulsar_advisor_airflow.ledger import opened_ledger

    root = _root(cluster)
    with as_airflow_errors():
        with opened_ledger(root):
            pass  # before the first proposal there is no ledger, and nothing is removed without one
        address = option("ledger") or root.ledger_url
        return list(thin(root, lifetimes_of(retention), address, datetime.now(UTC), dry_run=False).lines())


def write_index() -> str:
    """Write the page over all clusters of the root; returns its location."""
    from pulsar_advisor.stages.index import run
    from pulsar_advisor_airflow.ledger import ledger_url_if_any

    root = _root("any")
    with as_airflow_errors():
        return run(root, DEFAULT_DAYS, ledger_url_if_any(root))


def audit_ledger() -> str:
    """Keep and return the ledger's head, if the ledger is unchanged and holds the events of earlier heads.

    The last head of any DAG run is in the state store of the ledger's asset, an inlet.
    """
    from pulsar_advisor.execution.ledger.audit import audit
    from pulsar_advisor.execution.ledger.chain import ChainHead
    from pulsar_advisor.execution.ledger.heads import keep, kept
    from pulsar_advisor_airflow.ledger import head_keepers, opened_ledger

    known = get_current_context()["asset_state_store"][audited_ledger()]
    with as_airflow_errors(), opened_ledger(_root("any")) as ledger:
        keepers = head_keepers()
        known_head = known.get(_HEAD)
        result = audit(ledger, [*([ChainHead.parse(known_head)] if known_head else []), *kept(keepers)])
        log.info(result.compared)
    if result.findings:
        raise AirflowFailException(plain(f"the ledger is not as it was written: {'; '.join(result.findings)}"))
    known.set(_HEAD, result.head)
    if failures := keep(ChainHead.parse(result.head), keepers):
        raise AirflowException("; ".join(failures))
    return result.head


def report_restart(cluster: str, digest: str, broker: str) -> None:
    """Announce, as this DAG run, that a roll's drained broker was restarted; it goes on once the cluster shows that."""
    from pulsar_advisor.execution.ledger.plans import recorded_plan
    from pulsar_advisor.execution.person import Person
    from pulsar_advisor.execution.roll.conduct import announce
    from pulsar_advisor_airflow.ledger import AUTHENTICATED_BY, opened_ledger

    context = get_current_context()
    with as_airflow_errors(), opened_ledger(_root(cluster)) as ledger:
        announce(ledger, recorded_plan(ledger, digest), broker, Person(context["dag"].dag_id, AUTHENTICATED_BY))


def restore_guard(cluster: str, plan: Mapping[str, str] | None = None) -> None:
    """Restore what a run on this cluster switched off and, because it ended abnormally, never restored.

    `plan` is one whose task has ended, unless this DAG run never began it: then another may be carrying it out. A roll
    that isn't over is given up until somebody goes on with it.
    """
    from pulsar_advisor.execution.ledger.lists import cluster_names
    from pulsar_advisor.execution.ledger.rolls import give_up, runs_of_roll
    from pulsar_advisor.execution.ledger.switches import switched_off
    from pulsar_advisor.execution.run.guard import left_off, warning
    from pulsar_advisor.model.errors import UsageError
    from pulsar_advisor.stages.apply import restore_what_was_left
    from pulsar_advisor_airflow.clusters import clusters
    from pulsar_advisor_airflow.hooks.pulsar_admin import PulsarAdminHook
    from pulsar_advisor_airflow.ledger import opened_ledger

    with as_airflow_errors(), opened_ledger(_root(cluster)) as ledger:
        if plan and _has_begun():
            give_up(ledger, plan["digest"])
            going_on = _await_end(ledger, plan["digest"])
            # Also an earlier turn's: what it has switched off, the next ones keep off.
            runs = {run.id for run in runs_of_roll(ledger, plan["digest"])}
            if going_on is not None and any(switch.run in runs for switch in switched_off(ledger)):
                raise AirflowException(
                    f"run {going_on} goes on, though its task has ended: the cluster's balancer is off"
                )
        for name in sorted(name for name in cluster_names(ledger, cluster) if left_off(ledger, name)):
            if (registered := clusters().get(cluster)) is None:
                off = "; ".join(warning(switch, name) for switch in left_off(ledger, name))
                raise UsageError(f"{off}; '{cluster}' has no entry in the registry any more: add it again")
            connection = PulsarAdminHook(registered.pulsar_conn_id).options()
            restore_what_was_left(name, ledger, connection.required_admin, logged(log.warning))
            if still := left_off(ledger, name):
                raise AirflowException(plain("; ".join(warning(switch, name) for switch in still)))


def _has_begun() -> bool:
    """Whether the task above this one that carries the plan out has begun to in this DAG run.

    Its state doesn't show that: if somebody ends the DAG run, Airflow skips a task that runs and one that never began.
    """
    ti = get_current_context()["ti"]
    return any(ti.xcom_pull(task_ids=sorted(ti.task.upstream_task_ids), key=BEGUN))


def _await_end(ledger: Ledger, digest: str) -> int | None:
    """Wait while a worker holds a run of a plan whose task has ended; until its lease expires, if it was killed.

    Then a run that no worker continues is ended, so that it doesn't keep others from its cluster; but a roll must know
    that a turn's run only lost its process. Returns the number of a run that goes on nevertheless.
    """
    from pulsar_advisor.execution.ledger.rolls import roll_of_plan, runs_of_roll
    from pulsar_advisor.execution.ledger.runs import LEASE_MS, end_unheld_run, is_held

    deadline_s = monotonic() + LEASE_MS / 1000
    while held := [run.id for run in runs_of_roll(ledger, digest) if is_held(ledger, run)]:
        if monotonic() >= deadline_s:
            return held[0]
        log.info("run %s is held by a worker that may be gone: waiting until it ends or its lease expires", held[0])
        sleep(_HOLDER_POLL_S)
    if roll_of_plan(ledger, digest) is None:
        end_unheld_run(ledger, digest, "its task in Airflow has ended")
    return None


def _require_as_sealed(root: Root, snapshot: str, stage: str) -> None:
    """Raise `Refused` if a stage's result for a snapshot isn't as the ledger sealed it; log if it wasn't sealed."""
    from pulsar_advisor.model.errors import UsageError
    from pulsar_advisor.stages.seal import require_as_sealed
    from pulsar_advisor_airflow.ledger import opened_ledger

    try:
        with opened_ledger(root) as ledger:
            why_not = require_as_sealed(ledger, root, snapshot, stage)
    except UsageError as error:  # an object store without a ledger
        why_not = str(error)
    if why_not:
        log.warning("%s: only a person can approve a plan of it", why_not)


def _is_newest(root: Root, snapshot: str) -> bool:
    """Whether metrics and messages may show a snapshot: a form may name one older than the last recommended on."""
    from pulsar_advisor_airflow.overdue import newest_advised

    return snapshot >= (newest_advised(root) or "")


def _root(cluster: str) -> Root:
    with as_airflow_errors():
        return root_at(option("root"), cluster)
