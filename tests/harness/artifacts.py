"""Resolves the jars of a Pulsar release through Maven, once per user, and names the class path."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.errors import LiveClusterUnavailable

CACHE_VARIABLE = "PULSAR_ADVISOR_CACHE"
BROKER = "pulsar-broker"
DEFAULT_RELEASE = "4.0.8"
RELEASES = ("2.10.5", "2.11.0", "3.0.7", "4.0.7", DEFAULT_RELEASE, "4.2.4", "5.0.0-M1")

MAVEN_LIMIT_S = 600
LOG_TAIL_LINES = 15

PULSAR = "org.apache.pulsar"
_VERSIONS = {
    # Published without some of its own modules: they come from the release before.
    "4.0.8": ((PULSAR, "pulsar-opentelemetry", "4.0.7"), (PULSAR, "jetcd-core-shaded", "4.0.7")),
    # Resolves to annotations that are older than its Jackson: its metadata store then waits for ever.
    "5.0.0-M1": (("com.fasterxml.jackson.core", "jackson-annotations", "2.21"),),
}


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
    for tool in ("java", "mvn"):
        if shutil.which(tool) is None:
            raise LiveClusterUnavailable(f"{tool!r} isn't on PATH; install Java 17 and Maven, then try again.")
    name = release if artifact == BROKER else f"{artifact}-{release}"
    jars = cache_directory() / "jars" / name
    if not jars.is_dir():
        jars.parent.mkdir(parents=True, exist_ok=True)
        with _exclusive(jars.with_name(f"{name}.lock")):
            if not jars.is_dir():
                _resolve(release, artifact, jars)
    return f"{jars}/*"


@contextmanager
def _exclusive(lock: Path) -> Iterator[None]:
    with lock.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _resolve(release: str, artifact: str, jars: Path) -> None:
    with tempfile.TemporaryDirectory(dir=jars.parent, prefix=f".{jars.name}-") as work:
        pom, complete = Path(work, "pom.xml"), Path(work, "jars")
        pom.write_text(project_model(release, artifact), encoding="utf-8")
        # -U: Maven remembers a failed look-up, and would repeat the failure without asking again.
        command = ["mvn", "-q", "-B", "-U", "-f", str(pom), "dependency:copy-dependencies"]
        command += ["-DincludeScope=runtime", f"-DoutputDirectory={complete}"]
        try:
            maven = subprocess.run(command, capture_output=True, text=True, timeout=MAVEN_LIMIT_S, check=False)
        except subprocess.TimeoutExpired as error:
            raise LiveClusterUnavailable(
                f"Maven did not resolve {artifact} {release} within {MAVEN_LIMIT_S} s; check the network."
            ) from error
        if maven.returncode != 0:
            tail = "\n".join((maven.stdout + maven.stderr).splitlines()[:LOG_TAIL_LINES])
            raise LiveClusterUnavailable(
                f"Maven can't resolve {artifact} {release} (exit {maven.returncode}); "
                f"check that the artifact repository is reachable. Maven says:\n{tail}"
            )
        complete.rename(jars)


def project_model(release: str, artifact: str = BROKER) -> str:
    """The pom.xml whose runtime dependencies are an artifact's class path.

    Importing Pulsar's own parent fixes the transitive versions (OpenTelemetry, log4j, Netty) as the distribution has
    them; a dependency's own dependency management is otherwise not inherited.
    """
    fixed = [_dependency(artifact, version, group=group) for group, artifact, version in _VERSIONS.get(release, ())]
    managed = "".join([*fixed, _dependency("pulsar", release, "<type>pom</type><scope>import</scope>")])
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>harness</groupId><artifactId>class-path</artifactId><version>1</version>"
        "<packaging>pom</packaging>"
        f"<dependencyManagement><dependencies>{managed}</dependencies></dependencyManagement>"
        f"<dependencies>{_dependency(artifact, release)}</dependencies></project>"
    )


def _dependency(artifact: str, version: str, extra: str = "", *, group: str = PULSAR) -> str:
    return (
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{version}</version>{extra}</dependency>"
    )
