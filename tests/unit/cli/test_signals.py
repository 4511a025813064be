"""The first signal is a wish, the second one an end."""

from __future__ import annotations

import signal

import pytest

from pulsar_advisor.cli.signals import deferred_signals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_a_wish_and_the_next_one_ends_the_process(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with deferred_signals() as interruption:
        assert interruption() is None
        signal.raise_signal(number)
        assert interruption() == f"ended by {number.name}"
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
    assert signal.getsignal(number) is before
