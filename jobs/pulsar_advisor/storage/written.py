"""One hash of what a stage wrote about a snapshot: its result file, and for tables also their files."""

from __future__ import annotations

from collections.abc import Iterator

from upath import UPath

from pulsar_advisor.model.errors import attempting
from pulsar_advisor.model.plans.canonical_json import canonical_json
from pulsar_advisor.storage.files import read_file, sha256_hex, sha256_of_file
from pulsar_advisor.storage.results import read_tables_result
from pulsar_advisor.storage.root import Root


def result_sha256(root: Root, snapshot: str, stage: str) -> str | None:
    """SHA-256 (hex) of what a stage wrote about a snapshot; None if that doesn't exist, or not any more."""
    path = root.result_file(snapshot, stage)
    if not path.exists():
        return None
    if stage != "normalize":
        return sha256_hex(read_file(path, stage))
    tables = sorted(read_tables_result(root, snapshot).tables)
    files = {file: sha256 for table in tables for file, sha256 in _hashes(root.folder(f"tables/{table}", snapshot))}
    return sha256_hex(canonical_json({"result": sha256_hex(read_file(path, stage)), **files}))


def _hashes(folder: UPath) -> Iterator[tuple[str, str]]:
    """Each file below a table's folder, as `<table>//<path>`, and its SHA-256 (hex); every seal has the two slashes."""
    with attempting(f"read {folder}"):
        for file in sorted(folder.rglob("*"), key=str):
            if file.is_file():
                yield f"{folder.parent.parent.name}/{file.path.removeprefix(folder.path)}", sha256_of_file(file)
