"""What one more container of the stack's network is answered, without credentials: run there, prints JSON.

    python stranger.py '{"airflow-apiserver": ["172.18.0.5", [8080]], …}'

Asks each port of each service for what a neighbour would try first. Python's own library alone, so that it runs in any
image with Python.
"""

from __future__ import annotations

import http.client
import json
import socket
import struct
import sys

LIMIT_S = 60.0

GET, POST = "GET", "POST"
REQUESTS: dict[str, tuple[tuple[str, str], ...]] = {
    "airflow-apiserver": (
        (GET, "/api/v2/version"),
        (GET, "/api/v2/monitor/health"),
        (GET, "/api/v2/dags"),
        (GET, "/api/v2/connections"),
        (POST, "/auth/token"),
        (GET, "/execution/health"),
        (GET, "/execution/connections/pulsar_default"),
        (GET, "/execution/variables/any"),
        (GET, "/edge_worker/v1/health"),
        (POST, "/edge_worker/v1/jobs/fetch/stranger"),
        (POST, "/edge_worker/v1/worker/stranger"),
        (GET, "/pulsar-advisor/"),
    ),
    "airflow-scheduler": ((GET, "/health"),),
    "airflow-triggerer": ((GET, "/log/any"),),
    "spark-master": ((GET, "/json/"), (POST, "/app/kill/"), (POST, "/driver/kill/"), (POST, "/v1/submissions/create")),
    "spark-worker": ((GET, "/json/"), (GET, "/logPage/")),
    "bookie": ((GET, "/heartbeat"), (GET, "/api/v1/config/server_config")),
    "broker-1": ((GET, "/admin/v2/brokers/configuration/runtime"), (GET, "/admin/v2/tenants"), (GET, "/metrics")),
    "zookeeper": ((GET, "/metrics"), (GET, "/commands")),
}
"""Tried at each port of the service that speaks HTTP."""


def answers(service: str, address: str, port: int) -> str:
    """What a port gives a stranger, in a few words."""
    if _http(address, port, GET, "/") is not None:
        asked = ((GET, "/"), *REQUESTS.get(service, ()))
        return "; ".join(f"`{method} {path}` {_http(address, port, method, path)}" for method, path in asked)
    return _postgresql(address, port) or _zookeeper(address, port) or "no word"


def _http(address: str, port: int, method: str, path: str) -> int | None:
    """The status, None where no HTTP is spoken."""
    connection = http.client.HTTPConnection(address, port, timeout=LIMIT_S)
    body, headers = (b"{}", {"Content-Type": "application/json"}) if method == POST else (None, {})
    try:
        connection.request(method, path, body=body, headers=headers)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def _said(address: str, port: int, message: bytes) -> bytes:
    try:
        with socket.create_connection((address, port), LIMIT_S) as connection:
            connection.sendall(message)
            connection.settimeout(LIMIT_S)
            return connection.recv(200)
    except OSError:
        return b""


def _postgresql(address: str, port: int) -> str | None:
    """PostgreSQL's first answer to its superuser."""
    parameters = b"user\0postgres\0database\0postgres\0\0"
    said = _said(address, port, struct.pack("!ii", len(parameters) + 8, 3 << 16) + parameters)
    if said[:1] != b"R" or len(said) < 9:
        return None
    way = struct.unpack("!i", said[5:9])[0]
    ways = {0: "lets everybody in", 10: "asks for a password (SCRAM)"}
    return f"PostgreSQL: {ways.get(way, way)}"


def _zookeeper(address: str, port: int) -> str | None:
    return "ZooKeeper: reads and writes" if _said(address, port, b"srvr").startswith(b"Zookeeper version") else None


if __name__ == "__main__":
    wanted: dict[str, tuple[str, list[int]]] = json.loads(sys.argv[1])
    found = {
        service: {port: answers(service, address, port) for port in ports}
        for service, (address, ports) in wanted.items()
    }
    print(json.dumps(found))
