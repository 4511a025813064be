"""Ports on loopback: free ones, and what processes listen on."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from ipaddress import ip_address

import psutil


def free_port() -> int:
    """A port of 127.0.0.1 that is free now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
    return port


def listened_on_beyond_loopback(pids: Iterable[int]) -> set[str]:
    """Where these processes and their children listen for other machines, as `address:port`."""
    parents = [psutil.Process(pid) for pid in pids]
    processes = [*parents, *(child for parent in parents for child in parent.children(recursive=True))]
    listening = [
        connection.laddr
        for process in processes
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert listening, "these processes listen nowhere"
    return {f"{ip}:{port}" for ip, port in listening if not _is_loopback(ip)}


def _is_loopback(ip: str) -> bool:
    address = ip_address(ip)
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)
