"""A cluster whose brokers are restarted, plans of a roll made from what it shows, and the people who carry it on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from pulsar_advisor.documents.apply_result import ApplyResult
from pulsar_advisor.execution.cluster.restart_port import Published
from pulsar_advisor.execution.consent.approval import approve, propose
from pulsar_advisor.execution.ledger.approvals import Terms
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.lists import summaries
from pulsar_advisor.execution.ledger.pauses import lift_pause_of_plan
from pulsar_advisor.execution.ledger.plan_states import states_of
from pulsar_advisor.execution.person import Person
from pulsar_advisor.execution.roll.conduct import Roll, go_on, mind_the_balancer
from pulsar_advisor.execution.roll.steering import announce, end, pause
from pulsar_advisor.execution.run.guard.settings import GUARDED, OFF
from pulsar_advisor.execution.throttle import ApplyThrottle
from pulsar_advisor.model.errors import ClusterUnreachable
from pulsar_advisor.model.plans.goal import ROLL, Goal
from pulsar_advisor.model.plans.plan import Plan, PlanDecision
from pulsar_advisor.model.plans.sealed import digest_of
from unit.execution.actors import ALICE, BOB, FOUR_EYES, approved
from unit.execution.doubles import (
    B1,
    B2,
    B3,
    BASKETS,
    LOWER,
    NAMESPACE,
    UPPER,
    FakeCluster,
    FakeTime,
    Killed,
    make_plan,
    unload_step,
    widen,
)

ORDER = (B1, B2, B3)
OLIVE = Person("olive", "airflow")
THROTTLE = ApplyThrottle(pause_s=1.0, canary_hold_s=1.0)


@dataclass
class RestartedCluster(FakeCluster):
    """A cluster whose brokers are restarted: all is well at once, unless said otherwise."""

    led_by: str = B3
    started: dict[str, int | None] = field(default_factory=lambda: dict.fromkeys(ORDER, 1))
    unhealthy: dict[str, str] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    """Bundles that the leader doesn't know to be where they are."""
    unreported: set[str] = field(default_factory=set)
    """Brokers of which the leader has the report from before their restart."""
    shows_the_leaders_view: bool = True

    def leader(self) -> str | None:
        return self.led_by

    def why_unhealthy(self, broker: str) -> str | None:
        return self.unhealthy.get(broker)

    def started_at_ms(self, broker: str) -> int | None:
        if broker not in self.brokers:
            raise ClusterUnreachable(f"http://{broker}: connection refused")
        return self.started[broker]

    def publishes_within_s(self) -> float:
        return 900.0

    def restart(self, broker: str) -> None:
        """Somebody restarts it; what it owned goes to another broker, as Pulsar decides."""
        self.started[broker] = (self.started[broker] or 0) + 1
        for bundle in self.owned_bundles(broker):
            self.owners[bundle] = next(other for other in ORDER if other != broker)

    def leaders_view(self) -> dict[str, Published] | None:
        if not self.shows_the_leaders_view:
            return None
        return {
            broker: Published(self.owned_bundles(broker) - self.unknown, 0 if broker in self.unreported else started)
            for broker, started in self.started.items()
        }


def rolled(time: FakeTime) -> RestartedCluster:
    """Four bundles in two namespaces: two on the first broker, one on each of the others; the third leads."""
    cluster = RestartedCluster(time)
    widen(cluster)
    cluster.owners |= {
        f"{NAMESPACE}/{LOWER}": B1,
        f"{NAMESPACE}/{UPPER}": B1,
        f"{BASKETS}/{LOWER}": B2,
        f"{BASKETS}/{UPPER}": B3,
    }
    return cluster


def roll_plan(cluster: FakeCluster, left: Sequence[str] = ORDER, **changes: object) -> Plan:
    """What `recommend` would make for these brokers: the first one's bundles go to those that need no restart first."""
    others = [broker for broker in ORDER if broker not in left] or list(left[1:])
    bundles = sorted(cluster.owned_bundles(left[0]))
    steps = []
    for number, bundle in enumerate(bundles, 1):
        namespace, _, text = bundle.rpartition("/")
        destination = others[number % len(others)] if others else None
        steps.append(unload_step(number, text, left[0], destination, namespace=namespace))
    owned = sum(len(cluster.owned_bundles(broker)) for broker in left)
    again = len(bundles) if len(left) == len(ORDER) else 0
    figures = {"moves": len(steps), "moves_in_all": owned + again, "moves_of_a_bundle": 2, "highest_usage_ratio": 0.6}
    decision = PlanDecision(acts_in_cycle=None, why_nothing=None, would_pulsar_act="", figures=figures)
    plan = make_plan(
        steps,
        shedder=ROLL,
        placement="",
        goal=Goal(ROLL, tuple(left), None, 0.85),
        decision=decision,
        snapshot=f"{datetime.fromtimestamp(cluster.time.ms / 1000, UTC):%Y%m%dT%H%M%SZ}",
    )
    return plan.model_copy(update=changes)


