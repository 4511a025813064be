"""Makes PySpark use this environment's own Spark, whatever another one has left in the environment's variables."""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from tempfile import gettempdir
from typing import Final

import pyspark

from pulsar_advisor.model.errors import UsageError

_OF_ANOTHER_MASTER: Final = ("MASTER", "SPARK_API_MODE", "SPARK_REMOTE")
"""They name another master, or another kind, than the one that is given: PySpark refuses both together."""

_OPTIONS_OF_JAVA: Final = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
"""Their options count less than those of the command line, but for the last one's."""

_NOEXEC: Final = getattr(os, "ST_NOEXEC", 0)
"""The flag of a file system from which nothing may be run, where this system has one."""


def choose_own_spark(environment: MutableMapping[str, str], master: str, *, utf8_mode: bool) -> None:
    """Remove from the variables what contradicts the master. Workers on this machine run in this Python, and without
    modules of the current folder, which may be anybody's. Where Python names files in UTF-8 whatever the locale, such
    as one that isn't installed, so does Java, which has to find them.
    """
    for name in _OF_ANOTHER_MASTER:
        environment.pop(name, None)
    if utf8_mode:
        environment["LC_ALL"] = "C.UTF-8"
    if master.startswith("local"):
        environment.update({"PYSPARK_PYTHON": sys.executable, "PYTHONSAFEPATH": "1"})


def temporary_folder_option(environment: Mapping[str, str]) -> str:
    """The option to keep temporary files where Python does: Java by itself ignores `TMPDIR`. Empty if options of
    Java in the environment name a folder.

    Raises `UsageError` if there is no such folder, or nothing may be run from it: Java puts libraries there.
    """
    if any("-Djava.io.tmpdir=" in environment.get(name, "") for name in _OPTIONS_OF_JAVA):
        return ""
    try:
        folder = gettempdir()
    except FileNotFoundError as error:  # it has tried each of the folders that it knows
        raise UsageError(
            "no folder for temporary files can be written, and Spark's Java needs one: set TMPDIR to one, or mount a "
            "volume at /tmp"
        ) from error
    if os.statvfs(folder).f_flag & _NOEXEC:
        raise UsageError(
            f"{folder}, for temporary files, is mounted noexec, and Spark's Java has to load libraries from there: set "
            "TMPDIR to a folder elsewhere"
        )
    quoted = folder.replace("\\", "\\\\").replace('"', '\\"')
    return f'-Djava.io.tmpdir="{quoted}"'


def require_startable(environment: Mapping[str, str]) -> None:
    """Raises `UsageError` if Spark's Java would fail without naming the reason: another release in `SPARK_HOME`, or a
    user without a name, as in containers that run under any uid (Hadoop's login asks for it).
    """
    home, release = environment.get("SPARK_HOME"), pyspark.__version__
    if home is not None and not any(Path(home, "jars").glob(f"spark-core_*-{release}*.jar")):
        raise UsageError(f"SPARK_HOME is {home}, which isn't Spark {release}: unset it, to use the one installed here")
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        raise UsageError(
            f"the user of this process, uid {os.getuid()}, has no name on this machine, and Spark's Java doesn't start "
            "without: add it to /etc/passwd, or run as a user who has one"
        ) from None
