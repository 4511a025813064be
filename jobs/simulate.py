"""spark-submit entry point of `simulate`: tables in, the simulations' tables and their result file out."""

import sys

from cyclopts import App

from pulsar_advisor.cli.jobs import run_requested
from pulsar_advisor.cli.simulations import SimulationOptions
from pulsar_advisor.simulation.request import SimulationRequest
from pulsar_advisor.stages.simulate import run

app = App(help_flags=[], version_flags=[])


@app.default
def request(options: SimulationOptions = SimulationOptions()) -> SimulationRequest:
    """The request that the options of `pulsar-advisor simulate` make."""
    return options.request()


if __name__ == "__main__":
    raise SystemExit(run_requested("simulate", app, run, sys.argv[1:]))
