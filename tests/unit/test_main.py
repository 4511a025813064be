"""The entry point of the command line."""

from __future__ import annotations

import signal
import subprocess
import sys

INTERRUPTED_WHILE_LOADING = """
import signal, sys
from pulsar_advisor.__main__ import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # as in a shell, also where the tests run in the background

class Interrupts:
    def find_spec(self, name, *_):
        if name == "pulsar_advisor.cli":
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Interrupts())
main()
"""


def test_an_interrupt_while_the_code_is_loaded_shows_no_stack_trace() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_WHILE_LOADING], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (-signal.SIGINT, "")


def test_the_package_runs_as_a_module() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "pulsar_advisor", "plans", "-x"], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert "See `pulsar-advisor plans --help`." in ended.stderr
