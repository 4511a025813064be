"""What a Prometheus answers is read into figures, or refused in one line, whatever it sends."""

import json
import threading
from collections.abc import Iterable, Iterator

import numpy as np
import pytest
from werkzeug import Request, Response

from pulsar_advisor.admin import prometheus
from pulsar_advisor.admin.answer import Answer
from pulsar_advisor.admin.connection import AdminConnection
from pulsar_advisor.admin.decoding import UnreadableAnswer
from pulsar_advisor.admin.prometheus import Prometheus, Question, Samples, Window, samples_of
from pulsar_advisor.admin.transport import GET_ATTEMPTS, AdminTransport
from pulsar_advisor.model.cluster.cluster_state import HIGHEST_FIGURE
from pulsar_advisor.model.errors import ClusterUnreachable, DataNotFit
from web_server import HTTPServer

START = 1_795_000_000
WINDOW = Window(START, 60, 3)
QUESTION = Question("pulsar_rate_in", WINDOW, ("topic", "instance"))
URL = "http://prometheus:9090/api/v1/query_range"


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    with HTTPServer() as started:
        yield started


def client(server: HTTPServer, **manners: float) -> Prometheus:
    connection = AdminConnection(admin_urls=(server.url_for("").rstrip("/"),), **manners)
    return Prometheus(AdminTransport(connection, sleep=lambda _: None), now=lambda: START)


def matrix(*values: object, topic: str = "t") -> str:
    result = [{"metric": {"topic": topic, "instance": "a:1"}, "values": one} for one in values]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})


def read(text: str) -> Samples:
    return samples_of(Answer(200, URL, text.encode()), QUESTION)


def figures(text: str) -> list[list[float | None]]:
    return [[None if np.isnan(one) else one for one in row] for row in read(text).figures.tolist()]


def test_each_series_has_a_figure_at_each_moment_that_it_was_scraped() -> None:
    text = matrix([[START, "1.5"], [START + 120, "2"]], [], [[START + 60, "0"]])
    assert figures(text) == [[1.5, None, 2.0], [None, None, None], [None, 0.0, None]]
    assert read(text).labels == [("t", "a:1")] * 3


def test_no_series_are_no_figures() -> None:
    assert read(matrix()).figures.shape == (0, 3)


def test_many_series_without_a_sample_take_no_memory() -> None:
    many = Question("pulsar_rate_in", Window(START, 1, prometheus.MOST_FIGURES // 2), ())
    text = matrix([], [], [])
    with pytest.raises(DataNotFit, match="returned 3 series of 4,000,000 samples, too many for pulsar_rate_in"):
        samples_of(Answer(200, URL, text.encode()), many)


def test_more_series_than_samples_that_were_asked_for_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "POINTS", 2)
    with pytest.raises(DataNotFit, match="returned 3 series, too many for pulsar_rate_in"):
        read(matrix([], [], []))


@pytest.mark.parametrize("wrong", ["NaN", "+Inf", "-Inf", "-1", "1e+300"])
def test_what_is_no_figure_is_none_and_counted(wrong: str) -> None:
    samples = read(matrix([[START, wrong], [START + 60, "1"]]))
    assert (np.isnan(samples.figures).tolist(), samples.unusable) == ([[True, False, True]], 1)


@pytest.mark.parametrize("seed", range(20))
def test_figures_are_those_that_a_reader_of_json_finds(seed: int) -> None:
    random = np.random.default_rng(seed)
    written = ["0", "17", "1.5", "2.5e-07", "1e+21", "NaN", "+Inf", "-Inf", "-3"]
    series = [
        [[START + 60 * at, str(random.choice(written))] for at in range(3) if random.random() < 0.7]
        for _ in range(random.integers(0, 6))
    ]
    expected = np.full((len(series), 3), np.nan)
    for place, pairs in enumerate(series):
        for at_s, text in pairs:
            figure = float(text)
            expected[place, (at_s - START) // 60] = figure if 0 <= figure <= HIGHEST_FIGURE else np.nan
    found = read(matrix(*series).replace(" ", "\n" if seed % 2 else ""))
    np.testing.assert_array_equal(found.figures, expected)
    assert found.unusable == sum(not 0 <= float(text) <= HIGHEST_FIGURE for pairs in series for _, text in pairs)


def test_white_space_and_fractions_of_a_second_are_read() -> None:
    text = matrix([[START + 60.0, "3"]]).replace(",", " ,\n ")
    assert figures(text) == [[None, 3.0, None]]


@pytest.mark.parametrize(
    "values",
    [
        [[START + 1, "1"]],  # between two moments
        [[START - 60, "1"]],
        [[START + 180, "1"]],
        [["now", "1"]],
        [[START, "many"]],
        [[START, "1", "2"]],
        [[START]],
        [START, "1"],
        [[START, None]],
        [[START, [1]]],
        [[START, [1]], [START + 60, "1"]],
        [[START, "1"], [[START + 60, "1"]]],
        [[[START, "1"]]],
        [[START, "1"], 7],
        [[START, '"']],
        [[1e300, "1"]],
        [[10**400, "1"]],
        {"0": "1"},
        None,
        7,
        "],[",
    ],
)
def test_other_values_are_refused(values: object) -> None:
    with pytest.raises(UnreadableAnswer):
        read(matrix(values))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<html>",
        "[]",
        "null",
        '{"status":"success"}',
        '{"status":"success","data":{"result":[7]}}',
        '{"status":"success","data":{"result":[{"metric":{"topic":7},"values":[]}]}}',
        '{"status":"success","data":{"result":[{"values":[]}]}}',
        matrix([[START, "1"]])[:-7],
        "[" * 100_000,
    ],
)
def test_other_answers_are_refused(text: str) -> None:
    with pytest.raises(UnreadableAnswer):
        read(text)


