from dataclasses import replace

from pulsar_advisor.model.cluster.cluster_state import NO_ROW
from states import BrokerRow, cluster_state

HALF_UPGRADED = cluster_state([BrokerRow("a:8080", version="5.0.1"), BrokerRow("b:8080", version="4.0.8")], [])


def test_the_leaders_release_decides() -> None:
    assert HALF_UPGRADED.deciding_release == "5.0.1"


def test_without_a_leader_the_oldest_release_decides() -> None:
    assert replace(HALF_UPGRADED, leader=NO_ROW).deciding_release == "4.0.8"
