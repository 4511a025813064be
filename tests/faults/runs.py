"""Seeded runs of `apply` against the fault server, and what must be true of every one of them.

A seed gives a cluster, an approved plan for it, and everything that goes wrong while it is carried out. The audit
compares the ledger with what the cluster itself has noted.
"""

from __future__ import annotations

import random as random_module
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from pathlib import Path
from random import Random
from typing import Final

from pydantic import SecretStr

from faults.cluster import Change, Cluster
from faults.server import LONGEST_SILENCE_S, Faults, FaultServer
from pulsar_advisor.admin.connection import AdminConnection
from pulsar_advisor.admin.transport import AdminTransport
from pulsar_advisor.execution.apply import apply_plan
from pulsar_advisor.execution.cluster.cluster_writes import AdminCluster
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.opening import open_ledger
from pulsar_advisor.execution.ledger.runs import runs_of_plan
from pulsar_advisor.execution.ledger.steps import steps_of_run
from pulsar_advisor.execution.ledger.switches import switched_off
from pulsar_advisor.execution.ledger.tables import StepRecord
from pulsar_advisor.execution.run.guard.settings import GUARDED
from pulsar_advisor.execution.run.options import ApplyOptions, Work
from pulsar_advisor.model.cluster.bundle_range import format_range, parse_range
from pulsar_advisor.model.errors import AdvisorError
from pulsar_advisor.model.plans.plan import Identity, Plan, Step
from pulsar_advisor.model.plans.sealed import digest_of
from unit.execution.actors import approved, options_of
from unit.execution.doubles import FakeTime, forecast, make_plan, split_step, unload_step

TOKEN: Final = "the-token-of-a-super-user"
LOOK_S: Final = 5.0
"""Simulated seconds: what the cluster does by itself within them before a call can be later than the look before it."""
SHEDDING, _ = GUARDED
NAMESPACES: Final = ("shop/orders", "shop/baskets")
BOUNDARIES: Final = (0, 0x40000000, 0x80000000, 0xC0000000, 0xFFFFFFFF)


@dataclass(frozen=True)
class Outcome:
    """How one seeded run ended: in words, what went wrong on the way, and what must not be, if anything."""

    seed: int
    states: tuple[str, ...]
    faults: tuple[str, ...]
    calls: int
    problems: tuple[str, ...]


def seeded_run(
    seed: int,
    server: FaultServer,
    folder: Path,
    authority: Path | None = None,
    port: Callable[[AdminTransport], AdminCluster] = AdminCluster,
) -> Outcome:
    """Apply one plan, once more if it can be resumed, while faults happen, and audit it."""
    random_module.seed(seed)  # the pauses between repeated reads
    random, time = Random(seed), FakeTime()
    cluster = _cluster(random, server, time)
    owners = dict(cluster.owners)
    plan = _plan(random, cluster)
    faults = Faults(
        random,
        reads=random.choice((0.0, 0.01, 0.03, 0.1)),
        writes=random.choice((0.0, 0.3, 0.6, 0.9)),
        begin=random.choice((0, 15, 15, 15)),
    )
    faults.events += _events(random, cluster, server, time, plan)
    guarded = _Guarded(Random(-1 - seed), cluster)
    faults.events += guarded.events
    connection = AdminConnection(
        admin_urls=tuple(f"{server.scheme}://{broker}" for broker in cluster.brokers),
        token=SecretStr(TOKEN),
        tls_ca_file=authority,
        connect_timeout_s=LONGEST_SILENCE_S,
        read_timeout_s=LONGEST_SILENCE_S,
        write_timeout_s=LONGEST_SILENCE_S,
    )
    with closing(open_ledger(f"sqlite:///{folder}/ledger.sqlite", time.now_ms)) as ledger:
        approved(ledger, plan)
        server.serve(cluster, faults, time.pass_s)
        for resume in (False, True):
            if resume and not _can_be_resumed(ledger, plan):
                break
            with AdminTransport(connection, writes=True, sleep=time.pass_s) as transport:
                on_drift = random.choice(("stop", "skip"))
                limits = {"error_budget": 2, "canary_hold_s": 5, "pause_s": 2, "in_flight": random.choice((1, 2, 4))}
                limits["guard"] = guarded.is_asked
                options = options_of(resume=resume, on_drift=on_drift, **limits)
                _apply(plan, ledger, port(transport), options, time)
            time.pass_s(300)
            with server.lock:
                cluster.catch_up()
                faults.reads, faults.writes, faults.events = faults.reads / 4, faults.writes / 4, []
        problems = [*_audit(plan, ledger, cluster, owners), *guarded.problems(ledger), *_strange(server)]
        return Outcome(seed, _states(ledger, plan), tuple(faults.seen), faults.calls, tuple(problems))


