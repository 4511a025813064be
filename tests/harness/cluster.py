"""Runs a real Pulsar cluster as ordinary processes on loopback: ZooKeeper, one bookie, brokers."""

from __future__ import annotations

import os
import random
import re
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Literal, get_args
from urllib.parse import urlsplit

import requests

from harness import children, sensor
from harness.admin_api import AdminApi
from harness.artifacts import DEFAULT_RELEASE, class_path
from harness.tokens import signed_token

LoadManager = Literal["modular", "simple", "extensible"]
LOAD_MANAGERS: tuple[LoadManager, ...] = get_args(LoadManager)

CLUSTER_NAME = "live"
SUPER_USER_ROLE = "admin"
READER_ROLE = "reader"

START_LIMIT_S = 120
LOG_LIMIT_S = 10
POLL_INTERVAL_S = 0.25

# Below the kernel's ephemeral range (from 32768), so that no outgoing connection takes a port between choice and use.
_PORTS = range(15000, 32000)
_WRITE = re.compile(r'"(?P<method>PUT|POST|DELETE|PATCH) (?P<path>\S+) [^"]*" (?P<status>\d+)')

_LOAD_MANAGER_CLASSES: Mapping[LoadManager, str] = {
    "modular": "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl",
    "simple": "org.apache.pulsar.broker.loadbalance.impl.SimpleLoadManagerImpl",
    "extensible": "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl",
}

# jdk.internal.platform stays closed: with it open, a broker asks the JVM for its CPU usage and not the sensor's files.
_JVM_FLAGS = (
    *(
        f"--add-opens={package}=ALL-UNNAMED"
        for package in (
            "java.base/java.nio",
            "java.base/jdk.internal.misc",
            "java.base/sun.net",
            "java.base/java.util",
            "java.management/sun.management",
        )
    ),
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
)

# Every process logs to its own stdout; the brokers' HTTP requests go to a file of their own, which is counted.
_LOG4J = """\
<?xml version="1.0" encoding="UTF-8"?>
<Configuration status="WARN">
  <Appenders>
    <Console name="console"><PatternLayout pattern="%d{ISO8601} %-5p [%t] %c{1} - %m%n%throwable"/></Console>
    <File name="requests" fileName="${sys:harness.requests}" createOnDemand="true">
      <PatternLayout pattern="%d{UNIX_MILLIS} %m%n"/>
    </File>
  </Appenders>
  <Loggers>
    <Logger name="org.eclipse.jetty.server.RequestLog" level="info" additivity="false">
      <AppenderRef ref="requests"/>
    </Logger>
    <Root level="info"><AppenderRef ref="console"/></Root>
  </Loggers>
</Configuration>
"""

