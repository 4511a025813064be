"""`simulate` on an executor: one combination of strategies and settings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final, TypedDict

from pulsar_advisor.model.cluster.cluster_state import WantedView
from pulsar_advisor.model.errors import AdvisorError
from pulsar_advisor.planning.situation import Situation
from pulsar_advisor.simulation.load import Load, replayed
from pulsar_advisor.simulation.simulate import simulate
from pulsar_advisor.storage.lease import Lease
from pulsar_advisor.storage.root import Root, Snapshot
from pulsar_advisor.tables.judged import earlier_states, judged_state, settings_of, states_at
from pulsar_advisor.tables.simulations import (
    FOLDER,
    SCORES,
    Row,
    Rows,
    not_simulated,
    rows_of,
    scores_of_part,
    write_part,
)

_BUNDLES_AT_BOTH_ENDS: Final = 200_000
"""Up to this many bundles in all simulations together, each is also made at both ends of the base load, which takes
three times as long; beyond it, only those of the cluster's own strategies are."""


class SimulationTask(TypedDict):
    """What an executor needs to know for one simulation."""

    root: str
    cluster: str
    snapshot: str
    validation_sha256: str
    view: WantedView
    history: int | None
    cycles: int
    scale: float
    noise: float
    replayed: Sequence[str]
    """Earlier snapshots, oldest first."""
    shedder: str
    placement: str
    what_if: Mapping[str, str]
    seed: int
    tasks: int
    """Total number of simulations."""
    part: str
    """The name of its files."""


def simulate_combination(nonce: str, task: SimulationTask) -> str:
    """Simulate and write the tables, unless a killed run did; returns the rows of scores as JSON.

    Raises `Refused` if the lease with this nonce, of the process that made the task, is lost.
    """
    snapshot = Root(task["root"], task["cluster"]).snapshot(task["snapshot"])
    scores = scores_of_part(snapshot, task["part"])
    if scores is None:
        rows = _simulated(snapshot, task)
        Lease(snapshot.id, snapshot.folder(f"{FOLDER}/result"), nonce).require()
        write_part(snapshot, task["part"], rows)
        scores = list(rows[SCORES])
    return json.dumps(scores)


def _simulated(snapshot: Snapshot, task: SimulationTask) -> Rows:
    what_if, shedder, placement = task["what_if"], task["shedder"], task["placement"]
    key: Row = {
        "shedder": shedder,
        "placement": placement,
        "what_if": " ".join(f"{name}={value}" for name, value in what_if.items()),
        "seed": task["seed"],
    }
    try:
        settings = settings_of(snapshot, what_if)
        state = judged_state(snapshot, task["view"], what_if, settings.values, task["validation_sha256"])
        earlier = earlier_states(snapshot, state.view, task["history"], what_if, settings.values)
        situation = Situation.of_fit(state, settings, earlier)
        before = states_at(map(snapshot.root.snapshot, task["replayed"]), state.view, what_if)
        simulation = simulate(
            shedder,
            placement,
            situation,
            cycles=task["cycles"],
            load=Load(task["scale"], task["noise"], replayed(state, before)),
            seed=task["seed"],
            both_ends=(shedder, placement) == situation.configured
            or task["tasks"] * len(state.bundles) <= _BUNDLES_AT_BOTH_ENDS,
        )
    except AdvisorError as error:
        return not_simulated(str(error), key)
    return rows_of(simulation, key)
