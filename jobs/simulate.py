"""spark-submit entry point of `simulate`: tables in, the simulations' tables and their result file out."""

import sys

from cyclopts import App

from pulsar_advisor.cli.simulations import SimulationOptions
from pulsar_advisor.simulation.request import SimulationRequest
from pulsar_advisor.stages.simulate import run
from pulsar_advisor.tables.job import run_job

app = App(help_flags=[], version_flags=[])


@app.default
def request(options: SimulationOptions = SimulationOptions()) -> SimulationRequest:
    """The request that the options of `pulsar-advisor simulate` make."""
    return options.request()


if __name__ == "__main__":
    command, bound, others, _ = app.parse_known_args(sys.argv[1:])
    raise SystemExit(
        run_job(
            "simulate",
            lambda spark, root, snapshot: run(lambda: spark, root, snapshot, command(*bound.args, **bound.kwargs)),
            others,
        )
    )
