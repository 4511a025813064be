"""The first screen, which is all that an operator sees at 3 a.m., of a real cluster."""

from __future__ import annotations

import io
import os
import re
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from harness.cluster import LiveCluster
from harness.shell import Shell, plain_connection
from pulsar_advisor.cli import exit_code

DONE, TOO_LITTLE_JUDGED = 0, 3
_WISHES = ("--shedder", "all", "--placement", "all", "--splits", "--as", "olive", "--master", "local[2]")


@dataclass(frozen=True)
class Screen:
    """What `run` prints, without line breaks inside sentences."""

    text: str

    @property
    def headline(self) -> str:
        return self.text.splitlines()[0]

    def labelled(self, label: str) -> list[str]:
        return [line for line in self.text.splitlines() if line.startswith(label)]

    @property
    def first(self) -> str:
        """The headline and the first finding."""
        return "\n".join((self.headline, *self.labelled("Finding")[:1]))

    @property
    def advises(self) -> str:
        """The headline and the options."""
        return "\n".join((self.headline, *self.labelled("Option")))

    @property
    def approval(self) -> list[str]:
        """The digits and the consents of the command that approves the advised plan."""
        found = re.search(r"^pulsar-advisor approve (\w+) --as NAME(.*)$", self.text, re.MULTILINE)
        assert found is not None, self.text
        return [found[1], *found[2].split()]


@dataclass(frozen=True)
class Operator:
    """Who looks after a cluster, with a folder of snapshots."""

    cluster: LiveCluster
    root: Path

    @property
    def shell(self) -> Shell:
        reach = plain_connection(self.cluster)
        if self.cluster.options.load_manager == "extensible":
            reach = (*reach, "--service-url", self.cluster.service_url)
        return Shell(self.root, reach)

    @property
    def _wishes(self) -> tuple[str, ...]:
        """Brokers whose top bundles stay the same may not publish them for minutes."""
        return (*_WISHES, "--listen", "10s") if self.cluster.options.load_manager == "extensible" else _WISHES

    def look(self) -> Screen:
        """Run from capture to report, in this process, where Spark stays warm."""
        shell = self.shell
        _, *words = shell.command("run", *shell.connection, *self._wishes)
        with mock.patch.dict(os.environ, COLUMNS="9999"), redirect_stdout(io.StringIO()) as said:
            code = exit_code(words)
        print(f"\n{said.getvalue()}", flush=True)
        assert code in (DONE, TOO_LITTLE_JUDGED)
        return Screen(said.getvalue())
