"""Java's class-data archive: Spark's classes, parsed and verified once, mapped into memory at every later start.

An environment that has the folder has one archive: for the Java and the jars that it was made with. The run that finds
another Java or other jars makes it anew when its Java ends (JEP 350).
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
"""Java says a word about every class it can't archive; and a Java that knows no archives goes without."""


def class_archive_options(folder: Path = FOLDER) -> str:
    """Options with which Java uses the archive in `folder`, or makes it; none where there is no such folder."""
    if not folder.is_dir():
        return ""
    archive = folder / f"{_key()}.jsa"
    if archive.exists():
        return f"-XX:SharedArchiveFile={archive} {_QUIET}"
    try:
        for stale in folder.glob("*.jsa"):
            stale.unlink(missing_ok=True)
    except OSError:
        return ""  # an environment that can't be written is used as it is
    return f"-XX:ArchiveClassesAtExit={archive} {_QUIET}"


def _key() -> str:
    """What an archive is good for: one build of Java, and jars that are the same to the second and the byte."""
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
    library = Path(java).resolve().parents[1] / "lib" / "server" / "libjvm.so"
    return library if library.exists() else Path(java).resolve()
