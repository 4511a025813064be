"""What is kept of a document is what its type names; nothing else survives, and nothing is invented."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from pulsar_advisor.admin.decoding import Document, UnreadableAnswer, decode
from pulsar_advisor.admin.read_client import LEADER
from pulsar_advisor.capture.documents import (
    BUNDLE_DATA,
    ISOLATION_POLICIES,
    LOAD_REPORT,
    OWNERSHIP_NODE,
    POLICIES,
    broker_metrics,
    topic_lines,
    unloads_of_leader,
)
from unit.capture.fake_cluster import SECRET, TOPIC, TOPIC_STATS, leader_metrics, load_report


def document(content: Any) -> Document:
    return Document("http://broker:8080/x", json.dumps(content).encode())


def kept(content: Any, decoder: msgspec.json.Decoder[Any]) -> Any:
    """A document as in a snapshot."""
    return json.loads(msgspec.json.encode(decode(document(content), decoder)))


def test_a_load_report_keeps_figures_and_drops_the_rest() -> None:
    report = load_report()
    assert kept(report, LOAD_REPORT) == {
        name: value for name, value in report.items() if name not in ("protocols", "advertisedListeners")
    }


@pytest.mark.parametrize(
    ("policies", "served"),
    [
        ({}, True),
        ({"replication_clusters": None}, True),
        ({"replication_clusters": ["east", "west"]}, True),
        ({"replication_clusters": ["west"], "allowed_clusters": ["east"]}, True),
        ({"replication_clusters": ["west"], "allowed_clusters": []}, False),
        ({"replication_clusters": []}, False),
    ],
)
def test_a_namespace_is_served_where_it_is_replicated_or_allowed(policies: Any, served: bool) -> None:
    assert decode(document(policies), POLICIES).are_served_by("east") is served


def test_a_brokers_metrics_are_those_of_its_load_told_apart_by_feature() -> None:
    said = [
        {"dimensions": {"metric": "loadBalancing", "feature": "max_ema"}, "metrics": {"brk_lb_resource_usage": 0.31}},
        {"dimensions": {"metric": "loadBalancing", "feature": "max"}, "metrics": {"brk_lb_resource_usage": 0.93}},
        {"dimensions": {"broker": SECRET}, "metrics": {"brk_lb_cpu_usage": 93.5, "brk_lb_ignored_ack_total": 3}},
        {"dimensions": {"namespace": SECRET}, "metrics": {"brk_in_rate": 4.5}},
    ]
    metrics = broker_metrics(document(said))
    assert msgspec.to_builtins(metrics) == {"brk_lb_cpu_usage": 93.5, "max": 0.93, "max_ema": 0.31}


@pytest.mark.parametrize(
    ("metrics", "unloads"), [(leader_metrics(), 0), (leader_metrics(0), 0), (leader_metrics(7), 7), ([], None)]
)
def test_a_leader_has_unloaded_what_it_counts_and_nothing_before_its_first_cycle(
    metrics: list[Any], unloads: int | None
) -> None:
    assert unloads_of_leader(document(metrics)) == unloads


def test_a_number_that_is_not_finite_stays_what_pulsar_wrote() -> None:
    assert kept({"maxResourceUsage": "NaN", "msgRateIn": "Infinity"}, LOAD_REPORT) == {
        "maxResourceUsage": "NaN",
        "msgRateIn": "Infinity",
    }


def test_any_other_text_for_a_number_is_unreadable_and_not_repeated() -> None:
    with pytest.raises(UnreadableAnswer) as error:
        decode(document({"maxResourceUsage": SECRET}), LOAD_REPORT)
    assert "$.maxResourceUsage" in error.value.error
    assert SECRET not in str(error.value)


@pytest.mark.parametrize("count", [-(2**63) - 1, 2**63, 2**64])
def test_a_count_beyond_javas_long_is_unreadable(count: int) -> None:
    with pytest.raises(UnreadableAnswer, match=r"numTopics"):
        decode(Document("", f'{{"numTopics": {count}}}'.encode()), LOAD_REPORT)


def test_isolation_policies_keep_pulsars_order() -> None:
    policies = {"z": {"namespaces": ["t/.*"], "primary": ["b1"]}, "a": {"namespaces": ["t/n"]}}
    assert list(kept(policies, ISOLATION_POLICIES)) == ["z", "a"]


def test_averages_keep_their_number_of_samples() -> None:
    data = {"shortTermData": {"maxSamples": 10, "numSamples": 3, "msgRateIn": 1.5}, "topics": 2}
    assert kept(data, BUNDLE_DATA) == data


@pytest.mark.parametrize(
    ("node", "owner"),
    [
        ({"httpUrl": "http://b1:8080", "httpUrlTls": "https://b1:8443"}, "b1:8080"),
        ({"httpUrlTls": "https://b1:8443"}, "b1:8443"),
        ({"brokerId": "b1:9090", "httpUrl": "http://b1:8080"}, "b1:9090"),
        ({"disabled": False}, None),
    ],
)
def test_an_owner_is_told_by_id_or_by_url(node: dict[str, Any], owner: str | None) -> None:
    assert decode(document(node), OWNERSHIP_NODE).owner == owner


def test_a_leader_is_told_by_url_before_release_3_2() -> None:
    assert decode(document({"serviceUrl": "http://b1:8080"}), LEADER).broker_id == "b1:8080"


def test_topics_become_one_line_each_without_who_produces_and_consumes() -> None:
    topics = {
        "retail/orders": {"0x00000000_0x80000000": {"persistent": {TOPIC: TOPIC_STATS}, "non-persistent": {"n": {}}}},
        "retail/refunds": {"0x00000000_0xffffffff": {"persistent": {"p": {"msgRateIn": 1}}}},
    }
    lines = [line for lines in topic_lines("b1:8080", document(topics)) for line in lines]
    assert [(line.namespace, line.range, line.domain, line.topic) for line in lines] == [
        ("retail/orders", "0x00000000_0x80000000", "persistent", TOPIC),
        ("retail/orders", "0x00000000_0x80000000", "non-persistent", "n"),
        ("retail/refunds", "0x00000000_0xffffffff", "persistent", "p"),
    ]
    assert json.loads(msgspec.json.encode(lines[0].stats)) == {
        "subscriptions": {"billing": {"consumers": [{}]}},
        "msgRateIn": 4.5,
        "msgThroughputIn": 450.25,
    }


def test_a_document_cut_short_is_unreadable_with_size_and_hash() -> None:
    cut = Document("http://broker:8080/x", b'{"retail/orders": {"0x0')
    with pytest.raises(UnreadableAnswer) as error:
        list(topic_lines("b1:8080", cut))
    assert (error.value.size, len(error.value.sha256)) == (23, 64)
