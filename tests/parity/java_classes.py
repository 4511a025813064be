"""Asks the real Java classes of a Pulsar release: compiles java/*.java against its jars and talks to one JVM."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from harness import artifacts
from harness.errors import LiveClusterUnavailable

RELEASES = ("2.11.0", "3.0.7", "4.0.8", "4.2.4", "5.0.0-M1", "5.0.1")
"""Releases whose classes run here, oldest first."""
PUBLISHED_IN_PART = {"5.0.1": "5.0.0-M1"}
"""Releases of which only `PUBLISHED` resolves: what it depends on comes from the release named here."""
PUBLISHED = ("pulsar-broker", "managed-ledger")
LATER_JAVA = {"5.0.1": 21}
"""Releases that don't run on Java 17, and the version that their classes ask for."""
JAVA_HOME_VARIABLE = "PULSAR_ADVISOR_LATER_JAVA_HOME"
INSTALLED_JAVA = Path("/usr/lib/jvm")

SOURCES = Path(__file__).with_name("java")
UNPUBLISHED = SOURCES / "unpublished"
EXTENSIBLE_SOURCE = "ExtensibleCases.java"
WITHOUT_EXTENSIBLE_MANAGER = "2.11.0"
MOCKITO = "5.20.0"
MAVEN_LIMIT_S = 600
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
        str(_java_tool("java", release)),
        "-XX:+UseSerialGC",
        f"-Dlog4j2.configurationFile={SOURCES}/log4j2.properties",
        *options,
        "-cp",
        f"{_compiled(release, class_path, sources)}:{class_path}",
        main,
    ]


def _java_tool(name: str, release: str) -> Path:
    """`java` or `javac` for a release: from PATH, or of an installed Java that is recent enough."""
    needed = LATER_JAVA.get(release)
    if needed is None:
        return Path(name)
    homes = [os.environ[JAVA_HOME_VARIABLE]] if JAVA_HOME_VARIABLE in os.environ else sorted(INSTALLED_JAVA.glob("*"))
    for home in map(Path, homes):
        if _java_version(home) >= needed and (tool := home / "bin" / name).is_file():
            return tool
    raise LiveClusterUnavailable(
        f"Pulsar {release} needs a JDK {needed} or later; install one, and set {JAVA_HOME_VARIABLE} to its folder."
    )


def _java_version(home: Path) -> int:
    """The major version of the JDK in a folder, 0 if there is none."""
    file = home / "release"
    found = re.search(r'JAVA_VERSION="(\d+)', file.read_text(encoding="utf-8")) if file.is_file() else None
    return int(found[1]) if found else 0


def java_environment() -> dict[str, str]:
    """This process's environment without options that would reach every JVM."""
    return {name: value for name, value in os.environ.items() if name != "JAVA_TOOL_OPTIONS"}


def sources_for(release: str) -> list[Path]:
    """Our sources that a release can compile."""
    sources = sorted(SOURCES.glob("*.java"))
    if release == WITHOUT_EXTENSIBLE_MANAGER:
        return [source for source in sources if source.name != EXTENSIBLE_SOURCE]
    if release in PUBLISHED_IN_PART:
        return [*sources, *sorted(UNPUBLISHED.glob("*.java"))]
    return sources


def _class_path(release: str) -> str:
    """Mockito first: a release may bring an older Byte Buddy than it needs."""
    folders = [_mockito()]
    if release in PUBLISHED_IN_PART:
        folders += [_alone(artifact, release) for artifact in PUBLISHED]
    rest = artifacts.class_path(PUBLISHED_IN_PART.get(release, release))
    return ":".join((*(f"{folder}/*" for folder in folders), rest))


def _alone(artifact: str, release: str) -> Path:
    """The folder with one jar of a release, without what it depends on."""
    coordinates = f"-Dartifact={artifacts.PULSAR}:{artifact}:{release}"
    return _fetched(f"{artifact}-{release}-alone", lambda _: ["dependency:copy", coordinates])


def _mockito() -> Path:
    dependency = f"<groupId>org.mockito</groupId><artifactId>mockito-core</artifactId><version>{MOCKITO}</version>"
    return _copied(
        f"mockito-{MOCKITO}",
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>parity</groupId><artifactId>mockito-class-path</artifactId><version>1</version>"
        f"<packaging>pom</packaging><dependencies><dependency>{dependency}</dependency></dependencies></project>",
    )


def _copied(name: str, project_model: str) -> Path:
    """The folder with the runtime dependencies of a project, resolved now if it isn't cached yet."""

    def goal(work: Path) -> list[str]:
        pom = work / "pom.xml"
        pom.write_text(project_model, encoding="utf-8")
        return ["-f", str(pom), "dependency:copy-dependencies", "-DincludeScope=runtime"]

    return _fetched(name, goal)


def _fetched(name: str, goal: Callable[[Path], list[str]]) -> Path:
    """The folder of this name with the jars that Maven writes, for a goal that may use a temporary folder."""
    folder = artifacts.cache_directory() / "jars" / name
    if folder.is_dir():
        return folder
    for tool in ("java", "javac", "mvn"):
        if shutil.which(tool) is None:
            raise LiveClusterUnavailable(f"{tool!r} isn't on PATH; install a JDK 17 and Maven, then try again.")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{name}-") as work:
        complete = Path(work, "jars")
        command = ["mvn", "-q", "-B", "-U", *goal(Path(work)), f"-DoutputDirectory={complete}"]
        maven = subprocess.run(command, capture_output=True, text=True, timeout=MAVEN_LIMIT_S, check=False)
        if maven.returncode != 0:
            reason = "\n".join((maven.stdout + maven.stderr).splitlines()[:15])
            raise LiveClusterUnavailable(f"Maven can't resolve {name}; is the artifact repository reachable?\n{reason}")
        _publish(complete, folder)
    return folder


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
            str(_java_tool("javac", release)),
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