_BROKER_DEFAULTS: Mapping[str, str] = {
    "clusterName": CLUSTER_NAME,
    # One bookie.
    "managedLedgerDefaultEnsembleSize": "1",
    "managedLedgerDefaultWriteQuorum": "1",
    "managedLedgerDefaultAckQuorum": "1",
    # Several brokers on a few cores.
    "numIOThreads": "2",
    "numHttpServerThreads": "8",
    "numOrderedExecutorThreads": "2",
    "managedLedgerCacheSizeMB": "16",
    "bookkeeperNumberOfChannelsPerBookie": "1",
    "webSocketServiceEnabled": "false",
    "functionsWorkerEnabled": "false",
    "brokerShutdownTimeoutMs": "3000",
    # Acknowledged messages leave the disk after minutes, so that hours of load don't fill it.
    "managedLedgerMinLedgerRolloverTimeMinutes": "1",
    "managedLedgerMaxLedgerRolloverTimeMinutes": "3",
    # Statistics and reports as fast as the settings allow (host usage can't be sampled more often than every minute).
    "statsUpdateFrequencyInSecs": "5",
    "statsUpdateInitialDelayInSecs": "5",
    "loadBalancerReportUpdateMinIntervalMillis": "2000",
    "loadBalancerReportUpdateMaxIntervalMinutes": "1",
    "loadBalancerResourceQuotaUpdateIntervalMinutes": "1",
    "loadBalancerHostUsageCheckIntervalMinutes": "1",
    "loadBalancerOverrideBrokerNicSpeedGbps": "1",
    # The cluster doesn't balance itself while we look at it.
    "loadBalancerSheddingEnabled": "false",
    "loadBalancerAutoBundleSplitEnabled": "false",
    "loadBalancerAutoUnloadSplitBundlesEnabled": "false",
    # Thresholds that so small a load crosses: ThresholdShedder unloads and BundleSplitterTask splits, if asked.
    "loadBalancerBrokerThresholdShedderPercentage": "10",
    "loadBalancerBundleUnloadMinThroughputThreshold": "0.001",
    "loadBalancerNamespaceBundleMaxMsgRate": "500",
}


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """What to start. `settings` are broker.conf keys that override the harness's own."""

    release: str = DEFAULT_RELEASE
    load_manager: LoadManager = "modular"
    brokers: int = 3
    settings: Mapping[str, str] = field(default_factory=dict)
    token_authentication: bool = False
    cpu_sensor: bool = True


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of a cluster with authentication: all rights, and a valid role with none."""

    super_user: str
    reader: str


@dataclass(frozen=True, slots=True)
class LiveBroker:
    """One broker process and where it listens."""

    broker_id: str
    admin_url: str
    service_url: str
    request_log: Path
    process: subprocess.Popen[bytes]


class ClusterDidNotStart(Exception):
    """A process of the cluster ended or did not get healthy in time. Says which, with the end of its log."""


class LiveCluster:
    """A running cluster; use it as a context manager.

    Leaving the `with` block kills every process and deletes the directory; after an exception the directory stays,
    with all logs, and is named on stderr.

    Attributes:
        options: what was asked for.
        directory: configuration, data and one log per process.
        brokers: the broker processes, in order of start.
        zookeeper: connect string.
        tokens: with token authentication.
        has_cpu_skew: whether each broker reports CPU usage by its own message rate (see `harness.sensor`).
    """

    def __init__(self, options: ClusterOptions | None = None, directory: Path | None = None) -> None:
        self.options = options or ClusterOptions()
        self.directory = directory or Path(tempfile.mkdtemp(prefix="pulsar-live-"))
        self.directory.mkdir(parents=True, exist_ok=True)
        self.brokers: list[LiveBroker] = []
        self.zookeeper = ""
        self.tokens: Tokens | None = None
        self._processes: list[subprocess.Popen[bytes]] = []
        self._sensor: sensor.CpuSensor | None = None

    def __enter__(self) -> LiveCluster:
        try:
            self.start()
        except BaseException:
            self.stop(keep_directory=True)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop(keep_directory=error is not None)

    @property
    def admin_urls(self) -> list[str]:
        """The web service URL of every broker."""
        return [broker.admin_url for broker in self.brokers]

    @property
    def broker_ids(self) -> list[str]:
        """`host:port` of every broker's web service, as Pulsar names brokers."""
        return [broker.broker_id for broker in self.brokers]

    @property
    def service_url(self) -> str:
        """One URL for clients, naming every broker."""
        return "pulsar://" + ",".join(broker.service_url.removeprefix("pulsar://") for broker in self.brokers)

    @property
    def process_ids(self) -> list[int]:
        """The processes that are running now."""
        return [process.pid for process in self._processes if process.poll() is None]

    @property
    def has_cpu_skew(self) -> bool:
        """Whether CPU usage differs between brokers on this one host."""
        return self._sensor is not None

    def start(self) -> None:
        """Start everything and return when each broker answers its health check.

        Raises:
            LiveClusterUnavailable: the jars can't be had.
            ClusterDidNotStart: a process ended, or wasn't ready within `START_LIMIT_S`.
        """
        deadline = time.monotonic() + START_LIMIT_S
        self._class_path = class_path(self.options.release)
        (self.directory / "log4j2.xml").write_text(_LOG4J, encoding="utf-8")
        addresses = list(_loopback_addresses(self.options.brokers))
        ports = _free_ports()
        zookeeper_port, bookie_port = next(ports), next(ports)
        broker_ports = [(next(ports), next(ports)) for _ in addresses]
        self.zookeeper = f"127.0.0.1:{zookeeper_port}"

        self._start_zookeeper(zookeeper_port, deadline)
        self._set_up_metadata(addresses[0], *broker_ports[0], deadline)
        self._start_bookie(bookie_port)
        if self.options.token_authentication:
            self._create_tokens()
        isolation = sensor.mount_isolation() if self.options.cpu_sensor else None
        for number, (address, (web_port, service_port)) in enumerate(zip(addresses, broker_ports, strict=True), 1):
            self._start_broker(number, address, web_port, service_port, isolation)
        with ThreadPoolExecutor(len(self.brokers)) as pool:
            list(pool.map(lambda broker: self._wait_until_healthy(broker, deadline), self.brokers))
        if isolation is not None:
            self._sensor = sensor.CpuSensor(
                {broker.admin_url: self._cpu_counters(number) for number, broker in enumerate(self.brokers, 1)},
                self.admin,
            )

    def stop(self, *, keep_directory: bool = False) -> None:
        """Kill every process, brokers first. Can be called again."""
        if self._sensor is not None:
            self._sensor.stop()
        while self._processes:
            children.kill(self._processes.pop())
        if not keep_directory:
            shutil.rmtree(self.directory, ignore_errors=True)

    def kill_broker(self, broker: LiveBroker) -> None:
        """Kill one broker, as a crash would. It stays in `brokers`; ZooKeeper forgets it when its session ends."""
        children.kill(broker.process)

    @property
    def admin(self) -> AdminApi:
        """The admin API, as super-user."""
        return AdminApi(self.admin_urls, self.tokens.super_user if self.tokens else None)

    def cpu_percents(self) -> dict[str, float]:
        """CPU usage per broker id, 0..100, from the load reports (Modular and Simple)."""
        return cpu_percents(self.admin)

    def write_requests(self) -> list[str]:
        """Every PUT, POST, DELETE and PATCH the brokers' web services answered so far, oldest first.

        One line each, `METHOD path?query status broker-id`, from Jetty's request log. Redirects count once per hop.
        Everything answered before the call is in: each live broker is first asked for a marked page, and its log is
        read once that request shows up in it.
        """
        found: list[tuple[int, str]] = []
        for broker in self.brokers:
            for line in self._request_log(broker):
                if write := _WRITE.search(line):
                    text = f"{write['method']} {write['path']} {write['status']} {broker.broker_id}"
                    found.append((int(line.split(" ", 1)[0]), text))
        return [text for _, text in sorted(found, key=lambda entry: entry[0])]

    def _request_log(self, broker: LiveBroker) -> list[str]:
        if broker.process.poll() is None:
            marker = uuid.uuid4().hex
            self.admin.call("GET", "/status.html", url=broker.admin_url, params={"marker": marker})
            _wait(
                lambda: marker in broker.request_log.read_text(encoding="utf-8"),
                time.monotonic() + LOG_LIMIT_S,
                f"{broker.broker_id} to log the request with marker {marker}",
            )
        return broker.request_log.read_text(encoding="utf-8").splitlines()

    def _start_zookeeper(self, port: int, deadline: float) -> None:
        settings = {
            "tickTime": "2000",
            "dataDir": str(self.directory / "zookeeper"),
            "clientPort": str(port),
            "clientPortAddress": "127.0.0.1",
            "maxClientCnxns": "0",
            "admin.enableServer": "false",
            "forceSync": "no",
        }
        conf = self._write_conf("zookeeper", settings)
        process = self._start_jvm("zookeeper", ["-Xmx128m"], "org.apache.zookeeper.server.ZooKeeperServerMain", conf)
        self._wait_for("zookeeper", process, lambda: _accepts(port), deadline)

    def _set_up_metadata(self, address: str, web_port: int, service_port: int, deadline: float) -> None:
        # Writes BookKeeper's metadata too.
        process = self._start_jvm(
            "metadata",
            ["-Xmx128m"],
            "org.apache.pulsar.PulsarClusterMetadataSetup",
            *("--cluster", CLUSTER_NAME),
            *("--metadata-store", f"zk:{self.zookeeper}"),
            *("--configuration-metadata-store", f"zk:{self.zookeeper}"),
            *("--web-service-url", f"http://{address}:{web_port}"),
            *("--broker-service-url", f"pulsar://{address}:{service_port}"),
        )
        try:
            exit_code = process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise self._did_not_start("metadata", f"did not end within {START_LIMIT_S} s") from None
        if exit_code != 0:
            raise self._did_not_start("metadata", f"ended with exit code {exit_code}")
        self._processes.remove(process)

    def _start_bookie(self, port: int) -> None:
        data = self.directory / "bookie"
        settings = {
            "bookiePort": str(port),
            "metadataServiceUri": f"zk://{self.zookeeper}/ledgers",
            "allowLoopback": "true",
            "advertisedAddress": "127.0.0.1",
            "journalDirectory": str(data / "journal"),
            "ledgerDirectories": str(data / "ledgers"),
            "indexDirectories": str(data / "ledgers"),
            "diskUsageThreshold": "0.999",
            "diskUsageWarnThreshold": "0.998",
            "journalSyncData": "false",
            "journalMaxSizeMB": "64",
            "journalPreAllocSizeMB": "4",
            "entryLogSizeLimit": "67108864",
            "skipListSizeLimit": "16777216",
            "gcWaitTime": "60000",
            "httpServerEnabled": "false",
        }
        heap = ["-Xmx192m", "-XX:MaxDirectMemorySize=256m"]
        self._start_jvm(
            "bookie", heap, "org.apache.bookkeeper.server.Main", "--conf", self._write_conf("bookie", settings)
        )

    def _create_tokens(self) -> None:
        key = os.urandom(32)
        (self.directory / "token.key").write_bytes(key)
        self.tokens = Tokens(super_user=signed_token(key, SUPER_USER_ROLE), reader=signed_token(key, READER_ROLE))

    def _start_broker(
        self, number: int, address: str, web_port: int, service_port: int, isolation: sensor.MountIsolation | None
    ) -> None:
        name = f"broker-{number}"
        settings = {
            **_BROKER_DEFAULTS,
            "metadataStoreUrl": f"zk:{self.zookeeper}",
            "configurationMetadataStoreUrl": f"zk:{self.zookeeper}",
            "bindAddress": address,
            "advertisedAddress": address,
            "brokerServicePort": str(service_port),
            "webServicePort": str(web_port),
            "loadManagerClassName": _LOAD_MANAGER_CLASSES[self.options.load_manager],
            **self._authentication_settings(),
            **self.options.settings,
        }
        wrapper: list[str] = []
        if isolation is not None:
            counters = self._cpu_counters(number)
            sensor.create_counters(counters)
            wrapper = isolation.wrapper(counters)
        process = self._start_jvm(
            name,
            ["-Xmx256m", "-XX:MaxDirectMemorySize=256m"],
            "org.apache.pulsar.PulsarBrokerStarter",
            "--broker-conf",
            self._write_conf(name, settings),
            wrapper=wrapper,
        )
        self.brokers.append(
            LiveBroker(
                broker_id=f"{address}:{web_port}",
                admin_url=f"http://{address}:{web_port}",
                service_url=f"pulsar://{address}:{service_port}",
                request_log=self.directory / f"{name}.requests.log",
                process=process,
            )
        )

    def _authentication_settings(self) -> dict[str, str]:
        if self.tokens is None:
            return {}
        return {
            "authenticationEnabled": "true",
            "authorizationEnabled": "true",
            "authenticationProviders": "org.apache.pulsar.broker.authentication.AuthenticationProviderToken",
            "superUserRoles": SUPER_USER_ROLE,
            "tokenSecretKey": f"file://{self.directory / 'token.key'}",
            # For a broker's calls to itself and to the others.
            "brokerClientAuthenticationPlugin": "org.apache.pulsar.client.impl.auth.AuthenticationToken",
            "brokerClientAuthenticationParameters": f"token:{self.tokens.super_user}",
        }

    def _cpu_counters(self, number: int) -> Path:
        return self.directory / f"broker-{number}.cpu"

    def _start_jvm(
        self, name: str, heap: list[str], main_class: str, *arguments: str | Path, wrapper: list[str] | None = None
    ) -> subprocess.Popen[bytes]:
        flags = [*_JVM_FLAGS, *heap, f"-Dlog4j.configurationFile={self.directory / 'log4j2.xml'}"]
        flags.append(f"-Dharness.requests={self.directory / name}.requests.log")
        command = [*(wrapper or []), "java", *flags, "-cp", self._class_path, main_class, *arguments]
        process = children.start(command, self._log(name), directory=self.directory)
        self._processes.append(process)
        return process

    def _write_conf(self, name: str, settings: Mapping[str, str]) -> Path:
        conf = self.directory / f"{name}.conf"
        conf.write_text("".join(f"{key}={value}\n" for key, value in settings.items()), encoding="utf-8")
        return conf

    def _log(self, name: str) -> Path:
        return self.directory / f"{name}.log"

    def _wait_until_healthy(self, broker: LiveBroker, deadline: float) -> None:
        def healthy() -> bool:
            with suppress(requests.RequestException):
                answer = self.admin.call("GET", "/admin/v2/brokers/health", url=broker.admin_url)
                return answer.status_code == 200 and answer.text.strip() == "ok"
            return False

        name = broker.request_log.name.removesuffix(".requests.log")
        self._wait_for(name, broker.process, healthy, deadline)

    def _wait_for(
        self, name: str, process: subprocess.Popen[bytes], ready: Callable[[], bool], deadline: float
    ) -> None:
        while not ready():
            if process.poll() is not None:
                raise self._did_not_start(name, f"ended with exit code {process.returncode}")
            if time.monotonic() > deadline:
                raise self._did_not_start(name, f"was not ready within {START_LIMIT_S} s")
            time.sleep(POLL_INTERVAL_S)

    def _did_not_start(self, name: str, what: str) -> ClusterDidNotStart:
        log = self._log(name)
        tail = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-15:])
        return ClusterDidNotStart(f"{name} of Pulsar {self.options.release} {what}; its log {log} ends:\n{tail}")


