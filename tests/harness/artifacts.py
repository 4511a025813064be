"""Resolves the jars of a Pulsar release through Maven, once per user, and names the class path."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.errors import LiveClusterUnavailable

CACHE_VARIABLE = "PULSAR_ADVISOR_CACHE"
BROKER = "pulsar-broker"
DEFAULT_RELEASE = "4.0.8"
RELEASES = ("2.10.5", "2.11.0", "3.0.7", "4.0.7", DEFAULT_RELEASE, "4.2.4", "5.0.0-M1", "5.0.1")

MAVEN_LIMIT_S = 600
LOG_TAIL_LINES = 15

PULSAR = "org.apache.pulsar"
_JACKSON, _NETTY = "com.fasterxml.jackson.core", "io.netty"
_ZOOKEEPER, _DISTRIBUTED_LOG = "org.apache.zookeeper", "org.apache.distributedlog"
_VERSIONS = {
    # Published without some of its own modules: they come from the release before.
    "4.0.8": ((PULSAR, "pulsar-opentelemetry", "4.0.7"), (PULSAR, "jetcd-core-shaded", "4.0.7")),
    # Resolve to annotations that are older than their Jackson: the metadata store then waits for ever.
    "5.0.0-M1": ((_JACKSON, "jackson-annotations", "2.21"),),
    "5.0.1": (
        (_JACKSON, "jackson-annotations", "2.21"),
        # Not published whole in the versions that it asks for.
        (_ZOOKEEPER, "zookeeper", "3.9.5"),
        (_ZOOKEEPER, "zookeeper-jute", "3.9.5"),
        (_NETTY, "netty-resolver-dns-native-macos", "4.2.18.Final", "osx-x86_64"),
        (_NETTY, "netty-resolver-dns-native-macos", "4.2.18.Final", "osx-aarch_64"),
        (_DISTRIBUTED_LOG, "distributedlog-core", "4.18.0", "tests"),
    ),
}
"""What a release needs in other versions than it asks for: group, artifact, version, and a classifier if it has one."""
_LATER_JAVA = {"5.0.1": 21}
"""Releases that don't run on Java 17, and the version that their classes ask for."""
JAVA_HOME_VARIABLE = "PULSAR_ADVISOR_LATER_JAVA_HOME"
_INSTALLED_JAVA = Path("/usr/lib/jvm")


def cache_directory() -> Path:
    """Where the jars are kept: $PULSAR_ADVISOR_CACHE, else the user's XDG cache."""
    if chosen := os.environ.get(CACHE_VARIABLE):
        return Path(chosen).expanduser()
    xdg_cache = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    return Path(xdg_cache) / "pulsar-rebalance-advisor"


def class_path(release: str = DEFAULT_RELEASE, artifact: str = BROKER) -> str:
    """The Java class path (`…/*`) of an artifact of this release, resolved now if it isn't cached yet.

    ZooKeeper and BookKeeper come with the broker. Safe to call from several processes at once: one resolves, the others
    wait; the folder appears under its name only when it is complete.

    Raises:
        LiveClusterUnavailable: unknown release, Maven missing, or the artifact repository can't be reached.
    """
    if release not in RELEASES:
        raise LiveClusterUnavailable(f"Pulsar {release} isn't known to resolve; choose one of {', '.join(RELEASES)}.")
    name = release if artifact == BROKER else f"{artifact}-{release}"
    return f"{resolved(name, project_model(release, artifact))}/*"


def resolved(name: str, model: str) -> Path:
    """The cached folder of this name with the runtime dependencies of a pom.xml, as `class_path` describes it.

    Raises:
        LiveClusterUnavailable: Maven missing, or the artifact repository can't be reached.
    """
    _require("java")

    def resolve(work: Path) -> Path:
        pom, complete = work / "pom.xml", work / "jars"
        pom.write_text(model, encoding="utf-8")
        goal = ("-f", str(pom), "dependency:copy-dependencies", "-DincludeScope=runtime")
        _maven(f"the jars of {name}", *goal, f"-DoutputDirectory={complete}")
        return complete

    return _once(cache_directory() / "jars" / name, resolve)


