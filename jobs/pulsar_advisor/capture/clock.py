"""How far a broker's clock is from ours, by the `Date` header of any answer."""

from __future__ import annotations

import time
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

import urllib3
from requests.utils import DEFAULT_CA_BUNDLE_PATH

from pulsar_advisor.admin.transport import USER_AGENT, AdminConnection


@dataclass(frozen=True)
class ClockDifference:
    """The broker's clock minus ours, in seconds: somewhere between the two, as `Date` has whole seconds."""

    at_least_s: float
    at_most_s: float

    @property
    def certain_s(self) -> float:
        """What is certain of it, signed: 0 where both clocks may be the same."""
        return max(self.at_least_s, 0.0) + min(self.at_most_s, 0.0)


def clock_difference(connection: AdminConnection, web_address: str) -> ClockDifference | None:
    """Ask a broker for its release and look at the time of its answer; None if there is no answer, or no time in it."""
    pool = urllib3.PoolManager(
        cert_reqs="CERT_REQUIRED",
        ca_certs=str(connection.tls_ca_file or DEFAULT_CA_BUNDLE_PATH),  # what the other calls trust
        cert_file=str(connection.tls_cert_file) if connection.tls_cert_file else None,
        key_file=str(connection.tls_key_file) if connection.tls_key_file else None,
        assert_hostname=None if connection.tls_verify_hostname else False,
    )
    authorization = connection.authorization()
    headers = {"User-Agent": USER_AGENT, **({"Authorization": authorization} if authorization else {})}
    asked_at_s = time.time()
    try:
        answer = pool.request(
            "GET",
            f"{web_address}/admin/v2/brokers/version",
            headers=headers,
            redirect=False,
            retries=False,
            timeout=urllib3.Timeout(connect=connection.connect_timeout_s, read=connection.read_timeout_s),
        )
    except urllib3.exceptions.HTTPError:
        return None
    answered_at_s = time.time()
    try:
        date_s = parsedate_to_datetime(answer.headers.get("Date", "")).timestamp()
    except ValueError:
        return None
    return ClockDifference(date_s - answered_at_s, date_s + 1 - asked_at_s)
