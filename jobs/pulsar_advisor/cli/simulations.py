"""The verbs `simulate` and `upgrade`: what becomes of the cluster, cycle by cycle."""

from __future__ import annotations

from dataclasses import dataclass
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from pulsar_advisor.cli.options import Json, Master, SnapshotId, WholeNumber, WholeNumberIfAny
from pulsar_advisor.cli.output import print_json, result_of, say, say_lines, timed
from pulsar_advisor.cli.places import Place
from pulsar_advisor.cli.starting import spark_soon
from pulsar_advisor.model.bounds import DEFAULT_CYCLES
from pulsar_advisor.model.errors import DataNotFit
from pulsar_advisor.model.text.plain_text import plain
from pulsar_advisor.storage.root import LATEST

if TYPE_CHECKING:
    from pulsar_advisor.documents.simulation import SimulationResult
    from pulsar_advisor.simulation.request import SimulationRequest


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SimulationOptions:
    """What to simulate."""

    shedder: str = "all"
    """A shedder by Pulsar's class name, 'configured' for the cluster's own, or 'all'."""
    placement: str = "all"
    """A placement strategy by Pulsar's class name, 'configured' for the cluster's own, or 'all'."""
    set: tuple[str, ...] = ()
    """What-if value for a Pulsar setting: KEY=VALUE; repeatable."""
    grid: tuple[str, ...] = ()
    """Several values for a Pulsar setting: KEY=A,B,C; repeatable. Every combination of values is simulated."""
    view: Literal["judged", "fresh", "published"] = "judged"
    """Which figures the simulation starts from, as for `recommend`."""
    history: WholeNumberIfAny = None
    """How many earlier snapshots the shedder learns from; by default those within the grace period of unloads."""
    cycles: WholeNumber = DEFAULT_CYCLES
    """The last cycle to simulate, unless nothing happens any more or a state repeats before."""
    load: float = 1.0
    """Load of every bundle, relative to the snapshot's."""
    noise: float = 0.0
    """How much the load of a bundle varies from cycle to cycle: 0.1 is about 10%."""
    replay: WholeNumber = 0
    """How many earlier snapshots to replay the load of, spaced as they were, before it is the snapshot's."""
    seed: WholeNumber = 0
    """Seed of random destinations, of the moments at which brokers measure, and of the noise."""
    seeds: WholeNumber = 1
    """How many seeds to simulate, counted from --seed."""

    def request(self) -> SimulationRequest:
        """The request these options make, checked."""
        from pulsar_advisor.planning.requests.request import Request, what_if
        from pulsar_advisor.simulation.request import SimulationRequest, grid

        combinations = Request(
            shedder=self.shedder,
            placement=self.placement,
            splits=False,
            view=self.view,
            history=self.history,
            seed=self.seed,
        )
        return SimulationRequest(
            combinations=combinations,
            what_if=what_if(self.set),
            grid=grid(self.grid),
            seeds=self.seeds,
            cycles=self.cycles,
            scale=self.load,
            noise=self.noise,
            replay=self.replay,
        )


def simulate(
    *,
    place: Place = Place(),
    snapshot: SnapshotId = LATEST,
    options: Annotated[SimulationOptions, Parameter(name="*")] = SimulationOptions(),
    master: Master = "local[*]",
    json: Json = False,
) -> None:
    """Simulate the cluster cycle by cycle under Pulsar's strategies: does it settle, and at what cost?

    Ends with exit code 3 if none of them can be simulated.
    """
    request, chosen = options.request(), place.at(snapshot)
    from pulsar_advisor.documents.simulation import NotSimulated
    from pulsar_advisor.stages.simulate import check
    from pulsar_advisor.stages.simulate import run as compute

    check(chosen, request)
    with timed("simulate"):
        document = compute(spark_soon(master, "simulate", chosen), chosen, request)
    is_refused = all(isinstance(score, NotSimulated) for score in document.scores)
    with result_of(DataNotFit.exit_code if is_refused else 0):
        print_json(document) if json else _show(document)


def upgrade(
    *,
    to: str,
    place: Place = Place(),
    snapshot: SnapshotId = LATEST,
    cycles: WholeNumber = DEFAULT_CYCLES,
    seed: WholeNumber = 0,
    seeds: WholeNumberIfAny = None,
    json: Json = False,
) -> None:
    """Say what an upgrade of Pulsar does to the cluster's own balancer, and what to set to keep it as it is.

    Parameters
    ----------
    to
        The release of the upgrade, such as 5.0.1.
    cycles
        The last cycle to simulate, unless nothing happens any more or a state repeats before.
    seed
        Seed of random destinations and of the moments at which brokers measure.
    seeds
        How many seeds to simulate, counted from --seed; by default 5, fewer above 10,000 bundles.
    """
    from pulsar_advisor.recommendation.upgrade import UpgradeRequest
    from pulsar_advisor.stages.upgrade import run

    request = UpgradeRequest(to, seed, seeds, cycles)
    with timed("upgrade"):
        preview = run(place.at(snapshot), request)
    if json:
        print_json(preview)
        return
    from pulsar_advisor.reporting.upgrade import upgrade_lines, upgrade_section

    say_lines(upgrade_lines(upgrade_section(preview), get_terminal_size().columns))


def _show(result: SimulationResult) -> None:
    """The table of all futures, in colours on a terminal, what Pulsar's own would do, and what is left out."""
    from rich.console import Console

    from pulsar_advisor.reporting.futures import futures, lines, own_sentence

    found = futures(result.scores, result.own)
    own = own_sentence(result.scores, result.own, result.switched_off_by)
    sentence = " ".join(plain(one) for one in (own, result.not_simulated) if one) or None
    console = Console()
    if console.is_terminal:
        from pulsar_advisor.cli.screens import print_futures

        print_futures(found, sentence, console)
        return
    say("\n".join(lines(found)))
    if sentence is not None:
        say(f"\n{sentence}")
