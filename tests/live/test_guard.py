"""The guard on real brokers: two hosts, an operator's own change, a refused restore, deletions that go unnoticed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.cluster import ClusterOptions, LiveCluster
from harness.configuration import CLUSTER_NAME
from harness.shell import ADVISOR
from live.plans import at, divide, plan_of, topics_inside
from live.starting import StartCluster
from pulsar_advisor.admin.connection import AdminConnection
from pulsar_advisor.admin.transport import AdminTransport
from pulsar_advisor.documents.apply_result import ApplyResult
from pulsar_advisor.execution.apply import apply_plan
from pulsar_advisor.execution.cluster.cluster_port import Override, Reply, Split, Unload
from pulsar_advisor.execution.cluster.cluster_writes import AdminCluster
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.opening import open_ledger
from pulsar_advisor.execution.run.guard.settings import GUARDED, OFF
from pulsar_advisor.execution.run.options import Work
from pulsar_advisor.model.cluster.bundle_range import format_range, parse_range
from pulsar_advisor.model.plans.plan import Step
from unit.execution.actors import approved, options_of
from unit.execution.doubles import split_step

pytestmark = [pytest.mark.live, pytest.mark.full]

SHEDDING, _ = GUARDED
NAMESPACE = "guarded/bundles"
BUNDLES = 8

ON_A_HOST_WHOSE_CLOCK_IS_AHEAD = """
import time
own, own_ns = time.time, time.time_ns
time.time, time.time_ns = lambda: own() + 200, lambda: own_ns() + 200 * 10**9
from pulsar_advisor.cli import main
main()
"""


class Demoted(AdminCluster):
    """Whose token loses its rights in mid-run: the broker itself refuses to change settings."""

    def __init__(self, transport: AdminTransport, without_rights: AdminTransport) -> None:
        super().__init__(transport)
        self.is_demoted = False
        self._without_rights = AdminCluster(without_rights)

    def send(self, write: Unload | Split | Override) -> Reply:
        demoted = self.is_demoted and isinstance(write, Override)
        return self._without_rights.send(write) if demoted else super().send(write)


@dataclass(frozen=True)
class Ground:
    """A cluster whose files leave its own balancer on, and a ledger."""

    cluster: LiveCluster
    port: Demoted
    ledger: Ledger
    folder: Path
    token: Path
    bundles: Iterator[str]
    """Those that weren't split yet; each has two topics."""

    def run(self, after_the_first_step: Callable[[], object]) -> ApplyResult:
        """Two bundles are split under the guard; something happens in between."""
        steps = [self._halved(number, next(self.bundles)) for number in (1, 2)]
        plan = approved(self.ledger, plan_of(self.cluster, *steps, cluster=CLUSTER_NAME))
        happened = False

        def progress(line: str) -> None:
            nonlocal happened
            print(line)
            if not happened and ": confirmed" in line:
                happened = True
                after_the_first_step()

        unhurried = {"pause_s": 1.0, "canary_hold_s": 0.0, "error_budget": 5}
        return apply_plan(plan, options_of(guard=True, **unhurried), Work(self.ledger, self.port, progress))

    def _halved(self, number: int, text: str) -> Step:
        lower, upper = parse_range(text)
        middle = (lower + upper) // 2
        children = tuple(format_range(*pair) for pair in ((lower, middle), (middle, upper)))
        halves = {"boundaries": (f"0x{middle:08x}",), "children": children}
        return at(split_step(number), self.cluster, NAMESPACE, text, **halves)

    def command(self, *words: str, program: tuple[str, ...] = (str(ADVISOR),)) -> tuple[int, str]:
        """One call of the command line; its exit code, and what it says."""
        place = ["--root", str(self.folder), "--cluster", CLUSTER_NAME]
        place += ["--ledger", f"sqlite:///{self.folder}/ledger.sqlite"]
        reach = [word for url in self.cluster.admin_urls for word in ("--admin-url", url)]
        reach = [*reach, "--token-file", str(self.token)] if "restore" in words else []
        command = [*program, *words, *place, *reach]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        print(ended.stdout, ended.stderr)
        return ended.returncode, ended.stdout + ended.stderr

    def overrides(self) -> dict[str, str]:
        values: dict[str, str] = self.cluster.admin.read("/brokers/configuration/values")
        return {setting: values[setting] for setting in GUARDED if setting in values}

    def effective(self) -> set[str]:
        """The settings in the memory of all brokers."""
        return {value for setting in GUARDED for value in self.port.effective(setting).values()}