class _Guarded:
    """The cluster's own balancer in a run with a guard, or without one; somebody may switch it off for good."""

    def __init__(self, random: Random, cluster: Cluster) -> None:
        self._cluster = cluster
        self.is_asked = random.random() < 0.5
        self._before = {SHEDDING: "true"} if random.random() < 0.5 else {}
        for setting, value in self._before.items():
            cluster.override(setting, value)
        cluster.misses_deletions = random.random() < 0.3
        self._theirs_at_s = -inf
        self.events: list[tuple[int, str, Callable[[], None]]] = []
        if random.random() < 0.3:
            self.events.append((random.randint(5, 60), "somebody's own false", self._set_by_somebody))

    def _set_by_somebody(self) -> None:
        self._theirs_at_s = self._cluster.now_s()
        self._cluster.override(SHEDDING, "false")

    def problems(self, ledger: Ledger) -> Iterator[str]:
        """What isn't as it was, unless somebody else set it, or the ledger has it as still off."""
        known = {switch.setting for switch in switched_off(ledger, self._cluster.name)}
        for setting in GUARDED:
            now, before = self._cluster.overrides.get(setting), self._before.get(setting)
            if self._theirs_at_s > -inf and setting == SHEDDING:
                # Between its last look and its call nothing but the cluster could keep the guard from writing.
                ours_at_s = [at_s for called, at_s in self._cluster.overridden_at_s if called == setting]
                looked_before = any(0 <= at_s - self._theirs_at_s <= LOOK_S for at_s in ours_at_s)
                if now != "false" and not looked_before:
                    yield f"{setting} is {now}, and somebody had set 'false'"
            elif setting not in known and now != before and not (now == "true" and self._cluster.misses_deletions):
                yield f"{setting} is {now}; it was {before}, and the ledger has nothing left off"


def _apply(plan: Plan, ledger: Ledger, cluster: AdminCluster, options: ApplyOptions, time: FakeTime) -> None:
    with suppress(AdvisorError):  # refused, or the cluster could not be read: the ledger says which
        apply_plan(plan, options, Work(ledger, cluster, lambda _line: None, time.clock))


def _cluster(random: Random, server: FaultServer, time: FakeTime) -> Cluster:
    cluster = Cluster(server.brokers, lambda: time.ms / 1000, random, manager=random.choice(("modular", "extensible")))
    cluster.leader = random.choice(cluster.brokers)
    for namespace in NAMESPACES:
        cluster.boundaries[namespace] = list(BOUNDARIES)
        cluster.topics[namespace] = [f"persistent://{namespace}/topic-{number}" for number in range(24)]
        cluster.owners |= {bundle: random.choice(cluster.brokers) for bundle in cluster.bundles(namespace)}
    cluster.idle = {bundle for bundle in cluster.owners if random.random() < 0.15}
    return cluster


def _plan(random: Random, cluster: Cluster) -> Plan:
    bundles = random.sample(sorted(cluster.owners), random.randint(1, 5))
    steps = [_step(number, bundle, random, cluster) for number, bundle in enumerate(bundles, 1)]
    usage = dict.fromkeys(cluster.brokers, 0.4)
    plan = make_plan(
        steps,
        identity=Identity(cluster_name=cluster.name, broker_ids=tuple(sorted(cluster.brokers))),
        load_manager=cluster.manager,
    )
    prediction = plan.predicted.model_copy(update={"before": forecast(usage), "after": forecast(usage)})
    return plan.model_copy(update={"predicted": prediction})


def _step(number: int, bundle: str, random: Random, cluster: Cluster) -> Step:
    namespace, _, text = bundle.rpartition("/")
    source = cluster.owners[bundle]
    made = unload_step(number, text, source)
    expect = made.expect.model_copy(
        update={"owner": source, "boundaries": tuple(f"0x{bound:08x}" for bound in BOUNDARIES)}
    )
    changes: dict[str, object] = {"namespace": namespace, "expect": expect}
    if random.random() < 0.35:
        lower, upper = parse_range(text)
        middle = lower + (upper - lower) // 2
        children = tuple(format_range(*pair) for pair in pairwise((lower, middle, upper)))
        cut = split_step(number, at=(f"0x{middle:08x}",))
        return cut.model_copy(update={**changes, "bundle": text, "source": source, "children": children})
    others = [broker for broker in cluster.brokers if broker != source]
    destination = random.choice(others) if random.random() < 0.85 else None
    return made.model_copy(update={**changes, "destination": destination})


