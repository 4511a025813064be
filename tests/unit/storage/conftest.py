from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from pulsar_advisor.storage.process import Process, this_process


@pytest.fixture
def dead_process() -> Process:
    """A process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return replace(this_process(), id=process.pid)
