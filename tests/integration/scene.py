"""An approved plan of unloads and a split, and three served brokers to carry it out on from real processes."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from integration.served_cluster import RealTime, served
from pulsar_advisor.execution.ledger.opening import open_ledger
from pulsar_advisor.execution.ledger.runs import runs_of_plan
from pulsar_advisor.execution.ledger.steps import steps_of_run
from pulsar_advisor.execution.run.preconditions import boundaries_after
from pulsar_advisor.model.plans.plan import Identity, Plan
from pulsar_advisor.model.plans.sealed import digest_of, dump_plan
from unit.execution.actors import approved
from unit.execution.doubles import (
    B1,
    B2,
    B3,
    BOUNDARIES,
    FakeCluster,
    make_plan,
    split_step,
    unload_step,
    wide_plan,
    widen,
)

OVERRIDES = {"loadBalancerSheddingEnabled": "true"}
"""Dynamic settings that every run finds and has to leave behind."""


@dataclass(frozen=True)
class Scene:
    """A served cluster, an approved plan, and a ledger."""

    cluster: FakeCluster
    owners_before: Mapping[str, str]
    plan: Plan
    ledger_url: str
    folder: Path
    in_flight: int

    def command(self, *options: str, event_at: tuple[int | str, int] = (0, 0)) -> list[str]:
        url = f"http://{min(self.plan.identity.broker_ids)}"
        place = ["--root", str(self.folder), "--cluster", self.plan.cluster, "--ledger", self.ledger_url]
        care = ["--pause-between", "0s", "--canary-hold", "0s", "--max-age", "3650d", "--guard"]
        care += ["--in-flight", str(self.in_flight)]
        program = [sys.executable, str(Path(__file__).with_name("applying.py")), str(self.folder)]
        plan = str(self.folder / "plan.json")
        return [*program, *map(str, event_at), "apply", plan, *place, "--admin-url", url, *care, *options]

    def apply(self, *options: str, event_at: tuple[int | str, int] = (0, 0)) -> subprocess.CompletedProcess[str]:
        command = self.command(*options, event_at=event_at)
        return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)

    def start(
        self, *where: str, options: tuple[str, ...] = (), event_at: tuple[int | str, int] = (0, 0)
    ) -> subprocess.Popen[str]:
        """The same without waiting for it, `where` another program puts it."""
        command = [*where, *self.command(*options, event_at=event_at)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def instants(self) -> list[str]:
        """What the last process passed by, in order: before and after each write and each call."""
        return (self.folder / "instants").read_text().splitlines()

    def end(self) -> tuple[object, ...]:
        """Everything that must be the same however often the process died."""
        ledger = open_ledger(self.ledger_url)
        (run,) = runs_of_plan(ledger, digest_of(self.plan))
        steps = [(step.step_id, step.state, step.observation) for step in steps_of_run(ledger, run.id).values()]
        ledger.close()
        cluster = self.cluster
        boundaries = {namespace: cluster.boundaries(namespace) for namespace in cluster.bounds}
        return run.state, run.sentence, steps, cluster.owners, boundaries, sorted(cluster.effects)


def until(happened: Callable[[], object], limit_s: float = 240) -> None:
    """Wait for something that another process does."""
    deadline_s = time.monotonic() + limit_s
    while not happened():
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


@contextmanager
def scene(
    ledger_url: str, folder: Path, effect_after_s: float = 0.0, in_flight: int = 1, cluster_name: str = "live"
) -> Iterator[Scene]:
    """An unload and a split; with several steps in flight, more of them, which are answered before their effect."""
    cluster = widen(FakeCluster(RealTime(), effect_after_s=effect_after_s, overrides=dict(OVERRIDES)))
    cluster.name = cluster_name
    cluster.answers_first = in_flight > 1
    with served(cluster, 3) as ids:
        served_as = dict(zip((B1, B2, B3), ids, strict=True))
        cluster.owners = {bundle: served_as[owner] for bundle, owner in cluster.owners.items()}
        model = wide_plan() if in_flight > 1 else make_plan([unload_step(), split_step()])
        steps = [
            step.model_copy(
                update={
                    "source": served_as[step.source],
                    "destination": served_as[step.destination] if step.destination else None,
                    "expect": step.expect.model_copy(update={"owner": served_as[step.source]}),
                }
            )
            for step in model.steps
        ]
        plan = make_plan(steps, identity=Identity(cluster_name=cluster_name, broker_ids=tuple(ids)))
        (folder / "plan.json").write_bytes(dump_plan(plan))
        ledger = open_ledger(ledger_url)
        approved(ledger, plan)
        ledger.close()
        yield Scene(cluster, dict(cluster.owners), plan, ledger_url, folder, in_flight)


@contextmanager
def unanswered_calls(run: Scene) -> Iterator[None]:
    """Brokers that answer the calls of a run only after the block."""
    answer = threading.Event()

    def at_work(what: str) -> None:
        if what == "the broker is at work":
            answer.wait(120)

    run.cluster.on_event = at_work
    try:
        yield
    finally:
        answer.set()


def assert_as_undisturbed(scene: Scene) -> None:
    state, sentence, steps, owners, boundaries, effects = scene.end()
    plan, expected = scene.plan, dict(scene.owners_before)
    bounds = dict.fromkeys(scene.cluster.bounds, BOUNDARIES)
    for step in plan.steps:
        owner = expected.pop(step.bundle_name)
        if step.action == "split":
            expected |= {f"{step.namespace}/{child}": owner for child in step.children}
            bounds[step.namespace] = boundaries_after(bounds[step.namespace], step.namespace, [step])
        else:
            expected[step.bundle_name] = str(step.destination)
    assert (state, sentence) == ("done", f"{len(plan.steps)} of {len(plan.steps)} steps confirmed")
    assert [step[:2] for step in steps] == [(step.id, "confirmed") for step in plan.steps]  # type: ignore[attr-defined]
    assert owners == expected
    assert boundaries == bounds
    assert scene.cluster.overrides == OVERRIDES
    assert effects == sorted(step.bundle_name for step in plan.steps)