def cpu_percents(admin: AdminApi) -> dict[str, float]:
    """CPU usage per broker id, 0..100, from the load reports (Modular and Simple; Extensible has none)."""
    reports = {urlsplit(url).netloc: admin.read("/broker-stats/load-report", url=url) for url in admin.urls}
    return {broker_id: 100 * report["cpu"]["usage"] / report["cpu"]["limit"] for broker_id, report in reports.items()}


def _wait(condition: Callable[[], bool], deadline: float, what: str) -> None:
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"Gave up waiting for {what}.")
        time.sleep(POLL_INTERVAL_S / 5)


def _loopback_addresses(count: int) -> Iterator[str]:
    """127.0.0.1, 127.0.0.2, … where the system answers on all of 127/8 (Linux), else the first for everyone."""
    for number in range(1, count + 1):
        address = f"127.0.0.{number}"
        with socket.socket() as probe:
            try:
                probe.bind((address, 0))
            except OSError:
                address = "127.0.0.1"
        yield address


def _free_ports() -> Iterator[int]:
    """Distinct ports that are free on every loopback address now, in random order: clusters start side by side."""
    for port in random.SystemRandom().sample(_PORTS, len(_PORTS)):
        with socket.socket() as probe:
            try:
                probe.bind(("", port))
            except OSError:
                continue
        yield port


def _accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