@pytest.fixture(params=["4.0.8", "2.11.0", "4.0.8 on Oxia"])
def ground(request: pytest.FixtureRequest, start_cluster: StartCluster, tmp_path: Path) -> Iterator[Ground]:
    release, _, store = request.param.partition(" on ")
    on = dict.fromkeys(GUARDED, "true")
    cluster = start_cluster(
        ClusterOptions(
            release=release,
            brokers=2,
            token_authentication=True,
            oxia=store == "Oxia",
            cpu_sensor=False,
            settings={**on, **CALM},
        )
    )
    assert cluster.tokens is not None
    bundles = divide(cluster, NAMESPACE, BUNDLES)
    for topic in (topic for text in bundles for topic in topics_inside(NAMESPACE, text, 2)):
        cluster.admin.write("PUT", f"/{topic.replace('://', '/')}")
    token, reader = tmp_path / "token", tmp_path / "reader"
    token.write_text(cluster.tokens.super_user)
    reader.write_text(cluster.tokens.reader)
    urls = tuple(cluster.admin_urls)
    with (
        closing(open_ledger(f"sqlite:///{tmp_path}/ledger.sqlite")) as ledger,
        AdminTransport(AdminConnection(admin_urls=urls, token_file=token), writes=True) as transport,
        AdminTransport(AdminConnection(admin_urls=urls, token_file=reader), writes=True) as without_rights,
    ):
        yield Ground(cluster, Demoted(transport, without_rights), ledger, tmp_path, token, iter(bundles))


CALM = {"loadBalancerSheddingIntervalMinutes": "600"}
"""The cluster's own balancer is on, and has no turn before the test ends."""


def test_the_guard_knows_its_own_hand_and_leaves_no_broker_behind(ground: Ground) -> None:
    assert ground.effective() == {"true"}
    notices_deletions = ground.cluster.options.release != "2.11.0"

    def a_second_host_looks_on() -> None:
        assert ground.overrides() == dict.fromkeys(GUARDED, OFF)
        assert ground.effective() == {"false"}
        code, said = ground.command("guard", "restore", program=(sys.executable, "-c", ON_A_HOST_WHOSE_CLOCK_IS_AHEAD))
        assert (code, "nothing is left off" in said) == (0, True)
        assert ground.overrides() == dict.fromkeys(GUARDED, OFF)

    print("--- two hosts")
    ended = ground.run(a_second_host_looks_on)
    assert (ended.outcome, ended.exit_code) == ("done", 0), ended
    assert ground.effective() == {"true"}
    assert ground.overrides() == ({} if notices_deletions else dict.fromkeys(GUARDED, "true"))
    assert ("set instead of deleted" in ended.sentence) != notices_deletions

    print("--- a guard that somebody takes away")
    taken = ground.run(lambda: ground.cluster.admin.write("POST", f"/brokers/configuration/{SHEDDING}/true"))
    assert (taken.outcome, "the guard is gone" in taken.sentence) == ("partial", True), taken
    assert ground.overrides()[SHEDDING] == "true"

    print("--- a refused restore")
    refused = ground.run(lambda: setattr(ground.port, "is_demoted", True))
    assert (refused.outcome, refused.exit_code, refused.still_off) == ("done", 8, GUARDED), refused
    assert f"{SHEDDING} is still '{OFF}': answer 401" in refused.sentence
    assert ground.command("guard")[0] == 8
    ground.port.is_demoted = False
    assert ground.command("guard", "restore")[0] == 0
    assert ground.effective() == {"true"}

    print("--- an operator's own change")
    theirs = ground.run(lambda: ground.cluster.admin.write("POST", f"/brokers/configuration/{SHEDDING}/false"))
    assert (theirs.outcome, theirs.exit_code) == ("done", 0), theirs
    assert f"{SHEDDING} is 'false': someone has set it meanwhile, so it stays" in theirs.sentence
    assert ground.overrides()[SHEDDING] == "false"
    assert ground.command("guard")[0] == 0
