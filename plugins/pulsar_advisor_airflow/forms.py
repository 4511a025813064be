"""The fields of the DAGs' forms. Strategy names come from the registries, so a new one is on offer at once."""

from __future__ import annotations

from airflow.sdk import Param

from pulsar_advisor.placement.registry import PLACEMENTS
from pulsar_advisor.shedding.registry import SHEDDERS

ALL = "all"

_VIEWS = {
    "judged": "those that were validated: fresh, if any broker was asked",
    "fresh": "fresh: as the brokers have them now",
    "published": "published: as the leader sees them in ZooKeeper",
}


def strategy_params(shedder: str, placement: str) -> dict[str, Param]:
    """What to recommend; the arguments are the defaults."""
    return {
        "shedder": Param(
            shedder,
            type="string",
            enum=[ALL, *(strategy.name for strategy in SHEDDERS)],
            values_display={ALL: "all, and advise the best"} | {s.name: f"{s.name}: {s.summary}" for s in SHEDDERS},
            title="Shedder",
            section="What to recommend",
        ),
        "placement": Param(
            placement,
            type="string",
            enum=[ALL, *(strategy.name for strategy in PLACEMENTS)],
            values_display={ALL: "all, and advise the best"} | {s.name: f"{s.name}: {s.summary}" for s in PLACEMENTS},
            title="Placement strategy",
            section="What to recommend",
        ),
        "splits": Param(True, type="boolean", title="Recommend splits too", section="What to recommend"),
        "view": Param(
            "judged",
            type="string",
            enum=list(_VIEWS),
            values_display=_VIEWS,
            title="Figures",
            section="What to recommend",
        ),
    }


STRATEGY_ARGUMENTS = (
    "--shedder={{ params.shedder }}",
    "--placement={{ params.placement }}",
    "{{ '--splits' if params.splits else '--no-splits' }}",
    "--view={{ params.view }}",
)
"""The same for the command line of `recommend`."""

LIMITS = {
    "max_unloads": Param(10, type="integer", minimum=0, maximum=1000, title="Unloads at most", section="Limits"),
    "max_splits": Param(2, type="integer", minimum=0, maximum=100, title="Splits at most", section="Limits"),
}

LIMIT_ARGUMENTS = ("--max-unloads={{ params.max_unloads }}", "--max-splits={{ params.max_splits }}")
