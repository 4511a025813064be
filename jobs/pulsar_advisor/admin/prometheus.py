"""Reading a Prometheus, or a server with its HTTP API (Thanos, Mimir, VictoriaMetrics): one question in flight.

Source: Prometheus HTTP API v1, `query_range`, and `query` for its clock (2.42).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pa_csv

from pulsar_advisor.admin.body import TooLarge
from pulsar_advisor.admin.read_client import Document, decode, unreadable
from pulsar_advisor.admin.transport import AdminTransport, Answer, Parameters
from pulsar_advisor.model.errors import ClusterUnreachable, DataNotFit
from pulsar_advisor.model.text.plain_text import plain

POINTS: Final = 1_000_000
"""Samples that a question may ask for: 25 MB of text, about a second of one core of the server."""
LARGEST_ANSWER_BYTES: Final = 128 << 20
MOST_FIGURES: Final = 8 * POINTS
"""A series without a sample is a few bytes of an answer, and a figure for each moment in memory."""
READ_TIMEOUT_S: Final = 150.0
"""Prometheus itself gives up a question after two minutes."""

_LARGEST_CLOCK_BYTES: Final = 1 << 16
_RANGE: Final = "/api/v1/query_range"
_INSTANT: Final = "/api/v1/query"
_NO_FIGURES: Final = ["NaN", "Inf", "+Inf", "-Inf"]
_CSV: Final = pa_csv.ConvertOptions(
    column_types={"at_s": pa.float64(), "figure": pa.float64()},
    null_values=_NO_FIGURES,
    quoted_strings_can_be_null=True,
)
_TOLERANCE: Final = 1e-3
"""Of a step: how far a sample's time may be from one that was asked for."""


@dataclass(frozen=True)
class Window:
    """Moments evenly spaced: `number` of them, from `start_s` (epoch), `step_s` apart."""

    start_s: int
    step_s: int
    number: int

    @property
    def end_s(self) -> int:
        """The last moment."""
        return self.start_s + (self.number - 1) * self.step_s

    def parts(self, number: int) -> Iterator[tuple[int, Window]]:
        """The moments in parts of at most `number`, each with the position of its first."""
        for first in range(0, self.number, number):
            yield first, Window(self.start_s + first * self.step_s, self.step_s, min(number, self.number - first))


@dataclass(frozen=True)
class Question:
    """A PromQL expression over moments, and the labels that are wanted of each series."""

    query: str
    window: Window
    labels: tuple[str, ...]

    @property
    def parameters(self) -> Parameters:
        """Of `query_range`."""
        window = self.window
        times = {"start": window.start_s, "end": window.end_s, "step": window.step_s}
        return {"query": self.query, **{name: str(value) for name, value in times.items()}}


@dataclass(frozen=True, eq=False)
class Samples:
    """The answer to a question."""

    labels: Sequence[tuple[str, ...]]
    """Of each series, in the order in which they were wanted; empty for one that it lacks."""
    figures: npt.NDArray[np.float64]
    """(series, moments); NaN: no sample, or one that is no figure."""
    unusable: int
    """Samples that are not a number, infinite or negative."""


class _Success(msgspec.Struct):
    data: msgspec.Raw


class _Series(msgspec.Struct):
    metric: msgspec.Raw
    values: msgspec.Raw


class _Matrix(msgspec.Struct):
    result: list[_Series]


class _Scalar(msgspec.Struct):
    result: tuple[Annotated[float, msgspec.Meta(ge=1e9, le=1e11)], str]
    """The time (epoch), between the years 2001 and 5138, and a value."""


class _Failure(msgspec.Struct):
    error: str = ""


_SUCCESS: Final = msgspec.json.Decoder(_Success)
_MATRIX: Final = msgspec.json.Decoder(_Matrix)
_SCALAR: Final = msgspec.json.Decoder(_Scalar)
_FAILURE: Final = msgspec.json.Decoder(_Failure)
_LABELS: Final = msgspec.json.Decoder(dict[str, str])


