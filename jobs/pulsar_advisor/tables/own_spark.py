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


def require_startable(environment: Mapping[str, str]) -> None:
    """Raises `UsageError` if Spark's Java would fail without naming the reason: another release in `SPARK_HOME`, a
    folder for temporary files from which nothing may be run, where it puts its libraries, or a user without a name, as
    in containers that run under any uid (Hadoop's login asks for it).
    """
    home, release = environment.get("SPARK_HOME"), pyspark.__version__
    if home is not None and not any(Path(home, "jars").glob(f"spark-core_*-{release}*.jar")):
        raise UsageError(f"SPARK_HOME is {home}, which isn't Spark {release}: unset it, to use the one installed here")
    if os.statvfs(folder := gettempdir()).f_flag & _NOEXEC:
        raise UsageError(
            f"{folder}, for temporary files, is mounted noexec, and Spark's Java has to load libraries from there: set "
            "TMPDIR to a folder elsewhere"
        )
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        raise UsageError(
            f"the user of this process, uid {os.getuid()}, has no name on this machine, and Spark's Java doesn't start "
            "without: add it to /etc/passwd, or run as a user who has one"
        ) from None
