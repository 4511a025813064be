"""Calls the admin REST API of a test cluster: to set scenes up and to look at them, never as the thing under test."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

import requests

CALL_LIMIT_S = 30
LOOK_UPS = 10
BETWEEN_LOOK_UPS_S = 1.0


class AdminApi:
    """The admin API of the brokers at `urls`, called as `token`'s role (super-user if the cluster authenticates)."""

    def __init__(self, urls: Iterable[str], token: str | None = None) -> None:
        self.urls = tuple(urls)
        self.token = token

    @property
    def broker_ids(self) -> list[str]:
        """`host:port` of every broker's web service, as Pulsar names brokers."""
        return [urlsplit(url).netloc for url in self.urls]

    def call(
        self,
        method: str,
        path: str,
        *,
        url: str | None = None,
        params: Mapping[str, str] | None = None,
        body: object = None,
    ) -> requests.Response:
        """Send one request (`path` from the root, at `url` or the first broker); follow redirects with their method."""
        target = (url or self.urls[0]) + path
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        with requests.Session() as http:
            http.trust_env = False  # the machine may have a proxy: loopback must not go through it
            while True:
                answer = http.request(
                    method, target, params=params, json=body, headers=headers,
                    allow_redirects=False, timeout=CALL_LIMIT_S,
                )  # fmt: skip
                if answer.status_code not in (302, 307):
                    return answer
                target, params = answer.headers["Location"], None

    def read(self, path: str, *, url: str | None = None) -> Any:
        """GET a JSON document below /admin/v2; any status but 2xx raises `requests.HTTPError`."""
        answer = self.call("GET", f"/admin/v2{path}", url=url)
        answer.raise_for_status()
        return answer.json()

    def write(self, method: str, path: str, *, params: Mapping[str, str] | None = None, body: object = None) -> None:
        """PUT, POST or DELETE below /admin/v2; 409 (exists already) is fine, any other failure raises."""
        answer = self.call(method, f"/admin/v2{path}", params=params, body=body)
        if answer.status_code != 409:
            answer.raise_for_status()

    def topics(self, url: str) -> dict[str, dict[str, Any]]:
        """The statistics of the topics loaded at one broker, by full topic name."""
        namespaces = self.read("/broker-stats/topics", url=url)
        return {
            name: stats
            for bundles in namespaces.values()
            for kinds in bundles.values()
            for topics in kinds.values()
            for name, stats in topics.items()
        }

    def owners(self, cluster: str) -> dict[str, str]:
        """Broker id per owned bundle (`tenant/namespace/0x…_0x…`)."""
        return {
            bundle: broker_id
            for url, broker_id in zip(self.urls, self.broker_ids, strict=True)
            for bundle in self.read(f"/brokers/{cluster}/{broker_id}/ownedNamespaces", url=url)
        }

    def look_up(self, topic: str) -> None:
        """Ask which broker serves a topic, which assigns its bundle if it is unowned.

        Brokers that race for a bundle answer 500 to the one that asked the loser; clients ask again, and so do we.
        """
        path = f"/lookup/v2/topic/{topic.replace('://', '/')}"
        for _ in range(LOOK_UPS):
            answer = self.call("GET", path)
            if answer.status_code < 500:
                break
            time.sleep(BETWEEN_LOOK_UPS_S)
        answer.raise_for_status()
