"""Queries a Prometheus, or a server with its HTTP API (Thanos, Mimir, VictoriaMetrics), one query at a time.

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
import pyarrow.compute as pc

from pulsar_advisor.admin.answer import Answer
from pulsar_advisor.admin.body import TooLarge
from pulsar_advisor.admin.decoding import Document, decode, unreadable
from pulsar_advisor.admin.transport import AdminTransport, Parameters
from pulsar_advisor.model.cluster.cluster_state import HIGHEST_FIGURE, Floats
from pulsar_advisor.model.errors import ClusterUnreachable, DataNotFit
from pulsar_advisor.model.text.plain_text import plain
from pulsar_advisor.model.text.some_of import some_of

POINTS: Final = 1_000_000
"""Maximum number of samples per query: 25 MB of text, about 0.3 s of one core of a Prometheus."""
LARGEST_ANSWER_BYTES: Final = 128 << 20
MOST_FIGURES: Final = 8 * POINTS
"""A series without samples takes a few bytes in an answer, but a figure for each moment in memory."""
READ_TIMEOUT_S: Final = 150.0
"""Prometheus itself gives up on a query after two minutes."""

_LARGEST_CLOCK_BYTES: Final = 1 << 16
_RANGE: Final = "/api/v1/query_range"
_INSTANT: Final = "/api/v1/query"
_WHITE_SPACE: Final = b" \t\r\n"
_TOLERANCE: Final = 1e-3
"""How far a sample's time may be from a requested one, as a ratio of the step."""


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
        """The window in parts of at most `number` moments, each with the position of its first."""
        for first in range(0, self.number, number):
            yield first, Window(self.start_s + first * self.step_s, self.step_s, min(number, self.number - first))


@dataclass(frozen=True)
class Question:
    """A PromQL expression over a window, and the labels wanted from each series."""

    query: str
    window: Window
    labels: tuple[str, ...]

    @property
    def parameters(self) -> Parameters:
        """The parameters of `query_range`."""
        window = self.window
        times = {"start": window.start_s, "end": window.end_s, "step": window.step_s}
        # Without this, VictoriaMetrics would round the times of long ranges to fit its cache; other servers ignore it.
        return {"query": self.query, "nocache": "1", **{name: str(value) for name, value in times.items()}}


@dataclass(frozen=True, eq=False)
class Samples:
    """The answer to a question."""

    labels: Sequence[tuple[str, ...]]
    """The wanted labels of each series, in order; empty for a label that it lacks."""
    figures: Floats
    """(series, moments); NaN: no sample, or an unusable one."""
    unusable: int
    """Samples that are not a number, negative, or higher than any figure of a machine (`HIGHEST_FIGURE`)."""


class _Success(msgspec.Struct):
    data: msgspec.Raw


class _Series(msgspec.Struct):
    metric: msgspec.Raw
    values: msgspec.Raw


class _Matrix(msgspec.Struct):
    result: list[_Series]


class _Range(msgspec.Struct, rename="camel"):
    data: _Matrix
    warnings: list[str] = msgspec.field(default_factory=list)
    """Why the answer is unreliable, for instance because a Thanos store is down; or remarks about the query."""
    is_partial: bool = False
    """VictoriaMetrics: a part of its storage didn't answer."""


class _Scalar(msgspec.Struct):
    result: tuple[Annotated[float, msgspec.Meta(ge=1e9, le=1e11)], str]
    """The time (epoch), between the years 2001 and 5138, and a value."""


class _Failure(msgspec.Struct):
    error: str = ""


_CREDENTIALS: Final = "give --token-file, --token-env or --basic-user of a user who may query it"
_ADVICE: Final = {
    401: _CREDENTIALS,
    403: _CREDENTIALS,
    404: "include the path before /api/v1 in --prometheus",
    422: "choose a greater --step, or raise the server's limits",
}
"""Advice by the status of an answer."""
_OF_QUERY: Final = "PromQL"
"""Prefix of warnings that are only about the query."""
_SUCCESS: Final = msgspec.json.Decoder(_Success)
_RANGE_OF: Final = msgspec.json.Decoder(_Range)
_SCALAR: Final = msgspec.json.Decoder(_Scalar)
_FAILURE: Final = msgspec.json.Decoder(_Failure)
_LABELS: Final = msgspec.json.Decoder(dict[str, str])


class Prometheus:
    """Asks one server. Everything it raises is an `AdvisorError`."""

    def __init__(self, transport: AdminTransport, now: Callable[[], float] = time.time) -> None:
        self._transport = transport
        self._now = now
        self.address = transport.connection.admin_urls[0]

    def clock_s(self) -> float:
        """The server's present time (epoch)."""
        answer = self._get(_INSTANT, {"query": "time()"}, _LARGEST_CLOCK_BYTES)
        document = Document(answer.url, answer.body)
        return decode(document, _SCALAR, decode(document, _SUCCESS).data).result[0]

    def clock_ahead_s(self) -> int:
        """Whole seconds by which its clock is ahead of this machine's; 0 for less than two."""
        ahead = round(self.clock_s() - self._now())
        return ahead if abs(ahead) >= 2 else 0

    def ask(self, question: Question) -> Samples:
        """The answer to one question."""
        return samples_of(self._ask(question), question)

    def answers(self, questions: Iterable[Question]) -> Iterator[Samples]:
        """The answers, in order. The next query runs while the last answer is decoded, but never two at a time."""
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
                f"the response to {parameters['query']} is larger than {limit_bytes:,} bytes: "
                "is this a Prometheus, or does one namespace have more than half a million topics?"
            ) from error
        if answer.status != 200:
            advice = _ADVICE.get(answer.status, "import again: it resumes where it stopped")
            raise ClusterUnreachable(
                f"{answer.url}: {answer.status}{_reason(answer)}; query {parameters['query']}: {advice}"
            )
        return answer


