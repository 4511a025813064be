"""Runs a real Pulsar cluster as ordinary processes on loopback: ZooKeeper, perhaps Oxia, one bookie, brokers."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType, TracebackType

import requests

from harness import children, configuration, request_log, sensor
from harness.admin_api import AdminApi
from harness.artifacts import BROKER, DEFAULT_RELEASE, class_path, java_tool
from harness.certificates import Certificates, make_certificates
from harness.configuration import CLUSTER_NAME, READER_ROLE, SUPER_USER_ROLE, LoadManager
from harness.errors import ClusterDidNotStart, LiveClusterUnavailable
from harness.oxia import LiveOxia, running
from harness.ports import free_ports
from harness.tokens import signed_token

START_LIMIT_S = 600
STOP_LIMIT_S = 30
POLL_INTERVAL_S = 0.2
LOG_TAIL_LINES = 15


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """What to start. `settings` are broker.conf keys that override the harness's own.

    `settings_of` are those of single brokers, by their position, as are `machines`: what those brokers run on as far as
    the CPU sensor says. With `oxia`, the brokers keep their metadata there, and only BookKeeper's is in ZooKeeper.
    `plugins` are artifacts of the release that its brokers find beside their own.
    """

    release: str = DEFAULT_RELEASE
    load_manager: LoadManager = "modular"
    brokers: int = 3
    settings: Mapping[str, str] = field(default_factory=dict)
    settings_of: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    token_authentication: bool = False
    tls: bool = False
    oxia: bool = False
    plugins: tuple[str, ...] = ()
    cpu_sensor: bool = True
    machines: Mapping[int, sensor.Machine] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Addresses:
    """Where one broker may listen."""

    host: str
    web_port: int
    service_port: int
    tls_web_port: int
    tls_service_port: int


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of a cluster with authentication: one with all rights, and one of a valid role with none."""

    super_user: str
    reader: str


@dataclass(frozen=True, slots=True)
class LiveBroker:
    """One broker process, its release, and where it listens. `broker_id` is `host:port` of its web service.

    Only a cluster with TLS answers at the TLS addresses.
    """

    name: str
    release: str
    broker_id: str
    admin_url: str
    service_url: str
    tls_admin_url: str
    tls_service_url: str
    request_log: Path
    process: subprocess.Popen[bytes]


