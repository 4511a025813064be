"""`range_equally_divide` as its page describes it; the vectors in tests/parity hold it to the Java class."""

from __future__ import annotations

from pulsar_advisor.splitting import range_equally_divide
from unit.splitting.options import option


def test_cuts_in_the_middle_whatever_lies_in_the_bundle():
    assert range_equally_divide.split_boundary(option(lower=0x40000000, upper=0x80000000)) == (0x60000000,)


def test_rounds_down():
    assert range_equally_divide.split_boundary(option(lower=5, upper=8)) == (6,)
