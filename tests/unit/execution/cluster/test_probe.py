"""A probe publishes as a producer does, and says why a run must stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pulsar  # noqa: TID253
import pytest

from pulsar_advisor.execution.cluster import probe as probe_module
from pulsar_advisor.execution.cluster.probe import MESSAGE, PublishProbe, publishing
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.runs import runs_of_plan
from pulsar_advisor.model.errors import Refused, UsageError
from pulsar_advisor.model.plans.sealed import digest_of
from unit.execution.actors import approved, run
from unit.execution.doubles import FakeCluster, make_plan, split_step, unload_step

TOPIC = "persistent://shop/orders/probe"
PROBE = PublishProbe("pulsar://10.0.0.1:6650", TOPIC, 5)


@dataclass
class Client:
    """A client whose producer takes its time, or fails."""

    refuses: Exception | None = None
    answers: list[float | Exception] = field(default_factory=list)
    sent: list[bytes] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)
    now_s: float = 0.0
    is_closed: bool = False

    def create_producer(self, topic: str, **options: Any) -> Client:
        if self.refuses is not None:
            raise self.refuses
        self.options = {"topic": topic, **options}
        return self

    def send(self, message: bytes) -> None:
        self.sent.append(message)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        self.now_s += answer

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Client:
    client = Client()
    monkeypatch.setattr(probe_module, "binary_client", lambda _transport, _service_url: client)
    monkeypatch.setattr(probe_module.time, "monotonic", lambda: client.now_s)
    return client


def test_a_message_that_is_acknowledged_in_time_lets_the_run_go_on(client: Client) -> None:
    client.answers = [0.1, 5.0]
    with publishing(PROBE, None) as publish:  # type: ignore[arg-type]
        assert (publish(), publish()) == (None, None)
    assert client.sent == [MESSAGE] * 2
    assert client.options == {"topic": TOPIC, "send_timeout_millis": 5000}
    assert client.is_closed


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (5.1, f"{TOPIC} acknowledged after 5.1 s, more than 5 s"),
        (pulsar.Timeout(), f"publishing to {TOPIC} failed within 5 s: Timeout"),
    ],
)
def test_a_gap_or_a_failure_is_a_reason_to_stop(client: Client, answer: float | Exception, why: str) -> None:
    client.answers = [answer]
    with publishing(PROBE, None) as publish:  # type: ignore[arg-type]
        assert publish() == why


def test_a_topic_that_takes_no_producer_is_refused_before_anything_is_sent(client: Client) -> None:
    client.refuses = pulsar.AuthorizationError()
    with pytest.raises(Refused, match=r"can't publish to .* AuthorizationError"), publishing(PROBE, None):  # type: ignore[arg-type]
        pass


@pytest.mark.parametrize(("topic", "gap_s"), [("probe", 5), ("shop/orders/probe", 5), (TOPIC, 0), (TOPIC, 601)])
def test_a_probe_needs_a_complete_name_and_a_time_within_bounds(topic: str, gap_s: float) -> None:
    with pytest.raises(UsageError):
        PublishProbe("pulsar://10.0.0.1:6650", topic, gap_s)


def answering(*answers: str | None) -> Callable[[], str | None]:
    left = list(answers)
    return lambda: left.pop(0)


def test_a_run_stops_before_the_next_wave_when_the_probe_says_so(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, make_plan([unload_step(), split_step()]))
    result = run(plan, ledger, cluster, probe=answering(None, "no acknowledgement"))
    assert [step.state for step in result.steps] == ["confirmed", "pending"]
    assert result.sentence == "1 of 2 steps confirmed: the publish probe: no acknowledgement"
    assert run(plan, ledger, cluster, resume=True, probe=answering(None)).outcome == "done"


def test_a_probe_that_fails_at_once_lets_nothing_be_sent(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, make_plan([unload_step()]))
    with pytest.raises(Refused, match="nothing was sent: the publish probe: no acknowledgement"):
        run(plan, ledger, cluster, probe=answering("no acknowledgement"))
    assert (cluster.writes, runs_of_plan(ledger, digest_of(plan))[0].state) == ([], "refused")
