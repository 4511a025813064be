"""Why a call got no answer, in one line with advice, and whether it can have reached a broker."""

from __future__ import annotations

from typing import Final

import requests
import urllib3

from pulsar_advisor.admin.connection import AdminConnection
from pulsar_advisor.admin.time_limit import HandshakeFailed
from pulsar_advisor.model.errors import ClusterUnreachable

LISTED_S: Final = 40
"""How long a broker that has died may still be listed: ZooKeeper forgets it after 30 s, by default."""
_JUST_DIED: Final = f"a broker that has just died is listed for up to {LISTED_S} s: try again then"
_OF_LISTED: Final = f"{_JUST_DIED}, or check that its web port can be reached from here"


class NoAnswer(ClusterUnreachable):
    """A broker did not answer. `unsent` is true if the call can't have reached it, so that a retry is safe."""

    def __init__(self, message: str, *, unsent: bool, timed_out: bool = False) -> None:
        super().__init__(message)
        self.unsent = unsent
        self.timed_out = timed_out


def no_answer(
    address: str, error: Exception, connection: AdminConnection, given_s: float, *, is_listed: bool = False
) -> NoAnswer:
    """The one-line error for a call that got no response, none in HTTP, or none within the time given.

    `is_listed`: the cluster has named a broker of that address.
    """
    cause = getattr(error.args[0], "reason", error.args[0]) if error.args else error
    files = (connection.tls_ca_file, connection.tls_cert_file, connection.tls_key_file)
    gone = [file for file in files if file is not None and not file.exists()]
    if type(error) is OSError and gone:  # what `requests` raises before it connects
        what = f"TLS file {gone[0]} does not exist any more: put it back, or wait until it has been renewed"
        return NoAnswer(f"{address}: {what}", unsent=True)
    if isinstance(error, requests.exceptions.SSLError):
        problem = str(cause).split("] ", 1)[-1].split(" (_ssl", 1)[0]
        advice = "check the https port, the CA file, the host name, and the client certificate if the server wants one"
        # Any other TLS error may also interrupt a call that has already been sent.
        is_unsent = isinstance(cause, HandshakeFailed)
        return NoAnswer(f"{address}: TLS failed ({problem}): {advice}", unsent=is_unsent)
    if isinstance(error, requests.ConnectTimeout):
        todo = _OF_LISTED if is_listed else "check host, port and firewall"
        what = f"no connection within {connection.connect_timeout_s:g} s: {todo}"
        return NoAnswer(f"{address}: {what}", unsent=True, timed_out=True)
    if isinstance(cause, urllib3.exceptions.NameResolutionError):
        todo = _JUST_DIED if is_listed else "check the spelling"  # the name of a pod goes with it
        what = f"host name can't be resolved: {todo}, or run on a machine that can resolve it"
        return NoAnswer(f"{address}: {what}", unsent=True)
    if isinstance(cause, urllib3.exceptions.NewConnectionError):
        what = "connection refused" if "refused" in str(cause) else "no connection"
        todo = "check that the server is up and that this is its web port, not a broker's binary one"
        return NoAnswer(f"{address}: {what}: {_OF_LISTED if is_listed else todo}", unsent=True)
    if isinstance(error, requests.ReadTimeout) or isinstance(cause, urllib3.exceptions.ReadTimeoutError):
        what = f"no complete response within {given_s:g} s: the server hangs or is overloaded; try again"
        return NoAnswer(f"{address}: {what}", unsent=False, timed_out=True)
    if not isinstance(error, (requests.RequestException, urllib3.exceptions.HTTPError)):
        what = f"the response can't be parsed ({type(error).__name__}): check which server this is"
        return NoAnswer(f"{address}: {what}", unsent=False)
    what = "connection closed before the response was complete: check that this is an http(s) port"
    return NoAnswer(f"{address}: {what}", unsent=False)