def samples_of(answer: Answer, question: Question) -> Samples:
    """Decode an answer of `query_range`. Raises `UnreadableAnswer` for anything else, `DataNotFit` for too much.

    Values are parsed from the text of all series at once, in a tenth of the time that one Python object each takes.
    """
    document = Document(answer.url, answer.body)
    if (found := answer.body.count(b'"values"')) > POINTS:  # before each series becomes an object
        raise DataNotFit(f"{answer.url} returned {found:,} series, too many for {question.query}")
    decoded = decode(document, _RANGE_OF)
    warnings = [one for one in decoded.warnings if not one.startswith(_OF_QUERY)]
    if warnings or decoded.is_partial:
        raise DataNotFit(
            f"{answer.url} returned a partial result ({plain(some_of(warnings)) or 'isPartial'}): import again once "
            "all its storage can be reached"
        )
    series = decoded.data.result
    moments = question.window.number
    if len(series) * moments > MOST_FIGURES:
        raise DataNotFit(
            f"{answer.url} returned {len(series):,} series of {moments:,} samples, too many for {question.query}"
        )
    labels = []
    for one in series:
        of_series = decode(document, _LABELS, one.metric)
        labels.append(tuple(of_series.get(name, "") for name in question.labels))
    figures = np.full((len(series), moments), np.nan)
    try:
        counts, at_s, values = _pairs([bytes(one.values) for one in series])
        position = (at_s - question.window.start_s) / question.window.step_s
        nearest = np.rint(np.nan_to_num(position))
        if not np.all((np.abs(position - nearest) < _TOLERANCE) & (nearest >= 0) & (nearest < moments)):
            raise ValueError("a sample has a time that was not requested")
    except (ValueError, pa.ArrowException) as error:
        raise unreadable(document, error) from error
    usable = (values >= 0) & (values <= HIGHEST_FIGURE)
    figures[np.repeat(np.arange(len(series)), counts), nearest.astype(np.int64)] = np.where(usable, values, np.nan)
    return Samples(labels, figures, int((~usable).sum()))


def _pairs(series: Sequence[bytes]) -> tuple[npt.NDArray[np.int64], Floats, Floats]:
    """The number of pairs in each array, such as `[[1700000000,"1.5"],[1700000300,"2"]]`, and their times and figures.

    Raises `ValueError` and Arrow's errors for anything else.
    """
    text = b"".join(series)
    if any(character in text for character in _WHITE_SPACE):
        series = [one.translate(None, _WHITE_SPACE) for one in series]
        text = b"".join(series)
    lengths = np.array([len(one) for one in series], np.int64)
    ends = np.cumsum(lengths)
    characters = np.frombuffer(text, np.uint8)
    opened, closed = _quotes(characters)
    pairs = np.diff(np.searchsorted(opened, ends), prepend=0)
    some = np.flatnonzero(pairs)
    last = np.cumsum(pairs)[some] - 1
    first = last - pairs[some] + 1
    times = np.concatenate([[0], closed[:-1] + len('"],[')]) if len(closed) else closed
    times[first] = ends[some] - lengths[some] + len("[[")
    inside = np.delete(times, first)
    is_as_expected = (
        all(one == b"[]" for one in map(series.__getitem__, np.flatnonzero(pairs == 0).tolist()))
        and np.array_equal(closed[last] + len('"]]'), ends[some])
        and all((characters[times[first] - back] == ord("[")).all() for back in (1, 2))
        and all((characters[ends[some] - back] == ord("]")).all() for back in (1, 2))
        and all((characters[inside - back] == ord(one)).all() for back, one in ((3, "]"), (2, ","), (1, "[")))
        and bool((times < opened).all() and (characters[opened - 1] == ord(",")).all())
    )
    if not is_as_expected:
        raise ValueError("values are not pairs of time and number")
    return pairs, _numbers(text, times, opened - 1), _numbers(text, opened + 1, closed)


def _quotes(characters: npt.NDArray[np.uint8]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The positions of opening and of closing quotes."""
    quotes = np.flatnonzero(characters == ord('"'))
    if len(quotes) % 2:
        raise ValueError("unclosed quote")
    return quotes[::2], quotes[1::2]


def _numbers(text: bytes, begin: npt.NDArray[np.int64], end: npt.NDArray[np.int64]) -> Floats:
    """The numbers written at these places: to Arrow they are strings, and what is between them nulls."""
    ends = np.zeros(2 * len(begin) + 1, np.int32)
    ends[1::2], ends[2::2] = begin, end
    every_other = np.full(-(-len(ends) // 8), 0b10101010, np.uint8)
    buffers = [pa.py_buffer(one) for one in (every_other, ends, text)]
    strings = pa.Array.from_buffers(pa.string(), len(ends) - 1, buffers)
    numbers: Floats = pc.cast(strings, pa.float64()).to_numpy(zero_copy_only=False)[1::2]
    return numbers


def _reason(answer: Answer) -> str:
    """The server's reason, in brackets; empty without one."""
    try:
        error = _FAILURE.decode(answer.body).error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""
    return f" ({plain(error[:200])})" if error else ""
