"""Java's class-data archive: Spark's classes, parsed and verified once, memory-mapped at every later start.

An environment with the folder has one archive, valid for one Java and one set of jars. A run that finds others
recreates it when its Java exits (JEP 350).
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from pathlib import Path
from typing import Final

import pyspark

FOLDER: Final = Path(sys.prefix) / "var" / "pulsar-advisor"

_QUIET: Final = "-XX:+IgnoreUnrecognizedVMOptions -Xlog:disable"
"""Java logs every class it can't archive, and a Java without archives rejects the options; both are suppressed."""

_STARTED_BY_JAVA: Final = "PYSPARK_GATEWAY_PORT"
"""The environment variable by which PySpark finds a running Java."""


def class_archive_options(folder: Path = FOLDER) -> str:
    """Options with which Java uses the archive in `folder`, or creates it; none if the folder doesn't exist, or if Java
    runs already (`spark-submit` starts it before Python).
    """
    if _STARTED_BY_JAVA in os.environ or not folder.is_dir():
        return ""
    archive = folder / f"{_key()}.jsa"
    if archive.exists():
        return f'-XX:SharedArchiveFile="{archive}" {_QUIET}'
    try:
        for stale in folder.glob("*.jsa"):
            stale.unlink(missing_ok=True)
    except OSError:
        return ""  # a read-only environment is used as it is
    return f'-XX:ArchiveClassesAtExit="{archive}" {_QUIET}'


def _key() -> str:
    """What an archive is valid for: one build of Java, and jars with these modification times and sizes."""
    java = _java()
    files = [*sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar")), *([java] if java else [])]
    found = [f"{file} {file.stat().st_size} {file.stat().st_mtime_ns}" for file in files]
    return hashlib.sha256("\n".join(found).encode()).hexdigest()[:16]


def _java() -> Path | None:
    """The library of the Java that Spark's scripts start."""
    home = os.environ.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else shutil.which("java")
    if java is None:
        return None
    start = Path(java).resolve()
    library = start.parents[1] / "lib" / "server" / "libjvm.so"
    return next((file for file in (library, start) if file.exists()), None)
