"""The first signal is a wish, the second one an end."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from pulsar_advisor.cli.signals import deferred_signals


@pytest.fixture(autouse=True)
def with_a_terminal() -> Iterator[None]:
    """Signals as in a shell, also where the tests themselves run under `nohup` or in the background."""
    as_in_a_shell = {signal.SIGHUP: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler}
    before = {number: signal.signal(number, handler) for number, handler in as_in_a_shell.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


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


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT], ids=["nohup", "&"])
def test_a_signal_that_the_caller_ignored_stays_ignored(number: signal.Signals) -> None:
    signal.signal(number, signal.SIG_IGN)
    with deferred_signals() as interruption:
        signal.raise_signal(number)
        assert interruption() is None
