from __future__ import annotations

import pytest

from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.rolls import TURN_BEGUN, recorded_roll
from pulsar_advisor.model.errors import StorageError


@pytest.mark.parametrize("detail", ["", "{", "[]", "null"])
def test_an_event_of_a_roll_that_can_not_be_read_is_named(ledger: Ledger, detail: str) -> None:
    with ledger.writing() as session:
        ledger.add_event(session, "sha256:00", TURN_BEGUN, detail)
    with pytest.raises(StorageError, match=r"event 1 \('turn begun'\) can't be read"):
        recorded_roll(ledger, "sha256:00")
