"""A session over HTTP that sends one call at a time: nothing is followed, kept, or taken from the environment."""

from __future__ import annotations

from http.cookiejar import DefaultCookiePolicy

import requests

from pulsar_advisor.admin.time_limit import TimelyAdapter


class HttpSession(requests.Session):
    """Redirects are answers like any others, cookies are dropped, proxies and `~/.netrc` are not used."""

    def __init__(self, user_agent: str, https: type[TimelyAdapter] = TimelyAdapter) -> None:
        super().__init__()
        self.trust_env = False
        self.headers["User-Agent"] = user_agent
        self.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        self.mount("https://", https(pool_connections=64, pool_maxsize=16))
        self.mount("http://", TimelyAdapter(pool_connections=64, pool_maxsize=16))

    def get_redirect_target(self, resp: requests.Response) -> None:
        """Nowhere: even with `allow_redirects=False`, `requests` would read a redirect's body, of whatever size."""