class Prometheus:
    """Asks one server. Everything it raises is an `AdvisorError`."""

    def __init__(self, transport: AdminTransport, now: Callable[[], float] = time.time) -> None:
        self._transport = transport
        self._now = now

    def clock_s(self) -> float:
        """The time (epoch) that the server has now."""
        answer = self._get(_INSTANT, {"query": "time()"}, _LARGEST_CLOCK_BYTES)
        document = Document(answer.url, answer.body)
        return decode(document, _SCALAR, decode(document, _SUCCESS).data).result[0]

    def clock_ahead_s(self) -> int:
        """Whole seconds by which its clock is ahead of ours; 0 for less than two."""
        ahead = round(self.clock_s() - self._now())
        return ahead if abs(ahead) >= 2 else 0

    def ask(self, question: Question) -> Samples:
        """The answer to one question."""
        return samples_of(self._ask(question), question)

    def answers(self, questions: Iterable[Question]) -> Iterator[Samples]:
        """The answers, in order. The next question is in flight while the last answer is read: never more than one."""
        with ThreadPoolExecutor(1, "prometheus") as pool:
            before: tuple[Future[Answer], Question] | None = None
            for question in chain(questions, [None]):
                answered = None if before is None else (before[0].result(), before[1])
                before = None if question is None else (pool.submit(self._ask, question), question)
                if answered is not None:
                    yield samples_of(*answered)

    def _ask(self, question: Question) -> Answer:
        return self._get(_RANGE, question.parameters, LARGEST_ANSWER_BYTES)

    def _get(self, path: str, parameters: Parameters, limit_bytes: int) -> Answer:
        try:
            answer = self._transport.get(path, params=parameters, limit_bytes=limit_bytes)
        except TooLarge as error:
            raise DataNotFit(
                f"the answer to {parameters['query']} is larger than {limit_bytes:,} bytes, more than was asked for: "
                "is this a Prometheus, or has one namespace more than half a million topics?"
            ) from error
        if answer.status != 200:
            raise ClusterUnreachable(f"{answer.url}: {answer.status}{_said(answer)}; asked for {parameters['query']}")
        return answer


def samples_of(answer: Answer, question: Question) -> Samples:
    """Decode an answer of `query_range`. Raises `UnreadableAnswer` for anything else, `DataNotFit` for too much.

    Values are read as text of two columns, all series at once: a tenth of the time that a Python object each takes.
    """
    document = Document(answer.url, answer.body)
    if (found := answer.body.count(b'"values"')) > POINTS:  # before each of them becomes an object
        raise DataNotFit(f"{answer.url} has {found:,} series, more than was asked for: {question.query}")
    series = decode(document, _MATRIX, decode(document, _SUCCESS).data).result
    number = len(series), question.window.number
    if number[0] * number[1] > MOST_FIGURES:
        raise DataNotFit(
            f"{answer.url} has {number[0]:,} series of {number[1]:,} moments, more than was asked for: {question.query}"
        )
    labels = []
    for one in series:
        of_series = decode(document, _LABELS, one.metric)
        labels.append(tuple(of_series.get(name, "") for name in question.labels))
    pairs = [bytes(one.values).translate(None, b" \t\r\n") for one in series]
    counts = [0 if text == b"[]" else text.count(b"],[") + 1 for text in pairs]
    figures = np.full(number, np.nan)
    if not sum(counts):
        return Samples(labels, figures, 0)
    try:
        at_s, values = _columns(pairs, sum(counts))
        position = (at_s - question.window.start_s) / question.window.step_s
        nearest = np.rint(position)
        if not np.all(np.abs(position - nearest) < _TOLERANCE) or nearest.min() < 0 or nearest.max() >= number[1]:
            raise ValueError("a sample is of another time than was asked for")
    except (ValueError, pa.ArrowException) as error:
        raise unreadable(document, error) from error
    unusable = ~(np.isfinite(values) & (values >= 0))
    values[unusable] = np.nan
    figures[np.repeat(np.arange(len(series)), counts), nearest.astype(np.int64)] = values
    return Samples(labels, figures, int(unusable.sum()))


def _columns(pairs: Sequence[bytes], number: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Times and figures of arrays of pairs, `[[1700000000,"1.5"],[1700000300,"2"]]`."""
    if not all(text == b"[]" or (text.startswith(b"[[") and text.endswith(b"]]")) for text in pairs):
        raise ValueError("values are not pairs of time and figure")
    text = b"\n".join(text[2:-2] for text in pairs if text != b"[]").replace(b"],[", b"\n")
    read = pa_csv.ReadOptions(column_names=["at_s", "figure"], use_threads=False)
    rows = pa_csv.read_csv(pa.BufferReader(text), read_options=read, convert_options=_CSV)
    at_s, figure = (rows[name].to_numpy().astype(np.float64) for name in ("at_s", "figure"))
    if len(at_s) != number or not np.isfinite(at_s).all():
        raise ValueError("values are not pairs of time and figure")
    return at_s, figure


def _said(answer: Answer) -> str:
    """What the server gives as reason, in brackets; empty if it gives none."""
    try:
        error = _FAILURE.decode(answer.body).error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""
    return f" ({plain(error[:200])})" if error else ""
