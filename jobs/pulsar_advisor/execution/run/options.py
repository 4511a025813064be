"""What work on a cluster takes, and the options of `apply`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from pulsar_advisor.execution.clock import SYSTEM_CLOCK, Clock
from pulsar_advisor.execution.cluster.cluster_port import ClusterPort
from pulsar_advisor.execution.cluster.probe import Probe, unprobed
from pulsar_advisor.execution.consent.policy import ApprovalPolicy
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.tables import Hold
from pulsar_advisor.execution.run.parking import Parking
from pulsar_advisor.execution.throttle import ThrottleChanges
from pulsar_advisor.model.plans.plan import Plan

Progress = Callable[[str], None]
"""Takes each line that says what happens."""
Interruption = Callable[[], str | None]
"""Why a run should end after the steps in flight; None while it should continue."""


def undisturbed() -> None:
    """An interruption that never occurs."""


@dataclass(frozen=True)
class Work:
    """What this process works on a cluster with: in a run or a roll, or to restore what an earlier run left off."""

    ledger: Ledger
    cluster: ClusterPort
    progress: Progress
    clock: Clock = SYSTEM_CLOCK
    interruption: Interruption = undisturbed


@dataclass(frozen=True)
class ApplyOptions:
    """The options of one `apply`."""

    throttle_changes: ThrottleChanges = field(default_factory=ThrottleChanges)
    """Limits of `ApplyThrottle` that replace the approved ones; each may only be stricter."""
    policy: ApprovalPolicy = field(default_factory=ApprovalPolicy)
    dry_run: bool = False
    resume: bool = False
    lifts_pause: bool = True
    """Whether going on lifts a pause of the run; false unless a person decided to go on."""
    until: datetime | None = None
    """From this moment on nothing is sent; the run ends once its steps in flight are done."""
    probe: Probe = unprobed
    """Publishes before each wave; a reason ends the run."""
    wait_for_holder: bool = False
    """Wait while another process holds the run instead of refusing: for a caller that is not retried."""
    park_from_s: float | None = None
    """Park the run when a pause is requested, or instead of waiting this long or longer. None: never."""
    turns_before: frozenset[int] | None = None
    """For a turn of a roll: the runs of the turns before it. None: the plan isn't such a turn."""
    waited: Parking | None = None
    """The wait that is over, for a parked run that is to go on."""
    last_held: Hold | None = None
    """What the caller held last; a run that others have gone on with since, and then stopped or parked, isn't for it.
    None: any run is."""
    on_held: Callable[[Hold], None] = lambda _hold: None
    """Learns what the caller holds, before it does anything with the run."""

    @property
    def is_turn(self) -> bool:
        """Whether the plan is a turn of a roll."""
        return self.turns_before is not None


@dataclass(frozen=True, kw_only=True)
class Attempt(Work):
    """One call of `apply_plan`."""

    plan: Plan
    options: ApplyOptions