class LiveCluster:
    """A cluster that runs as long as the `with` block.

    Leaving it kills every process and deletes the directory. After an exception, or with `keep_logs` set, the logs
    and configuration files stay and are named on stderr.

    Attributes:
        options: what was asked for.
        directory: configuration, data and one log per process.
        brokers: the broker processes, in order of start.
        zookeeper: connect string.
        metadata_store: the brokers' `metadataStoreUrl`.
        machines: what each broker is said to run on, by its admin URL.
        tokens: with token authentication, else None.
        certificates: with TLS, beside the plain ports, else None.
        keep_logs: set it to keep the logs whatever happens.
    """

    def __init__(self, options: ClusterOptions | None = None, directory: Path | None = None) -> None:
        self.options = options or ClusterOptions()
        self.directory = directory or Path(tempfile.mkdtemp(prefix="pulsar-live-"))
        self.directory.mkdir(parents=True, exist_ok=True)
        self.brokers: list[LiveBroker] = []
        self.zookeeper = ""
        self.metadata_store = ""
        self.machines: dict[str, sensor.Machine] = {}
        self.tokens: Tokens | None = None
        self.certificates: Certificates | None = None
        self.keep_logs = False
        self._processes: list[subprocess.Popen[bytes]] = []
        self._stores = ExitStack()
        self._sensor: sensor.CpuSensor | None = None

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
    def admin(self) -> AdminApi:
        """The admin API, as super-user."""
        return AdminApi(self.admin_urls, self.tokens.super_user if self.tokens else None)

    @property
    def living_admin(self) -> AdminApi:
        """The admin API of the brokers that still run, as super-user."""
        living = [broker.admin_url for broker in self.brokers if broker.process.poll() is None]
        return AdminApi(living, self.tokens.super_user if self.tokens else None)

    @property
    def process_ids(self) -> list[int]:
        """The processes that are running now."""
        return [process.pid for process in self._processes if process.poll() is None]

    @property
    def has_cpu_skew(self) -> bool:
        """Whether each broker reports CPU usage by its own message rate (see `harness.sensor`), or all the host's."""
        return self._sensor is not None

    def write_requests(self) -> list[str]:
        """Every PUT, POST, DELETE and PATCH that the brokers' web services answered so far, oldest first.

        One line each, `METHOD path?query status broker-id`; a redirect counts once per hop. Includes all that was
        answered before this call.
        """
        writes: list[tuple[int, str]] = []
        for broker in self.brokers:
            if broker.process.poll() is None:
                request_log.catch_up(broker.request_log, self.admin, broker.admin_url)
            for time_ms, request in request_log.write_requests(broker.request_log):
                writes.append((time_ms, f"{request} {broker.broker_id}"))
        return [request for _, request in sorted(writes, key=lambda write: write[0])]

    def moves(self) -> list[str]:
        """Of these, the unloads and splits."""
        return [request for request in self.write_requests() if "/unload" in request or "/split" in request]

    def unloads(self) -> Counter[str]:
        """How often the brokers unloaded each bundle because they were asked to."""
        return request_log.unloads(request for request in self.write_requests() if " 204 " in request)

    def burn_cpu(self, broker: LiveBroker, cores: float) -> None:
        """Let something else on a broker's machine use these cores, as the CPU sensor has it, until called with 0."""
        machine = self._machine(self.brokers.index(broker))
        self.machines[broker.admin_url] = replace(machine, idle_cores=machine.idle_cores + cores)

    def kill_broker(self, broker: LiveBroker) -> None:
        """Kill one broker, as a crash would. It stays in `brokers`; ZooKeeper forgets it when its session ends."""
        children.kill(broker.process)

    def restart_broker(
        self,
        broker: LiveBroker,
        *,
        killed: bool = False,
        release: str = "",
        settings: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Stop a broker as an upgrade would, or kill it, and start it again; it is healthy when this returns.

        It may come back on another release of Pulsar, and with more settings. Its place in `brokers` is taken by one
        with the new process.
        """
        position = self.brokers.index(broker)
        broker = replace(broker, release=release or broker.release)
        if not killed:
            children.stop(broker.process, STOP_LIMIT_S)
        children.kill(broker.process)
        isolation = sensor.mount_isolation() if self.options.cpu_sensor else None
        wrapper = isolation.wrapper(self._counters(broker.name)) if isolation is not None else []
        conf = self.directory / f"{broker.name}.conf"
        with conf.open("a", encoding="utf-8") as lines:
            lines.writelines(f"{key}={value}\n" for key, value in settings.items())
        process = self._start_broker_process(broker.name, broker.release, conf, wrapper)
        self.brokers[position] = replace(broker, process=process)
        self._wait_until(self._healthy(broker), broker.name, process, time.monotonic() + START_LIMIT_S)

    def __enter__(self) -> LiveCluster:
        """Start everything and return when each broker answers its health check.

        Raises:
            LiveClusterUnavailable: the jars can't be had.
            ClusterDidNotStart: a process ended, or wasn't ready within `START_LIMIT_S`.
        """
        try:
            self._start()
        except BaseException as error:
            self.__exit__(type(error), error, error.__traceback__)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._sensor is not None:
            self._sensor.stop()
        while self._processes:
            children.kill(self._processes.pop())
        self._stores.close()
        never_started = isinstance(error, LiveClusterUnavailable)
        if self.keep_logs or (isinstance(error, Exception) and not never_started):
            for data in self._data_directories:
                shutil.rmtree(data, ignore_errors=True)
            print(f"The logs of the live cluster are in {self.directory}", file=sys.stderr)
        else:
            shutil.rmtree(self.directory, ignore_errors=True)

    @property
    def _data_directories(self) -> tuple[Path, Path]:
        return self.directory / "zookeeper", self.directory / "bookie"

    def _start(self) -> None:
        self._jars(self.options.release)  # here, as a download takes none of the time to start in
        deadline = time.monotonic() + START_LIMIT_S
        self._log4j.write_text(configuration.LOG4J, encoding="utf-8")
        ports = free_ports()
        addresses = [
            _Addresses(host, *(next(ports) for _ in range(4))) for host in _loopback_addresses(self.options.brokers)
        ]
        oxia = self._stores.enter_context(running(LiveOxia(self.directory / "oxia"))) if self.options.oxia else None
        self._start_zookeeper(next(ports), deadline)
        self._set_up_metadata(addresses[0], deadline)
        if oxia is not None:
            self.metadata_store = oxia.url
            bookkeeper = f"zk://{self.zookeeper}/ledgers"
            self._set_up_metadata(addresses[0], deadline, "--existing-bk-metadata-service-uri", bookkeeper)
        self._start_bookie(next(ports))
        if self.options.token_authentication:
            self._create_tokens()
        if self.options.tls:
            hosts = [address.host for address in addresses]
            self.certificates = make_certificates(self.directory / "certificates", hosts, SUPER_USER_ROLE)
        isolation = sensor.mount_isolation() if self.options.cpu_sensor else None
        for position, address in enumerate(addresses):
            self._start_broker(position, address, isolation)
        for broker in self.brokers:
            self._wait_until(self._healthy(broker), broker.name, broker.process, deadline)
        if isolation is not None:
            counters = {broker.admin_url: self._counters(broker.name) for broker in self.brokers}
            self._sensor = sensor.CpuSensor(counters, self.machines, self.admin)

    def _start_zookeeper(self, port: int, deadline: float) -> None:
        self.zookeeper = f"127.0.0.1:{port}"
        self.metadata_store = f"zk:{self.zookeeper}"
        data, _ = self._data_directories
        conf = self._write_conf("zookeeper", configuration.zookeeper(port, data))
        process = self._start_jvm("zookeeper", ["-Xmx128m"], "org.apache.zookeeper.server.ZooKeeperServerMain", conf)
        self._wait_until(lambda: _accepts(port), "zookeeper", process, deadline)

    def _set_up_metadata(self, broker: _Addresses, deadline: float, *more: str) -> None:
        # Writes BookKeeper's metadata too, unless that exists.
        process = self._start_jvm(
            "metadata",
            ["-Xmx128m"],
            "org.apache.pulsar.PulsarClusterMetadataSetup",
            *("--cluster", CLUSTER_NAME),
            *("--metadata-store", self.metadata_store),
            *("--configuration-metadata-store", self.metadata_store),
            *("--web-service-url", f"http://{broker.host}:{broker.web_port}"),
            *("--broker-service-url", f"pulsar://{broker.host}:{broker.service_port}"),
            *more,
        )
        try:
            exit_code = process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise self._did_not_start("metadata", f"did not end within {START_LIMIT_S} s") from None
        if exit_code != 0:
            raise self._did_not_start("metadata", f"ended with exit code {exit_code}")

    def _start_bookie(self, port: int) -> None:
        # Not waited for: brokers wait for it themselves.
        _, data = self._data_directories
        conf = self._write_conf("bookie", configuration.bookie(port, self.zookeeper, data))
        heap = ["-Xmx192m", "-XX:MaxDirectMemorySize=256m"]
        self._start_jvm("bookie", heap, "org.apache.bookkeeper.server.Main", "--conf", conf)

    def token_of(self, role: str) -> str:
        """A token that these brokers accept as the role's, in a cluster with token authentication."""
        return signed_token(self._key_file.read_bytes(), role)

    def _create_tokens(self) -> None:
        self._key_file.write_bytes(os.urandom(32))
        self.tokens = Tokens(super_user=self.token_of(SUPER_USER_ROLE), reader=self.token_of(READER_ROLE))

    @property
    def _key_file(self) -> Path:
        return self.directory / "token.key"

    def _start_broker(self, position: int, address: _Addresses, isolation: sensor.MountIsolation | None) -> None:
        name = f"broker-{position + 1}"
        settings = {
            **configuration.BROKER,
            "metadataStoreUrl": self.metadata_store,
            "configurationMetadataStoreUrl": self.metadata_store,
            **({"bookkeeperMetadataServiceUri": f"zk+null://{self.zookeeper}/ledgers"} if self.options.oxia else {}),
            "bindAddress": address.host,
            "advertisedAddress": address.host,
            "brokerServicePort": str(address.service_port),
            "webServicePort": str(address.web_port),
            "loadManagerClassName": configuration.LOAD_MANAGER_CLASSES[self.options.load_manager],
            **(configuration.authentication(self._key_file, self.tokens.super_user) if self.tokens else {}),
            **(
                configuration.tls(self.certificates, address.tls_web_port, address.tls_service_port)
                if self.certificates
                else {}
            ),
            **self.options.settings,
            **self.options.settings_of.get(position, {}),
        }
        wrapper: list[str] = []
        if isolation is not None:
            counters = self._counters(name)
            sensor.create_counters(counters, self._machine(position))
            wrapper = isolation.wrapper(counters)
        release = self.options.release
        process = self._start_broker_process(name, release, self._write_conf(name, settings), wrapper)
        admin_url = f"http://{address.host}:{address.web_port}"
        self.machines[admin_url] = self._machine(position)
        self.brokers.append(
            LiveBroker(
                name=name,
                release=release,
                broker_id=f"{address.host}:{address.web_port}",
                admin_url=admin_url,
                service_url=f"pulsar://{address.host}:{address.service_port}",
                tls_admin_url=f"https://{address.host}:{address.tls_web_port}",
                tls_service_url=f"pulsar+ssl://{address.host}:{address.tls_service_port}",
                request_log=self._request_log(name),
                process=process,
            )
        )

    def _start_broker_process(
        self, name: str, release: str, conf: Path, wrapper: Sequence[str]
    ) -> subprocess.Popen[bytes]:
        heap = ["-Xmx256m", "-XX:MaxDirectMemorySize=256m"]
        main_class = "org.apache.pulsar.PulsarBrokerStarter"
        return self._start_jvm(name, heap, main_class, "--broker-conf", conf, wrapper=wrapper, release=release)

    def _start_jvm(
        self,
        name: str,
        heap: list[str],
        main_class: str,
        *arguments: str | Path,
        wrapper: Sequence[str] = (),
        release: str = "",
    ) -> subprocess.Popen[bytes]:
        release = release or self.options.release
        logging = [
            f"-Dlog4j.configurationFile={self._log4j}",
            f"-Dharness.requests={self._request_log(name)}",
        ]
        java = [java_tool("java", release), *configuration.JVM_FLAGS, *heap, *logging, "-cp", self._jars(release)]
        process = children.start([*java, main_class, *arguments], self._log(name), wrapper=wrapper)
        self._processes.append(process)
        return process

    def _jars(self, release: str) -> str:
        return ":".join(class_path(release, artifact) for artifact in (BROKER, *self.options.plugins))

    def _write_conf(self, name: str, settings: Mapping[str, str]) -> Path:
        conf = self.directory / f"{name}.conf"
        conf.write_text("".join(f"{key}={value}\n" for key, value in settings.items()), encoding="utf-8")
        return conf

    @property
    def _log4j(self) -> Path:
        return self.directory / "log4j2.xml"

    def _machine(self, position: int) -> sensor.Machine:
        return self.options.machines.get(position, sensor.Machine())

    def _counters(self, name: str) -> Path:
        return self.directory / f"{name}.cpu"

    def _log(self, name: str) -> Path:
        return self.directory / f"{name}.log"

    def _request_log(self, name: str) -> Path:
        return self.directory / f"{name}.requests.log"

    def _healthy(self, broker: LiveBroker) -> Callable[[], bool]:
        def answers_ok() -> bool:
            with suppress(requests.RequestException):
                answer = self.admin.call("GET", "/admin/v2/brokers/health", url=broker.admin_url)
                return answer.status_code == 200 and answer.text.strip() == "ok"
            return False

        return answers_ok

    def _wait_until(
        self, ready: Callable[[], bool], name: str, process: subprocess.Popen[bytes], deadline: float
    ) -> None:
        while not ready():
            if process.poll() is not None:
                raise self._did_not_start(name, f"ended with exit code {process.returncode}")
            if time.monotonic() > deadline:
                raise self._did_not_start(name, f"was not ready within {START_LIMIT_S} s")
            time.sleep(POLL_INTERVAL_S)

    def _did_not_start(self, name: str, what: str) -> ClusterDidNotStart:
        log = self._log(name)
        tail = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_TAIL_LINES:])
        release = next((broker.release for broker in self.brokers if broker.name == name), self.options.release)
        return ClusterDidNotStart(f"{name} of Pulsar {release} {what}; its log {log} ends:\n{tail}")


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


def _accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