def archive(coordinates: str) -> Path:
    """The cached file of an artifact, named as `group:name:version:type`. Raises `LiveClusterUnavailable`."""
    _, name, version, kind = coordinates.split(":")
    file = f"{name}-{version}.{kind}"

    def copy(work: Path) -> Path:
        _maven(file, "dependency:copy", f"-Dartifact={coordinates}", f"-DoutputDirectory={work}")
        return work / file

    return _once(cache_directory() / "archives" / file, copy)


def _once(cached: Path, fetch: Callable[[Path], Path]) -> Path:
    """What `fetch` makes in a temporary folder, under the cached name only when it is complete."""
    if not cached.exists():
        cached.parent.mkdir(parents=True, exist_ok=True)
        with _exclusive(cached.with_name(f"{cached.name}.lock")):
            if not cached.exists():
                with tempfile.TemporaryDirectory(dir=cached.parent, prefix=f".{cached.name}-") as work:
                    fetch(Path(work)).rename(cached)
    return cached


@contextmanager
def _exclusive(lock: Path) -> Iterator[None]:
    with lock.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _require(tool: str) -> None:
    if shutil.which(tool) is None:
        raise LiveClusterUnavailable(f"{tool!r} isn't on PATH; install Java 17 and Maven, then try again.")


def _maven(wanted: str, *goal: str) -> None:
    _require("mvn")
    # -U: Maven remembers a failed look-up, and would repeat the failure without asking again.
    command = ["mvn", "-q", "-B", "-U", *goal]
    try:
        maven = subprocess.run(command, capture_output=True, text=True, timeout=MAVEN_LIMIT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise LiveClusterUnavailable(
            f"Maven did not resolve {wanted} within {MAVEN_LIMIT_S} s; check the network."
        ) from error
    if maven.returncode != 0:
        tail = "\n".join((maven.stdout + maven.stderr).splitlines()[:LOG_TAIL_LINES])
        raise LiveClusterUnavailable(
            f"Maven can't resolve {wanted} (exit {maven.returncode}); "
            f"check that the artifact repository is reachable. Maven says:\n{tail}"
        )


def project_model(release: str, artifact: str = BROKER) -> str:
    """The pom.xml whose runtime dependencies are an artifact's class path.

    Importing Pulsar's own parent fixes the transitive versions (OpenTelemetry, log4j, Netty) as the distribution has
    them; a dependency's own dependency management is otherwise not inherited.
    """
    fixed = [
        _dependency(artifact, version, "".join(f"<classifier>{name}</classifier>" for name in classifier), group=group)
        for group, artifact, version, *classifier in _VERSIONS.get(release, ())
    ]
    managed = "".join([*fixed, _dependency("pulsar", release, "<type>pom</type><scope>import</scope>")])
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>harness</groupId><artifactId>class-path</artifactId><version>1</version>"
        "<packaging>pom</packaging>"
        f"<dependencyManagement><dependencies>{managed}</dependencies></dependencyManagement>"
        f"<dependencies>{_dependency(artifact, release)}</dependencies></project>"
    )


def java_tool(name: str, release: str) -> Path:
    """`java` or `javac` for a release: from PATH, or of an installed Java that is recent enough.

    Raises:
        LiveClusterUnavailable: no installed Java runs this release.
    """
    needed = _LATER_JAVA.get(release)
    return Path(name) if needed is None else java_home(needed, f"Pulsar {release}") / "bin" / name


def java_home(needed: int, program: str) -> Path:
    """The first folder with a JDK of this version or a later one. Raises `LiveClusterUnavailable`."""
    homes = [os.environ[JAVA_HOME_VARIABLE]] if JAVA_HOME_VARIABLE in os.environ else sorted(_INSTALLED_JAVA.glob("*"))
    for home in map(Path, homes):
        if _java_version(home) >= needed and (home / "bin" / "javac").is_file():
            return home
    raise LiveClusterUnavailable(
        f"{program} needs a JDK {needed} or later; install one, and set {JAVA_HOME_VARIABLE} to its folder."
    )


def _java_version(home: Path) -> int:
    """The major version of the JDK in a folder, 0 if there is none."""
    file = home / "release"
    found = re.search(r'JAVA_VERSION="(\d+)', file.read_text(encoding="utf-8")) if file.is_file() else None
    return int(found[1]) if found else 0


def _dependency(artifact: str, version: str, extra: str = "", *, group: str = PULSAR) -> str:
    return (
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{version}</version>{extra}</dependency>"
    )
