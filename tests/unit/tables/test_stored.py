"""Parquet that somebody put into the root: refused by name, before it takes memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from upath import UPath

from pulsar_advisor.model.errors import StorageError
from pulsar_advisor.storage.root import Root
from pulsar_advisor.tables.outcomes import SCHEMA, outcomes_of
from pulsar_advisor.tables.stored import LARGEST_BYTES, LARGEST_FOOTER_BYTES, parquet_files, stored_files

CLAIMED_ROWS = 12_345
MEGABYTE = 10**6
SNAPSHOT = "20261121T083000Z"


def varint(number: int) -> bytes:
    """Thrift's compact form of a positive integer."""
    left, written = number << 1, bytearray()
    while left > 127:
        written.append(left & 127 | 128)
        left >>= 7
    return bytes([*written, left])


def claim_rows(file: Path, rows: int) -> None:
    """Let the footer say this number of rows wherever it says `CLAIMED_ROWS`."""
    content = file.read_bytes()
    length = int.from_bytes(content[-8:-4], "little")
    body, footer = content[: -8 - length], content[-8 - length : -8]
    assert footer.count(varint(CLAIMED_ROWS)) >= 2
    footer = footer.replace(varint(CLAIMED_ROWS), varint(rows))
    file.write_bytes(body + footer + len(footer).to_bytes(4, "little") + b"PAR1")


def repeated(times: int, size: int = MEGABYTE) -> pa.DictionaryArray:
    """One text of `size` bytes, `times` times: a file of a few kilobytes."""
    return pa.DictionaryArray.from_arrays(pa.array([0] * times, pa.int32()), pa.array(["x" * size]))


def write(file: Path, rows: pa.Table) -> UPath:
    pq.write_table(rows, file, compression="zstd")
    return UPath(file)


def refused(*paths: UPath, match: str) -> None:
    with pytest.raises(StorageError, match=match):
        stored_files(paths)


@pytest.mark.parametrize("kind", [pa.int64(), pa.string(), pa.list_(pa.string()), pa.bool_(), pa.float64()])
def test_rows_that_only_the_footer_has_are_not_believed(tmp_path: Path, kind: pa.DataType) -> None:
    file = tmp_path / "rows.parquet"
    rows = pa.table({"a": pa.nulls(CLAIMED_ROWS, kind), "b": pa.nulls(CLAIMED_ROWS, pa.int64())})
    path = write(file, rows)
    assert stored_files([path]).count_rows() == CLAIMED_ROWS
    claim_rows(file, 10**9)
    refused(path, match=rf"{file}: its 1,000,000,000 rows would take more than {LARGEST_BYTES:,} bytes of memory")


def test_a_dictionary_bomb_is_refused_without_being_unfolded(tmp_path: Path) -> None:
    path = write(tmp_path / "bomb.parquet", pa.table({"topic": repeated(10_000)}))
    assert path.stat().st_size < 100_000
    before = pa.total_allocated_bytes()
    refused(path, match="its 10,000 rows would take more than .* by column topic")
    assert pa.total_allocated_bytes() - before < 10 * MEGABYTE


