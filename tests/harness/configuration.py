"""What the processes of a live cluster are configured with: small, fast to report, easy to unbalance."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args

from harness import request_log
from harness.certificates import Certificates

LoadManager = Literal["modular", "simple", "extensible"]
LOAD_MANAGERS: tuple[LoadManager, ...] = get_args(LoadManager)

CLUSTER_NAME = "live"
SUPER_USER_ROLE = "admin"
READER_ROLE = "reader"

LOAD_MANAGER_CLASSES: Mapping[LoadManager, str] = {
    "modular": "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl",
    "simple": "org.apache.pulsar.broker.loadbalance.impl.SimpleLoadManagerImpl",
    "extensible": "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl",
}

BROKER: Mapping[str, str] = {
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


def zookeeper(port: int, data: Path) -> dict[str, str]:
    """`zoo.cfg` of the one server."""
    return {
        "tickTime": "2000",
        "dataDir": str(data),
        "clientPort": str(port),
        "clientPortAddress": "127.0.0.1",
        "maxClientCnxns": "0",
        "admin.enableServer": "false",
        "forceSync": "no",
    }


def bookie(port: int, zookeeper: str, data: Path) -> dict[str, str]:
    """`bookkeeper.conf` of the one bookie: no sync to disk, small files, quick to give space back."""
    return {
        "bookiePort": str(port),
        "metadataServiceUri": f"zk://{zookeeper}/ledgers",
        "allowLoopback": "true",
        "advertisedAddress": "127.0.0.1",
        "listeningInterface": "lo",  # any value has it listen on the address above instead of everywhere
        "journalDirectory": str(data / "journal"),
        "ledgerDirectories": str(data / "ledgers"),
        "indexDirectories": str(data / "ledgers"),
        "diskUsageThreshold": "0.999",
        "diskUsageWarnThreshold": "0.998",
        "journalSyncData": "false",
        "journalMaxSizeMB": "64",
        "journalPreAllocSizeMB": "4",
        "journalMaxBackups": "0",
        "entryLogSizeLimit": "67108864",
        "skipListSizeLimit": "16777216",
        "gcWaitTime": "60000",
        "httpServerEnabled": "false",
    }


def authentication(key_file: Path, super_user_token: str) -> dict[str, str]:
    """The part of broker.conf that asks everyone for a token signed with this key."""
    return {
        "authenticationEnabled": "true",
        "authorizationEnabled": "true",
        "authenticationProviders": "org.apache.pulsar.broker.authentication.AuthenticationProviderToken",
        "superUserRoles": SUPER_USER_ROLE,
        "tokenSecretKey": f"file://{key_file}",
        # For a broker's calls to itself and to the others.
        "brokerClientAuthenticationPlugin": "org.apache.pulsar.client.impl.auth.AuthenticationToken",
        "brokerClientAuthenticationParameters": f"token:{super_user_token}",
    }


def tls(certificates: Certificates, web_port: int, service_port: int) -> dict[str, str]:
    """The part of broker.conf that opens TLS ports beside the plain ones; a client certificate is checked if sent."""
    return {
        "webServicePortTls": str(web_port),
        "brokerServicePortTls": str(service_port),
        "tlsCertificateFilePath": str(certificates.broker),
        "tlsKeyFilePath": str(certificates.broker_key),
        "tlsTrustCertsFilePath": str(certificates.authority),
    }


# A process logs to its stdout; the requests to a broker's web service go to a file of their own, which is counted.
# Shedders run only where shedding is switched on, and then explain every cycle at DEBUG.
_SHEDDERS_LOGGERS = "".join(
    f'<Logger name="org.apache.pulsar.broker.loadbalance.{name}" level="debug"/>'
    for name in (
        *("impl.OverloadShedder", "impl.ThresholdShedder", "impl.UniformLoadShedder", "impl.AvgShedder"),
        *("extensions.scheduler.TransferShedder", "extensions.scheduler.UnloadScheduler"),
    )
)
# From 5.0 on, the broker or bundle that a message is about isn't in its text, but in its context.
_LINE = r"%d{ISO8601} %-5p [%t] %c{1} - %m%replace{ %X}{ \{\}}{}%n%throwable"
_REQUEST_LOGGERS = "".join(
    f'<Logger name="{name}" level="info" additivity="false"><AppenderRef ref="requests"/></Logger>'
    for name in request_log.LOGGERS
)
LOG4J = f"""\
<?xml version="1.0" encoding="UTF-8"?>
<Configuration status="WARN">
  <Appenders>
    <Console name="console"><PatternLayout pattern="{_LINE}"/></Console>
    <File name="requests" fileName="${{sys:harness.requests}}" createOnDemand="true">
      <PatternLayout pattern="{request_log.PATTERN}"/>
    </File>
  </Appenders>
  <Loggers>
    {_REQUEST_LOGGERS}
    {_SHEDDERS_LOGGERS}
    <Root level="info"><AppenderRef ref="console"/></Root>
  </Loggers>
</Configuration>
"""

# jdk.internal.platform stays closed: with it open, a broker asks the JVM for its CPU usage and not the sensor's files.
JVM_FLAGS = (
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
    # Else a bookie of 5.0 takes `0:0:0:0:0:0:0:1%lo` for its address on a machine with IPv6, and refuses it.
    "-Djava.net.preferIPv4Stack=true",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
)