def _events(
    random: Random, cluster: Cluster, server: FaultServer, time: FakeTime, plan: Plan
) -> Iterator[tuple[int, str, Callable[[], None]]]:
    """What happens to the cluster between two calls."""

    def owner_changes() -> None:
        bundle = random.choice([step.bundle_name for step in plan.steps])
        if bundle in cluster.owners:
            cluster.move(bundle, random.choice(cluster.active))

    def broker_dies() -> None:
        lost = random.choice([step.destination for step in plan.steps if step.destination] or list(cluster.active))
        cluster.die(lost)

    def leader_changes() -> None:
        cluster.leader = random.choice(cluster.active)

    def clock_jumps() -> None:
        time.set_ahead_s += random.choice((-3 * 3600, -60, 60, 300, 3 * 3600))

    def certificate() -> None:
        server.untrusted.add(random.choice(cluster.brokers))

    happenings = {
        "owner changes": owner_changes,
        "broker dies": broker_dies,
        "leader changes": leader_changes,
        "clock jumps": clock_jumps,
        "certificate of another host": certificate,
    }
    for _ in range(random.choice((0, 0, 1, 1, 2))):
        kind = random.choice(list(happenings))
        yield random.randint(5, 60), kind, happenings[kind]


def _can_be_resumed(ledger: Ledger, plan: Plan) -> bool:
    return any(run.state in ("active", "stopped") for run in runs_of_plan(ledger, digest_of(plan)))


def _states(ledger: Ledger, plan: Plan) -> tuple[str, ...]:
    runs = runs_of_plan(ledger, digest_of(plan))
    return tuple(step.state for step in steps_of_run(ledger, runs[-1].id).values()) if runs else ("refused",)


def _strange(server: FaultServer) -> Iterator[str]:
    if server.strange_connections:
        shown = "with the token" if TOKEN.encode() in server.strange_bytes else "without the token"
        yield f"{server.strange_connections} connections to a host outside the cluster, {shown}"


def _audit(plan: Plan, ledger: Ledger, cluster: Cluster, owners: dict[str, str]) -> Iterator[str]:
    """What the ledger says against what the cluster knows."""
    runs = runs_of_plan(ledger, digest_of(plan))
    if any(run.state == "active" for run in runs):
        yield "a run is still active though its process has ended"
    if any(run.state == "stopped" and not run.sentence for run in runs):
        yield "a run stopped without a reason"
    records = steps_of_run(ledger, runs[-1].id) if runs else {}
    if any(record.state == "sent" for record in records.values()) and runs[-1].state != "stopped":
        yield f"a step was sent, and the run is {runs[-1].state}: its outcome would never be observed"
    planned = {step.bundle_name for step in plan.steps}
    for change in cluster.history:
        if change.by == "call" and change.action != "assign" and change.bundle not in planned:
            yield f"{change.bundle} was touched by a call, and no step is about it"
    for step in plan.steps:
        bundle = step.bundle_name
        changes = [change for change in cluster.history if change.bundle == bundle]
        yield from (
            f"{step.id} ({step.action} {bundle}): {problem}"
            for problem in _contradictions(step, records.get(step.id), changes, cluster, owners[bundle])
        )


def _contradictions(
    step: Step, record: StepRecord | None, changes: Sequence[Change], cluster: Cluster, owner_before: str
) -> Iterator[str]:
    acted = [change for change in changes if change.by == "call" and change.action != "assign"]
    attempts, state = (record.attempts, record.state) if record else (0, "pending")
    bundle = step.bundle_name
    if len(acted) > attempts:
        yield f"it acted {len(acted)} times, and the ledger has {attempts} attempts"
    if state in ("pending", "skipped") and acted:
        yield f"it acted, and the ledger says {state}"
    for arrival, change in pairwise(changes):
        known = arrival.by == "call" or change.at_s - arrival.at_s > LOOK_S
        if change in acted and change.action == "unload" and change.before == step.destination and known:
            yield "it was unloaded again after it had arrived"
    if (step.action == "split" or step.destination is None) and len(acted) > 1:
        yield f"it acted {len(acted)} times"
    if state == "confirmed" and not acted and not any(change.by == "cluster" for change in changes):
        yield "it is confirmed, and nothing happened"
    if state == "confirmed" and step.action == "split":
        if missing := {int(bound, 16) for bound in step.boundaries} - set(cluster.boundaries[step.namespace]):
            yield f"its split is confirmed, and boundaries {missing} are missing"
    elif state == "confirmed" and step.destination is not None:
        arrived = [at for at, change in enumerate(changes) if change.after == step.destination]
        moved_on = arrived and any(change.by == "cluster" for change in changes[arrived[-1] + 1 :])
        if not arrived or (cluster.owners.get(bundle) != step.destination and not moved_on):
            yield f"its arrival at {step.destination} is confirmed, and it is on {cluster.owners.get(bundle)}"
    if not acted and not any(change.by == "cluster" for change in changes):
        now = cluster.owners.get(bundle)
        if now != owner_before:
            yield f"it went from {owner_before} to {now}, and nothing says why"