def approved_roll(ledger: Ledger, cluster: FakeCluster, **changes: object) -> Plan:
    """Proposed by Alice, approved by Bob for a day."""
    plan = roll_plan(cluster, **changes)  # type: ignore[arg-type]
    return approved(ledger, plan, consents=(), valid_for_s=24 * 3600, throttle=THROTTLE)


def drained(ledger: Ledger, cluster: str) -> Roll:
    """A roll of a cluster of this name in the root, whose first broker is drained."""
    time = FakeTime()
    time.ms = ledger.now_ms()  # by whose clock a plan may be too old, too
    pulsar = rolled(time)
    pulsar.name = f"live of {cluster}"

    def plan_of(left: Sequence[str]) -> Plan:
        plan = roll_plan(pulsar, left)
        identity = plan.identity.model_copy(update={"cluster_name": pulsar.name})
        return plan.model_copy(update={"cluster": cluster, "identity": identity})

    plan = plan_of(ORDER)
    propose(ledger, plan, ALICE)
    approve(ledger, plan, digest=digest_of(plan), approver=BOB, policy=FOUR_EYES, terms=Terms(throttle=THROTTLE))
    roll = roll_of(plan, ledger, pulsar, plan_anew=lambda goal: (plan_of(goal.brokers), None))
    go_on(roll)
    return roll


def roll_of(plan: Plan, ledger: Ledger, cluster: RestartedCluster, **changes: object) -> Roll:
    def plan_anew(goal: Goal) -> tuple[Plan, str | None]:
        cluster.time.pass_s(1)
        return roll_plan(cluster, goal.brokers), None

    roll = Roll(
        ledger=ledger,
        cluster=cluster,
        progress=lambda _line: None,
        clock=cluster.time.clock,
        plan=plan,
        leaders_view=cluster.leaders_view,
        plan_anew=plan_anew,
        policy=FOUR_EYES,
    )
    return replace(roll, **changes)  # type: ignore[arg-type]


def go_on_after(roll: Roll, broker: str, wait_s: float = 0.0) -> ApplyResult | None:
    """Olive says that a broker was restarted, and the roll goes on."""
    announce(roll.ledger, roll.plan, broker, OLIVE)
    return go_on(roll, wait_s)


def conducted(roll: Roll, cluster: RestartedCluster) -> list[str]:
    """Carry a roll on to its end, restarting whatever waits for it; the order of the restarts."""
    order: list[str] = []
    go_on(roll)
    while (seen := roll.look()).recorded.ended is None:
        assert seen.turn is not None
        assert seen.state == "drained"
        cluster.restart(seen.turn.broker)
        order.append(seen.turn.broker)
        go_on_after(roll, seen.turn.broker)
    return order


def outcome(result: ApplyResult | None) -> str | None:
    return None if result is None else result.outcome


def ended(roll: Roll) -> None:
    """Olive ends it, from where the cluster can be reached."""
    end(roll.ledger, roll.plan, OLIVE)
    mind_the_balancer(roll)


def die() -> None:
    raise Killed


def is_off(cluster: FakeCluster) -> list[bool]:
    """Whether the guard has switched each setting off."""
    return [cluster.overrides.get(setting) == OFF for setting in GUARDED]


def state_of(roll: Roll) -> str:
    """The roll's state, as lists show it."""
    shown = states_of(roll.ledger, roll.plan.cluster, summaries(roll.ledger, roll.plan.cluster))
    return next(one.state for one in shown if one.digest == digest_of(roll.plan))


def changed(plan: Plan, **changes: object) -> Plan:
    return plan.model_copy(update=changes)


def figures(plan: Plan, **changes: object) -> Plan:
    """The plan with other figures in its decision."""
    decision = plan.decision.model_dump() | {"figures": {**plan.decision.figures, **changes}}
    return changed(plan, decision=PlanDecision(**decision))


def stopped_turn(roll: Roll, ledger: Ledger, cluster: RestartedCluster) -> None:
    """The second turn is paused after its first move."""
    go_on(roll)
    cluster.restart(B1)
    cluster.once("after the call", lambda: pause(ledger, roll.plan, OLIVE))
    assert outcome(go_on_after(roll, B1)) == "partial"
    lift_pause_of_plan(ledger, roll.digest, OLIVE)
