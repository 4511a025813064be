"""The tables of folded days in the root: one file each, named by its hash, and a result, written last, that names them.

When a day is folded again, its earlier files stay until the new result is written, so one version is always complete. A
reader who still has the earlier result then reads the new one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Final

import pyarrow as pa
from upath import UPath

from pulsar_advisor.documents.history_day import FoldedTable, HistoryDay
from pulsar_advisor.model.errors import AdvisorError, StorageError
from pulsar_advisor.storage.claim import remove_other_files
from pulsar_advisor.storage.files import sha256_hex, sha256_of_file, write_file
from pulsar_advisor.storage.history import day_if_any
from pulsar_advisor.storage.root import Day, Root
from pulsar_advisor.tables.parquet import as_parquet
from pulsar_advisor.tables.stored import stored_files, stored_rows_if_any

_AGAIN: Final = "fold the day again"
_PARTS: Final = "import"
"""The folder of the parts of days that are being imported."""
_DIGITS: Final = 12
"""Digits of the hash in a file's name."""
_SINCE: Final = {"settings": 2, "events": 2, "policies": 3}
"""Tables added later -> the first version of the columns that has them."""
_NAME: Final = re.compile(rf"part-[0-9a-f]{{{_DIGITS}}}\.parquet")


def write_day(
    day: Day,
    tables: Mapping[str, pa.Table],
    result: Callable[[Mapping[str, FoldedTable]], HistoryDay],
    require: Callable[[], None],
) -> HistoryDay:
    """Write the tables of a day, and then the result that `result` makes from their files.

    `require` raises if the day isn't ours to write any more. Raises `StorageError`.
    """
    files = {name: _write(day.folder(name), rows) for name, rows in tables.items()}
    require()
    written = result(files)
    write_file(day.result_file, written.content())
    for name, file in files.items():
        require()
        remove_other_files(day.root, day.folder(name), (file.file,))
    return written


def read_day_tables(
    root: Root, day: HistoryDay, schemas: Mapping[str, pa.Schema]
) -> tuple[HistoryDay, dict[str, pa.Table]]:
    """Tables of a folded day, in the columns of these schemas; a table is empty if the day's version lacks it.

    They belong to the day returned with them: the given one, or a newer one that another process has folded meanwhile.
    Raises `StorageError` if a table isn't as it was written.
    """
    try:
        return day, {name: _table(root, day, name, schema) for name, schema in schemas.items()}
    except StorageError:
        now = day_if_any(root.day(day.day))
        if now is None or now == day:
            raise
    return read_day_tables(root, now, schemas)


def _table(root: Root, day: HistoryDay, table: str, schema: pa.Schema) -> pa.Table:
    if day.columns < _SINCE.get(table, 0):
        return schema.empty_table()
    file = _file(root, day, table)
    if why := _difference(file, day.tables[table]):
        raise StorageError(f"{why}: {_AGAIN}")
    files = stored_files([file], {field.name: field.type for field in schema})
    try:
        rows = files.to_table(columns=schema.names)
    except (OSError, pa.ArrowException) as error:
        raise StorageError(f"{file} can't be read as a table of a day: {error}: {_AGAIN}") from error
    if len(rows) != day.tables[table].rows:
        raise StorageError(f"{file} has {len(rows):,} rows, its day's result says {day.tables[table].rows:,}: {_AGAIN}")
    return rows


def write_part(day: Day, name: str, rows: pa.Table) -> None:
    """Keep a part of a day's load until the day is written. Raises `StorageError`."""
    write_file(_part(day, name), as_parquet(rows))


def read_part(day: Day, name: str) -> pa.Table | None:
    """The part with this name, or None. Raises `StorageError` if it can't be read."""
    return stored_rows_if_any(_part(day, name), "remove it and import the day again")


def remove_parts(day: Day, require: Callable[[], None]) -> None:
    """Remove all parts of a day that has been written, if there are any. Raises as `write_day` does."""
    folder = day.folder(_PARTS)
    if folder.is_dir():
        require()
        remove_other_files(day.root, folder, ())
        with suppress(OSError):  # an object store has no empty folders
            folder.rmdir()


def damage(root: Root, day: HistoryDay, tables: Iterable[str]) -> Iterator[str]:
    """The fault of each table of a day that is gone or not as it was written; `tables` are all tables of days."""
    for table in tables:
        if day.columns < _SINCE.get(table, 0):
            continue
        try:
            why = _difference(_file(root, day, table), day.tables[table])
        except AdvisorError as error:
            why = str(error)
        if why is not None:
            yield why


def _difference(file: UPath, written: FoldedTable) -> str | None:
    """The fault of a file; None if it is as it was written."""
    try:
        is_as_written = sha256_of_file(file) == written.sha256
    except OSError as error:
        return f"{file} can't be read: {error.strerror or error}"
    return None if is_as_written else f"{file} was changed since it was written"


def _part(day: Day, name: str) -> UPath:
    return day.folder(_PARTS) / f"part-{name[:_DIGITS]}.parquet"


def _file(root: Root, day: HistoryDay, table: str) -> UPath:
    named = day.tables.get(table)
    if named is None or not _NAME.fullmatch(named.file):  # a path would lead out of the folder
        raise StorageError(f"{root.day(day.day).result_file} names no file of table '{table}': {_AGAIN}")
    return root.day(day.day).folder(table) / named.file


def _write(folder: UPath, rows: pa.Table) -> FoldedTable:
    encodings = {field.name: field.metadata.get(b"encoding", b"").decode() for field in rows.schema}
    written = as_parquet(
        rows,
        use_dictionary=[name for name, encoding in encodings.items() if not encoding],
        column_encoding={name: encoding for name, encoding in encodings.items() if encoding},
    )
    sha256 = sha256_hex(written)
    name = f"part-{sha256[:_DIGITS]}.parquet"
    write_file(folder / name, written)
    return FoldedTable(file=name, rows=len(rows), bytes=len(written), sha256=sha256)
