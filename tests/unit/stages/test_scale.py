"""A target that no broker can be held to is refused before anything is read."""

from __future__ import annotations

import pytest

from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.stages import scale
from pulsar_advisor.storage.root import Root


@pytest.mark.parametrize("target", [0.0, 6.0])
def test_a_target_that_is_no_usage_is_refused(target: float) -> None:
    with pytest.raises(UsageError, match=f"--to {target:.0%} is out of bounds"):
        scale.run(Root("data", "c").snapshot("20261121T083000Z"), target)
