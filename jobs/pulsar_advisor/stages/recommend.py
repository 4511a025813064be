"""`recommend`: computes plans, outcomes and the advice, one task per shedder with every placement strategy."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Final

from pulsar_advisor.documents.recommendation import Recommendation
from pulsar_advisor.lint.judge import judge
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.model.text.plain_text import plain
from pulsar_advisor.model.text.some_of import some_of
from pulsar_advisor.planning.advice.compare import Score
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.planning.situation import Situation
from pulsar_advisor.recommendation.left_alone import LeftAlone
from pulsar_advisor.recommendation.recommendation import recommendation
from pulsar_advisor.stages.recommend_shedder import ShedderTask, recommend_shedder
from pulsar_advisor.storage.index import update_index
from pulsar_advisor.storage.lease import held
from pulsar_advisor.storage.plans import read_plan
from pulsar_advisor.storage.root import PLANS, Snapshot
from pulsar_advisor.tables.background import in_background
from pulsar_advisor.tables.judged import (
    earlier_states,
    inputs_of,
    lint_case,
    published_beside,
    resolved_request,
    set_aside_by_checks,
    settings_of,
    state_of,
)
from pulsar_advisor.tables.settings_inputs import settings_inputs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_log = logging.getLogger(__name__)

_LONGEST: Final = ("OverloadShedder", "ThresholdShedder", "MinimalMoveShedder", "AvgShedder")
"""The shedders that may move most of a large cluster. Started last, one of them would run alone at the end."""


def check(snapshot: Snapshot, request: Request) -> None:
    """Raise errors for unusable settings and data now, rather than after Spark has started."""
    resolved_request(snapshot, request)
    inputs_of(snapshot)


def run(spark: Callable[[], SparkSession | None], snapshot: Snapshot, request: Request) -> Recommendation:
    """Compute and write the plans, the outcomes and, last, `recommendation.json`; returns what it says.

    `spark` gives the session, which may have to start first; meanwhile the simulations run, which need none. Without a
    session, this process asks the shedders.

    Raises `DataNotFit` without a passed validation of the same manifest, and `Refused` while another process makes
    plans of the snapshot: a result assembled from two requests would fit neither.
    """
    check(snapshot, request)
    folder = snapshot.folder(PLANS)

    @cache
    def plan_in(file: str) -> Plan:  # a plan of a large cluster takes a second and many megabytes
        return read_plan(str(folder / file))

    with held(folder, snapshot.id, f"plans of snapshot {snapshot} are being made") as lease:
        request = resolved_request(snapshot, request)
        alone = in_background(lambda: _left_alone(snapshot, request))
        scores = _scores(spark, snapshot, request, lease.nonce)
        manifest_sha256 = inputs_of(snapshot).manifest_sha256
        document = recommendation(alone.result(), scores, request, plan_in, manifest_sha256)
        lease.write(snapshot.result_file("recommend"), document.content())
    update_index(snapshot.root, snapshot.id)
    _log.info("snapshot %s: %s", snapshot, plain(document.advice.sentence))
    return document


def _left_alone(snapshot: Snapshot, request: Request) -> LeftAlone:
    """Read the cluster, and simulate it without a plan. A what-if is a proposal itself, so lint's aren't tried."""
    settings = settings_of(snapshot, request.what_if)
    state = state_of(snapshot, request.view, request.what_if)
    inputs = settings_inputs(snapshot)
    is_plain = request.goal is None and not request.what_if
    earlier = earlier_states(snapshot, state.view, request.history, request.what_if, settings.values)
    return LeftAlone.simulated(
        Situation.of(state, settings, earlier),
        [finding.change for finding in judge(lint_case(snapshot, state, inputs))] if is_plain else (),
        lambda what_if: resolve_settings(*inputs, what_if),
        request.seed,
        published_beside(snapshot, state),
        set_aside_by_checks(snapshot),
    )


def _scores(spark: Callable[[], SparkSession | None], snapshot: Snapshot, request: Request, nonce: str) -> list[Score]:
    """The scores of the plans that each shedder makes, on its executor if there is one."""
    # Loads Spark's Java side: imported here so that a refusal comes at once.
    from pulsar_advisor.tables.fan_out import fan_out

    tasks: dict[str, ShedderTask] = {
        shedder: {
            "root": snapshot.root.url,
            "cluster": snapshot.root.cluster,
            "snapshot": snapshot.id,
            "request": request.of(shedder).document(),
            "with_splits": shedder == request.shedders[0],
        }
        for shedder in sorted(request.shedders, key=lambda name: (*_LONGEST, name).index(name))
    }
    session = spark()
    _log.info("asking %s", some_of(request.shedders))
    answers = fan_out(session, tasks, partial(recommend_shedder, nonce))
    _log.info("simulating what happens next, and comparing")
    return [Score(**row) for shedder in request.shedders for row in json.loads(answers[shedder])]
