"""Where a bundle is: the brokers that likely have it are asked first."""

from __future__ import annotations

from typing import Any

from pulsar_advisor.execution.run.observe import find_owner, look
from pulsar_advisor.model.cluster.cluster_state import IsolationPolicy
from pulsar_advisor.model.errors import ClusterUnreachable
from unit.execution.doubles import B1, B2, B3, LOWER, NAMESPACE, FakeCluster, FakeTime, unload_step


class Asked:
    """Brokers of which the last has the bundle; it notes who is asked."""

    def __init__(self) -> None:
        self.brokers: list[str] = []

    def active_brokers(self) -> frozenset[str]:
        return frozenset({B1, B2, B3})

    def owned_bundles(self, broker: str) -> frozenset[str]:
        self.brokers.append(broker)
        return frozenset({f"{NAMESPACE}/{LOWER}"} if broker == B3 else ())


ANYWHERE = IsolationPolicy("vip", ("shop/.*",), (".*",), (), 1, 100)


def test_isolation_policies_match_by_the_leaders_release_of_today() -> None:
    cluster = FakeCluster(FakeTime(), policies=(ANYWHERE,), releases={B3: "5.0.1"}, leads=B3)
    assert look(cluster, unload_step(), {}, ()).release == "5.0.1"


def test_a_leader_that_cannot_be_asked_takes_no_part_in_a_step() -> None:
    class Unreachable(FakeCluster):
        def release(self, broker: str) -> str:
            if broker == B3:
                raise ClusterUnreachable("connection refused")
            return super().release(broker)

    cluster = Unreachable(FakeTime(), policies=(ANYWHERE,), releases={B1: "5.0.1"}, leads=B3)
    assert look(cluster, unload_step(), {}, ()).release == "5.0.1"


def asked_for(likely: list[str]) -> list[str]:
    cluster: Any = Asked()
    assert find_owner(cluster, NAMESPACE, LOWER, likely) == B3
    brokers: list[str] = cluster.brokers
    return brokers


def test_the_likely_broker_is_asked_first_and_alone_if_it_has_the_bundle() -> None:
    assert asked_for([B3]) == [B3]
    assert asked_for([]) == [B1, B2, B3]


def test_a_likely_broker_that_is_gone_is_not_asked() -> None:
    assert asked_for(["gone:8080", B2]) == [B2, B1, B3]
