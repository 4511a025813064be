"""A plan of an unload and a split, approved, and three served brokers to carry it out on from real processes."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from integration.served_cluster import RealTime, served
from pulsar_advisor.execution.ledger import open_ledger
from pulsar_advisor.model.plan import Identity, Plan, digest_of, dump_plan
from unit.execution.actors import approved
from unit.execution.doubles import LOWER, NAMESPACE, UPPER, FakeCluster, make_plan, split_step, unload_step

OVERRIDES = {"loadBalancerSheddingEnabled": "true"}
"""Dynamic settings that every run finds and has to leave behind."""


@dataclass(frozen=True)
class Scene:
    """A served cluster, an approved plan, and a ledger."""

    cluster: FakeCluster
    plan: Plan
    ledger_url: str
    folder: Path

    def command(self, *options: str, signal_at: tuple[int, int] = (0, 0)) -> list[str]:
        url = f"http://{min(self.plan.identity.broker_ids)}"
        place = ["--root", str(self.folder), "--cluster", self.plan.cluster, "--ledger", self.ledger_url]
        care = ["--pause-between", "0s", "--canary-hold", "0s", "--max-age", "3650d", "--guard"]
        program = [sys.executable, str(Path(__file__).with_name("applying.py")), str(self.folder)]
        plan = str(self.folder / "plan.json")
        return [*program, *map(str, signal_at), "apply", plan, *place, "--admin-url", url, *care, *options]

    def apply(self, *options: str, signal_at: tuple[int, int] = (0, 0)) -> subprocess.CompletedProcess[str]:
        command = self.command(*options, signal_at=signal_at)
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    def start(
        self, *where: str, options: tuple[str, ...] = (), signal_at: tuple[int, int] = (0, 0)
    ) -> subprocess.Popen[str]:
        """The same without waiting for it, `where` another program puts it."""
        command = [*where, *self.command(*options, signal_at=signal_at)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def instants(self) -> list[str]:
        """What the last process passed by, in order: before and after each write and each call."""
        return (self.folder / "instants").read_text().splitlines()

    def end(self) -> tuple[object, ...]:
        """Everything that must be the same however often the process died."""
        ledger = open_ledger(self.ledger_url)
        (run,) = ledger.runs(digest_of(self.plan))
        steps = [(step.step_id, step.state, step.observation) for step in ledger.steps(run.id).values()]
        ledger.close()
        cluster = self.cluster
        return run.state, run.sentence, steps, cluster.owners, cluster.boundaries(NAMESPACE), cluster.effects


def until(happened: Callable[[], object], limit_s: float = 60) -> None:
    """Wait for something that another process does."""
    deadline_s = time.monotonic() + limit_s
    while not happened():
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


@contextmanager
def scene(ledger_url: str, folder: Path, effect_after_s: float = 0.0) -> Iterator[Scene]:
    cluster = FakeCluster(RealTime(), effect_after_s=effect_after_s, overrides=dict(OVERRIDES))
    with served(cluster, 3) as (first, second, third):
        cluster.owners = {f"{NAMESPACE}/{LOWER}": first, f"{NAMESPACE}/{UPPER}": first}
        here = {"source": first, "expect": unload_step().expect.model_copy(update={"owner": first})}
        steps = unload_step().model_copy(update={**here, "destination": second}), split_step().model_copy(update=here)
        plan = make_plan(steps, identity=Identity(cluster_name="live", broker_ids=(first, second, third)))
        (folder / "plan.json").write_bytes(dump_plan(plan))
        ledger = open_ledger(ledger_url)
        approved(ledger, plan)
        ledger.close()
        yield Scene(cluster, plan, ledger_url, folder)


def assert_as_undisturbed(scene: Scene) -> None:
    state, sentence, steps, owners, boundaries, effects = scene.end()
    first, second, _ = scene.plan.identity.broker_ids
    lower, upper = (f"{NAMESPACE}/{bundle}" for bundle in (LOWER, UPPER))
    children = [f"{NAMESPACE}/{child}" for child in scene.plan.steps[1].children]
    assert (state, sentence) == ("done", "2 of 2 steps confirmed")
    assert [step[:2] for step in steps] == [("step-001", "confirmed"), ("step-002", "confirmed")]  # type: ignore[attr-defined]
    assert owners == {lower: second, **dict.fromkeys(children, first)}
    assert boundaries == ("0x00000000", "0x80000000", "0xbfffffff", "0xffffffff")
    assert scene.cluster.overrides == OVERRIDES
    assert effects == [lower, upper]