def test_a_bomb_takes_no_more_memory_than_its_dictionary(tmp_path: Path) -> None:
    path = write(tmp_path / "bomb.parquet", pa.table({"topic": repeated(100_000, 10 * MEGABYTE)}))
    script = (
        "import resource, sys; from upath import UPath; from pulsar_advisor.tables.stored import stored_files\n"
        "def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024\n"
        "before = peak()\n"
        "try: stored_files([UPath(sys.argv[1])])\n"
        "except Exception as error: print(type(error).__name__, peak() - before)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True)
    kind, mebibytes = done.stdout.split()
    assert kind == "StorageError"
    assert int(mebibytes) < 200


@pytest.mark.parametrize(
    "kind",
    [
        pa.struct([("x", pa.string())]),
        pa.map_(pa.string(), pa.string()),
        pa.large_list(pa.struct([("y", pa.string())])),
    ],
)
def test_a_column_of_a_type_that_no_table_has_is_refused(tmp_path: Path, kind: pa.DataType) -> None:
    value = {"x": "text"} if pa.types.is_struct(kind) else [("k", "v")] if pa.types.is_map(kind) else [{"y": "text"}]
    path = write(tmp_path / "foreign.parquet", pa.table({"a": pa.array([value] * 200_000, kind)}))
    refused(path, match="column a.* has a type that no table has")


def test_a_bomb_in_a_list_is_one_too(tmp_path: Path) -> None:
    texts = repeated(10_000)
    rows = pa.ListArray.from_arrays(pa.array([0, 10_000], pa.int32()), texts)
    refused(write(tmp_path / "bomb.parquet", pa.table({"primary": rows})), match="by column primary.list.element")


def test_files_that_are_too_large_together_are_refused(tmp_path: Path) -> None:
    rows = pa.table({"topic": repeated(3_000)})
    paths = [write(tmp_path / f"part-{number}.parquet", rows) for number in range(2)]
    stored_files(paths[:1])
    refused(*paths, match="part-1.parquet: its 3,000 rows would take more than")


@pytest.fixture(params=["", "memory://"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> UPath:
    """A table of one row, on this machine or in an object store."""
    written = write(tmp_path / "rows.parquet", pa.table({"namespace": ["t/n"]}))
    path = UPath(f"{request.param}{written}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(written.read_bytes())
    return path


def test_no_thread_of_arrow_needs_the_interpreter_to_close_a_file(path: UPath) -> None:
    files = stored_files([path])
    assert [isinstance(fragment.open(), pa.PythonFile) for fragment in files.get_fragments()] == [False]
    assert files.to_table()["namespace"].to_pylist() == ["t/n"]


def test_a_column_of_another_type_is_named_with_its_file(path: UPath) -> None:
    with pytest.raises(StorageError, match=r"rows\.parquet: its column namespace is string, not int64"):
        stored_files([path], {"namespace": pa.int64(), "absent": pa.int64()})


def test_texts_that_repeat_within_reason_are_a_table(tmp_path: Path) -> None:
    names = pa.array([f"tenant/namespace-{number % 500}" for number in range(100_000)])
    path = write(tmp_path / "rows.parquet", pa.table({"namespace": names.dictionary_encode()}))
    assert stored_files([path]).to_table()["namespace"].cast(pa.string()).combine_chunks().equals(names)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is not a Parquet file"),
        (b"PAR1", "is not a Parquet file"),
        (b"not a table at all", "is not a Parquet file"),
        (b"PAR1" + (2**31).to_bytes(4, "little") + b"PAR1", "is not a Parquet file, or its end is missing"),
        (b"PAR1" + bytes(64) + (64).to_bytes(4, "little") + b"PAR1", "can't be read as Parquet"),
        (b"PAR1" + b"\xff" * 64 + (64).to_bytes(4, "little") + b"PAR1", "can't be read as Parquet"),
    ],
)
def test_what_is_no_parquet_is_named(tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "rows.parquet").write_bytes(content)
    refused(UPath(tmp_path / "rows.parquet"), match=rf"{tmp_path}/rows\.parquet {why}")


def test_a_footer_that_no_table_needs_is_not_parsed(tmp_path: Path) -> None:
    length = LARGEST_FOOTER_BYTES + 1
    with (tmp_path / "rows.parquet").open("wb") as file:
        file.truncate(length + 4)
        file.seek(0, 2)
        file.write(length.to_bytes(4, "little") + b"PAR1")
    refused(UPath(tmp_path / "rows.parquet"), match="has a footer of 16,777,217 bytes, more than any table needs")


def test_a_file_with_other_columns_than_the_first_is_refused(tmp_path: Path) -> None:
    one = write(tmp_path / "part-0.parquet", pa.table({"topic": ["a"]}))
    other = write(tmp_path / "part-1.parquet", pa.table({"topic": [1]}))
    refused(one, other, match="part-1.parquet has different columns from part-0.parquet next to it")


def test_a_page_that_is_not_as_it_was_written_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "rows.parquet"
    pq.write_table(
        pa.table({"owner": ["a:8080"]}), file, compression="none", write_page_checksum=True, write_statistics=False
    )
    file.write_bytes(file.read_bytes().replace(b"a:8080", b"b:8080"))
    with pytest.raises(OSError, match="CRC"):
        stored_files([UPath(file)]).to_table()


def test_what_hadoop_leaves_beside_the_files_is_none_of_them(tmp_path: Path) -> None:
    for name in ("part-1.parquet", "part-0.parquet", ".part-0.parquet.crc", "_SUCCESS", "_temporary.parquet"):
        (tmp_path / name).touch()
    assert [path.name for path in parquet_files(UPath(tmp_path))] == ["part-0.parquet", "part-1.parquet"]


@pytest.mark.parametrize("answers", [pa.table({"strategy": [1]}), pa.table({"strategy": repeated(10_000)}), None])
def test_answers_that_recommend_did_not_write_are_named(tmp_path: Path, answers: pa.Table | None) -> None:
    snapshot = Root(str(tmp_path), "test").snapshot(SNAPSHOT)
    file = Path(str(snapshot.folder("outcomes"))) / "ThresholdShedder.parquet"
    file.parent.mkdir(parents=True)
    assert outcomes_of(snapshot, {"ThresholdShedder": ()}).num_rows == 0
    pq.write_table(SCHEMA.empty_table(), file)
    assert outcomes_of(snapshot, {"ThresholdShedder": ()}).schema.equals(SCHEMA)
    if answers is None:
        file.write_bytes(b"rotten")
    else:
        pq.write_table(answers, file)
    with pytest.raises(StorageError, match=rf"the answers about snapshot {SNAPSHOT} are damaged .*{file}"):
        outcomes_of(snapshot, {"ThresholdShedder": ()})
