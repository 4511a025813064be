"""What all responses of the pages have in common: headers, error pages, and a limit on simultaneous ones."""

from __future__ import annotations

import base64
import logging
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from http import HTTPStatus
from importlib.resources import files
from typing import Any, Final
from urllib.parse import urlencode

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pulsar_advisor.model.errors import AdvisorError, Refused, StorageError, UsageError
from pulsar_advisor.model.text.plain_text import plain, printed
from pulsar_advisor.model.text.reader import read_by
from pulsar_advisor.storage.root import Root
from pulsar_advisor_airflow.airflow_internals import GetUserDep
from pulsar_advisor_airflow.configuration import airflow_link, option, page_link
from pulsar_advisor_airflow.reader import IN_AIRFLOW

_SCRIPT: Final = Markup(files(__package__).joinpath("templates/pages.js").read_text(encoding="utf-8"))

HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; connect-src 'self'; frame-src 'self'; base-uri 'none'; "
        "form-action 'self'; frame-ancestors 'self'; "
        f"script-src 'sha256-{base64.b64encode(sha256(_SCRIPT.encode()).digest()).decode()}'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
"""Our own pages run only our script, and load only reports. Each response says itself whether a browser may keep it."""

KEPT: Final = "private, no-cache"
"""A browser may keep a page, but must ask each time; if the page didn't change, the response is empty."""

AT_ONCE: Final = 4
"""Maximum simultaneous responses to one user in one process of the web server."""

_CLOSED: Final = re.compile(r"(?<=: )/[^:]*(?= belongs to )")
"""The folder that keeps a process out, in `refusal`'s words: it may be one above the root."""

_log = logging.getLogger(__name__)

templates: Final = Environment(
    loader=PackageLoader("pulsar_advisor_airflow.pages"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    finalize=printed,
)
templates.globals |= {"page_link": page_link, "airflow_link": airflow_link, "script": _SCRIPT}


def without_places(text: str) -> str:
    """An error's message for viewers, without the places of the root and the registry of clusters."""
    for place in _places():
        text = text.replace(place.rstrip("/"), "…") if place.strip("/") else text
    return _CLOSED.sub("…", text)


def _places() -> Iterator[str]:
    with suppress(UsageError):  # which is then what the message says
        yield (root := option("root"))
        yield str(Root(root, "any").location)
    yield option("clusters")


templates.filters |= {"one_line": lambda text: " ".join(text.split("\n")), "without_places": without_places}

_under_way: Counter[str] = Counter()
"""Number of responses in progress to each user; changed in the event loop only."""


def with_headers(app: ASGIApp) -> ASGIApp:
    """The application with these headers on each response that doesn't set its own, and messages worded for Airflow.

    A slash at the end of an address makes no difference.
    """

    async def answered(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].endswith("/") and scope["path"] != f"{scope['root_path']}/":
            scope = {**scope, "path": scope["path"].rstrip("/")}

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        with read_by(IN_AIRFLOW):
            await app(scope, receive, sent)

    return answered


async def one_of_few(request: Request, user: GetUserDep) -> AsyncIterator[None]:
    """Count a response until it is sent. 429 if the user waits for too many others."""
    name = user.get_id()
    if _under_way[name] >= AT_ONCE:
        again = {"Retry-After": "1", **_asked_again(request, 1)}
        raise HTTPException(429, f"{AT_ONCE} of your requests are being answered: try again", again)
    _under_way[name] += 1
    try:
        yield
    finally:
        _under_way[name] -= 1
        if not _under_way[name]:
            del _under_way[name]


def page(request: Request, template: str, headers: Mapping[str, str] | None = None, **content: Any) -> Response:
    """A page of ours, see `kept`."""
    return kept(request, templates.get_template(template).render(**content), headers)


def kept(request: Request, html: str, headers: Mapping[str, str] | None = None) -> Response:
    """HTML that a browser may keep; an empty response if it already has exactly this."""
    text = html.encode()
    tag = f'"{sha256(text).hexdigest()[:32]}"'
    answered = {"Cache-Control": KEPT, "ETag": tag, "Vary": "Authorization, Cookie", **(headers or {})}
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=answered)
    return HTMLResponse(text, headers=answered)


def answer_errors(app: FastAPI) -> None:
    """Make a page for everything that goes wrong in the application."""

    @app.exception_handler(AdvisorError)
    async def of_ours(request: Request, error: AdvisorError) -> Response:
        if isinstance(error, StorageError):
            _log.error("a page could not be made: %s", plain(str(error)))
            said = "A file or the ledger could not be read. The web server's log says which."
            return _problem(500, said, _asked_again(request, 30))
        return _problem(409 if isinstance(error, Refused) else 404, str(error))

    @app.exception_handler(StarletteHTTPException)
    async def of_http(request: Request, error: StarletteHTTPException) -> Response:
        if error.status_code == HTTPStatus.UNAUTHORIZED and _is_of_a_browser(request):
            return RedirectResponse(_login_and_back(request), HTTPStatus.SEE_OTHER)
        said = "" if error.detail == HTTPStatus(error.status_code).phrase else str(error.detail)
        return _problem(error.status_code, said, error.headers)

    @app.exception_handler(RequestValidationError)
    async def of_a_part(_request: Request, error: RequestValidationError) -> Response:
        parts = sorted({str(each["loc"][-1]) for each in error.errors()})
        return _problem(422, f"These parts of the request are missing or can't be used: {', '.join(parts)}.")

    @app.exception_handler(Exception)
    async def unexpected(_request: Request, _error: Exception) -> Response:
        return _problem(500, "The web server's log says more.")


def _asked_again(request: Request, after_s: int) -> dict[str, str]:
    """Headers for an error that may pass: otherwise a self-renewing page of a run would end with it."""
    return {"Refresh": str(after_s)} if request.method == "GET" else {}


def _is_of_a_browser(request: Request) -> bool:
    """Whether a person waits for a page, rather than a program."""
    return request.method == "GET" and "text/html" in request.headers.get("accept", "")


def _login_and_back(request: Request) -> str:
    """The address of Airflow's login, which leads back to the page that was asked for."""
    asked = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return f"{airflow_link('api', 'v2', 'auth', 'login')}?{urlencode({'next': asked})}"


def _problem(status: int, said: str, headers: Mapping[str, str] | None = None) -> Response:
    title = HTTPStatus(status).phrase
    text = templates.get_template("problem.html").render(status=status, title=title, said=without_places(said))
    return HTMLResponse(text, status, headers)
