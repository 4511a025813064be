"""What another Spark has left in the environment decides nothing; what would keep Java from starting is named."""

from __future__ import annotations

import os
import pwd
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pyspark
import pytest

from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.tables.own_spark import choose_own_spark, require_startable, temporary_folder_option
from pulsar_advisor.tables.session import server_settings

OF_OTHERS = {"SPARK_REMOTE": "sc://team:15002", "SPARK_API_MODE": "connect", "MASTER": "yarn"}


@pytest.mark.parametrize("master", ["local[*]", "spark://host:7077", "sc://host:15002"])
def test_no_variable_names_another_master(master: str) -> None:
    environment = OF_OTHERS | {"SPARK_CONF_DIR": "/etc/spark"}
    choose_own_spark(environment, master, utf8_mode=False)
    assert environment["SPARK_CONF_DIR"] == "/etc/spark"
    assert environment.keys().isdisjoint(OF_OTHERS)


@pytest.mark.parametrize(
    ("master", "workers"),
    [
        ("local[*]", {"PYSPARK_PYTHON": sys.executable, "PYTHONSAFEPATH": "1"}),
        ("spark://host:7077", {"PYSPARK_PYTHON": "python3.12"}),
    ],
)
def test_workers_here_run_in_this_python_and_no_module_of_the_current_folder(
    master: str, workers: dict[str, str]
) -> None:
    environment = {"PYSPARK_PYTHON": "python3.12"}
    choose_own_spark(environment, master, utf8_mode=False)
    assert environment == workers


@pytest.mark.parametrize(("utf8_mode", "locale"), [(True, "C.UTF-8"), (False, "en_US.ISO-8859-1")])
def test_java_names_files_as_python_does(utf8_mode: bool, locale: str) -> None:
    environment = {"LC_ALL": "en_US.ISO-8859-1"}
    choose_own_spark(environment, "spark://host:7077", utf8_mode=utf8_mode)
    assert environment == {"LC_ALL": locale}


def test_another_release_in_spark_home_is_named(tmp_path: Path) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark-core_2.12-3.5.7.jar").touch()
    with pytest.raises(UsageError, match=f"SPARK_HOME is {tmp_path}, which isn't Spark {pyspark.__version__}: unset"):
        require_startable({"SPARK_HOME": str(tmp_path)})


def test_the_same_release_in_spark_home_is_used() -> None:
    require_startable({"SPARK_HOME": str(Path(pyspark.__file__).parent)})


def test_a_folder_for_temporary_files_that_java_can_load_nothing_from_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(os, "statvfs", lambda _folder: SimpleNamespace(f_flag=os.ST_NOEXEC | os.ST_NOSUID))
    with pytest.raises(UsageError, match=f"{tmp_path}, for temporary files, is mounted noexec.*: set TMPDIR"):
        temporary_folder_option({})
    assert temporary_folder_option({"JAVA_TOOL_OPTIONS": "-Djava.io.tmpdir=/elsewhere"}) == ""


def test_a_container_without_a_folder_for_temporary_files_is_told_to_mount_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: [str(tmp_path / "none")])
    with pytest.raises(UsageError, match="no folder for temporary files can be written"):
        temporary_folder_option({})


def test_java_keeps_temporary_files_where_python_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert f'-Djava.io.tmpdir="{tmp_path}"' in str(server_settings(15002)["spark.driver.extraJavaOptions"])


def test_a_temporary_folder_of_any_name_is_one_word_of_the_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", '/var/my "tmp"/a\\b')
    monkeypatch.setattr(os, "statvfs", lambda _folder: SimpleNamespace(f_flag=0))
    assert temporary_folder_option({}) == r'-Djava.io.tmpdir="/var/my \"tmp\"/a\\b"'


def test_a_user_without_a_name_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(uid: int) -> pwd.struct_passwd:
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    with pytest.raises(UsageError, match=f"uid {os.getuid()}, has no name on this machine"):
        require_startable({})
