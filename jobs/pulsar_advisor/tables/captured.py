"""A manifest as table rows: its files as rows of `documents`, its gaps as rows of `problems`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from pulsar_advisor.documents.manifest import NOT_AVAILABLE, Failure, Manifest, Missing, Read
from pulsar_advisor.tables.frames import Row


def captured_documents(manifest: Manifest, counts: Mapping[str, tuple[int, int]]) -> Iterator[Row]:
    """Rows of `documents`: when each raw file's content was read, and how many of its lines are unreadable.

    `counts`: path -> (lines, unreadable lines among them).
    """
    reads: defaultdict[tuple[str, str | None], list[Read]] = defaultdict(list)
    for read in manifest.reads:
        reads[read.surface, None].append(read)
        reads[read.surface, read.target].append(read)
    for file in manifest.files:
        of_file = reads[file.surface, file.broker]
        yield {
            **dict(file),
            "unreadable_rows": counts.get(file.path, (0, 0))[1],
            "read_started_at_ms": min((read.started_at_ms for read in of_file), default=None),
            "read_finished_at_ms": max((read.finished_at_ms for read in of_file), default=None),
        }


def gaps(manifest: Manifest) -> Iterator[Row]:
    """Rows of `problems`: what could not be read, and what the cluster lacks."""
    for failure in manifest.failures:
        yield _gap("failure", failure, failure.error)
    for one in manifest.missing:
        detail = one.reason if one.namespace is None else f"{one.namespace}: {one.reason}"
        yield _gap("not_available" if one.reason.startswith(NOT_AVAILABLE) else "missing", one, detail)


def _gap(problem: str, of: Failure | Missing, detail: str) -> Mapping[str, str | None]:
    return {"problem": problem, "surface": of.surface, "broker": of.broker, "detail": detail}
