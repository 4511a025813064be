"""A Prometheus in this process, which answers the questions of an import from series that a test makes up."""

import json
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from werkzeug import Request, Response

from pulsar_advisor.model.bounds import seconds
from web_server import HTTPServer

Value = Callable[[int], float | str | None]
"""The sample at a time (epoch seconds); None: there is none."""

_SELECTOR = r"(\w+)(?:\{(.*)\})?"
_MATCHER = re.compile(r'(\w+)(=~|!=|=)"((?:[^"\\]|\\.)*)"')


@dataclass
class Series:
    """A metric with its labels and samples."""

    labels: Mapping[str, str]
    value: Value


@dataclass
class PrometheusDouble:
    """`now_s`: its clock. After `dies_after` questions it answers none."""

    now_s: int
    series: list[Series] = field(default_factory=list)
    dies_after: int | None = None
    asked: list[Mapping[str, str]] = field(default_factory=list)
    most_in_flight: int = 0

    def add(self, metric: str, value: Value | float | str, **labels: str) -> None:
        """One more series; a number is its sample at all times."""
        self.series.append(Series({"__name__": metric, **labels}, value if callable(value) else lambda _: value))

    def serve(self, server: HTTPServer) -> str:
        """Its address, on a server that was started."""
        self._in_flight = threading.Semaphore(100)
        server.expect_request(re.compile("/api/v1/query.*")).respond_with_handler(self._counted)
        return server.url_for("").rstrip("/")

    def _counted(self, request: Request) -> Response:
        self._in_flight.acquire()
        self.most_in_flight = max(self.most_in_flight, 100 - self._in_flight._value)
        try:
            return self._respond(request)
        finally:
            self._in_flight.release()

    def _respond(self, request: Request) -> Response:
        if request.path == "/api/v1/query":
            return _success("scalar", [self.now_s, str(self.now_s)])
        if self.dies_after is not None and len(self.asked) >= self.dies_after:
            return Response("dying", 500)
        self.asked.append(request.args)
        start, end, step = (int(request.args[name]) for name in ("start", "end", "step"))
        times = range(start, end + 1, step)
        return _success("matrix", list(self._answer(request.args["query"], times)))

    def _answer(self, query: str, times: range) -> Iterable[object]:
        if found := re.fullmatch(rf"topk by \((\w+), (\w+)\) \(1, {_SELECTOR}\)", query):
            first, second, metric = found[1], found[2], found[3]
            matching = self._found(re.fullmatch(_SELECTOR, metric), times)
            by = {(one.labels.get(first), one.labels.get(second)): one for one in reversed(matching)}
            yield from (_row(one, times) for one in by.values())
        elif found := re.fullmatch(rf"count by \((\w+)\) \(last_over_time\({_SELECTOR}\[(\w+)\]\)\)", query):
            label, window_s = found[1], seconds(found[4])
            matching = self._found(re.fullmatch(_SELECTOR, query.split("(last_over_time(")[1].rpartition("[")[0]), None)
            for name in sorted({one.labels.get(label, "") for one in matching}):
                named = [one for one in matching if one.labels.get(label, "") == name]
                numbers = {at: sum(_is_scraped(one, at - window_s, at) for one in named) for at in times}
                values = [[at, str(number)] for at, number in numbers.items() if number]
                yield {"metric": {label: name} if name else {}, "values": values}
        else:
            found = re.fullmatch(_SELECTOR, query)
            yield from (_row(one, times) for one in self._found(found, times))

    def _found(self, selector: re.Match[str] | None, times: range | None) -> list[Series]:
        assert selector is not None
        matchers = [
            (label, how, re.sub(r"\\(.)", r"\1", text)) for label, how, text in _MATCHER.findall(selector[2] or "")
        ]
        matchers.append(("__name__", "=", selector[1]))
        return [
            one
            for one in self.series
            if all(_matches(one.labels.get(label, ""), how, text) for label, how, text in matchers)
            and (times is None or any(one.value(at) is not None for at in times))
        ]


def _matches(value: str, how: str, text: str) -> bool:
    if how == "=~":
        return re.fullmatch(text, value) is not None
    return (value == text) == (how == "=")


def _is_scraped(one: Series, after_s: int, until_s: int) -> bool:
    """Whether it has a sample, scraped every minute, in this time."""
    return any(one.value(at) is not None for at in range(until_s, after_s, -60))


def _row(one: Series, times: range) -> object:
    values = [[at, str(value)] for at in times if (value := one.value(at)) is not None]
    return {"metric": dict(one.labels), "values": values}


def _success(kind: str, result: object) -> Response:
    return Response(json.dumps({"status": "success", "data": {"resultType": kind, "result": result}}))
