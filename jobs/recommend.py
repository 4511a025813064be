"""spark-submit entry point of `recommend`: tables in, plans and their index out, of strategies or of one goal.

The DAG names the proposer.
"""

import sys
from dataclasses import replace

from cyclopts import App

from pulsar_advisor.cli.jobs import run_requested
from pulsar_advisor.cli.options import GoalOptions, RequestOptions
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.stages.recommend import run

app = App(help_flags=[], version_flags=[])


@app.default
def request(options: RequestOptions = RequestOptions(), goal_options: GoalOptions = GoalOptions()) -> Request:
    """The request that the options of `pulsar-advisor recommend` make, or a goal."""
    wanted = goal_options.chosen()
    return replace(options.request() if wanted is None else options.request_for(wanted), proposer=None)


if __name__ == "__main__":
    raise SystemExit(run_requested("recommend", app, run, sys.argv[1:]))