def answer_with(server: HTTPServer, responses: Iterable[Response]) -> list[str]:
    """Serve these one after the other; the list of what was asked for grows."""
    left, asked = iter(responses), []

    def respond(request: Request) -> Response:
        asked.append(request.args["query"])
        return next(left)

    server.expect_request("/api/v1/query_range").respond_with_handler(respond)
    return asked


def test_answers_come_in_order_and_the_next_question_is_sent_meanwhile(server: HTTPServer) -> None:
    asked = answer_with(server, (Response(matrix([[START, str(number)]])) for number in range(3)))
    answers = client(server).answers(Question(f"q{number}", WINDOW, ()) for number in range(3))
    assert [samples.figures[0, 0] for samples in answers] == [0, 1, 2]
    assert asked == ["q0", "q1", "q2"]


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (401, "give --token-file, --token-env or --basic-user of a user who may query it"),
        (404, "include the path before /api/v1 in --prometheus"),
        (422, "choose a greater --step, or raise the server's limits"),
        (500, "import again: it resumes where it stopped"),
    ],
)
def test_a_refusal_says_what_to_do_next(server: HTTPServer, status: int, advice: str) -> None:
    answer_with(server, [Response("", status)])
    with pytest.raises(ClusterUnreachable, match=f"{status}; query pulsar_rate_in.*: {advice}$"):
        client(server).ask(QUESTION)


def test_the_reason_of_a_refusal_is_passed_on(server: HTTPServer) -> None:
    reason = json.dumps({"status": "error", "errorType": "execution", "error": "too many samples\x1b[2J"})
    answer_with(server, [Response(reason, 422)])
    with pytest.raises(ClusterUnreachable, match=r"422 \(too many samples.*\); query pulsar_rate_in") as refused:
        client(server).ask(QUESTION)
    assert "\x1b" not in str(refused.value)


def test_a_busy_server_is_asked_again(server: HTTPServer) -> None:
    answer_with(server, [Response("", 503), Response(matrix([[START, "1"]]))])
    assert client(server).ask(QUESTION).figures[0, 0] == 1


def test_a_redirect_to_another_host_is_not_followed(server: HTTPServer) -> None:
    redirect = Response("", 307, {"Location": "http://elsewhere.example/api/v1/query_range"})
    answer_with(server, [redirect] * GET_ATTEMPTS)
    with pytest.raises(ClusterUnreachable, match="elsewhere"):
        client(server).ask(QUESTION)


def test_a_silent_server_is_given_up(server: HTTPServer) -> None:
    stopped = threading.Event()

    def silent(_: Request) -> Response:
        def trickle() -> Iterator[bytes]:
            yield b"{"
            stopped.wait(5)
            yield b"}"

        return Response(trickle())

    server.expect_request("/api/v1/query_range").respond_with_handler(silent)
    with pytest.raises(ClusterUnreachable, match="no complete response"):
        client(server, read_timeout_s=0.2).ask(QUESTION)
    stopped.set()


def test_ten_million_series_are_not_read_to_their_end(server: HTTPServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "LARGEST_ANSWER_BYTES", 100_000)
    sent = []

    def endless() -> Iterator[bytes]:
        yield b'{"status":"success","data":{"result":['
        for number in range(10_000_000):
            sent.append(number)
            yield b'{"metric":{"topic":"%d"},"values":[[1795000000,"1"]]},' % number * 1000

    server.expect_request("/api/v1/query_range").respond_with_handler(lambda _: Response(endless()))
    with pytest.raises(DataNotFit, match="larger than 100,000 bytes"):
        client(server).ask(QUESTION)
    assert len(sent) < 1000


def test_a_clock_is_compared_to_the_second(server: HTTPServer) -> None:
    for ahead, expected in ((1, 0), (-90, -90)):
        text = json.dumps({"status": "success", "data": {"resultType": "scalar", "result": [START + ahead, "7"]}})
        server.expect_oneshot_request("/api/v1/query").respond_with_data(text)
        assert client(server).clock_ahead_s() == expected


@pytest.mark.parametrize("at_s", [0, -1, 1e300, "1795000000", None])
def test_a_clock_that_can_not_be_right_is_refused(server: HTTPServer, at_s: object) -> None:
    text = json.dumps({"status": "success", "data": {"resultType": "scalar", "result": [at_s, "7"]}})
    server.expect_request("/api/v1/query").respond_with_data(text)
    with pytest.raises(UnreadableAnswer):
        client(server).clock_s()


@pytest.mark.parametrize(
    ("part", "says"),
    [
        ({"warnings": ["store-2: unavailable"]}, "store-2: unavailable"),
        ({"isPartial": True}, "isPartial"),
        ({"warnings": ["PromQL warning: a mix of histograms and floats"], "isPartial": False}, None),
    ],
)
def test_an_answer_in_part_is_refused(part: dict[str, object], says: str | None) -> None:
    text = json.dumps({**json.loads(matrix([[START, "1"]])), **part})
    if says is None:
        assert figures(text) == [[1.0, None, None]]
    else:
        with pytest.raises(DataNotFit, match=rf"returned a partial result \({says}\): import again"):
            read(text)
