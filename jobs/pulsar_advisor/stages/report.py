"""`report`: turns the results of the earlier stages into a report."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Mapping

from upath import UPath

from pulsar_advisor.documents.recommendation import Recommendation
from pulsar_advisor.execution.throttle import DEFAULT_THROTTLE
from pulsar_advisor.lint.judge import judge
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.configuration.settings import SETTING_KEYS
from pulsar_advisor.model.errors import StorageError
from pulsar_advisor.model.plans.plan import PlannedSetting
from pulsar_advisor.model.release import running_release
from pulsar_advisor.planning.plans.drift import drift
from pulsar_advisor.planning.plans.planned_settings import planned_settings
from pulsar_advisor.quality.history import quality_history, started_failing
from pulsar_advisor.reporting.combinations import shown_combination
from pulsar_advisor.reporting.forms import Form, rendered
from pulsar_advisor.reporting.page import ReportPage, build_page
from pulsar_advisor.reporting.verdict import Reader
from pulsar_advisor.splitting.registry import SPLIT_DECIDERS
from pulsar_advisor.stages.upgrade import preview_if_any
from pulsar_advisor.storage.files import write_chunks, write_output
from pulsar_advisor.storage.index import update_index
from pulsar_advisor.storage.plans import read_plan, read_recommendation
from pulsar_advisor.storage.results import read_validation
from pulsar_advisor.storage.root import PLANS, Snapshot
from pulsar_advisor.tables.earlier import good_before, validations_until
from pulsar_advisor.tables.judged import lint_case, state_of
from pulsar_advisor.tables.outcomes import outcomes_of
from pulsar_advisor.tables.settings_inputs import settings_inputs
from pulsar_advisor.tables.state import cluster_state

_log = logging.getLogger(__name__)


def run(
    snapshot: Snapshot,
    form: Form = "html",
    output: str | None = None,
    ledger_url: str | None = None,
    dag: str | None = None,
) -> tuple[ReportPage, str]:
    """Write the report of a snapshot's last recommendation; returns page and location. Raises as `report_page`."""
    page = report_page(snapshot, ledger_url, dag)
    return page, write_report(page, snapshot, form, output)


def report_page(snapshot: Snapshot, ledger_url: str | None = None, dag: str | None = None) -> ReportPage:
    """The report of the last recommendation of a snapshot. Raises `UsageError` if there is none.

    The ledger, if there is one, supplies its last event, in the form `audit verify --head` takes, and whether the plan
    was carried out. `dag` is the Airflow DAG that carries plans out, named in place of commands.
    """
    folder = snapshot.folder(PLANS)
    recommendation = read_recommendation(snapshot)
    validation = read_validation(snapshot)
    inputs = settings_inputs(snapshot)
    settings = {
        **planned_settings(resolve_settings(*inputs), SETTING_KEYS),
        **_settings_seen(recommendation, folder),
    }
    state = state_of(snapshot, recommendation.view, {})
    shown = shown_combination(recommendation, state, settings)
    head, why_not_again = _recorded(ledger_url, recommendation.advice.digest)
    return build_page(
        state,
        recommendation,
        None if shown is None else read_plan(str(folder / str(shown.plan))),
        validation,
        outcomes_of(snapshot, _plans_by_shedder(recommendation)),
        settings,
        reader=Reader(str(snapshot.root.location), dag, why_not_again),
        tool_version=running_release(),
        ledger_head=head,
        drift=drift_since_the_last_good_snapshot(snapshot),
        lint=judge(lint_case(snapshot, state, inputs)),
        takes_s=DEFAULT_THROTTLE.takes_s,
        upgrade=preview_if_any(snapshot, recommendation.manifest_sha256),
    )


def _plans_by_shedder(recommendation: Recommendation) -> Mapping[str, Collection[str]]:
    """The digests of the plans of each shedder, or plan kind, that made one.

    Without that of a split decider, which places nothing: its answers are beside those of another shedder than the
    Simple manager's, which has the same name.
    """
    deciders = {decider.name for decider in SPLIT_DECIDERS}
    plans = defaultdict[str, list[str]](list)
    for row in recommendation.combinations:
        if row.digest is not None and (row.placement or row.shedder not in deciders):
            plans[row.shedder].append(row.digest)
    return plans


def _recorded(ledger_url: str | None, digest: str | None) -> tuple[str | None, str]:
    """The ledger's last event, None without one, and why the plan can't be approved again; empty if it can.

    Of a ledger that can't be read, only the latter, as `approve` can't read it either.
    """
    # Loads database libraries, which a report without a ledger doesn't need.
    from pulsar_advisor.execution.consent.approval import why_not_again
    from pulsar_advisor.execution.ledger.opening import ledger_if_any

    try:
        with ledger_if_any(ledger_url) as ledger:
            if ledger is None:
                return None, ""
            why = None if digest is None else why_not_again(ledger, digest)
            return str(ledger.head()), why or ""
    except StorageError as error:
        return None, f"can't be looked up: {error}"


def _settings_seen(recommendation: Recommendation, folder: UPath) -> dict[str, PlannedSetting]:
    """The settings as the strategies saw them; in recommendations of earlier releases only the plans have them."""
    if recommendation.settings is not None:
        return dict(recommendation.settings)
    plans = (read_plan(str(folder / row.plan)) for row in recommendation.combinations if row.plan)
    return {key: setting for plan in plans for key, setting in plan.settings.items()}


def drift_since_the_last_good_snapshot(snapshot: Snapshot) -> tuple[str, ...] | None:
    """What changed since the last good snapshot, newly failing checks first; None if there is none."""
    before = good_before(snapshot)
    if before is None:
        return None
    return (
        *started_failing(quality_history(validations_until(snapshot))),
        *drift(
            cluster_state(before), cluster_state(snapshot), _effective_settings(before), _effective_settings(snapshot)
        ),
    )


def _effective_settings(snapshot: Snapshot) -> dict[str, str] | None:
    _, runtime, dynamic = settings_inputs(snapshot)
    return {**runtime, **dynamic} if runtime else None


def write_report(page: ReportPage, snapshot: Snapshot, form: Form, output: str | None) -> str:
    """Write a page in one form; returns its location. `output` None: `reports/cluster=…/snapshot=…/report.<form>`."""
    chunks = (chunk.encode() for chunk in rendered(page, form))
    if output:
        write_output(path := UPath(output), chunks)
    else:
        write_chunks(path := snapshot.folder("reports") / f"report.{form}", chunks)
        update_index(snapshot.root, snapshot.id)
    _log.info("the report of snapshot %s is %s", snapshot, path)
    return str(path)
