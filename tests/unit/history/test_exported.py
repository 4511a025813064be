"""The questions that get back what brokers exported, whatever a scrape did to its labels."""

import pytest

from pulsar_advisor.history.exported import (
    BUNDLES,
    TOPICS,
    Labels,
    broker_of,
    groups,
    labels_of,
    of_namespaces,
    quoted,
    selector,
    topic_of,
)
from pulsar_advisor.model.errors import UsageError


def test_a_selector_names_cluster_and_namespaces() -> None:
    assert selector("m", Labels(), "prod", of_namespaces(TOPICS, Labels(), ["a/b", "a/c.d"])) == (
        'm{cluster="prod",namespace=~"a/b|a/c\\\\.d"}'
    )
    assert of_namespaces(BUNDLES, Labels(), ["a/b"]) == 'bundle=~"(a/b)/0x[^/]*"'


def test_text_can_not_leave_its_quotes() -> None:
    assert quoted('a"} or vector(1) # \\') == '"a\\"} or vector(1) # \\\\"'


def test_labels_that_the_targets_own_replaced_are_found() -> None:
    labels = Labels().replaced(["namespace", "exported_namespace", "exported_instance", "topic"])
    assert labels == Labels(namespace="exported_namespace")


def test_labels_are_named_by_the_user() -> None:
    assert labels_of(["instance=pod", "cluster=pulsar_cluster"]) == Labels(instance="pod", cluster="pulsar_cluster")


@pytest.mark.parametrize(
    ("partition", "name"),
    [("", "t"), ("-1", "t"), ("aws", "t"), ("3", "t-partition-3"), ("0-orders-RETRY", "t-partition-0-orders-RETRY")],
)
def test_a_topic_is_joined_with_its_partition(partition: str, name: str) -> None:
    assert topic_of("t", partition) == name


@pytest.mark.parametrize("text", ["pods=pod", "instance", "instance=a-b", 'instance=a"', ""])
def test_other_labels_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--label"):
        labels_of([text])


def test_namespaces_are_asked_for_together_while_they_have_few_series() -> None:
    assert list(groups({"t/c": 5, "t/a": 3, "t/b": 3, "t/big": 100, "t/z": 0}, 6)) == [
        ("t/a", "t/b"),
        ("t/big",),
        ("t/c", "t/z"),
    ]
    assert list(groups({}, 6)) == []


def test_a_pattern_stays_short_enough_for_proxies() -> None:
    names = {f"tenant/{'n' * 200}-{number}": 1 for number in range(100)}
    assert max(len("|".join(group)) for group in groups(names, 10**6)) < 4_000
    assert [name for group in groups(names, 10**6) for name in group] == sorted(names)


IDS = ("broker-0.svc.example:8080", "broker-1.svc.example:8080", "10.0.0.1:8080", "10.0.0.2:8080")


@pytest.mark.parametrize(
    ("instance", "broker"),
    [
        ("10.0.0.1:8080", "10.0.0.1:8080"),
        ("10.0.0.1:9090", "10.0.0.1:8080"),
        ("10.0.0.9:8080", "10.0.0.9:8080"),
        ("broker-1", "broker-1.svc.example:8080"),
        ("BROKER-1.other:80", "broker-1.svc.example:8080"),
        ("broker-9", "broker-9"),
    ],
)
def test_an_instance_is_the_broker_of_its_host(instance: str, broker: str) -> None:
    assert broker_of(instance, IDS) == broker


def test_a_host_of_two_brokers_is_neither() -> None:
    assert broker_of("host:9090", ("host:8080", "host:8081")) == "host:9090"
