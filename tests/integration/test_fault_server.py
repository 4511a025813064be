"""Whatever goes wrong, the ledger explains how the cluster looks, no step acts twice, and the token stays at home."""

from __future__ import annotations

import ssl
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from faults.runs import Outcome, seeded_run
from faults.server import FOREIGN_HOST, HOSTS, FaultServer, fault_server
from harness.certificates import make_certificates
from pulsar_advisor.admin.transport import AdminTransport
from pulsar_advisor.execution.cluster.cluster_port import Reply, Split, Unload
from pulsar_advisor.execution.cluster.cluster_writes import AdminCluster
from pulsar_advisor.model.errors import ClusterUnreachable

SEEDS, GROUP = 1_000, 10
WITH_TLS = 100
SAMPLED, SAMPLED_WITH_TLS = 10, 10
_MEMORY = Path("/dev/shm")
"""Where there is such a thing the ledgers of these runs don't wait for a disk."""


@pytest.fixture(scope="module")
def server() -> Iterator[FaultServer]:
    with fault_server() as running:
        yield running


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificates(tmp_path_factory.mktemp("trusted"), HOSTS, "client").authority


@pytest.fixture(scope="module")
def secure_server(authority: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultServer]:
    """Brokers that speak TLS; now and then one presents a certificate of an authority that isn't trusted."""
    strange = make_certificates(tmp_path_factory.mktemp("strange"), HOSTS, "client").authority
    with fault_server((_context(authority.parent), _context(strange.parent))) as running:
        yield running


def _context(folder: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "broker.pem", folder / "broker.key")
    return context


def groups(begin: int, end: int, sampled: int) -> list[object]:
    """First seeds of groups, so that the runs of `make test-full` can share the processors."""
    return [
        pytest.param(at, marks=[] if at < begin + sampled else [pytest.mark.full]) for at in range(begin, end, GROUP)
    ]


def carried_out(first_seed: int, server: FaultServer, authority: Path | None = None) -> list[Outcome]:
    """Ten runs, one after the other, and a line that says how long they took and how they ended."""
    began_s, outcomes = (time.monotonic(), time.process_time()), []
    for seed in range(first_seed, first_seed + GROUP):
        with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as folder:
            outcomes.append(seeded_run(seed, server, Path(folder), authority))
    calls, faults = sum(one.calls for one in outcomes), sum(len(one.faults) for one in outcomes)
    states = Counter(state for one in outcomes for state in one.states).most_common()
    took = f"{time.monotonic() - began_s[0]:.1f} s, {time.process_time() - began_s[1]:.1f} s of processor"
    ended = ", ".join(f"{number} {state}" for state, number in states)
    print(f"\nseeds {first_seed} to {first_seed + GROUP - 1}: {took}, {calls} calls, {faults} faults; steps: {ended}")
    return outcomes


@pytest.mark.slow
@pytest.mark.parametrize("first_seed", groups(0, SEEDS - WITH_TLS, SAMPLED))
def test_a_run_among_faults_is_explained_by_its_ledger(first_seed: int, server: FaultServer) -> None:
    assert [outcome for outcome in carried_out(first_seed, server) if outcome.problems] == []


@pytest.mark.slow
@pytest.mark.parametrize("first_seed", groups(SEEDS - WITH_TLS, SEEDS, SAMPLED_WITH_TLS))
def test_a_run_among_faults_of_brokers_with_tls_is_explained_by_its_ledger(
    first_seed: int, secure_server: FaultServer, authority: Path
) -> None:
    assert [outcome for outcome in carried_out(first_seed, secure_server, authority) if outcome.problems] == []


class Impatient(AdminCluster):
    """Sends everything again when clients have come back."""

    def send(self, write: Unload | Split) -> Reply:
        super().send(write)
        for _ in range(15):  # some time passes with every call
            with suppress(ClusterUnreachable):
                self.active_brokers()
        return super().send(write)


class Credulous(AdminCluster):
    """Believes that everything has worked, and looks no more."""

    def send(self, write: Unload | Split) -> Reply:
        self.owned_bundles = lambda broker: frozenset({f"{write.namespace}/{write.bundle}"})  # type: ignore[method-assign]
        return Reply(204, "")


class Trusting(AdminCluster):
    """Takes every host for one of the cluster's."""

    def __init__(self, transport: AdminTransport) -> None:
        super().__init__(transport)
        transport.trust_brokers([f"{FOREIGN_HOST}:1"])


@pytest.mark.full
@pytest.mark.parametrize(
    ("port", "noticed"),
    [
        (Impatient, "unloaded again after it had arrived"),
        (Credulous, "is confirmed"),
        (Trusting, "to a host outside the cluster"),
    ],
)
def test_the_audit_notices_an_apply_that_is_not_safe(
    server: FaultServer, tmp_path: Path, port: type[AdminCluster], noticed: str
) -> None:
    problems = []
    for seed in range(20):
        (tmp_path / str(seed)).mkdir()
        problems += seeded_run(seed, server, tmp_path / str(seed), port=port).problems
    assert [problem for problem in problems if noticed in problem]


def test_a_seed_gives_the_same_run_each_time(server: FaultServer, tmp_path: Path) -> None:
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
    assert seeded_run(7, server, tmp_path / "first") == seeded_run(7, server, tmp_path / "second")
