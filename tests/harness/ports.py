"""Ports on loopback: free ones, and what processes listen on."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterable, Iterator
from ipaddress import ip_address

import psutil

# Below the kernel's ephemeral range (from 32768), so that no outgoing connection takes a port between choice and use.
_PORTS = range(15000, 32000)


def free_ports() -> Iterator[int]:
    """Distinct ports that are free on every address now, in random order, so that servers can start side by side."""
    for port in random.SystemRandom().sample(_PORTS, len(_PORTS)):
        with socket.socket() as probe:
            try:
                probe.bind(("", port))
            except OSError:
                continue
        yield port


def free_port() -> int:
    """One of them."""
    return next(free_ports())


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
