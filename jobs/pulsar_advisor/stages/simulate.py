"""`simulate`: lets the cluster evolve under each combination of strategies and settings, a task each."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from pydantic import TypeAdapter

from pulsar_advisor.documents.simulation import NotSimulated, Simulated, SimulatedScore, SimulationResult, Strategies
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.model.release import running_release
from pulsar_advisor.model.text.some_of import count
from pulsar_advisor.planning.plans.own_balancer import shedding_switched_off_by
from pulsar_advisor.planning.proposals.configured import configured_of
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.planning.usage.scalable_topics import not_simulated
from pulsar_advisor.simulation.request import SimulationRequest
from pulsar_advisor.stages.simulate_combination import SimulationTask, simulate_combination
from pulsar_advisor.storage.files import sha256_hex
from pulsar_advisor.storage.lease import held
from pulsar_advisor.storage.results import read_manifest
from pulsar_advisor.storage.root import RESULT, Snapshot
from pulsar_advisor.tables.earlier import comparable_before
from pulsar_advisor.tables.judged import inputs_of, require_coverage, settings_of, state_of, warn_of_caveats
from pulsar_advisor.tables.simulations import FOLDER, Row, remove_other_parts, remove_simulations

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DIGITS: Final = 12
"""Digits of the hash of a simulation's request in the names of its files."""
_SCORES: Final = TypeAdapter(tuple[SimulatedScore | NotSimulated, ...])


def check(snapshot: Snapshot, request: SimulationRequest) -> None:
    """Raise errors for unusable settings and data now, rather than after Spark has started."""
    _combinations(snapshot, request)
    _replayed(snapshot, request.replay)
    inputs_of(snapshot)
    require_coverage(snapshot, request.combinations.view, settings_of(snapshot, {}).values)


def run(spark: Callable[[], SparkSession | None], snapshot: Snapshot, request: SimulationRequest) -> SimulationResult:
    """Simulate and, once the tables are written, write `result.json`; returns what it says.

    `spark` gives the session, which may have to start; without one, this process simulates. Each simulation writes its
    tables. A killed run continues where it was; a finished one starts over.

    Raises `DataNotFit` without a passed validation of the same manifest or if that excluded too much, and `Refused`
    while another process simulates the snapshot.
    """
    from pulsar_advisor.tables.fan_out import fan_out

    check(snapshot, request)
    folder = snapshot.folder(f"{FOLDER}/result")
    with held(folder, snapshot.id, f"snapshot {snapshot} is being simulated") as lease:
        if (folder / RESULT).exists():
            remove_simulations(snapshot)
        warn_of_caveats(snapshot, request.combinations.view)
        wanted = tasks(snapshot, request)
        answers = fan_out(spark(), wanted, partial(simulate_combination, lease.nonce))
        lease.require()
        remove_other_parts(snapshot, [task["part"] for task in wanted.values()])
        document = _document(snapshot, request, [row for answer in answers.values() for row in json.loads(answer)])
        lease.write(folder / RESULT, document.content())
    return document


def tasks(snapshot: Snapshot, request: SimulationRequest) -> dict[str, SimulationTask]:
    """One task per simulation, by id; placement varies fastest."""
    combinations = request.combinations
    each = [
        (shedder, placement, point, combinations.seed + number)
        for point, resolved in _combinations(snapshot, request)
        for shedder in resolved.shedders
        for number in range(request.seeds)
        for placement in resolved.placements
    ]
    validation_sha256 = inputs_of(snapshot).validation_sha256
    replayed = _replayed(snapshot, request.replay)
    found: dict[str, SimulationTask] = {}
    for number, (shedder, placement, point, seed) in enumerate(each):
        task: SimulationTask = {
            "root": snapshot.root.url,
            "cluster": snapshot.root.cluster,
            "snapshot": snapshot.id,
            "validation_sha256": validation_sha256,
            "view": combinations.view,
            "history": combinations.history,
            "cycles": request.cycles,
            "scale": request.scale,
            "noise": request.noise,
            "replayed": replayed,
            "shedder": shedder,
            "placement": placement,
            "what_if": point,
            "seed": seed,
            "tasks": len(each),
            "part": "",
        }
        made_of = {**task, "root": "", "release": running_release()}
        digest = sha256_hex(json.dumps(made_of, sort_keys=True).encode())[:_DIGITS]
        found[str(number)] = {**task, "part": f"part-{number:05}-{digest}.parquet"}
    return found


def _combinations(snapshot: Snapshot, request: SimulationRequest) -> list[tuple[dict[str, str], Request]]:
    """Each point of the grid with its combinations: its settings may change the cluster's own strategies."""
    manager = read_manifest(snapshot).load_manager
    return [
        (point, request.combinations.resolved(configured_of(manager, settings_of(snapshot, point).values)))
        for point in request.points()
    ]


def _replayed(snapshot: Snapshot, number: int) -> list[str]:
    """The earlier snapshots whose load is replayed, oldest first. Raises `UsageError` if there are fewer."""
    newest = list(islice(comparable_before(snapshot), number))
    if len(newest) < number:
        raise UsageError(
            f"can't replay the load of {count(number, 'earlier snapshot')}: {len(newest)} can be compared with "
            f"{snapshot}; give --replay at most that many"
        )
    return [one.id for one in reversed(newest)]


def _document(snapshot: Snapshot, request: SimulationRequest, scores: Sequence[Row]) -> SimulationResult:
    state = state_of(snapshot, request.combinations.view, {})
    settings = settings_of(snapshot, {})
    own = configured_of(state.load_manager, settings.values)
    return SimulationResult(
        cluster=snapshot.root.cluster,
        snapshot=snapshot.id,
        manifest_sha256=inputs_of(snapshot).manifest_sha256,
        view=state.view,
        model="base_load",
        request=Simulated(
            what_if=request.what_if,
            grid=request.grid,
            seed=request.combinations.seed,
            seeds=request.seeds,
            cycles=request.cycles,
            load=request.scale,
            noise=request.noise,
            replay=request.replay,
        ),
        interval_minutes=settings.values.load_balancer_shedding_interval_minutes,
        own=Strategies(shedder=own.shedder, placement=own.placement),
        switched_off_by=shedding_switched_off_by(settings.values),
        not_simulated=not_simulated(state, settings.values),
        scores=_SCORES.validate_python(scores),
    )
