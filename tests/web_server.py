"""An HTTP server in this process that ends at once when its block does."""

from __future__ import annotations

import pytest_httpserver


class HTTPServer(pytest_httpserver.HTTPServer):
    """pytest-httpserver's, which by itself looks only twice a second whether it is to end."""

    def thread_target(self) -> None:
        assert self.server is not None
        self.server.serve_forever(poll_interval=0.01)
