"""Opens Parquet files in the root without trusting them: anybody who can write to the root may have put them there.

A footer's claims are checked first: the decoded size of its rows, and their types. A few kilobytes can claim a billion
rows, or repeat one long text a million times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow.fs import LocalFileSystem
from upath import UPath

from pulsar_advisor.model.errors import StorageError
from pulsar_advisor.storage.files import is_local, open_file

LARGEST_BYTES: Final = 4 * 2**30
"""Limit for all decoded rows of a table; the columns of ten million topics take half of it."""
LARGEST_FOOTER_BYTES: Final = 16 * 2**20
_MOST_CHUNKS: Final = 100_000
"""Limit for one file: row groups times columns."""

ARROW: Final[Mapping[str, pa.DataType]] = {
    "string": pa.string(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "array<string>": pa.list_(pa.string()),
    "array<bigint>": pa.list_(pa.int64()),
}
"""Spark SQL's name of a type -> Arrow's type."""

_FORMAT: Final = ds.ParquetFileFormat(
    default_fragment_scan_options=ds.ParquetFragmentScanOptions(
        thrift_string_size_limit=LARGEST_FOOTER_BYTES,
        thrift_container_size_limit=_MOST_CHUNKS,
        page_checksum_verification=True,
    )
)
_TAIL_BYTES: Final = 8
_MAGIC: Final = b"PAR1"
_OFFSET_BYTES: Final = 4
_FEW_BYTES: Final = 2**20
"""A chunk whose texts can't take more than this, however often repeated, isn't checked."""
_WIDTHS: Final[Mapping[str, int]] = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8, "INT96": 8}
"""Bytes of a decoded value by Parquet's physical type; values of the other types vary in length."""


def parquet_files(folder: UPath) -> list[UPath]:
    """The Parquet files of a folder by name. Raises `OSError` if it can't be listed."""
    return sorted(
        (path for path in folder.iterdir() if path.suffix == ".parquet" and path.name[0] not in "._"),
        key=lambda path: path.name,
    )


def stored_files(paths: Sequence[UPath], types: Mapping[str, pa.DataType] | None = None) -> ds.Dataset:
    """Files, at least one, as a table of which nothing has been decoded yet.

    Raises `StorageError`, naming the file, for one that isn't Parquet, has other columns than the first or a column of
    another type than `types` has for it, or whose rows would take more than is left of `LARGEST_BYTES`.
    """
    left = LARGEST_BYTES
    fragments: list[ds.ParquetFileFragment] = []
    for path in paths:
        try:
            _check_tail(path)
            content = path.path if is_local(path) else _fetched(path)
            fragment = _FORMAT.make_fragment(content, filesystem=LocalFileSystem())
            left -= _decoded_bytes(path, fragment.metadata, left)
        except (pa.ArrowException, OSError, OverflowError) as error:
            raise StorageError(f"{path} can't be read as Parquet: {error}") from error
        if fragments and not fragment.physical_schema.equals(fragments[0].physical_schema):
            raise StorageError(f"{path} has different columns from {paths[0].name} next to it")
        fragments.append(fragment)
    columns = fragments[0].physical_schema
    for field in columns:
        if not field.type.equals(expected := (types or {}).get(field.name, field.type)):
            raise StorageError(f"{paths[0]}: its column {field.name} is {field.type}, not {expected}")
    return ds.FileSystemDataset(fragments, columns, _FORMAT, LocalFileSystem())


def stored_rows_if_any(path: UPath, todo: str) -> pa.Table | None:
    """The rows of a file that may not be there; `todo` is the advice if it can't be read. Raises `StorageError`."""
    if not path.exists():
        return None
    try:
        return stored_files([path]).to_table()
    except (OSError, pa.ArrowException) as error:
        raise StorageError(f"{path} can't be read: {error}: {todo}") from error


def _fetched(path: UPath) -> pa.Buffer:
    """An object of a store in Arrow's own memory. Raises `OSError`.

    Arrow's threads close a file when its rows may have been returned already. If it is one of Python's, they need the
    interpreter for that, and abort a process that is just ending: exit code 134 (apache/arrow#45017).
    """
    content = pa.BufferOutputStream()
    content.write(path.read_bytes())
    return content.getvalue()


def _check_tail(path: UPath) -> None:
    """The lengths of the file and of its footer, before anything allocates them."""
    with open_file(path) as file:
        size = file.seek(0, 2)
        file.seek(max(size - _TAIL_BYTES, 0))
        tail = file.read(_TAIL_BYTES)
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != _MAGIC or length > size:
        raise StorageError(f"{path} is not a Parquet file, or its end is missing")
    if size > LARGEST_BYTES:
        raise StorageError(f"{path} has {size:,} bytes: no snapshot has such a table")
    if length > LARGEST_FOOTER_BYTES:
        raise StorageError(f"{path} has a footer of {length:,} bytes, more than any table needs")


def _decoded_bytes(path: UPath, claimed: pq.FileMetaData, most: int) -> int:
    """What the rows of a file take in memory. Raises `StorageError` if that is more than `most`."""
    if claimed.num_row_groups * claimed.num_columns > _MOST_CHUNKS:
        raise StorageError(f"{path} has {claimed.num_row_groups:,} row groups of {claimed.num_columns:,} columns")
    total = 0
    for group in range(claimed.num_row_groups):
        rows = claimed.row_group(group)
        for place in range(claimed.num_columns):
            chunk = rows.column(place)
            total += _WIDTHS.get(chunk.physical_type, _OFFSET_BYTES) * max(chunk.num_values, rows.num_rows)
            if chunk.physical_type not in _WIDTHS and total <= most:
                total += _text_bytes(path, group, chunk)
            if total > most:
                raise StorageError(
                    f"{path}: its {claimed.num_rows:,} rows would take more than {LARGEST_BYTES:,} bytes of memory "
                    f"by column {chunk.path_in_schema}: no snapshot has such a table"
                )
    return total


def _text_bytes(path: UPath, group: int, chunk: pq.ColumnChunkMetaData) -> int:
    """Bytes of all texts of a chunk. If a dictionary may repeat texts often, it is read without expanding them."""
    size = int(chunk.total_uncompressed_size)
    if size > LARGEST_BYTES or not any("DICTIONARY" in encoding for encoding in chunk.encodings):
        return size
    if chunk.num_values * size <= _FEW_BYTES:
        return int(chunk.num_values) * size
    with path.open("rb") as file:
        column = pq.ParquetFile(file, read_dictionary=[chunk.path_in_schema]).read_row_group(
            group, columns=[chunk.path_in_schema], use_threads=False
        )[0]
    total = 0
    for texts in column.chunks:
        while pa.types.is_list(texts.type):
            texts = texts.flatten()
        if not pa.types.is_dictionary(texts.type):
            raise StorageError(f"{path}: column {chunk.path_in_schema} has a type that no table has")
        lengths = pc.binary_length(texts.dictionary).cast(pa.int64())
        total += pc.sum(lengths.take(texts.indices)).as_py() or 0
    return total
