"""Where a roll is, from the ledger alone: what was done, whose turn it is, and what is left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.rolls import RecordedRoll, RollTurn, roll_and_runs
from pulsar_advisor.execution.ledger.runs import is_held
from pulsar_advisor.execution.ledger.steps import steps_of_run
from pulsar_advisor.execution.ledger.tables import Run, StepRecord
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.model.plans.sealed import digest_of

TurnState = Literal["planned", "moving", "stopped", "moved", "drained"]
"""planned: nothing was sent yet. moving: a process carries out its plan. stopped: its run ended early, or lost its
process. moved: its plan was carried out, but it wasn't checked yet whether the broker has anything left. drained: the
broker has nothing left and waits for its restart."""

_IN_WORDS: Final[Mapping[TurnState, str]] = {
    "planned": "not drained yet",
    "moving": "being drained",
    "stopped": "drained in part",
    "moved": "drained except for bundles that came meanwhile",
    "drained": "drained, and waits for its restart",
}


@dataclass(frozen=True)
class Progress:
    """A roll so far."""

    roll: Plan
    recorded: RecordedRoll
    runs: tuple[Run, ...]
    """Oldest first."""
    steps: Mapping[int, Mapping[str, StepRecord]]
    """The steps of each run, by id."""
    run: Run | None
    """The newest run of the turn in progress."""
    state: TurnState | None
    """State of that turn; None between turns."""

    @property
    def turn(self) -> RollTurn | None:
        """The turn in progress."""
        return self.recorded.turn

    @property
    def begun(self) -> RollTurn:
        """The same, where its state shows that there is one."""
        assert self.turn is not None, "a turn that was begun"
        return self.turn

    @property
    def left(self) -> tuple[str, ...]:
        """The brokers not restarted yet, in the approved order, including the one whose turn it is."""
        assert self.roll.goal is not None, "as a roll has one"
        return tuple(broker for broker in self.roll.goal.brokers if broker not in self.recorded.restarted)

    @property
    def whose_turn(self) -> str:
        """The turn in progress, as a clause."""
        if self.turn is None:
            return "no turn is under way"
        return f"it is the turn of {self.turn.broker}, which is {_IN_WORDS[self.state or 'planned']}"

    @cached_property
    def moved(self) -> Mapping[str, int]:
        """How often each bundle was moved."""
        records = (record for steps in self.steps.values() for record in steps.values())
        return Counter(record.bundle for record in records if record.is_confirmed)

    @property
    def moves_left(self) -> int:
        """The number of moves left, as the newest plan expects."""
        if self.turn is None:
            last = self.recorded.turns[-1] if self.recorded.turns else None
            return last.moves_in_all - last.moves if last else moves_in_all(self.roll)
        of_turn = {} if self.run is None else self.steps[self.run.id]
        return max(0, self.turn.moves_in_all - sum(record.is_confirmed for record in of_turn.values()))


def moves_in_all(plan: Plan) -> int:
    """The moves of a roll from this plan on, as it expects."""
    figure = plan.decision.figures.get("moves_in_all")
    return figure if isinstance(figure, int) else 0


def progress_of(ledger: Ledger, roll: Plan) -> Progress:
    """The progress of a roll."""
    recorded, runs = roll_and_runs(ledger, digest_of(roll))
    steps = {run.id: steps_of_run(ledger, run.id) for run in runs}
    plan = None if recorded.turn is None else recorded.turn.plan
    run = next((one for one in reversed(runs) if one.digest == plan), None)
    return Progress(roll, recorded, tuple(runs), steps, run, _state(ledger, recorded, run))


def _state(ledger: Ledger, recorded: RecordedRoll, run: Run | None) -> TurnState | None:
    if recorded.turn is None:
        return None
    if recorded.is_drained:
        return "drained"
    if run is None or run.state in ("refused", "aborted") or recorded.is_turn_again:
        return "planned"
    if run.state == "done":
        return "moved"
    return "moving" if is_held(ledger, run) else "stopped"
