"""spark-submit entry point of `recommend`: tables in, plans and their index out. The DAG names the proposer."""

import argparse

from pulsar_advisor.model.cluster_state import WANTED_VIEWS
from pulsar_advisor.planning.request import ALL, Limits, Request, what_if
from pulsar_advisor.stages.recommend import run
from pulsar_advisor.tables.job import run_job

if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--shedder", default=ALL, help="a shedder by Pulsar's class name, 'configured' or 'all'")
    parser.add_argument("--placement", default=ALL, help="a placement strategy by class name, 'configured' or 'all'")
    parser.add_argument("--splits", action=argparse.BooleanOptionalAction, default=True, help="recommend splits too")
    parser.add_argument("--set", action="append", default=[], help="what-if value for a Pulsar setting: KEY=VALUE")
    parser.add_argument("--view", choices=WANTED_VIEWS, default="judged", help="judged: fresh if any broker was read")
    parser.add_argument("--history", type=int, help="how many earlier snapshots to learn from")
    parser.add_argument("--max-unloads", type=int, help="maximum number of unloads per plan")
    parser.add_argument("--max-splits", type=int, default=10, help="maximum number of splits per plan")
    parser.add_argument("--seed", type=int, default=0, help="seed for Pulsar's random choices")
    mine, others = parser.parse_known_args()

    def wished() -> Request:
        """The request in the arguments; an invalid one is reported like any failure of the stage."""
        return Request(
            shedder=mine.shedder,
            placement=mine.placement,
            splits=mine.splits,
            what_if=what_if(mine.set),
            view=mine.view,
            history=mine.history,
            limits=Limits(mine.max_unloads, mine.max_splits),
            seed=mine.seed,
        )

    raise SystemExit(run_job("recommend", lambda spark, root, snapshot: run(spark, root, snapshot, wished()), others))
