"""`recommend` on an executor: one shedder with every placement strategy."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TypedDict

from pulsar_advisor.model.errors import AdvisorError
from pulsar_advisor.model.plans.canonical_json import Json
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.planning.advice.compare import no_score, score
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.planning.situation import Situation
from pulsar_advisor.recommendation.shedder_answers import ShedderAnswers
from pulsar_advisor.storage.lease import Lease
from pulsar_advisor.storage.plans import write_plan
from pulsar_advisor.storage.root import PLANS, Root
from pulsar_advisor.tables.judged import check_results, fit_states, inputs_of, settings_of
from pulsar_advisor.tables.outcomes import write_outcomes


class ShedderTask(TypedDict):
    """What an executor needs to know to ask one shedder."""

    root: str
    cluster: str
    snapshot: str
    request: Json
    with_splits: bool


def recommend_shedder(nonce: str, task: ShedderTask) -> str:
    """Read the cluster, ask the shedder, write plans and outcomes; returns the scores as JSON.

    Raises `Refused` if the lease with this nonce, of the process that made the task, is lost.
    """
    snapshot = Root(task["root"], task["cluster"]).snapshot(task["snapshot"])
    request = Request.from_document(task["request"])
    settings = settings_of(snapshot, request.what_if)
    inputs, checks = inputs_of(snapshot), check_results(snapshot)
    try:
        state, earlier = fit_states(snapshot, request.view, request.history, request.what_if, settings.values)
    except AdvisorError as error:
        return json.dumps([asdict(no_score(request.shedder, name, str(error))) for name in request.placements])
    situation = Situation.of_fit(state, settings, earlier)
    answers = ShedderAnswers.of(request, situation, with_splits=task["with_splits"])
    scores = []
    for made in answers.plans(inputs, checks):
        if isinstance(made, Plan):
            written = write_plan(snapshot.root, made)
            scores.append(score(made, state, file=written.file, digest=written.digest))
        else:
            scores.append(made)
    Lease(snapshot.id, snapshot.folder(PLANS), nonce).require()
    write_outcomes(snapshot, state, request.shedder, answers.proposals, [row.digest for row in scores if row.digest])
    return json.dumps([asdict(row) for row in scores])
