"""The first signal is a wish, the second one an end."""

from __future__ import annotations

import signal

import pytest

from pulsar_advisor.cli.signals import deferred_signals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_a_wish_and_the_next_one_ends_the_process(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with deferred_signals() as interruption:
        assert interruption() is None
        signal.raise_signal(number)
        assert interruption() == f"ended by {number.name}"
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
    assert signal.getsignal(number) is before


def test_nohup_still_holds() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with deferred_signals() as interruption:
            signal.raise_signal(signal.SIGHUP)
            assert interruption() is None
    finally:
        signal.signal(signal.SIGHUP, before)
