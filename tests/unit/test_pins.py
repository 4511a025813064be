"""The locks and the wheel: pins that must agree, hashes everywhere, and every file of the packages shipped."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import version
from pathlib import Path

import pyspark
import pytest

REPOSITORY = Path(__file__).parents[2]
LOCKS = (
    "requirements.txt",
    "requirements-build.txt",
    "requirements-dev.txt",
    "requirements-executor.txt",
    "requirements-image.txt",
    "requirements-release.txt",
)


def requirements(lock: str) -> dict[str, str]:
    """The requirements of a lock file, each (`name==version ; marker`) with the text of its hashes."""
    text = (REPOSITORY / lock).read_text().replace("\\\n", "")
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    return {match[1].strip(): match[2] for line in lines if (match := re.match(r"(.+?)\s*((?:--hash=\S+\s*)*)$", line))}


def versions(lock: str) -> dict[str, set[str]]:
    """The locked versions by package; a package that forks on the Python version has two."""
    found: dict[str, set[str]] = {}
    for requirement in requirements(lock):
        name, _, pin = requirement.partition(" ")[0].partition("==")
        found.setdefault(name, set()).add(pin)
    return found


def test_both_distributions_of_the_package_pyspark_are_of_one_version() -> None:
    assert version("pyspark") == version("pyspark-client") == pyspark.__version__
    assert versions("requirements.txt")["pyspark"] == versions("requirements.txt")["pyspark-client"]


def test_setup_takes_the_installer_alone_and_with_its_hashes_from_the_locked_list() -> None:
    recipe = (REPOSITORY / "Makefile").read_text()
    program = re.search(r"awk '(/\^uv==/.*?)' requirements-dev\.txt", recipe)
    assert program is not None
    command = ["awk", program[1].replace("$$", "$"), str(REPOSITORY / "requirements-dev.txt")]
    taken = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    first, *hashes = taken.splitlines()
    assert re.fullmatch(r"uv==\S+ \\", first)
    assert hashes
    assert all(line.strip().startswith("--hash=sha256:") for line in hashes)
    assert not hashes[-1].endswith("\\")


def test_pandas_is_one_that_pyspark_can_import() -> None:
    assert int(version("pandas").partition(".")[0]) < 3


def test_the_package_is_built_by_the_locked_builder_everywhere() -> None:
    assert versions("requirements-build.txt")["setuptools"] == versions("requirements-dev.txt")["setuptools"]
    for file in ("Dockerfile", "Makefile"):
        builds = [line for line in (REPOSITORY / file).read_text().splitlines() if "-e ." in line]
        assert builds
        assert all("--no-deps --no-build-isolation" in line for line in builds), file


@pytest.mark.parametrize("lock", LOCKS)
def test_every_locked_requirement_has_one_version_and_a_hash(lock: str) -> None:
    assert requirements(lock)
    for requirement, hashes in requirements(lock).items():
        assert re.match(r"[a-z0-9.-]+(\[[a-z0-9,-]+\])?==\S+( ; .+)?$", requirement)
        assert "--hash=sha256:" in hashes, requirement


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_names_no_index_and_no_host(lock: str) -> None:
    text = (REPOSITORY / lock).read_text()
    options = [line for line in text.splitlines() if line.startswith("-")]
    assert options == []
    assert "://" not in text


def test_making_the_locks_again_raises_pins_only_if_asked_to() -> None:
    kept, raised = (
        subprocess.run(["make", "-n", "lock", *words], cwd=REPOSITORY, capture_output=True, text=True, check=True)
        for words in ((), ("UPGRADE=1",))
    )
    assert kept.stdout.count("pip compile") == len(LOCKS)
    assert (kept.stdout.count("--upgrade"), raised.stdout.count("--upgrade")) == (0, len(LOCKS))


@pytest.mark.parametrize("lock", ["requirements-dev.txt", "requirements-executor.txt", "requirements-image.txt"])
def test_what_two_locks_share_has_the_same_version_in_both(lock: str) -> None:
    product = versions("requirements.txt")
    shared = {name: pins for name, pins in versions(lock).items() if name in product}
    assert shared == {name: product[name] for name in shared}


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_holds_what_its_source_asks_for(lock: str) -> None:
    source = (REPOSITORY / lock).with_suffix(".in").read_text()
    wanted = {match[0].lower() for match in re.finditer(r"^[A-Za-z][\w-]*", source, re.M)}
    assert wanted <= versions(lock).keys()


@pytest.mark.slow
def test_foreign_executors_get_all_that_the_core_imports() -> None:
    core = REPOSITORY / "jobs" / "pulsar_advisor"
    modules: set[str] = set()
    for package in ("model", "shedding", "placement", "splitting", "planning"):
        for source in (core / package).rglob("*.py"):
            for node in ast.walk(ast.parse(source.read_text())):
                if isinstance(node, ast.Import):
                    modules |= {alias.name.partition(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                    modules.add(node.module.partition(".")[0])
    assert modules - sys.stdlib_module_names - {"pulsar_advisor"} <= versions("requirements-executor.txt").keys()


ON_AN_EXECUTOR = """
import sys
from importlib.abc import MetaPathFinder
from importlib.metadata import packages_distributions

there, of_packages = set(sys.argv[1:]), packages_distributions()


class NotThere(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        packages = {one.lower().replace("_", "-") for one in of_packages.get(name.partition(".")[0], ())}
        if packages and not packages & there:
            raise ModuleNotFoundError(f"{name} is not on an executor", name=name)


sys.meta_path.insert(0, NotThere())
import pulsar_advisor.stages.recommend_shedder
import pulsar_advisor.stages.simulate_combination
"""


@pytest.mark.slow
def test_foreign_executors_can_import_the_tasks_of_strategies() -> None:
    there = [*versions("requirements-executor.txt"), "pulsar-rebalance-advisor", "pyspark", "py4j"]
    ended = subprocess.run([sys.executable, "-c", ON_AN_EXECUTOR, *there], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


@pytest.fixture(scope="module")
def wheel_files(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The names in a wheel built from a copy of the sources that has one more expectation suite."""
    sources = tmp_path_factory.mktemp("sources")
    for folder in ("jobs", "plugins", "expectations"):
        if (REPOSITORY / folder).is_dir():
            shutil.copytree(
                REPOSITORY / folder, sources / folder, symlinks=True, ignore=shutil.ignore_patterns("__pycache__")
            )
    for name in ("pyproject.toml", "requirements.in", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, sources)
    (sources / "expectations").mkdir(exist_ok=True)
    (sources / "expectations" / "one_more.json").write_text("{}")
    build = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
    result = subprocess.run(
        [sys.executable, "-c", build, "dist"], cwd=sources, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    (wheel,) = (sources / "dist").glob("*.whl")
    return set(zipfile.ZipFile(wheel).namelist())


@pytest.mark.slow
def test_the_wheel_ships_a_new_expectation_suite_without_being_told(wheel_files: set[str]) -> None:
    assert "pulsar_advisor/quality/suites/one_more.json" in wheel_files


@pytest.mark.parametrize("package", ["jobs/pulsar_advisor", "plugins/pulsar_advisor_airflow"])
def test_the_wheel_ships_every_file_of_a_package(wheel_files: set[str], package: str) -> None:
    source_root = (REPOSITORY / package).parent
    files = {
        str(Path(folder, name).relative_to(source_root))
        for folder, _, names in os.walk(REPOSITORY / package, followlinks=True)
        for name in names
        if "__pycache__" not in folder and not name.startswith(".") and Path(folder, name).is_file()
    }
    assert f"{Path(package).name}/py.typed" in files
    assert files - wheel_files == set()
