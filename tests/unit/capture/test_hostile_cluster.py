"""One answer that makes no sense costs a capture what it was about, and nothing else."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from captures import capture, manifest_of
from pulsar_advisor.capture.surfaces import LONGEST_STATISTICS_INTERVAL_S, BrokerFacts, oldest_release
from pulsar_advisor.model.errors import AdvisorError
from pulsar_advisor.storage.root import Root
from unit.admin.mutated import answers, mutated
from unit.capture.fake_cluster import FakeCluster, fake_cluster
from unit.properties import examples

PATHS = (
    *("/broker-stats/load-report", "/broker-stats/topics", "/brokers/version", "/brokers/configuration/runtime"),
    *("/brokers/leaderBroker", "/brokers/configuration/values", "/clusters/fake/namespaceIsolationPolicies"),
    *("/clusters/fake/failureDomains", "/tenants", "/namespaces/retail", "/namespaces/retail/orders"),
    *("/persistent/retail/orders", "/persistent/retail/orders/partitioned"),
)


@pytest.fixture(scope="module")
def shared() -> Iterator[FakeCluster]:
    with fake_cluster() as running:
        yield running


def captured(cluster: FakeCluster) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        snapshot = capture(cluster.options(), Root(folder, "test"))
        return manifest_of(snapshot)


@given(path=st.sampled_from(PATHS), body=mutated(answers("")))
@examples(25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_answer_ends_a_capture_in_anything_but_a_snapshot_or_one_of_our_errors(
    shared: FakeCluster, path: str, body: bytes
) -> None:
    handlers = list(shared.first._server.handlers)
    try:
        shared.first.answers(path, body.decode("latin-1"))
        captured(shared)
    except AdvisorError as error:
        assert str(error)
    finally:
        shared.first._server.handlers[:] = handlers


@pytest.mark.parametrize("path", ["/broker-stats/topics", "/broker-stats/load-report", "/brokers/version"])
@pytest.mark.parametrize(
    "text", ['{"a":' * 50_000, '{"x\ud800": 1', "", "[[]]"], ids=["nested", "cut", "empty", "other"]
)
def test_a_broker_that_makes_no_sense_is_incomplete_and_the_other_is_not(
    cluster: FakeCluster, path: str, text: str
) -> None:
    cluster.first.answers(path, text.encode("utf-8", "surrogatepass").decode("latin-1"))
    manifest = captured(cluster)
    assert manifest["incomplete_brokers"] == [cluster.first.id]
    assert {failure["broker"] for failure in manifest["failures"]} == {cluster.first.id}


@pytest.mark.parametrize(
    ("text", "interval_s"),
    [
        ("30", 30),
        ("", 60),
        ("x", 60),
        ("9" * 5_000, 60),
        ("999999999", LONGEST_STATISTICS_INTERVAL_S),
    ],
)
def test_no_setting_makes_a_second_pass_wait_for_ever(text: str, interval_s: float) -> None:
    assert BrokerFacts(statistics_intervals={"a:1": text}).statistics_interval_s() == interval_s


def test_the_oldest_release_is_found_whatever_a_broker_calls_its_own() -> None:
    assert oldest_release(["4.0.8", "999999.999999.999999.999999x", "2.11.0"]) == "2.11.0"
