"""Runs a real Oxia as ordinary processes on loopback: a coordinator, and servers that share the shards."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness import children
from harness.certificates import Certificates
from harness.errors import ClusterDidNotStart, LiveClusterUnavailable
from harness.ports import free_ports

NAMESPACE = "broker"
ISSUER, AUDIENCE = "https://issuer.example", "oxia"
SHARDS = 4
START_LIMIT_S = 60
POLL_INTERVAL_S = 0.2
NO_METRICS = ("--metrics-addr", "127.0.0.1:0")
"""Metrics can't be switched off."""


class LiveOxia:
    """An Oxia with one namespace, each shard kept by every server.

    With `certificates`, its servers speak only TLS, to clients with a certificate. With `token_key`, a PEM file with a
    public key, they want a token from `ISSUER` for `AUDIENCE`, signed with the private key.
    """

    def __init__(
        self,
        directory: Path,
        servers: int = 1,
        certificates: Certificates | None = None,
        token_key: Path | None = None,
    ) -> None:
        ports = free_ports()
        self.directory = directory
        self.addresses = [f"127.0.0.1:{next(ports)}" for _ in range(servers)]
        """Of the servers, for clients."""
        self._internal_ports = [next(ports) for _ in range(servers)]
        self._coordinator_ports = (next(ports), next(ports))
        self._certificates = certificates
        self._token_key = token_key
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def url(self) -> str:
        """The `metadataStoreUrl`: the first server knows the others."""
        return f"oxia://{self.addresses[0]}/{NAMESPACE}"

    def kill_server(self, address: str) -> None:
        """Kill one server, as a crash would."""
        children.kill(self._processes[self.addresses.index(address)])

    def start(self) -> None:
        """Start everything; see `running`."""
        self.directory.mkdir(parents=True, exist_ok=True)
        for address, internal in zip(self.addresses, self._internal_ports, strict=True):
            data = self.directory / f"data-{internal}"
            self._run(
                *("server", "--public-addr", address, "--internal-addr", f"127.0.0.1:{internal}", *NO_METRICS),
                *("--data-dir", data / "db", "--wal-dir", data / "wal", *self._security()),
            )
        cluster = self.directory / "cluster.yaml"
        cluster.write_text(json.dumps(self._cluster()), encoding="utf-8")  # JSON is YAML
        public, internal = self._coordinator_ports
        self._run(
            *("coordinator", "--public-addr", f"127.0.0.1:{public}", "--internal-addr", f"127.0.0.1:{internal}"),
            *("--cconfig", cluster, "--file-clusters-status-path", self.directory / "status.json", *NO_METRICS),
        )
        deadline = time.monotonic() + START_LIMIT_S
        while not all(map(_is_ready, self._internal_ports)):
            if any(process.poll() is not None for process in self._processes) or time.monotonic() > deadline:
                log = (self.directory / "oxia.log").read_text(encoding="utf-8", errors="replace")
                raise ClusterDidNotStart(f"Oxia ended, or was not ready within {START_LIMIT_S} s:\n{log[-3000:]}")
            time.sleep(POLL_INTERVAL_S)

    def stop(self) -> None:
        """Kill whatever runs."""
        while self._processes:
            children.kill(self._processes.pop())

    def _security(self) -> list[str | Path]:
        words: list[str | Path] = []
        if (files := self._certificates) is not None:
            words += ["--tls-cert-file", files.broker, "--tls-key-file", files.broker_key]
            words += ["--tls-trusted-ca-file", files.authority, "--tls-client-auth"]
        if self._token_key is not None:
            issuers = {ISSUER: {"allowedAudiences": AUDIENCE, "staticKeyFile": str(self._token_key)}}
            words += ["--auth-provider-name", "oidc", "--auth-provider-params", json.dumps({"issuers": issuers})]
        return words

    def _cluster(self) -> dict[str, object]:
        servers = [
            {"public": address, "internal": f"127.0.0.1:{internal}"}
            for address, internal in zip(self.addresses, self._internal_ports, strict=True)
        ]
        namespace = {"name": NAMESPACE, "initialShardCount": SHARDS, "replicationFactor": len(servers)}
        return {"namespaces": [namespace], "servers": servers}

    def _run(self, *words: str | Path) -> None:
        self._processes.append(children.start(["oxia", *words], self.directory / "oxia.log"))


@contextmanager
def running(oxia: LiveOxia) -> Iterator[LiveOxia]:
    """Each server knows the leader of each shard when the block begins, and is killed when it ends.

    Raises:
        LiveClusterUnavailable: there is no `oxia` on the PATH.
        ClusterDidNotStart: a process ended, or wasn't ready within `START_LIMIT_S`.
    """
    if shutil.which("oxia") is None:
        raise LiveClusterUnavailable("needs `oxia`, the server of Oxia, on the PATH: build it from its source")
    try:
        oxia.start()
        yield oxia
    finally:
        oxia.stop()


def _is_ready(internal_port: int) -> bool:
    """Whether a server knows the leader of each shard."""
    asked = ["oxia", "health", "--host", "127.0.0.1", "--port", str(internal_port), "--service", "oxia-readiness"]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0
