"""Which lines of a broker's request log count as writes."""

from __future__ import annotations

from pathlib import Path

from harness.request_log import write_requests

LOG = """\
1795258049826 127.0.0.1 - - [21/Nov/2026:10:47:29 +0000] "GET /admin/v2/tenants HTTP/1.1" 200 2940 "-" "curl" 2
1795258049900 127.0.0.1 - admin [21/Nov/2026:10:47:29 +0000] "PUT /admin/v2/tenants/a HTTP/1.1" 204 0 "-" "-" 5 {}
1795258050464 127.0.0.1 - - [21/Nov/2026:10:47:30 +0000] "GET /admin/v2/tenants?q=PUT HTTP/1.1" 200 972 "-" "PUT /x" 1
1795258050521 127.0.0.1 - - [21/Nov/2026:10:47:30 +0000] "DELETE /admin/v2/tenants/a?force HTTP/1.1" 307 0 "-" "-" 1
1796060717200 HTTP request {method=GET, proto=HTTP/1.1, status=200, uri=http://127.0.0.1:29357/a, user=null}
1796060717303 HTTP request {method=PUT, proto=HTTP/1.1, status=412, uri=http://127.0.0.1:29357/a?b=c, user=null}
"""


def test_writes_are_listed_with_path_query_and_status_and_reads_are_not(tmp_path: Path) -> None:
    log = tmp_path / "requests.log"
    log.write_text(LOG)
    assert write_requests(log) == [
        (1795258049900, "PUT /admin/v2/tenants/a 204"),
        (1795258050521, "DELETE /admin/v2/tenants/a?force 307"),
        (1796060717303, "PUT /a?b=c 412"),
    ]


def test_a_broker_that_was_asked_nothing_has_no_log_and_no_writes(tmp_path: Path) -> None:
    assert write_requests(tmp_path / "absent.log") == []
