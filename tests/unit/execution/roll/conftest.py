from __future__ import annotations

import pytest

from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.roll.conduct import Roll
from unit.execution.doubles import FakeTime
from unit.execution.roll.doubles import RestartedCluster, approved_roll, roll_of, rolled


@pytest.fixture
def cluster(time: FakeTime) -> RestartedCluster:
    return rolled(time)


@pytest.fixture
def roll(ledger: Ledger, cluster: RestartedCluster) -> Roll:
    """An approved roll that was not begun yet."""
    return roll_of(approved_roll(ledger, cluster), ledger, cluster)
