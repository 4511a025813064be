"""Asks the real Java classes of a Pulsar release: compiles java/*.java against its jars and talks to one JVM."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from harness import artifacts

RELEASES = ("2.11.0", "3.0.7", "4.0.8", "4.2.4", "5.0.0-M1", "5.0.1")
"""Releases whose classes run here, oldest first."""

SOURCES = Path(__file__).with_name("java")
FIRST_RELEASE = {"ExtensibleCases.java": "3.0.7", "ScalableCases.java": "5.0.1"}
"""The first release that has what a source is about, for those that not every release can compile."""
WITHOUT_EXTENSIBLE_MANAGER = "2.11.0"
MOCKITO = "5.20.0"
COMPILER_LIMIT_S = 600
START_FAST = ("-Xmx768m", "-XX:TieredStopAtLevel=1")

Json = Mapping[str, Any]


class JavaClasses:
    """One JVM with the classes of one release; answers one case at a time, in the order they are asked."""

    def __init__(self, process: subprocess.Popen[str], errors: IO[str], release: str) -> None:
        self._process = process
        self._errors = errors
        self.release = release

    def ask(self, case: Json) -> dict[str, Any]:
        """What Java says to a case in the vector format: `answers` (one per step), `error`, or `absent`."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(case) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            self._errors.seek(0)
            tail = "\n".join(self._errors.read().splitlines()[-15:])
            raise RuntimeError(f"The JVM with Pulsar {self.release} ended at case {case.get('id')}:\n{tail}")
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextmanager
def java_classes(release: str) -> Iterator[JavaClasses]:
    """A JVM with the real classes of this release, stopped at the end.

    Raises:
        LiveClusterUnavailable: Java, Maven, or the artifacts can't be had.
    """
    command = java_command("ReplayCases", release, sources_for(release), START_FAST)
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as errors,
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            encoding="utf-8",
            env=java_environment(),
        ) as process,
    ):
        try:
            yield JavaClasses(process, errors, release)
        finally:
            process.kill()


def java_command(main: str, release: str, sources: Sequence[Path], options: Sequence[str]) -> list[str]:
    """The command that runs one of our main classes against the jars of a release, compiling it first if need be."""
    class_path = _class_path(release)
    return [
        str(artifacts.java_tool("java", release)),
        "-XX:+UseSerialGC",
        f"-Dlog4j2.configurationFile={SOURCES}/log4j2.properties",
        *options,
        "-cp",
        f"{_compiled(release, class_path, sources)}:{class_path}",
        main,
    ]


def java_environment() -> dict[str, str]:
    """This process's environment without options that would reach every JVM."""
    return {name: value for name, value in os.environ.items() if name != "JAVA_TOOL_OPTIONS"}


def sources_for(release: str) -> list[Path]:
    """Our sources that a release can compile."""
    too_new = {name for name, first in FIRST_RELEASE.items() if RELEASES.index(release) < RELEASES.index(first)}
    return [source for source in sorted(SOURCES.glob("*.java")) if source.name not in too_new]


def _class_path(release: str) -> str:
    """Mockito first: a release may bring an older Byte Buddy than it needs."""
    return f"{_mockito()}/*:{artifacts.class_path(release)}"


def _mockito() -> Path:
    dependency = f"<groupId>org.mockito</groupId><artifactId>mockito-core</artifactId><version>{MOCKITO}</version>"
    return artifacts.resolved(
        f"mockito-{MOCKITO}",
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>parity</groupId><artifactId>mockito-class-path</artifactId><version>1</version>"
        f"<packaging>pom</packaging><dependencies><dependency>{dependency}</dependency></dependencies></project>",
    )


def _publish(complete: Path, folder: Path) -> None:
    """Give a finished folder its name, unless another process was faster with the same content."""
    try:
        complete.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise


def _compiled(release: str, class_path: str, sources: Sequence[Path]) -> Path:
    """The folder with our classes for this release, compiled again when a source changes."""
    content = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    folder = artifacts.cache_directory() / "parity" / f"{release}-{content}"
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{release}-") as work:
        classes = Path(work, "classes")
        command = [
            str(artifacts.java_tool("javac", release)),
            "-nowarn",
            "-proc:none",
            "-encoding",
            "UTF-8",
            "-d",
            str(classes),
            "-cp",
            class_path,
        ]
        compiler = subprocess.run(
            [*command, *map(str, sources)], capture_output=True, text=True, timeout=COMPILER_LIMIT_S, check=False
        )
        if compiler.returncode != 0:
            raise RuntimeError(f"javac refuses our sources with Pulsar {release}:\n{compiler.stderr}")
        _publish(classes, folder)
    return folder
