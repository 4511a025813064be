"""Which runs a DAG may have, how long they may take, and whose tasks go first."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

NO_BACKFILL: Final = ("manual", "scheduled", "operator_triggered", "asset_triggered", "asset_materialization")
"""The types of run but `backfill`: runs for the past would all capture the present."""

STAGE_TIMEOUT: Final = timedelta(hours=1)
"""Of one try. The largest cluster measured takes minutes; a hung one would stop every snapshot after it."""

RUN_TIMEOUT: Final = timedelta(hours=4)
"""For a DAG run that needs no person: every try of its longest stage, and the rest."""

FIRST: Final[dict[str, int | str]] = {"priority_weight": 1_000, "weight_rule": "absolute"}
"""Arguments of the operators of a run that a person waits for: before those of scheduled runs."""

SOON: Final[dict[str, int | str]] = {"priority_weight": 100, "weight_rule": "absolute"}
"""The same for what calls people: before other scheduled runs."""

PARK_FROM_S: Final = 60.0
"""A shorter wait isn't worth the seconds that a new task process takes to start."""

WAITING_RUNS: Final = 50
"""DAG runs of a cluster at a time that wait for an answer: unanswered ones must not block an urgent one. The ledger
allows one active run per cluster."""
