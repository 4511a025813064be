"""Resolving a release's jars: once, whole or not at all, with a clear message when it can't be done."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree

import pytest

from harness.artifacts import CACHE_VARIABLE, JAVA_HOME_VARIABLE, class_path, java_tool, project_model
from harness.errors import LiveClusterUnavailable

POM = {"pom": "http://maven.apache.org/POM/4.0.0"}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def put_on_path(directory: Path, monkeypatch: pytest.MonkeyPatch, *, mvn: str) -> None:
    """Stand in for Maven with a shell script, and for Java with one that is never called."""
    for tool, script in (("mvn", mvn), ("java", "exit 1")):
        (directory / tool).write_text(f"#!/bin/sh\n{script}\n")
        (directory / tool).chmod(0o755)
    monkeypatch.setenv("PATH", str(directory), prepend=":")


RESOLVES = """
for argument in "$@"; do case "$argument" in -DoutputDirectory=*) jars="${argument#*=}";; esac; done
echo resolved >> "$0.calls"
mkdir "$jars" && touch "$jars/first.jar" && sleep 0.3 && touch "$jars/last.jar"
"""


def test_concurrent_callers_resolve_once_and_all_get_the_whole_class_path(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_on_path(tmp_path, monkeypatch, mvn=RESOLVES)

    def jars_seen(_: int) -> list[str]:
        return sorted(jar.name for jar in Path(class_path("4.0.8")).parent.glob("*"))

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(jars_seen, range(4))) == [["first.jar", "last.jar"]] * 4
    assert (tmp_path / "mvn.calls").read_text() == "resolved\n"


def test_an_unreachable_repository_is_named_and_leaves_nothing_in_the_cache(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_on_path(tmp_path, monkeypatch, mvn='echo "Could not transfer artifact"; exit 1')

    with pytest.raises(LiveClusterUnavailable, match=r"(?s)jars of 4\.0\.8 .*reachable.*Could not transfer"):
        class_path("4.0.8")

    assert [path.name for path in (cache / "jars").iterdir()] == ["4.0.8.lock"]


def test_a_missing_tool_is_named(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(cache))
    with pytest.raises(LiveClusterUnavailable, match="'java' isn't on PATH"):
        class_path("4.0.8")


def test_an_unknown_release_is_answered_with_those_that_resolve(cache: Path) -> None:
    with pytest.raises(LiveClusterUnavailable, match=r"Pulsar 3\.3\.6 .* 4\.0\.8"):
        class_path("3.3.6")


def test_a_release_that_needs_a_later_java_gets_the_first_installed_one_that_is_late_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = {}
    for version in (17, 21, 25):
        tools[version] = tmp_path / f"jdk-{version}" / "bin" / "java"
        tools[version].parent.mkdir(parents=True)
        tools[version].touch()
        tools[version].with_name("javac").touch()
        tools[version].parents[1].joinpath("release").write_text(f'JAVA_VERSION="{version}.0.1"\n')
    monkeypatch.setattr("harness.artifacts._INSTALLED_JAVA", tmp_path)
    assert java_tool("java", "4.0.8") == Path("java")
    assert java_tool("java", "5.0.1") == tools[21]
    monkeypatch.setenv(JAVA_HOME_VARIABLE, str(tmp_path / "jdk-17"))
    with pytest.raises(LiveClusterUnavailable, match=r"5\.0\.1 needs a JDK 21"):
        java_tool("java", "5.0.1")


def test_the_project_model_puts_substitutes_before_the_parent_import() -> None:
    managed = ElementTree.fromstring(project_model("4.0.8")).findall(".//pom:dependencyManagement//pom:dependency", POM)
    found = [(entry.findtext("pom:artifactId", "", POM), entry.findtext("pom:version", "", POM)) for entry in managed]
    assert found == [("pulsar-opentelemetry", "4.0.7"), ("jetcd-core-shaded", "4.0.7"), ("pulsar", "4.0.8")]
