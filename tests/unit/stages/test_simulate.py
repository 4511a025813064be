"""What is simulated, and what ends a simulation before Spark is asked for anything."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from pulsar_advisor.model.errors import Refused, UsageError
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.simulation.request import SimulationRequest, grid
from pulsar_advisor.stages import simulate, simulate_combination
from pulsar_advisor.storage.lease import LEASE, held
from pulsar_advisor.storage.root import Root, Snapshot
from pulsar_advisor.tables.simulations import Rows
from written_tables import files_in

SNAPSHOT = "20261121T083000Z"
EARLIER = Path(__file__).parents[2] / "data" / "earlier" / "root"
CAPTURED = "20261122T093126Z"
GRACE = "loadBalancerSheddingGracePeriodMinutes"


def test_one_snapshot_is_simulated_by_one_process_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulate, "check", lambda *_: None)
    snapshot = Root(str(tmp_path), "test").snapshot(SNAPSHOT)
    with (
        held(snapshot.folder("simulations/result"), SNAPSHOT, "by the other"),
        pytest.raises(Refused, match="is being simulated by another process"),
    ):
        simulate.run(lambda: None, snapshot, SimulationRequest(Request()))


def test_a_snapshot_without_tables_is_not_simulated(recorded: Snapshot) -> None:
    with pytest.raises(UsageError, match="run `normalize` first"):
        simulate.check(recorded, SimulationRequest(Request("ThresholdShedder", "RoundRobinBrokerSelector")))


def test_more_snapshots_to_replay_than_there_are_end_it_before_anything_is_simulated() -> None:
    with pytest.raises(UsageError, match="of 3 earlier snapshots: 0 can be compared with 20261122T093126Z; give --rep"):
        simulate.check(Root(str(EARLIER), "live").snapshot(CAPTURED), SimulationRequest(Request(), replay=3))


def test_each_combination_point_and_seed_is_a_task() -> None:
    request = SimulationRequest(Request("AvgShedder", "all", seed=7), grid=grid([f"{GRACE}=1,2"]), seeds=2)
    tasks = list(simulate.tasks(Root(str(EARLIER), "live").snapshot(CAPTURED), request).values())
    assert len(tasks) == 6 * 2 * 2
    assert {(task["what_if"][GRACE], task["seed"]) for task in tasks} == {("1", 7), ("1", 8), ("2", 7), ("2", 8)}
    assert len({task["placement"] for task in tasks[:6]}) == 6
    assert len({task["part"] for task in tasks}) == len(tasks)


def test_the_configured_strategies_are_those_of_each_point() -> None:
    package = "org.apache.pulsar.broker.loadbalance.impl."
    shedding, placement = (f"loadBalancerLoad{role}Strategy" for role in ("Shedding", "Placement"))
    request = SimulationRequest(
        Request("configured", "configured"),
        what_if={placement: f"{package}RoundRobinBrokerSelector"},
        grid=grid([f"{shedding}={package}OverloadShedder,{package}UniformLoadShedder"]),
    )
    tasks = simulate.tasks(Root(str(EARLIER), "live").snapshot(CAPTURED), request).values()
    assert [(task["shedder"], task["placement"]) for task in tasks] == [
        ("OverloadShedder", "RoundRobinBrokerSelector"),
        ("UniformLoadShedder", "RoundRobinBrokerSelector"),
    ]


def simulations(root: Root) -> dict[str, bytes]:
    return files_in(Path(root.url) / "simulations")


def test_a_grid_that_was_killed_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, killed = (Root(str(tmp_path / name), "live") for name in ("whole", "killed"))
    for root in (whole, killed):
        shutil.copytree(EARLIER, root.url)
    request = SimulationRequest(Request("ThresholdShedder", "configured"), grid=grid([f"{GRACE}=1,2,3"]), cycles=2)
    simulate.run(lambda: None, whole.snapshot(CAPTURED), request)

    made: list[str] = []
    original = simulate_combination._simulated

    def dies_at_the_third(snapshot: Snapshot, task: simulate_combination.SimulationTask) -> Rows:
        made.append(task["part"])
        if len(made) == 3:
            raise KeyboardInterrupt
        return original(snapshot, task)

    monkeypatch.setattr(simulate_combination, "_simulated", dies_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        simulate.run(lambda: None, killed.snapshot(CAPTURED), request)
    simulate.run(lambda: None, killed.snapshot(CAPTURED), request)

    assert len(made) == 4
    assert simulations(killed) == simulations(whole)


def test_whoever_was_overtaken_adds_nothing_to_the_simulation_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Root(str(tmp_path / "root"), "live")
    shutil.copytree(EARLIER, root.url)
    snapshot = root.snapshot(CAPTURED)
    original, theirs = simulate_combination._simulated, dict[str, bytes]()

    def suspended(*of: Any) -> Rows:
        monkeypatch.undo()
        (snapshot.folder("simulations/result") / LEASE).unlink()
        simulate.run(lambda: None, snapshot, SimulationRequest(Request("AvgShedder", "configured"), cycles=2))
        theirs.update(simulations(root))
        return original(*of)

    monkeypatch.setattr(simulate_combination, "_simulated", suspended)
    request = SimulationRequest(Request("ThresholdShedder", "configured"), cycles=2)
    with pytest.raises(Refused, match="was taken over by another process"):
        simulate.run(lambda: None, snapshot, request)
    assert simulations(root) == theirs


def test_the_next_simulation_replaces_the_last(tmp_path: Path) -> None:
    root = Root(str(tmp_path / "root"), "live")
    shutil.copytree(EARLIER, root.url)
    for combinations in ("ThresholdShedder", "AvgShedder"):
        simulate.run(
            lambda: None, root.snapshot(CAPTURED), SimulationRequest(Request(combinations, "configured"), cycles=2)
        )
    assert len([name for name in simulations(root) if name.startswith("scores")]) == 1
